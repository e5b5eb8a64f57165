"""Which earlier and later incidents are like one: same node, same signature, same cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.failures.incidents.wording import NO_CAUSE
from analytics.failures.text_model.features import normal_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

RULE = (
    "Those that share most of node, signature and cause come first; of equal ones those of the "
    "same node, then of the same signature, then the latest. A signature is a critical XID or "
    "check, or a line of a log that names the cause, without its numbers."
)
"""How similar incidents are ranked."""


@dataclass(frozen=True)
class Traits:
    """What an incident can share with another."""

    incident_id: str
    start_at: datetime
    cause: str
    nodes: frozenset[str]
    """Nodes that its evidence names; none where no evidence names one."""
    signatures: frozenset[str]
    """As `signature` writes them."""


@dataclass(frozen=True)
class Similar:
    """An incident, and what it shares with the one that was asked about."""

    incident_id: str
    start_at: datetime
    nodes: tuple[str, ...]
    signatures: tuple[str, ...]
    cause: bool
    """Both have the same cause, and it says something."""

    @property
    def n_shared(self) -> int:
        """How many of node, signature and cause they share."""
        return bool(self.nodes) + bool(self.signatures) + self.cause


def signature(kind: str, text: str) -> str:
    """What was seen, without what names one machine or moment: a line of a log, or a signal.

    Examples
    --------
    >>> signature("job_log", "Rank 17: NCCL WARN timeout after 1800 s")
    'line: rank #: nccl warn timeout after # s'
    >>> signature("health_event", "XID 79")
    'XID 79'
    """
    return f"line: {normal_text(text)}" if kind == "job_log" else text


def similar(one: Traits, others: Iterable[Traits]) -> Sequence[Similar]:
    """Incidents that share a node, a signature or a cause with one, the most alike first.

    The order is that of `RULE`. A cause that names none (unknown, requeued) is no cause to share.

    Examples
    --------
    >>> from datetime import datetime
    >>> def traits(name, day, cause, node):
    ...     return Traits(name, datetime(2026, 1, day), cause, frozenset([node]), frozenset())
    >>> found = similar(traits("a", 9, "nvlink", "n1"),
    ...     [traits("b", 1, "nvlink", "n2"), traits("c", 2, "pcie", "n1"),
    ...      traits("d", 3, "pcie", "n3"), traits("e", 4, "nvlink", "n1")])
    >>> [each.incident_id for each in found]
    ['e', 'c', 'b']
    """
    found = [
        Similar(
            other.incident_id,
            other.start_at,
            tuple(sorted(one.nodes & other.nodes)),
            tuple(sorted(one.signatures & other.signatures)),
            one.cause == other.cause and one.cause not in NO_CAUSE,
        )
        for other in others
        if other.incident_id != one.incident_id
    ]
    latest_first = sorted(found, key=lambda each: (each.start_at, each.incident_id), reverse=True)
    return sorted(
        (each for each in latest_first if each.n_shared),
        key=lambda each: (-each.n_shared, not each.nodes, not each.signatures),
    )
