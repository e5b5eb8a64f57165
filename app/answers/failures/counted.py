"""Which failures count, and whose fault were they? One record and one wording of it for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.frames import CountedFailures


def record(counted: CountedFailures, *, blind: bool = False) -> dict[str, int | None]:
    """Keys of the JSON: those by domain sum to `failures`; what stands after them overlaps.

    Where no failure could be seen (`blind`) and none is known, none of them is.
    """
    n = counted.by_domain
    found: dict[str, int | None] = {
        "failures": counted.n,
        "failures_by_hardware": n.get("hardware", 0),
        "failures_by_system_software": n.get("system_software", 0),
        "failures_by_user_program": n.get("user", 0),
        "failures_of_unknown_cause": n.get("unknown", 0),
        "failures_with_a_lost_node": counted.lost_node,
        "failures_of_failure_logs": counted.logged,
    }
    if blind and not counted.n:
        found = dict.fromkeys(found)
    return found | {"unexplained_failures": counted.unexplained}


def in_words(counted: CountedFailures) -> str:
    """The parts that sum to all failures, then those of them with a lost node or from a log."""
    return "; ".join((parts(counted), *_among(counted)))


def parts(counted: CountedFailures) -> str:
    """The parts that sum to all failures."""
    return ", ".join(_by_domain(counted))


def _by_domain(counted: CountedFailures) -> Iterator[str]:
    """The failures of each domain; system software and hardware also where there are none."""
    names = {
        "hardware": "by hardware",
        "system_software": "by system software",
        "user": "by the user's program",
        "unknown": "of unknown cause",
    }
    for domain, name in names.items():
        n = counted.by_domain.get(domain, 0)
        if n or domain in ("hardware", "system_software"):
            yield f"{numbers.count(n)} {name}"


def _among(counted: CountedFailures) -> Iterator[str]:
    """What is counted again: failures in which a node was lost, and those of a failure log."""
    if counted.lost_node:
        yield f"a node was lost in {numbers.count(counted.lost_node)} of them"
    if counted.logged:
        yield f"{numbers.count(counted.logged)} of them as a failure log states"
