"""What does the failure rate rest on: what was collected, and what could not be seen?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.answers.reliability import sight
from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from analytics.estimate import Estimate
    from analytics.reliability.detection import Detection
    from analytics.reliability.mttf import MttfReport
    from data.filters import Selection

SCHEDULER = f"`{sight.JOBS[0]}`"
EVIDENCE = (
    "`faultline ingest kernel-log`, `gcm-health`, `sacctmgr-events` and `job-log` read what tells "
    "them from errors of programs."
)


def sizes(min_gpus: int) -> str:
    """The jobs that a rate counts, in words.

    >>> sizes(0), sizes(129)
    ('all sizes', 'jobs of 129 GPUs and more')
    """
    return f"jobs of {min_gpus:,} GPUs and more" if min_gpus > 1 else "all sizes"


def of_sizes(min_gpus: int) -> str:
    """What a title adds where not all jobs count.

    >>> of_sizes(0), of_sizes(129)
    ('', ', 129+ GPUs')
    """
    return f", {min_gpus:,}+ GPUs" if min_gpus > 1 else ""


def notes(report: MttfReport, selection: Selection) -> tuple[str, ...]:
    """What must be known before the rate is read: sizes counted, and what was not collected."""
    return (
        *_sizes_counted(report, selection),
        *(() if report.detection is None else _seen(report.detection)),
        *_records_missing(report),
    )


def not_collected(report: MttfReport) -> tuple[str, ...]:
    """What was not collected, for pages whose rates do not depend on it."""
    seen = () if report.detection is None else _seen(report.detection, of_rate=False)
    return (*seen, *_records_missing(report))


def rate_in_words(report: MttfReport) -> str:
    """How often the fleet fails, where its failures could be seen in part or not at all.

    Empty where they could be seen all along.
    """
    found, rate = report.detection, report.rate.rate_per_1000_node_days
    if found is None or found.scope == "all":
        return ""
    if found.scope == "detectable":
        where = f"the {_part(found)} during which failures could be seen"
        if not report.rate.failures:
            return f"No failure in {where}: at most {_rate(rate.upper)}"
        return (
            f"{fails(report)} ({numbers.interval(rate)}, n = {report.rate.failures:,}), in {where}"
        )
    if not report.rate.failures:
        unseen = "No infrastructure failure could be seen"
        return f"{unseen}, and {_missed(found)}: at most {_rate(rate.upper)}"
    seen = numbers.counted(report.rate.failures, "failure")
    return (
        f"{seen} of the infrastructure could be seen, {numbers.number(rate.value)} per 1,000 "
        f"node-days, and {_missed(found)}: {numbers.number(rate.lower)} to {_rate(rate.upper)}"
    )


def basis(report: MttfReport) -> str:
    """What the rate is given over, beside its interval."""
    counted = f"; {sizes(report.min_gpus)}"
    found = report.detection
    if report.failures_known is None and report.sight is not None:
        counted = f"; {sight.basis(report.sight)}{counted}"
    if found is None or found.scope == "all":
        return counted
    if found.scope == "detectable":
        return f"{counted}; {_part(found)}"
    return f"{counted}; none to all of {_unexplained(found)}"


def counted_in_words(report: MttfReport) -> str:
    """How many failures are unexplained, and what the rate would be with them."""
    found = report.detection
    if found is None or not found.unexplained:
        return ""
    rate = found.rate_if_unexplained_count.rate_per_1000_node_days
    return (
        f" {numbers.counted(found.unexplained, 'unexplained failure')} "
        f"{'does' if found.unexplained == 1 else 'do'} not count; were all of them the "
        f"infrastructure's, the rate would be {_rate(rate.value)}."
    )


def record(report: MttfReport) -> dict[str, Any]:
    """Keys of the JSON: where failures could be seen, and what the unexplained would change."""
    found = report.detection
    keys: dict[str, Any] = {
        "min_gpus": report.min_gpus,
        "detectable_exposure_node_days": None,
        "rate_if_unexplained_count": None,
        "rate_where_detectable_per_1000_node_days": None,
        "rate_given_over": None,
    }
    if found is not None:
        keys |= {
            "detectable_exposure_node_days": found.detectable_exposure_node_days,
            "rate_if_unexplained_count": found.rate_if_unexplained_count.rate_per_1000_node_days,
            "rate_where_detectable_per_1000_node_days": (
                found.rate_where_detectable.rate_per_1000_node_days
            ),
            "rate_given_over": found.scope,
        }
    return keys | {
        "clusters_without_exposure": report.without_exposure,
        "clusters_counted_in_node_hours": report.node_time,
    }


def _sizes_counted(report: MttfReport, selection: Selection) -> Iterator[str]:
    """Which jobs count, where that is not the reader's choice."""
    least = selection.min_gpus
    if least <= selection.by_size_min_gpus or not report.rate.exposure:
        return
    if report.min_gpus == least:
        yield f"The rate counts {sizes(least)}, as the paper does."
    elif "gpu_time" in report.basis:
        yield f"No job of {least:,} GPUs or more ran: the rate counts jobs of all sizes."


def _seen(found: Detection, *, of_rate: bool = True) -> Iterator[str]:
    """When no failure beyond the scheduler's own states could be seen, and what that means."""
    share, unexplained = found.share, _open(found) if of_rate else _open_then(found)
    if share is None or not (found.missed or share < 1.0):
        return
    if not found.sources:
        yield (
            "Accounting alone: no health event, node event or job log was collected, so only lost "
            f"nodes (NODE_FAIL) could be seen as failures of the infrastructure. {unexplained}"
            f"{EVIDENCE}"
        )
        return
    if found.blind_clusters:
        yield (
            f"Of {', '.join(found.blind_clusters)} only the scheduler's records were collected: no "
            f"failure beyond lost nodes could be seen there. {EVIDENCE}"
        )
    if found.scope != "all":
        yield (
            f"Failures could be seen during {_part(found)}: at other times no health event, node "
            f"event or job log was collected. {unexplained}{EVIDENCE}"
        )


def _open(found: Detection) -> str:
    """How many failures of then are unexplained, and what the rate does about them."""
    if not found.missed:
        return ""
    if found.scope == "detectable":
        return (
            f"{_unexplained(found)} fell then: the rate is that of the time in which failures "
            "could be seen. "
        )
    if found.scope == "range":
        return f"{_unexplained(found)}: the interval reaches from none to all of them. "
    return _open_then(found)


def _open_then(found: Detection) -> str:
    """How many failures of then are unexplained."""
    return f"{_unexplained(found)} fell then. " if found.missed else ""


def _records_missing(report: MttfReport) -> Iterator[str]:
    """Records of jobs that seem not to have been collected, and what collects them."""
    for cluster, n_days in report.jobs_missing.items():
        yield (
            f"No record of a job of {cluster} on {numbers.counted(n_days, 'day')}, more than its "
            f"quiet times explain: {SCHEDULER} of those days brings what ran and failed then."
        )
    yield from before_requeues(report.restarts, report.restarts_unknown)


def before_requeues(restarts: tuple[int, int], unknown: Sequence[str]) -> Iterator[str]:
    """Attempts before a requeue that no record shows, on every page and report that needs them.

    Parameters
    ----------
    restarts
        Attempts that were requeued before, and those of them without a record of what was before.
    unknown
        Clusters whose records do not say how often jobs were requeued.
    """
    restarted, without = restarts
    if without:
        yield (
            f"Of {numbers.counted(restarted, 'attempt')} that had been requeued {without:,} "
            f"{'has' if without == 1 else 'have'} no record of what was before: failures that "
            f"ended in a requeue are missing. {SCHEDULER} lists every attempt."
        )
    if unknown:
        yield (
            f"Records of {', '.join(unknown)} do not say how often jobs were requeued (Restarts), "
            "and show no attempt before a requeue: failures that ended in one may be missing. "
            f"{SCHEDULER} lists every attempt."
        )


def _part(found: Detection) -> str:
    """The node-days during which failures could be seen, of all."""
    seen = numbers.number(found.detectable_exposure_node_days)
    return f"{seen} of {numbers.number(found.exposure_node_days)} node-days"


def fails(report: MttfReport) -> str:
    """How often the fleet fails, or large jobs do."""
    rate: Estimate = report.rate.rate_per_1000_node_days
    of = f", {report.min_gpus:,}+ GPUs" if report.min_gpus > 1 else ""
    return f"{numbers.number(rate.value)} failures per 1,000 node-days{of}"


def _unexplained(found: Detection) -> str:
    """Unexplained failures of times in which none could be seen, of all where there are more."""
    of = "" if found.missed == found.unexplained else f"{found.missed:,} of "
    return f"{of}{numbers.counted(found.unexplained, 'unexplained failure')}"


def _missed(found: Detection) -> str:
    """The same as a clause."""
    if found.missed != found.unexplained:
        return f"{_unexplained(found)} fell then"
    are = "is" if found.missed == 1 else "are"
    return f"{numbers.counted(found.missed, 'failure')} {are} unexplained"


def _rate(value: float | None) -> str:
    """A rate with its unit."""
    return f"{numbers.number(value)} per 1,000 node-days"
