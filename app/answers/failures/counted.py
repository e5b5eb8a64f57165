"""Which failures count, and whose fault were they? The one record and wording of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.words import numbers

if TYPE_CHECKING:
    from analytics.frames import CountedFailures


def record(counted: CountedFailures, *, blind: bool = False) -> dict[str, int | None]:
    """Keys of the JSON: those by domain sum to `failures`; what stands after them overlaps.

    Where no failure could be seen (`blind`) and none is known, none of them is.
    """
    n = counted.by_domain
    counts: dict[str, int | None] = {
        "failures": counted.n,
        "failures_by_hardware": n.get("hardware", 0),
        "failures_by_system_software": n.get("system_software", 0),
        "failures_by_user_program": n.get("user", 0),
        "failures_of_unknown_cause": n.get("unknown", 0),
        "failures_with_a_lost_node": counted.lost_node,
        "failures_of_failure_logs": counted.logged,
    }
    if blind and not counted.n:
        counts = dict.fromkeys(counts)
    return counts | {"unexplained_failures": counted.unexplained}


def in_words(counted: CountedFailures) -> str:
    """The parts that sum to all failures, then those of them with a lost node or from a log."""
    texts = [parts(counted)]
    if counted.lost_node:
        texts.append(f"a node was lost in {numbers.count(counted.lost_node)} of them")
    if counted.logged:
        texts.append(f"{numbers.count(counted.logged)} of them as a failure log states")
    return "; ".join(texts)


def parts(counted: CountedFailures) -> str:
    """The parts that sum to all failures; hardware and system software also where they are 0."""
    names = {
        "hardware": "by hardware",
        "system_software": "by system software",
        "user": "by the user's program",
        "unknown": "of unknown cause",
    }
    by_domain = [(counted.by_domain.get(domain, 0), domain) for domain in names]
    return ", ".join(
        f"{numbers.count(n)} {names[domain]}"
        for n, domain in by_domain
        if n or domain in ("hardware", "system_software")
    )
