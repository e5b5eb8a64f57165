"""The fleet report: how often jobs fail in a period, of what, at what cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app import questions
from app.components import glossary
from app.figures import numbers
from app.reports import (
    cells,
    content,
    coverage,
    fleet_ledger,
    fleet_summary,
    fleet_tables,
    redaction,
)
from app.reports.charts import causes as causes_chart
from app.reports.charts import mttf_by_size, rate_by_week
from app.reports.content import Headline, Report, Section

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from analytics.failures.incident_rate import IncidentSummary
    from analytics.failures.summary import FailureSummary
    from analytics.reliability.mttf import GroupRate, MttfReport
    from app.components.glossary import Term
    from app.questions import Coverage, Fleet
    from app.reports.cells import Kind
    from app.reports.content import Chart, Table
    from app.reports.redaction import Names
    from data.queries.selection import Selection
    from data.store import Store

TERMS = (
    glossary.FAILED_ATTEMPTS,
    glossary.UNKNOWN_CAUSE,
    *glossary.DOMAINS,
    glossary.PROJECTION,
    glossary.LOST_GPU_HOURS,
    *fleet_ledger.TERMS,
    glossary.COVERAGE,
)
"""Defined in the report besides its headline numbers."""
METHOD = (
    "Counts are of attempts: a requeued job is a new attempt.",
    "Rates have Garwood's exact interval, shares have Clopper and Pearson's.",
    "Attempts of one incident fail together: intervals by cause are then too narrow.",
    "A change on the preceding period is named only where the two intervals do not overlap.",
)


@dataclass(frozen=True)
class _Answers:
    """What the report is made of."""

    mttf: MttfReport
    before: MttfReport | None
    weeks: tuple[GroupRate, ...]
    failures: FailureSummary
    incidents: IncidentSummary
    costliest: Table
    fleet: Fleet
    gpu_hours: Section
    coverage: Coverage


def report(
    store: Store,
    selection: Selection,
    *,
    conf_level: float = 0.90,
    seed: int = 0,
    redact: bool = False,
) -> Report:
    """How often did jobs of the selection fail, of what, and what does that rest on?"""
    names = redaction.names(store, redact=redact)
    found = _answers(store, selection, conf_level=conf_level, seed=seed)
    mttf, headlines = found.mttf, _headlines(found)
    made = Report(
        kind="fleet",
        stem="fleet",
        title="Fleet reliability" + (f": {selection.cluster}" if selection.cluster else ""),
        period=numbers.period(mttf.from_at, mttf.to_at, "UTC"),
        filters=_filters(selection, names),
        answer=fleet_summary.answer(mttf),
        summary=_summary(found),
        headlines=headlines,
        notes=mttf.notes,
        sections=_sections(found, names),
        definitions=content.defined(headlines, TERMS),
        missing=found.coverage.missing,
        conf_level=conf_level,
        synthetic=store.current.synthetic,
        basis=content.basis(store),
    )
    return replace(made, content_sha256=content.digest(made))


def _answers(store: Store, selection: Selection, *, conf_level: float, seed: int) -> _Answers:
    """Asks everything."""
    estimate = {"conf_level": conf_level, "seed": seed}
    incidents = questions.incidents(store, selection, conf_level=conf_level)
    rows = questions.incident_rows(store, selection, first="largest", limit=fleet_tables.INCIDENTS)
    return _Answers(
        mttf=questions.mttf(store, selection, **estimate),
        before=questions.mttf_before(store, selection, **estimate),
        weeks=questions.rates_by(store, selection, "week", **estimate),
        failures=questions.failures(store, selection, conf_level=conf_level),
        incidents=incidents,
        costliest=fleet_tables.costliest(rows, incidents.n_incidents),
        fleet=questions.fleet(store, selection),
        gpu_hours=fleet_ledger.section(store, selection, conf_level=conf_level),
        coverage=questions.coverage(store, selection),
    )


def _summary(found: _Answers) -> tuple[str, ...]:
    """What else there is to say, most important first."""
    now, before = found.mttf.rate.rate_per_1000_node_days, found.before
    sentences = [
        fleet_summary.change(now, before and before.rate.rate_per_1000_node_days),
        fleet_summary.largest_jobs(found.mttf),
        *fleet_summary.causes(found.failures),
        fleet_summary.incidents(found.incidents, _costliest(found.costliest)),
        fleet_summary.fleet(found.fleet),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _sections(found: _Answers, names: Names) -> tuple[Section, ...]:
    """Tables with their pictures, by subject."""
    mttf, weeks = found.mttf, found.weeks
    return (
        _section(
            "Failure rate",
            rate_by_week.chart(weeks, mttf.rate.rate_per_1000_node_days),
            fleet_tables.by_week(weeks),
        ),
        _causes(found.failures),
        Section("Incidents", (found.costliest, fleet_tables.incident_causes(found.incidents))),
        _section(
            "Time to failure by job size",
            mttf_by_size.chart(mttf),
            fleet_tables.by_size(mttf),
            fleet_tables.projection(mttf),
        ),
        found.gpu_hours,
        Section("Nodes", (fleet_tables.out_of_service(found.fleet, names),)),
        coverage.section(found.coverage, mttf.from_at, mttf.to_at),
        Section("Method", (), METHOD),
    )


def _section(title: str, chart: Chart | None, *tables: Table) -> Section:
    """Tables, with their picture where there is something to draw."""
    return Section(title, tables if chart is None else (chart, *tables))


def _causes(failures: FailureSummary) -> Section:
    """What failed, and whose fault it was."""
    known = failures.exposure_node_days is not None
    return _section(
        "Causes",
        causes_chart.chart(failures.by_cause, exposure_known=known),
        fleet_tables.by_domain(failures),
        fleet_tables.by_cause(failures),
        fleet_tables.by_state(failures),
    )


def _costliest(table: Table) -> str | None:
    """What happened in the incident with the largest loss."""
    return str(table.rows[0][2]) if table.rows else None


def _headlines(found: _Answers) -> tuple[Headline, ...]:
    """The numbers of the report's head."""
    mttf, failures, incidents = found.mttf, found.failures, found.incidents
    largest = mttf.largest_class
    of_largest = () if largest is None else (
        _duration(glossary.largest_jobs(largest.gpus_from, largest.gpus_to), largest.mttf_hours),
    )  # fmt: skip
    out = found.fleet.n_out_of_service
    return (
        _rate(glossary.FAILURE_RATE, mttf.rate.rate_per_1000_node_days),
        _rate(glossary.INCIDENT_RATE, mttf.incident_rate.rate_per_1000_node_days),
        *of_largest,
        _duration(glossary.NODE_MTTF, mttf.rate.mttf_hours),
        _duration(glossary.BETWEEN_FAILURES, mttf.mean_time_between_failures_hours),
        _duration(glossary.REPAIR, mttf.mean_repair_hours),
        _share(glossary.UNKNOWN_CAUSE, failures.unknown_ratio),
        _lost(incidents, known=bool(failures.n_ended or incidents.n_incidents)),
        Headline(
            glossary.OUT_OF_SERVICE.label,
            numbers.count(out),
            f"of {found.fleet.n_nodes:,} nodes",
            "",
            glossary.OUT_OF_SERVICE.definition,
            out,
            "nodes",
        ),
    )


def _rate(term: Term, found: Estimate) -> Headline:
    return _estimate(term, "rate", found, "per 1,000 node-days")


def _duration(term: Term, found: Estimate) -> Headline:
    return _estimate(term, "mttf", found, "h")


def _share(term: Term, found: Estimate) -> Headline:
    return _estimate(term, "share", found, "ratio")


def _estimate(term: Term, kind: Kind, found: Estimate, unit: str) -> Headline:
    """An estimate as it is printed; no interval stands beside what is unknown."""
    value, interval = cells.estimate(kind, found)
    shown = "" if interval == numbers.UNKNOWN else interval
    return Headline(term.label, value, shown, numbers.count(found.n), term.definition, found, unit)


def _lost(incidents: IncidentSummary, *, known: bool) -> Headline:
    """GPU-hours lost in incidents; a sum, so without an interval."""
    term, lost = glossary.LOST_GPU_HOURS, incidents.lost_gpu_hours if known else None
    least = "at least " if incidents.n_unmeasured else ""
    return Headline(term.label, f"{least}{numbers.number(lost)}", "",
                    numbers.count(incidents.n_incidents), term.definition, lost,
                    "GPU-hours")  # fmt: skip


def _filters(selection: Selection, names: Names) -> str:
    """The filters in words."""
    account = selection.account and names.account(selection.account)
    said = [
        f"{name} {value}"
        for name, value in (
            ("cluster", selection.cluster),
            ("partition", selection.partition),
            ("account", account),
        )
        if value is not None
    ]
    if selection.min_gpus:
        said.append(f"jobs of {selection.min_gpus:,} GPUs and more")
    return ", ".join(said) or "all jobs"
