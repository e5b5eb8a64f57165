"""A thing to do, and what people decide on: what each row of the list has."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from analytics.estimate import CONF_LEVEL, Estimate
from app.words.periods import custom_period

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

Kind = Literal[
    "node", "host", "incident", "mass_failure", "cause", "source", "straggler", "run", "suspect",
    "hang", "alert",
]  # fmt: skip
TITLES: Mapping[Kind, str] = {
    "node": "Lemon node",
    "host": "Host without jobs",
    "incident": "Incident",
    "mass_failure": "Mass failure",
    "cause": "Risen cause",
    "source": "Blind spot",
    "straggler": "Straggler",
    "run": "Training run",
    "suspect": "Corruption suspect",
    "hang": "Hang",
    "alert": "Alert",
}
"""What each kind is called."""


@dataclass(frozen=True)
class Action:
    """A row of the list."""

    kind: Kind
    target: str
    """What people decide on: `incident:ID`, else `action:KIND-HASH`, which stays when all is
    derived again."""
    what: str
    why: str
    stake: Estimate | None
    """GPU-hours; None where nobody knows them."""
    stake_basis: str
    """How they are counted, or why they are not known."""
    page: str
    """Page of the evidence, as in its address."""
    named: Mapping[str, str] = field(default_factory=dict)
    """What the address of that page names."""
    is_over: bool = False
    """Nothing is at stake any more: what it lost is lost."""
    hides: tuple[int, float] = (0, 0.0)
    """Order where the stake is none. Of an incident that is over: the GPU-hours that it lost. Of a
    source: 2 where it is asked and does not answer, 1 where it stopped, 0 where it was never read;
    then how long, or how many failures without a cause it could explain. Of a host without jobs: 3
    where an event was critical or fatal, else 1; then how often it was told."""
    rules: tuple[str, ...] = ()
    """Rules of alerts that see the same thing."""
    since: str = ""
    """Of what rules see: since when. What somebody said before silences nothing new."""

    @property
    def gpu_hours(self) -> float | None:
        """The stake alone."""
        return None if self.stake is None else self.stake.value


def target(kind: str, *parts: str) -> str:
    """What people decide on, from what a row is about.

    A hash: the names in it are nobody's business who reads the annotations.

    >>> target("cause", "demo", "ecc")
    'action:cause-f3787295d612'
    """
    digest = hashlib.sha256("\0".join((kind, *parts)).encode()).hexdigest()
    return f"action:{kind}-{digest[:12]}"


def recorded(gpu_hours: float, n: int) -> Estimate:
    """GPU-hours that records fix: an interval without a width."""
    return Estimate(gpu_hours, gpu_hours, gpu_hours, CONF_LEVEL, n)


def rank(action: Action) -> tuple[int, float, int, float, str]:
    """Most GPU-hours at stake first; then what has none that is known, by what it hides; last what
    is over.
    """
    hours, (how, much) = action.gpu_hours, action.hides
    place = 2 if action.is_over else 1 if hours is None else 0
    return (place, -(hours or 0.0), -how, -much, action.target)


def period(from_at: datetime | None, to_at: datetime | None, timezone: str) -> dict[str, str]:
    """A period as an address names it."""
    if from_at is None or to_at is None:
        return {}
    first, last = (at.astimezone(ZoneInfo(timezone)) for at in (from_at, to_at))
    return custom_period(first, last)


HIDDEN = {
    "health_events.kernel": ("kernel logs", "which failures are of GPUs, links and hosts"),
    "health_events.health_check": ("health checks", "which nodes failed one"),
    "job_logs": ("logs of jobs", "why attempts failed that no node explains"),
    "node_events": ("events of nodes", "which nodes are out of service, and for how long"),
    "training_metrics": (
        "training metrics",
        "checkpoints and lost work, which are assumed",
    ),
}
"""Sources that any cluster with jobs can have: what they are, and what is hidden without them."""
RECENT = timedelta(days=3)
"""Runs that logged within so long before the newest step of all are looked at."""
MOST_RUNS = 8
"""Of them, those that logged last."""
