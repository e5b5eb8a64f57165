"""The fleet report: how often jobs fail in a period, of what, at what cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.answers.content import Number, Table
from app.answers.efficiency import ledger, ledger_parts
from app.answers.failures import incidents, summary, trust, verdicts
from app.answers.fleet import coverage, nodes
from app.answers.reliability import mttf, rate_by_group, sensitivity, sight
from app.reports import reliability
from app.reports.report import Report, Section, defined, filters_in_words, rests_on, section
from app.words import numbers, terms
from app.words.addresses import Place
from app.words.periods import Period

if TYPE_CHECKING:
    import pandas as pd

    from analytics.efficiency.goodput import GoodputLedger
    from analytics.failures.calibration import SizeChance
    from analytics.failures.incident_rate import IncidentSummary
    from analytics.failures.summary import FailureSummary
    from analytics.reliability.mttf import MttfReport
    from app.answers.content import Answer, Missing
    from app.answers.fleet.nodes import Fleet
    from app.answers.reliability.mttf import OfSize
    from app.ask import Ask
    from app.reports.kinds import Request
    from app.reports.redaction import Names
    from data.filters import Selection

KIND = {"needs_ledger": True}
"""About the whole fleet: it has no option of its own."""
TERMS = (
    terms.FAILED_ATTEMPTS,
    terms.UNKNOWN_CAUSE,
    *terms.DOMAINS,
    terms.PROJECTION,
    terms.LOST_IN_INCIDENT,
    terms.PRODUCTIVE_SHARE,
    terms.COVERAGE,
)
"""Defined in the report besides its headline numbers."""
LEDGER_TITLE = "Where the GPU-hours went"
NOT_BUILT = (
    "The ledger of these records is not built: `faultline ledger` builds it, then this report has "
    "it."
)
METHOD = (
    "Counts are of attempts: a requeued job is a new attempt.",
    "Rates have Garwood's exact interval, shares have Clopper and Pearson's.",
    "Attempts of one incident fail together: intervals by cause are then too narrow.",
    "A change on the quarter before is named only where the two intervals do not overlap.",
)
INCIDENTS = 20
"""Incidents listed, the largest."""
NODES = 40
"""Nodes out of service that are listed, the latest."""


@dataclass(frozen=True)
class _Parts:
    """What the report is made of."""

    selection: Selection
    mttf: MttfReport
    job: OfSize | None
    """Of the largest usual size."""
    before: MttfReport | None
    recounted: str
    """That the definition of a failure changed; empty where it did not."""
    rate: Answer
    weeks: Answer
    failures: FailureSummary
    chance: tuple[SizeChance, ...]
    cost: GoodputLedger | None
    """What failures cost; None where the ledger is not built."""
    incidents: IncidentSummary
    not_derived: str
    """That failures are known of which no incident is derived."""
    costliest: Table
    fleet: Fleet
    gpu_hours: Section
    reliability: tuple[Section, ...]
    coverage: Answer


def report(ask: Ask, request: Request, names: Names) -> Report:
    """How often did jobs of the selection fail, of what, and what does that rest on?"""
    selection = request.selection
    parts = _parts(ask, request)
    headlines = _headlines(parts)
    return Report(
        kind="fleet",
        stem="fleet",
        title="Fleet reliability" + (f": {selection.cluster}" if selection.cluster else ""),
        during=Period(parts.mttf.from_at, parts.mttf.to_at, request.timezone),
        filters=filters_in_words(selection, names),
        answer=mttf.fleet_sentence(parts.mttf, parts.job),
        summary=_summary(parts, request.selection),
        headlines=headlines,
        notes=mttf.notes(parts.mttf, selection),
        sections=_sections(parts),
        definitions=defined(headlines, TERMS),
        missing=parts.coverage.record["missing"],
        conf_level=request.conf_level,
    )


def _parts(ask: Ask, request: Request) -> _Parts:
    """Asks everything."""
    selection, conf_level = request.selection, request.conf_level
    chance: dict[str, Any] = {"conf_level": conf_level, "seed": request.seed}
    every = incidents.Kind()
    counted = ask(incidents.summarised, selection, every, conf_level=conf_level)
    rows = ask(incidents.rows, selection, every, first="largest", limit=INCIDENTS)
    return _Parts(
        selection=selection,
        mttf=ask(mttf.measured, selection, **chance),
        job=mttf.of_size(ask, selection, **chance),
        before=ask(mttf.measured_before, selection, **chance),
        recounted=sensitivity.changed(
            ask, selection, ask(sensitivity.measured, selection, **chance)
        ),
        rate=mttf.answer(ask, selection, **chance),
        weeks=rate_by_group.answer(ask, selection, "week", **chance),
        failures=ask(verdicts.summarised, selection, conf_level=conf_level),
        chance=ask(trust.by_chance, selection, conf_level=conf_level),
        cost=ask(ledger.if_built, selection, conf_level=conf_level),
        incidents=counted,
        not_derived=incidents.not_derived(ask, selection),
        costliest=_costliest(rows, counted.n_incidents),
        fleet=ask(nodes.nodes, selection),
        gpu_hours=_gpu_hours(ask, selection, conf_level=conf_level),
        reliability=reliability.sections(ask, selection, **chance),
        coverage=coverage.answer(ask, selection),
    )


def _gpu_hours(ask: Ask, selection: Selection, *, conf_level: float) -> Section:
    """Buckets and losses; only the reason where the ledger is not built or holds nothing."""
    if not ledger.is_built(ask):
        return Section(LEDGER_TITLE, (), (NOT_BUILT,))
    answer = ledger.answer(ask, selection, conf_level=conf_level)
    if not answer.numbers:
        return Section(LEDGER_TITLE, (), (answer.sentence,))
    tables = (answer.table("gpu_hours"), answer.table("lost_work"))
    return Section(LEDGER_TITLE, tables, (*answer.record["notes"], ledger.WHOLE_DAYS))


def _costliest(rows: pd.DataFrame, total: int) -> Table:
    """Incidents with the largest loss; `total`: how many there are."""
    title = "Incidents that lost most"
    note = f"{len(rows):,} of {numbers.counted(total, 'incident')}." if len(rows) < total else ""
    return replace(incidents.brief(rows, title, "No incident touches the period."), note=note)


def _summary(parts: _Parts, selection: Selection) -> tuple[str, ...]:
    """What else there is to say, most important first."""
    sentences = [
        mttf.change_in_words(parts.mttf, parts.before),
        parts.recounted,
        summary.sentence(parts.failures),
        *summary.details(parts.failures, parts.cost),
        _incidents(parts, selection),
        nodes.sentence(parts.fleet),
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _incidents(parts: _Parts, selection: Selection) -> str:
    """How many incidents, at what cost, and which is the largest."""
    seen = parts.mttf.sight
    lost, *_ = ledger_parts.lost_to_failures(parts.cost, selection)
    sentence = incidents.in_words(parts.incidents, seen, lost) if seen else ""
    if parts.not_derived and not parts.incidents.n_incidents:
        return parts.not_derived
    if not len(parts.costliest):
        return sentence
    return f"{sentence} The largest: {parts.costliest.values[0][2]}."


def _sections(parts: _Parts) -> tuple[Section, ...]:
    """Tables with their pictures, by subject."""
    chart, by_week = parts.weeks.blocks
    *by_size, definitions = parts.rate.blocks
    several = isinstance(by_week, Table) and len(by_week) > 1
    return (
        section(
            "Failure rate",
            (chart if several else None, by_week, definitions),
            shown_on=Place("mttf"),
        ),
        _causes(parts),
        _of_incidents(parts),
        section("Time to failure by job size", by_size, shown_on=Place("mttf")),
        *parts.reliability,
        parts.gpu_hours,
        section("Nodes", (_out_of_service(parts.fleet),)),
        rests_on(parts.coverage),
        Section("Method", (), METHOD),
    )


def _of_incidents(parts: _Parts) -> Section:
    """The costliest, and their causes; that none is derived where only failure logs are known."""
    if parts.not_derived and not parts.incidents.n_incidents:
        return Section("Incidents", (), (parts.not_derived,))
    seen = parts.mttf.sight
    if seen is not None and seen.none and not parts.incidents.n_incidents:
        return section("Incidents", (sight.missing("incidents", incidents.WHAT, seen),))
    return Section("Incidents", (parts.costliest, incidents.by_cause(parts.incidents)))


def _causes(parts: _Parts) -> Section:
    """What failed, whose fault it was, and how often chance would say so."""
    failures = parts.failures
    return section(
        "Causes",
        (
            *summary.ranking(failures),
            summary.by_domain(failures),
            summary.by_cause(failures, parts.selection, parts.cost),
            summary.by_state(failures),
            trust.by_size(parts.chance),
        ),
        shown_on=Place("failures"),
    )


def _out_of_service(fleet: Fleet) -> Table | Missing:
    """The nodes out of service, as many as a document lists."""
    shown = nodes.out_of_service(fleet)
    if not isinstance(shown, Table):
        return shown
    title = "Nodes out of service at the end of the period"
    note = f"The latest {NODES:,} of {len(shown):,}." if len(shown) > NODES else ""
    return replace(shown, title=title, rows=shown.rows[:NODES], note=note)


def _headlines(parts: _Parts) -> tuple[Number, ...]:
    """The numbers of the report's head."""
    selection = parts.selection
    of_rate = mttf.Headlines(parts.mttf, parts.before, selection)
    return (
        *map(of_rate.number, (mttf.RATE, mttf.INCIDENT_RATE)),
        *(() if parts.job is None else (mttf.projected_number(parts.job),)),
        *map(of_rate.number, (mttf.MTTF, mttf.BETWEEN_FAILURES, mttf.REPAIR)),
        summary.unknown_cause(parts.failures, selection),
        *ledger_parts.lost_to_failures(parts.cost, selection),
        nodes.number(parts.fleet, selection),
    )
