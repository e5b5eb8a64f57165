"""The fleet report in a few sentences, each of which says only what the numbers support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.components import verdict
from app.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.estimate import Estimate
    from analytics.failures.incident_rate import IncidentSummary
    from analytics.failures.summary import CauseCount, FailureSummary
    from analytics.reliability.mttf import MttfReport
    from app.questions import Fleet

CAUSES = 3
"""Causes that are named."""


def answer(mttf: MttfReport) -> str:
    """How often did jobs fail?"""
    rate = mttf.rate.rate_per_1000_node_days
    n = numbers.counted(mttf.rate.failures, "failure")
    if rate.value is None and not mttf.rate.failures:
        return "Nothing ran and nothing failed: the failure rate is unknown."
    if rate.value is None:
        return f"{n} counted; the failure rate is unknown, for the exposure is."
    if mttf.rate.failures == 0:
        return (
            f"No failure in {numbers.number(mttf.rate.exposure)} node-days: "
            f"at most {numbers.number(rate.upper)} per 1,000 node-days."
        )
    return (
        f"{n} in {numbers.number(mttf.rate.exposure)} node-days: {numbers.number(rate.value)} "
        f"per 1,000 node-days ({numbers.interval(rate)})."
    )


def change(now: Estimate, before: Estimate | None) -> str | None:
    """How the rate differs from that of the preceding period; None where that one is unknown."""
    if before is None or before.value is None or now.value is None:
        return None
    was = f"{numbers.number(before.value)} ({numbers.interval(before)})"
    bounds = (now.lower, now.upper, before.lower, before.upper)
    if None in bounds:
        return f"In the preceding period of equal length the rate was {was}."
    if now.lower > before.upper:
        return f"The rate rose: in the preceding period of equal length it was {was}."
    if now.upper < before.lower:
        return f"The rate fell: in the preceding period of equal length it was {was}."
    return (
        f"No change is shown: in the preceding period of equal length the rate was {was}, and the "
        "two intervals overlap."
    )


def largest_jobs(mttf: MttfReport) -> str | None:
    """How long the largest jobs run between failures."""
    size = mttf.largest_class
    if size is None or size.mttf_hours.lower is None:
        return None
    job = f"A job of {numbers.gpus(size.gpus_from, size.gpus_to)}"
    interval = numbers.duration_interval(size.mttf_hours)
    if size.mttf_hours.value is None:
        return f"{job} runs {interval} between failures: none has failed."
    return f"{job} runs {numbers.duration(size.mttf_hours.value)} between failures ({interval})."


def causes(summary: FailureSummary) -> Iterator[str]:
    """Whose fault it was, what failed most, and what stays unknown."""
    yield verdict.failures(summary)
    named = [c for c in summary.by_cause if c.n_attempts and c.domain != "unknown"]
    if named:
        most = ", ".join(_cause(cause) for cause in named[:CAUSES])
        yield f"Most frequent {'cause' if len(named) == 1 else 'causes'}: {most}."
    hardware = [cause for cause in named if cause.domain == "hardware"]
    if hardware and hardware[0] not in named[:CAUSES]:
        yield f"Most frequent hardware cause: {_cause(hardware[0])}."
    if summary.unknown_ratio.value:
        yield (
            f"For {numbers.percent(summary.unknown_ratio.value)} of the failed attempts "
            f"({numbers.percent_interval(summary.unknown_ratio)}) no record says why."
        )


def incidents(summary: IncidentSummary, largest: str | None) -> str:
    """How many incidents, at what cost, and the costliest."""
    if not summary.n_incidents:
        return "No incident touches the period."
    least = "at least " if summary.n_unmeasured else ""
    text = (
        f"{numbers.counted(summary.n_incidents, 'incident')}, {summary.n_with_jobs:,} of which hit "
        f"a job; {least}{numbers.number(summary.lost_gpu_hours)} GPU-hours lost"
    )
    return f"{text}. The costliest: {largest}." if largest else f"{text}."


def fleet(found: Fleet) -> str | None:
    """How many nodes are out of service."""
    if found.n_out_of_service is None:
        return None
    of = numbers.counted(found.n_nodes, "node")
    verb = "was" if found.n_out_of_service == 1 else "were"
    rest = f"; unknown of {', '.join(found.without_states)}" if found.without_states else ""
    return (
        f"{found.n_out_of_service:,} of {of} {verb} out of service at the end of the period{rest}."
    )


def _cause(cause: CauseCount) -> str:
    return f"{cause.title} ({numbers.counted(cause.n_attempts, 'attempt')})"
