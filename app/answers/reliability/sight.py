"""Could failures be seen, and when? Every verdict asks this, and is refused where none could."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from analytics.reliability import sight as analysis
from app.answers.content import Missing, Number
from app.words import numbers
from data.queries import fleet
from data.queries.detection import evidence_days

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.reliability.sight import Sight
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

CANNOT = "cannot be judged"
NOT_SEEN = "no failure could be seen"
NO_JOBS = "no job of this time was recorded"
BASIS = f"{CANNOT}: {NOT_SEEN}"
"""What stands beside a number that is unknown for it."""
JOBS = (
    "sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",
    "faultline ingest sacct sacct.txt",
)
SHOWS = {
    "health_events.kernel": (
        "kernel log",
        "journalctl _TRANSPORT=kernel -o short-iso-precise > kernel-$(hostname).log",
        "faultline ingest kernel-log kernel-*.log",
    ),
    "health_events.health_check": (
        "health check",
        "faultline ingest gcm-health health.jsonl",
    ),
    "node_events": (
        "node event",
        "sacctmgr -P show event start=now-90days > events.txt",
        "faultline ingest sacctmgr-events events.txt",
    ),
}
"""Sources that any site has and that show failures beyond lost nodes: what one record of them is,
and the commands that bring them."""


def sight(store: Store, selection: Selection) -> Sight:
    """On which days of the selection's period failures could be seen, cluster by cluster."""
    names = [selection.cluster] if selection.cluster else fleet.distinct(store, "cluster")
    return analysis.sight(
        evidence_days(store, selection),
        selection.from_at,
        selection.to_at,
        clusters=[name for name in names if name],
    )


def why(found: Sight) -> str:
    """Why no failure could be seen, or nothing be told of jobs, as a clause."""
    if not found.none:
        return NO_JOBS
    recorded = [each.recorded for each in found.clusters if each.recorded is not None]
    if not recorded:
        return "no record of jobs or of failures is there"
    if found.beyond:
        first, last = min(days[0] for days in recorded), max(days[1] for days in recorded)
        return f"the records, {numbers.day(first)} to {numbers.day(last)}, do not reach this time"
    then = " then" if any(each.sources for each in found.clusters) else ""
    of = "this cluster" if len(found.clusters) == 1 else "these clusters"
    return f"no kernel log, health check, node event or log of a job of {of} was collected{then}"


def basis(found: Sight) -> str:
    """What stands beside a number that is unknown for want of sight, of failures or of jobs."""
    return BASIS if found.none else f"{CANNOT}: {NO_JOBS}"


def refused(what: str, found: Sight) -> str:
    """That something cannot be judged, and why.

    `what` begins the sentence.
    """
    of_jobs = "" if not found.none else f"{NOT_SEEN}, as "
    return f"{what} {CANNOT}: {of_jobs}{why(found)}."


def missing(key: str, what: str, found: Sight) -> Missing:
    """What stands in place of a verdict, with the commands that bring sight."""
    return Missing(key, f"{what} {CANNOT}.", remedy(found), commands(found))


def nodes_alone(key: str) -> Missing:
    """What stands in place of what jobs would show, where failures of nodes alone are known."""
    return Missing(
        key,
        "Failures of nodes are known here, but no jobs.",
        "Which jobs they ended, and how long a job of a given size runs until it fails, needs the "
        "scheduler's records:",
        JOBS[:1],
    )


def remedy(found: Sight) -> str:
    """What to do."""
    if found.beyond:
        return "Choose a period that the records cover, or collect this one:"
    if not found.none:
        return "The scheduler's records show what ran:"
    return "These show failures, and `faultline collect` knows when they were quiet:"


def commands(found: Sight) -> tuple[str, ...]:
    """The commands that bring what is missing."""
    if found.beyond:
        return ("faultline collect",)
    there = {source for each in found.clusters for source in each.sources}
    lacking = [told[1:] for source, told in SHOWS.items() if source not in there and found.none]
    lines = [line for told in lacking for line in told]
    return tuple(lines if not found.jobs_unknown else [*JOBS, *lines]) or ("faultline collect",)


def number(term: Term, unit: str = "") -> Number:
    """A headline number that is unknown because no failure could be seen."""
    return Number(term, numbers.UNKNOWN, BASIS, unit=unit)


def notes(found: Sight, what: str) -> Iterator[str]:
    """Which clusters cannot be judged beside others, and during which part failures could be seen.

    `what` is what is told, e.g. "the losses".
    """
    if found.none:
        return
    if found.blind:
        yield (
            f"Of {', '.join(found.blind)} {what} {CANNOT}: {NOT_SEEN} there. "
            f"`{'`, `'.join(commands(found.of(found.blind[0])))}`"
        )
    others = [each for each in found.clusters if each.seen]
    seen, days = sum(each.seen for each in others), sum(each.days for each in others)
    if seen < days:
        yield (
            f"Failures could be seen on {seen:,} of {numbers.counted(days, 'day')}: of the others "
            f"{what} {CANNOT}."
        )


def record(found: Sight) -> dict[str, Any]:
    """Keys of the JSON: the days, and why there is no verdict."""
    return {
        "days": found.days,
        "days_seen": found.seen,
        "clusters_not_seen": [each.cluster for each in found.clusters if not each.seen],
        "reason": f"{BASIS}, as {why(found)}" if found.none else None,
        "collect": list(commands(found)) if found.none else [],
    }
