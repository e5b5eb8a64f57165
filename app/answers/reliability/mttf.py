"""How long until a job of N GPUs fails, and how often does the fleet?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.frames import DEFINITION
from analytics.reliability.failure_rate import PROJECTION_GPUS
from analytics.reliability.fleet_verdict import largest_usual_size
from analytics.reliability.mttf import MttfReport, mttf_report
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Missing, Number, Part, Sheet, Table, estimated
from app.answers.described import TABLE, Rows, field
from app.answers.failures import counted
from app.answers.reliability import detection, sensitivity, sight
from app.ask import EVERYTHING
from app.words import numbers, terms
from app.words.cells import Column
from app.words.glossary import of_reliability
from app.words.terms import DEFINITIONS, Term
from data.queries import exposure, reliability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.estimate import Estimate
    from analytics.reliability.detection import Scope
    from app.ask import Ask
    from app.words.cells import Kind
    from data.filters import Selection
    from data.store import Store

EARLIEST = datetime.min.replace(tzinfo=UTC)
QUARTER = timedelta(days=91)
TERMS = (
    terms.FAILURE_RATE,
    terms.INCIDENT_RATE,
    terms.NODE_MTTF,
    terms.PROJECTION,
    terms.BETWEEN_FAILURES,
    terms.REPAIR,
)
RATE, INCIDENT_RATE = "rate_per_1000_node_days", "incident_rate_per_1000_node_days"
MTTF, REPAIR = "mttf_hours", "mean_repair_hours"
BETWEEN_FAILURES = "mean_time_between_failures_hours"
ESTIMATES: dict[str, tuple[Term, Kind]] = {
    RATE: (terms.FAILURE_RATE, "rate"),
    INCIDENT_RATE: (terms.INCIDENT_RATE, "rate"),
    MTTF: (terms.NODE_MTTF, "mttf"),
    BETWEEN_FAILURES: (terms.BETWEEN_FAILURES, "mttf"),
    REPAIR: (terms.REPAIR, "mttf"),
}
"""Estimates of a whole selection by their keys in JSON: what they mean, how they are written."""
NO_LARGE_JOBS = (
    "No job of {n} GPUs or more ran, so the failure rate and its projection are unknown: lower "
    "the smallest job."
)


def measured(
    store: Store,
    selection: Selection,
    *,
    conf_level: float = 0.90,
    seed: int = 0,
    gpus: Sequence[int] = PROJECTION_GPUS,
    by_node: bool = True,
) -> MttfReport:
    """Failure rate and MTTF of a selection; `gpus` are the job sizes of the projection.

    `by_node` is whether it is tested that nodes fail at one rate.
    """
    counts = reliability.failure_counts(store, selection, by_node=by_node)
    report = mttf_report(counts, conf_level=conf_level, seed=seed, gpus=gpus)
    return replace(report, sight=sight.sight(store, selection))


def measured_before(
    store: Store, selection: Selection, *, conf_level: float = 0.90, seed: int = 0
) -> MttfReport | None:
    """The same for the quarter before the period, with which its numbers are compared everywhere;
    None where there is none with data."""
    start = selection.from_at
    if start is None or start - EARLIEST < QUARTER:
        return None
    now = reliability.counted(store, selection)
    before = replace(now, from_at=start - QUARTER, to_at=start)
    report = measured(store, before, conf_level=conf_level, seed=seed, by_node=False)
    return report if report.rate.exposure and report.min_gpus == now.min_gpus else None


def usual_size(store: Store, selection: Selection) -> int | None:
    """The cluster's largest usual job size in the period; None where no job states GPUs."""
    ran = exposure.runs(store, selection)
    ran = exposure.chosen(ran, ~ran["node_time"].astype(bool) & ~np.isnan(ran["running_days"]))
    return largest_usual_size(ran["n_gpus"], ran["running_days"])


@dataclass(frozen=True)
class OfSize:
    """MTTF of a job of one size, projected from the failures of all jobs."""

    gpus: int
    hours: Estimate
    before: Estimate | None
    """The same of the quarter before; None where that is unknown."""
    report: MttfReport
    """What it is projected from."""
    selection: Selection


def of_size(
    ask: Ask, selection: Selection, gpus: int | None = None, **chance: Any
) -> OfSize | None:
    """MTTF of a job of the largest usual size, or of the one asked for; None without either.

    All jobs count that the reader did not leave out, whatever the smallest job of a page or
    command: every surface says the same, and a size that seldom failed borrows from the others.
    """
    counted = selection.by_size
    size = ask(usual_size, counted) if gpus is None else gpus
    if size is None:
        return None
    report, before = ask(measured, counted, **chance), ask(measured_before, counted, **chance)
    then = None if before is None else before.mttf_of(size)
    return OfSize(size, report.mttf_of(size), then, report, counted)


def estimates(report: MttfReport) -> dict[str, Estimate]:
    """The estimates of the whole selection by their keys."""
    return {
        RATE: report.rate.rate_per_1000_node_days,
        INCIDENT_RATE: report.incident_rate.rate_per_1000_node_days,
        MTTF: report.rate.mttf_hours,
        BETWEEN_FAILURES: report.mean_time_between_failures_hours,
        REPAIR: report.mean_repair_hours,
    }


def answer(
    ask: Ask, /, selection: Selection, *, job_gpus: int | None = None, **chance: Any
) -> Answer:
    """How long until a job of N GPUs fails: measured by size, beside what the rate projects.

    It opens with a job of `job_gpus`, of the largest usual size where none is given. `chance` holds
    conf_level, seed and gpus, as `measured` takes them.
    """
    report = ask(measured, selection, **chance)
    of_rate = {name: value for name, value in chance.items() if name != "gpus"}
    before = ask(measured_before, selection, **of_rate)
    definitions = ask(sensitivity.measured, selection, **of_rate)
    job = of_size(ask, selection, job_gpus, **of_rate)
    shown = chart(report)
    without = isinstance(shown, Chart) and not report.rate.exposure
    large = NO_LARGE_JOBS.format(n=numbers.count(selection.min_gpus))
    return Answer(
        sentence(report, job),
        Headlines(report, before, selection).all(job),
        (
            shown,
            size_table(report, selection),
            projection_table(report),
            sensitivity.table(definitions),
        ),
        notes=(*_by_definition(report), *notes(report, selection), *([large] if without else [])),
        terms=(*TERMS, *_counted(report)),
        record=record(report, selection)
        | {
            "job_gpus": None if job is None else job.gpus,
            "job_mttf_hours": None if job is None else job.hours,
            "sensitivity": sensitivity.record(definitions),
        },
        sheet=_sheet(report, job),
    )


def _by_definition(report: MttfReport) -> Iterator[str]:
    """Which definition was chosen, where it is not the default."""
    if report.definition != DEFINITION:
        yield f"Failures by definition {report.definition}: {DEFINITIONS[report.definition]}."


def fleet_sentence(report: MttfReport, job: OfSize | None = None) -> str:
    """How often does the fleet fail, and how long does a job of the usual size run?"""
    rate = rate_in_words(report)
    if report.basis == "node_time" and report.rate.exposure:
        hours = numbers.number(24.0 * report.rate.exposure)
        return f"{rate}; no job states GPUs, so that {hours} node-hours of nodes are counted."
    said = "" if job is None else in_words(job)
    return f"{rate}; {said}." if said else f"{rate}."


def sentence(report: MttfReport, job: OfSize | None) -> str:
    """How long until a job fails?"""
    said = "" if job is None else in_words(job)
    return f"{said[0].upper()}{said[1:]}." if said else fleet_sentence(report)


def rate_in_words(report: MttfReport) -> str:
    """How often the fleet fails, as far as it is known."""
    rate, n_failures = report.rate.rate_per_1000_node_days, report.rate.failures
    if in_part := detection.rate_in_words(report):
        return in_part
    if rate.value is None:
        return _without_rate(report)
    large = report.min_gpus > 1
    if not n_failures:
        ran, bound = numbers.number(report.rate.exposure), numbers.number(rate.upper)
        of = f" of {detection.sizes(report.min_gpus)}" if large else ""
        return f"No failure in {ran} node-days{of}: at most {bound} per 1,000 node-days"
    return f"{detection.fails(report)} ({numbers.interval(rate)}, n = {n_failures:,})"


def in_words(job: OfSize) -> str:
    """How long a job runs between failures, by those of all jobs; empty where that is unknown."""
    hours, interval = job.hours, numbers.duration_interval(job.hours)
    if hours.value is None and hours.lower is None:
        return ""
    of, jobs = f"a job of {numbers.counted(job.gpus, 'GPU')}", detection.sizes(job.report.min_gpus)
    projected = f"projected from {jobs if job.report.min_gpus > 1 else 'jobs of all sizes'}"
    if not hours.n:
        none = "none has failed" if _given_over(job.report) == "all" else "none was seen to fail"
        none = sight.NOT_SEEN if job.report.blind else none
        return f"{of} runs {interval} between failures, {projected}: {none}"
    if hours.value is None or _given_over(job.report) == "range":
        return f"{of} runs {interval} between failures, {projected}, as not all could be seen"
    value = numbers.duration(hours.value)
    return f"{of} runs {value} between failures, {projected} ({interval}, n = {hours.n:,})"


def _given_over(report: MttfReport) -> Scope:
    """What the rate is given over; all where it is not known what was collected."""
    return "all" if report.detection is None else report.detection.scope


def projected_number(job: OfSize | None) -> Number:
    """The same as a headline number."""
    if job is None or "gpu_time" not in job.report.basis:
        term = of_reliability.projected(None if job is None else job.gpus)
        return Number(term, numbers.UNKNOWN, "no job states GPUs")
    if job.report.gpus_per_node is None:
        why = "clusters differ in GPUs of a node, or one states none: choose a cluster"
        return Number(of_reliability.projected(job.gpus), numbers.UNKNOWN, why)
    return estimated(
        of_reliability.projected(job.gpus),
        "mttf",
        job.hours,
        before=job.before,
        more=detection.basis(job.report),
        opens=failures_behind(job.report, job.selection),
    )


def change_in_words(report: MttfReport, before: MttfReport | None) -> str:
    """How the rate differs from that of the quarter before; empty where that one is unknown."""
    if before is None:
        return ""
    now, was = report.rate.rate_per_1000_node_days, before.rate.rate_per_1000_node_days
    if was.value is None or now.value is None:
        return ""
    earlier = "in the quarter before"
    value = f"{numbers.number(was.value)} ({numbers.interval(was)})"
    if now.apart_from(was):
        verb = "rose" if now.value > was.value else "fell"
        return f"The rate {verb}: {earlier} it was {value}."
    if None in (now.lower, now.upper, was.lower, was.upper):
        return f"{earlier[:1].upper()}{earlier[1:]} the rate was {value}."
    return f"No change is shown: {earlier} the rate was {value}, and the two intervals overlap."


def _without_rate(report: MttfReport) -> str:
    """Failures alone, where the time that nodes ran is unknown or zero."""
    gap = report.mean_time_between_failures_hours
    if report.failures_known is None and report.sight is not None:
        return sight.refused("How often the fleet fails", report.sight).removesuffix(".")
    if not report.rate.failures:
        return "Nothing ran and nothing failed in this selection"
    text = numbers.counted(report.rate.failures, "failure")
    if gap.value is not None:
        interval = numbers.duration_interval(gap)
        text += f", one every {numbers.duration(gap.value)} on average ({interval})"
    return f"{text}; how often a node fails is unknown"


@dataclass(frozen=True)
class Headlines:
    """The headline numbers of a period, each beside that of the quarter before."""

    now: MttfReport
    before: MttfReport | None
    selection: Selection

    def number(self, name: str) -> Number:
        """One of `ESTIMATES`; of repairs, less is better."""
        term, kind = ESTIMATES[name]
        if name == RATE:
            term = terms.failure_rate(self.now.definition)
        if name in (RATE, INCIDENT_RATE, MTTF):
            sizes = detection.of_sizes(self.now.min_gpus)
            term = replace(term, label=f"{term.label}{sizes}")
        shown = estimated(
            term,
            kind,
            estimates(self.now)[name],
            before=None if self.before is None else estimates(self.before)[name],
            more=detection.basis(self.now) if name == RATE else "",
            opens=failures_behind(self.now, self.selection),
        )
        return replace(shown, higher_is_better=False) if term is terms.REPAIR else shown

    def all(self, job: OfSize | None) -> tuple[Number, ...]:
        """The page's four first, the job's where there is one, repairs where a source states any.

        Where no job states GPUs the mean gap of failures comes first.
        """
        second, later = MTTF, REPAIR
        if self.now.mean_repair_hours.n:
            second, later = REPAIR, MTTF
        return (
            self.number(BETWEEN_FAILURES) if job is None else projected_number(job),
            *map(self.number, (second, RATE, INCIDENT_RATE, later, BETWEEN_FAILURES)),
            self.exposure(),
        )

    def exposure(self) -> Number:
        """Running time: of nodes in node-hours where no job has GPUs."""
        node_days = self.now.rate.exposure
        if self.now.basis != "node_time" or node_days is None:
            return Number(terms.EXPOSURE, numbers.number(node_days), exact=node_days)
        hours = 24.0 * node_days
        return Number(
            of_reliability.NODE_HOURS, numbers.number(hours), exact=hours, unit="node-hours"
        )


def record(report: MttfReport, selection: Selection) -> dict[str, Any]:
    """The JSON of the command."""
    rate, incident_rate, *hours = estimates(report).items()
    whole = report.detection
    return {
        "definition": report.definition,
        **counted.record(report.counted, blind=report.failures_known is None),
        "reason": _reason(report),
        "exposure_node_days": report.rate.exposure if whole is None else whole.exposure_node_days,
        **dict([rate]),
        "incidents": None if report.failures_known is None else report.incident_rate.failures,
        **dict([incident_rate, *hours]),
        "dispersion": report.rate.dispersion,
        "dispersion_over_weeks": report.rate.dispersion_over_weeks,
        "dispersion_over_nodes": report.dispersion_over_nodes,
        "by_size": by_size(report).records(),
        "projection": Rows(PROJECTED, report.projection).records(),
        "basis": report.basis,
        "gpus_per_node": report.gpus_per_node,
        "from_at": report.from_at,
        "to_at": report.to_at,
        "attempts_without_gpus": report.attempts_without_gpus,
        "failures_without_node": sum(report.without_node.values()),
        **detection.record(report),
        "notes": notes(report, selection),
    }


def _reason(report: MttfReport) -> str | None:
    """Why no failure is known; None where any is, or where it is known that there was none."""
    if report.failures_known is not None or report.sight is None:
        return None
    return sight.refused("", report.sight).strip()


def notes(report: MttfReport, selection: Selection) -> tuple[str, ...]:
    """What a reader of the numbers must know."""
    return (*report.notes, *detection.notes(report, selection))


def _counted(report: MttfReport) -> Iterator[Term]:
    """Which failures and which sizes count."""
    if report.failures_known is not None and report.counted.n:
        yield Term(
            "Failures counted",
            f"{numbers.counted(report.counted.n, 'failure')} by definition {report.definition}: "
            f"{counted.in_words(report.counted)}.{detection.counted_in_words(report)}",
        )
        yield of_reliability.UNEXPLAINED
    yield Term(
        "Sizes counted",
        f"The rate counts {detection.sizes(report.min_gpus)}, and so do the MTTF of a job and the "
        "measured one by size, where no filter says otherwise. ETTR starts from 129 GPUs (the "
        "paper counts jobs of more than 128).",
    )


def chart(report: MttfReport) -> Chart | Missing:
    """Measured and projected MTTF, or why there is none to draw."""
    drawn = [c.mttf_hours for c in report.by_size] + [p.mttf_hours for p in report.projection]
    n_sizes = sum(size.mttf_hours.lower is not None for size in report.by_size)
    if not any(e.value is not None or e.lower is not None for e in drawn):
        return _missing(report)
    return Chart(
        "reliability.mttf_by_size",
        "How long until a job of N GPUs fails?",
        f"Measured MTTF of {numbers.counted(n_sizes, 'class', 'classes')} of job sizes with "
        f"intervals, and the projection 24 h / (N r_f), r_f of {detection.sizes(report.min_gpus)}. "
        "The values stand in the tables.",
        (report,),
    )


def _missing(report: MttfReport) -> Missing:
    """What is missing: sight, jobs, their GPUs, or nothing ran."""
    if report.failures_known is None and report.sight is not None:
        return sight.missing("mttf_by_size", "How often the fleet fails", report.sight)
    if "node_failures" in report.basis and report.rate.failures:
        return sight.nodes_alone("mttf_by_size")
    if "node_time" in report.basis and report.rate.exposure:
        return Missing(
            "mttf_by_size",
            "No attempt says how many GPUs it had.",
            "Rates count whole nodes and the smallest job size is ignored. With AllocTRES in "
            "the export, jobs are told apart by size:",
            ("sacct -a -P --duplicates --format=...,AllocTRES,... > sacct.txt",),
        )
    return Missing(
        "mttf_by_size",
        "Nothing ran and nothing failed in this selection.",
        "Choose a longer period, a smaller job size, or reset the filters.",
    )


def _sheet(report: MttfReport, job: OfSize | None) -> Sheet:
    """Every estimate as a row; sizes are empty where it is of no size."""
    rows: list[tuple[str, int | None, int | None, Estimate]] = [
        *(() if job is None else (("job_mttf_hours", job.gpus, job.gpus, job.hours),)),
        *((name, None, None, estimate) for name, estimate in estimates(report).items()),
        *(("by_size", s.gpus_from, s.gpus_to, s.mttf_hours) for s in report.by_size),
        *(("projection", p.gpus, p.gpus, p.mttf_hours) for p in report.projection),
    ]
    return Sheet(
        ("quantity", "gpus_from", "gpus_to", "value", "lower", "upper", "conf_level", "n"),
        [
            (name, first, last, e.value, e.lower, e.upper, e.conf_level, e.n)
            for name, first, last, e in rows
        ],
    )


FAILURES = columns(
    "failed_at", "job_id", "attempt", "state", "cause", "domain", "node", "n_gpus", "n_nodes",
    "confidence", "method", "evidence", "partition", "user", "account", "cluster", "subcause",
    "hit", "repair_minutes", "text", hidden=("attempt_key",),
)  # fmt: skip
ATTEMPTS = columns(
    "job_id", "attempt", "state", "failed", "n_gpus", "n_nodes", "running_hours", "start_at",
    "end_at", "partition", "user", "account", "cluster", hidden=("attempt_key",),
)  # fmt: skip


PROJECTED = (Column("gpus", "GPUs", "count"), Column("mttf_hours", "MTTF", "mttf", "h"))


def by_size(report: MttfReport) -> Rows:
    """Measured MTTF of each class of sizes; failures are unknown where none could be seen."""
    seen = report.failures_known is not None
    described = (
        Column("gpus_from", "GPUs from", "count", shown=False),
        Column("gpus_to", "GPUs to", "count", shown=False),
        field("job_size", "Job size", of=lambda s: numbers.gpus(s.gpus_from, s.gpus_to), on=TABLE),
        field(
            "failures",
            "Failures",
            "count",
            lambda size: size.mttf_hours.n if seen else None,
            none=sight.NOT_SEEN,
        ),
        Column("running_hours", "Running time (h)", "number"),
        Column("mttf_hours", "MTTF", "mttf", "h", none="none was seen to fail"),
    )
    return Rows(described, report.by_size)


def size_table(report: MttfReport, selection: Selection) -> Table:
    """The same; a row opens the attempts behind it."""
    return by_size(report).table(
        "mttf_by_size",
        "Measured MTTF by job size",
        empty="No job with GPUs ran.",
        opens=Part("Attempts behind the number", attempts, (selection,), ("gpus_from", "gpus_to")),
    )


def projection_table(report: MttfReport) -> Table:
    """MTTF that the rate implies for each job size."""
    known = [point for point in report.projection if point.mttf_hours.lower is not None]
    return Rows(PROJECTED, known).table(
        "mttf_projection",
        f"MTTF that the failure rate projects{detection.of_sizes(report.min_gpus)}",
        empty="Unknown: the rate, or the number of GPUs in a node, is.",
    )


def failures_behind(report: MttfReport, selection: Selection) -> Part:
    """The failures that the rate counts."""
    whole = report.detection
    total = report.rate.failures if whole is None else whole.failures
    counted = replace(selection, min_gpus=report.min_gpus)
    return Part("Failures behind the number", failures, (counted,), total=total)


def failures(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """The failed attempts, or failures of nodes, that a rate counts; the newest first."""
    rows = ask(reliability.failure_rows, selection, limit=limit)
    return Table("failures", "Failures behind the number", FAILURES, rows, "No failure counts.")


def attempts(
    ask: Ask, selection: Selection, gpus_from: int, gpus_to: int, *, limit: int = EVERYTHING
) -> Table:
    """The attempts of a class of sizes, the longest first."""
    rows = ask(reliability.attempt_rows, selection, gpus=(gpus_from, gpus_to), limit=limit)
    return Table("attempts", "Attempts behind the number", ATTEMPTS, rows, "No attempt ran.")
