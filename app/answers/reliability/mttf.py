"""How long until a job of N GPUs fails, and how often does the fleet?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from analytics.frames import DEFINITION
from analytics.reliability.failure_rate import PROJECTION_GPUS
from analytics.reliability.mttf import MttfReport, SizeClass, mttf_report
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Missing, Number, Part, Sheet, Table, estimated
from app.answers.reliability import detection, sensitivity
from app.ask import EVERYTHING
from app.words import numbers, terms
from app.words.cells import Column
from app.words.glossary import of_reliability
from app.words.terms import DEFINITIONS, Term
from data.queries import reliability

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.estimate import Estimate
    from app.ask import Ask
    from app.words.cells import Kind
    from data.filters import Selection
    from data.store import Store


EARLIEST = datetime.min.replace(tzinfo=UTC)
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
    return mttf_report(counts, conf_level=conf_level, seed=seed, gpus=gpus)


def measured_before(
    store: Store, selection: Selection, *, conf_level: float = 0.90, seed: int = 0
) -> MttfReport | None:
    """The same for the preceding period of equal length; None where there is none with data."""
    if selection.from_at is None or selection.to_at is None:
        return None
    length = selection.to_at - selection.from_at
    if selection.from_at - EARLIEST < length:
        return None
    now = reliability.counted(store, selection)
    before = replace(now, from_at=selection.from_at - length, to_at=selection.from_at)
    report = measured(store, before, conf_level=conf_level, seed=seed, by_node=False)
    return report if report.rate.exposure and report.min_gpus == now.min_gpus else None


def estimates(report: MttfReport) -> dict[str, Estimate]:
    """The estimates of the whole selection by their keys."""
    return {
        RATE: report.rate.rate_per_1000_node_days,
        INCIDENT_RATE: report.incident_rate.rate_per_1000_node_days,
        MTTF: report.rate.mttf_hours,
        BETWEEN_FAILURES: report.mean_time_between_failures_hours,
        REPAIR: report.mean_repair_hours,
    }


def answer(ask: Ask, selection: Selection, **chance: Any) -> Answer:
    """How long until a job of N GPUs fails: measured by size, beside what the rate projects.

    `chance` holds conf_level, seed and gpus, as `measured` takes them.
    """
    report = ask(measured, selection, **chance)
    of_rate = {name: value for name, value in chance.items() if name != "gpus"}
    before = ask(measured_before, selection, **of_rate)
    definitions = ask(sensitivity.measured, selection, **of_rate)
    shown = chart(report)
    without = isinstance(shown, Chart) and not report.rate.exposure
    large = NO_LARGE_JOBS.format(n=numbers.count(selection.min_gpus))
    return Answer(
        sentence(report),
        Headlines(report, before, selection).all(),
        (shown, by_size(report, selection), projected(report), sensitivity.table(definitions)),
        notes=(*_by_definition(report), *notes(report, selection), *([large] if without else [])),
        terms=(*TERMS, *_counted(report)),
        record=record(report, selection) | {"sensitivity": sensitivity.record(definitions)},
        sheet=_sheet(report),
    )


def _by_definition(report: MttfReport) -> Iterator[str]:
    """Which definition was chosen, where it is not the default."""
    if report.definition != DEFINITION:
        yield f"Failures by definition {report.definition}: {DEFINITIONS[report.definition]}."


def fleet_sentence(report: MttfReport) -> str:
    """How often does the fleet fail, and how long do its largest jobs run?"""
    rate, largest = rate_in_words(report), report.largest_class
    if report.basis == "node_time" and report.rate.exposure:
        hours = numbers.number(24.0 * report.rate.exposure)
        return f"{rate}; no job states GPUs, so that {hours} node-hours of nodes are counted."
    return f"{rate}." if largest is None else f"{rate}; {in_words(largest)}."


def sentence(report: MttfReport) -> str:
    """How long until a job fails?"""
    if report.largest_class is None:
        return fleet_sentence(report)
    text = in_words(report.largest_class)
    return f"{text[0].upper()}{text[1:]}."


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


def in_words(size: SizeClass) -> str:
    """How long jobs of one size class run between failures."""
    job = f"a job of {numbers.gpus(size.gpus_from, size.gpus_to)}"
    mttf, interval = size.mttf_hours, numbers.duration_interval(size.mttf_hours)
    if mttf.value is None:
        none = "none has failed" if size.scope == "all" else "none was seen to fail"
        return f"{job} runs {interval} between failures: {none}"
    if size.scope == "range":
        return f"{job} runs {interval} between failures, as not all of them could be seen"
    value = numbers.duration(mttf.value)
    return f"{job} runs {value} between failures ({interval}, n = {mttf.n:,})"


def change_in_words(report: MttfReport, before: MttfReport | None) -> str:
    """How the rate differs from that of the preceding period; empty where that one is unknown."""
    if before is None:
        return ""
    now, was = report.rate.rate_per_1000_node_days, before.rate.rate_per_1000_node_days
    if was.value is None or now.value is None:
        return ""
    earlier = "in the preceding period of equal length"
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
    if not report.rate.failures:
        return "Nothing ran and nothing failed in this selection"
    text = numbers.counted(report.rate.failures, "failure")
    if gap.value is not None:
        interval = numbers.duration_interval(gap)
        text += f", one every {numbers.duration(gap.value)} on average ({interval})"
    return f"{text}; how often a node fails is unknown"


@dataclass(frozen=True)
class Headlines:
    """The headline numbers of a period, each beside that of the preceding one."""

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
            opens=_failures(self.now, self.selection),
        )
        return replace(shown, higher_is_better=False) if term is terms.REPAIR else shown

    def largest_jobs(self) -> Number:
        """MTTF of the largest class that ran; where there is none, the mean gap of failures."""
        largest = self.now.largest_class
        if largest is None:
            return self.number(BETWEEN_FAILURES)
        earlier = () if self.before is None else self.before.by_size
        sizes = (largest.gpus_from, largest.gpus_to)
        return estimated(
            terms.largest_jobs(*sizes),
            "mttf",
            largest.mttf_hours,
            before=next((c.mttf_hours for c in earlier if c.gpus_to == largest.gpus_to), None),
            opens=Part("Attempts behind the number", attempts, (self.selection, *sizes)),
        )

    def all(self) -> tuple[Number, ...]:
        """The page's four first, repairs among them where a source states any."""
        second, later = MTTF, REPAIR
        if self.now.mean_repair_hours.n:
            second, later = REPAIR, MTTF
        return (
            self.largest_jobs(),
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


def by_size(report: MttfReport, selection: Selection) -> Table:
    """Measured MTTF of each class of sizes; a row opens the attempts behind it."""
    return Table(
        "mttf_by_size",
        "Measured MTTF by job size",
        (
            Column("gpus_from", "GPUs from", "count", shown=False),
            Column("gpus_to", "GPUs to", "count", shown=False),
            Column("job_size", "Job size"),
            Column("failures", "Failures", "count"),
            Column("running_hours", "Running time (h)", "number"),
            Column("mttf_hours", "MTTF", "mttf", "h", none="none was seen to fail"),
        ),
        tuple(
            (
                size.gpus_from,
                size.gpus_to,
                numbers.gpus(size.gpus_from, size.gpus_to),
                size.mttf_hours.n,
                size.running_hours,
                size.mttf_hours,
            )
            for size in report.by_size
        ),
        "No job with GPUs ran.",
        opens=Part("Attempts behind the number", attempts, (selection,), ("gpus_from", "gpus_to")),
    )


def projected(report: MttfReport) -> Table:
    """MTTF that the rate implies for each job size."""
    return Table(
        "mttf_projection",
        f"MTTF that the failure rate projects{detection.of_sizes(report.min_gpus)}",
        (
            Column("gpus", "GPUs", "count"),
            Column("mttf_hours", "MTTF", "mttf", "h"),
        ),
        tuple(
            (point.gpus, point.mttf_hours)
            for point in report.projection
            if point.mttf_hours.lower is not None
        ),
        "Unknown: the rate, or the number of GPUs in a node, is.",
    )


def record(report: MttfReport, selection: Selection) -> dict[str, Any]:
    """The JSON of the command."""
    rate, incident_rate, *hours = estimates(report).items()
    whole = report.detection
    return {
        "definition": report.definition,
        "failures": report.rate.failures if whole is None else whole.failures,
        "exposure_node_days": report.rate.exposure if whole is None else whole.exposure_node_days,
        **dict([rate]),
        "incidents": report.incident_rate.failures,
        **dict([incident_rate, *hours]),
        "dispersion": report.rate.dispersion,
        "dispersion_over_weeks": report.rate.dispersion_over_weeks,
        "dispersion_over_nodes": report.dispersion_over_nodes,
        "by_size": [
            {
                "gpus_from": size.gpus_from,
                "gpus_to": size.gpus_to,
                "failures": size.mttf_hours.n,
                "running_hours": size.running_hours,
                "mttf_hours": size.mttf_hours,
            }
            for size in report.by_size
        ],
        "projection": [
            {"gpus": point.gpus, "mttf_hours": point.mttf_hours} for point in report.projection
        ],
        "basis": report.basis,
        "gpus_per_node": report.gpus_per_node,
        "from_at": report.from_at,
        "to_at": report.to_at,
        "attempts_without_gpus": report.attempts_without_gpus,
        "failures_by_hardware": report.by_hardware,
        "failures_by_system_software": report.by_system_software,
        "failures_by_a_lost_node": report.by_lost_node,
        **detection.record(report),
        "notes": notes(report, selection),
    }


def notes(report: MttfReport, selection: Selection) -> tuple[str, ...]:
    """What a reader of the numbers must know."""
    return (*report.notes, *detection.notes(report, selection))


def _counted(report: MttfReport) -> Iterator[Term]:
    """Which failures and which sizes count."""
    if report.by_hardware is not None and report.by_lost_node is not None:
        yield Term(
            "Failures counted",
            f"{numbers.counted(report.rate.failures, 'failure')} by definition "
            f"{report.definition}: {numbers.count(report.by_hardware)} with verdict hardware, "
            f"{numbers.count(report.by_system_software)} with verdict system software, "
            f"{numbers.count(report.by_lost_node)} whose node the scheduler lost, whatever the "
            f"verdict.{detection.counted_in_words(report)}",
        )
        yield of_reliability.UNEXPLAINED
    yield Term(
        "Sizes counted",
        f"The rate counts {detection.sizes(report.min_gpus)}: MTTF and ETTR start from 129 GPUs "
        "(the paper counts jobs of more than 128), from 0 where no such job ran, all others from "
        "0. Measured MTTF by size shows every class, whatever the smallest job.",
    )


def _failures(report: MttfReport, selection: Selection) -> Part:
    """The failures that the rate counts."""
    whole = report.detection
    total = report.rate.failures if whole is None else whole.failures
    counted = replace(selection, min_gpus=report.min_gpus)
    return Part("Failures behind the number", failures, (counted,), total=total)


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
    """What is missing: nothing ran, no jobs are known, or none says its GPUs."""
    if "node_failures" in report.basis and report.rate.failures:
        return Missing(
            "mttf_by_size",
            "Failures of nodes are known here, but no jobs.",
            "Which jobs they ended, and how long a job of a given size runs until it fails, "
            "needs the scheduler's records:",
            ("sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",),
        )
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


def _sheet(report: MttfReport) -> Sheet:
    """Every estimate as a row; sizes are empty where it is of no size."""
    rows: list[tuple[str, int | None, int | None, Estimate]] = [
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
    "repair_minutes", "text", hidden=("attempt_key",),
)  # fmt: skip
ATTEMPTS = columns(
    "job_id", "attempt", "state", "failed", "n_gpus", "n_nodes", "running_hours", "start_at",
    "end_at", "partition", "user", "account", "cluster", hidden=("attempt_key",),
)  # fmt: skip


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
