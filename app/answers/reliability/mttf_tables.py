"""Tables of MTTF, and the rows behind its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.content import Part, Table
from app.answers.reliability import detection, sight
from app.ask import EVERYTHING
from app.words import numbers
from app.words.cells import Column
from data.queries import reliability

if TYPE_CHECKING:
    from analytics.reliability.mttf import MttfReport, SizeClass
    from app.ask import Ask
    from data.filters import Selection

FAILURES = columns(
    "failed_at", "job_id", "attempt", "state", "cause", "domain", "node", "n_gpus", "n_nodes",
    "confidence", "method", "evidence", "partition", "user", "account", "cluster", "subcause",
    "hit", "repair_minutes", "text", hidden=("attempt_key",),
)  # fmt: skip
ATTEMPTS = columns(
    "job_id", "attempt", "state", "failed", "n_gpus", "n_nodes", "running_hours", "start_at",
    "end_at", "partition", "user", "account", "cluster", hidden=("attempt_key",),
)  # fmt: skip


def by_size(report: MttfReport, selection: Selection) -> Table:
    """Measured MTTF of each class of sizes; a row opens the attempts behind it."""
    return Table(
        "mttf_by_size",
        "Measured MTTF by job size",
        (
            Column("gpus_from", "GPUs from", "count", shown=False),
            Column("gpus_to", "GPUs to", "count", shown=False),
            Column("job_size", "Job size"),
            Column("failures", "Failures", "count", none=sight.NOT_SEEN),
            Column("running_hours", "Running time (h)", "number"),
            Column("mttf_hours", "MTTF", "mttf", "h", none="none was seen to fail"),
        ),
        tuple(
            (
                size.gpus_from,
                size.gpus_to,
                numbers.gpus(size.gpus_from, size.gpus_to),
                failures_known(size, report),
                size.running_hours,
                size.mttf_hours,
            )
            for size in report.by_size
        ),
        "No job with GPUs ran.",
        opens=Part("Attempts behind the number", attempts, (selection,), ("gpus_from", "gpus_to")),
    )


def failures_known(size: SizeClass, report: MttfReport) -> int | None:
    """Failures of a class of sizes; None where none is known because none could be seen."""
    return None if report.failures_known is None else size.mttf_hours.n


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
