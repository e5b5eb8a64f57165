"""Fleets in which something else than a node is at fault, made by rules that no analysis assumes.

Rates of healthy nodes are lognormal, gamma or of two sorts; users share nodes unevenly; racks are
unknown. Sets of nodes go down within seconds, of which each time some are spared; jobs of one user,
pinned to a node, lose it; two nodes are lemons.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from analytics.arrays import Floats, Ints
from analytics.nodes.records import SIGNALS, NodeRecords

DAYS = 28.0
N_USERS = 40
SECOND = 1 / 86_400
LEAVES = {
    "healthy": (0.5, 0.6, 0.35, 0.4),
    "lemon": (0.7, 0.6, 0.35, 0.4),
    "shared": (0.8, 0.8, 0.4, 0.1),
    "pinned": (1.0, 0.6, 0.2, 0.0),
}
"""Chances of a failed job, an outage, a ticket and an event of the hardware at an occasion."""
Trouble = Literal["shared", "pinned"]
Spread = Literal["lognormal", "gamma", "two sorts"]


@dataclass(frozen=True)
class Troubled:
    """A fleet and its truth."""

    records: NodeRecords
    lemons: Ints
    innocent: Ints
    """Nodes that share a fault, or on which jobs of one user fail."""
    ratio: Floats
    """Of the rate of each node over the mean of healthy ones."""


def spread_rates(rng: np.random.Generator, spread: Spread, n: int, variance: float) -> Floats:
    """Rates of healthy nodes over their mean."""
    if spread == "lognormal":
        sigma = np.sqrt(np.log1p(variance))
        return rng.lognormal(-(sigma**2) / 2, sigma, n)
    if spread == "gamma":
        return rng.gamma(1 / variance, variance, n)
    return np.where(rng.random(n) < 0.2, 1 + 2 * np.sqrt(variance), 1 - np.sqrt(variance) / 2)


def troubled(seed: int, trouble: Trouble, *, knows_uses: bool = True) -> Troubled:
    """A fleet of 60 to 800 nodes with two lemons, and one to three sets or pinned users."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([60, 120, 300, 800]))
    spreads: tuple[Spread, ...] = ("lognormal", "gamma", "two sorts")
    ratio = spread_rates(rng, spreads[rng.integers(3)], n, float(rng.choice([0.04, 0.12, 0.25])))
    order = rng.permutation(n)
    lemons, others = order[:2], order[2:]
    fleet = _Fleet(rng, n)
    usual = float(rng.choice([0.1, 0.25])) * fleet.busy / fleet.busy.mean()
    fleet.struck(np.repeat(np.arange(n), rng.poisson(ratio * usual)), "healthy")
    fleet.struck(np.repeat(lemons, rng.poisson(rng.uniform(7, 14, 2))), "lemon")
    innocent: list[int] = []
    for number in range(int(rng.integers(1, 4))):
        if trouble == "shared":
            members, others = np.split(others, [int(rng.integers(2, 8))])
            innocent += members.tolist()
            fleet.share_a_fault(members)
        else:
            (at,), others = np.split(others, [1])
            innocent.append(int(at))
            fleet.pin(int(at), f"pinned{number}")
    return Troubled(fleet.records(knows_uses), lemons, np.array(innocent), ratio)


def of_ratios(seed: int, spread: Spread, times: float, *, n: int = 400) -> Troubled:
    """A fleet of which 1.5 % are so many times worse."""
    rng = np.random.default_rng(seed)
    fleet = _Fleet(rng, n)
    ratio = spread_rates(rng, spread, n, 0.4)
    lemons = rng.choice(n, n * 3 // 200, replace=False)
    ratio[lemons] *= times
    numbers = rng.poisson(0.4 * ratio * fleet.busy / fleet.busy.mean())
    fleet.struck(np.repeat(np.arange(n), numbers), "healthy")
    return Troubled(fleet.records(False), lemons, np.array([], dtype=np.int64), ratio)


class _Fleet:
    """Records as they are made."""

    def __init__(self, rng: np.random.Generator, n: int) -> None:
        self.rng, self.n = rng, n
        self.busy = np.clip(rng.beta(6, 1.5, n), 0.05, 1) * DAYS
        self.use = rng.dirichlet(np.full(N_USERS, 0.15), n)
        """Share of each user on each node."""
        self.attempts = rng.poisson(self.busy * rng.lognormal(1.5, 0.6, n)) + 1
        self.pinned: list[tuple[int, str, float, int]] = []
        self._frames: list[pd.DataFrame] = []

    def struck(
        self, place: Ints, kind: str, day: Floats | None = None, user: str | None = None
    ) -> None:
        """Occasions of nodes, at any time if none is given; what they leave comes soon after."""
        rng, n = self.rng, len(place)
        day = rng.uniform(0, DAYS, n) if day is None else day
        leaves = rng.random((n, 4)) < LEAVES[kind]
        leaves[~leaves.any(axis=1), 0] = True
        chance = self.use[place].cumsum(axis=1)
        by_use = (rng.random((n, 1)) > chance).sum(axis=1).clip(max=N_USERS - 1)
        users = np.array([user or f"u{each}" for each in by_use], dtype=object)
        n_nodes = rng.choice([1, 1, 1, 2, 4, 16], n)
        nobody = np.full(n, None, dtype=object)
        down = day + rng.exponential(0.01, n)
        for signal, which, begin, until, whose, lost in (
            ("job_failure", 0, day, np.full(n, np.nan), users,
             8 * n_nodes * rng.exponential(2.0, n).clip(max=0.5)),
            ("out", 1, down, down + rng.lognormal(-1.5, 0.8, n), nobody, np.zeros(n)),
            ("ticket", 2, day + rng.exponential(0.3, n), np.full(n, np.nan), nobody, np.zeros(n)),
            ("xid", 3, day, np.full(n, np.nan), nobody, np.zeros(n)),
        ):  # fmt: skip
            rows = pd.DataFrame({
                "place": place, "day": begin, "until_day": until, "signal": signal, "share": 1.0,
                "user": whose, "evident": True, "n_nodes": n_nodes, "lost_gpu_hours": lost,
            })  # fmt: skip
            self._frames.append(rows[leaves[:, which]])

    def share_a_fault(self, members: Ints) -> None:
        """Three to seven times the members go down within seconds, but for some."""
        rng = self.rng
        jitter, joins = float(rng.choice([1, 5, 15])), float(rng.choice([0.7, 0.85, 1.0]))
        for day in rng.uniform(0, DAYS, int(rng.integers(3, 8))):
            hit = members[rng.random(len(members)) < joins]
            self.struck(hit, "shared", day + SECOND * rng.exponential(jitter, len(hit)))

    def pin(self, at: int, user: str) -> None:
        """Five to fourteen jobs of a user lose the node; half of such users run elsewhere, too."""
        rng = self.rng
        n_failed, share = int(rng.integers(5, 15)), float(rng.choice([0.1, 0.4, 0.7]))
        self.use[at] *= 1 - share
        self.pinned.append((at, user, share * self.busy[at], n_failed + int(rng.integers(3))))
        self.struck(np.full(n_failed, at), "pinned", user=user)
        if rng.random() < 0.5:
            for other in rng.choice(self.n, 5).tolist():
                self.pinned.append((other, user, float(rng.uniform(0.1, 2)), 3))

    def records(self, knows_uses: bool) -> NodeRecords:
        """All of it, without what came after the window."""
        nodes = pd.DataFrame({
            "node": [f"n{at:04d}" for at in range(self.n)], "present_days": DAYS,
            "busy_days": self.busy, "n_attempts": self.attempts, "n_single": 1, "role": "compute",
            "holds_jobs": True, "rack": None, "pod": None, "switch": None, "pdu": None,
        })  # fmt: skip
        events = pd.concat(self._frames, ignore_index=True).assign(reason=None, n_records=1)
        events = events[events["day"] < DAYS].reset_index(drop=True)
        return NodeRecords(
            "made", DAYS, nodes, events, frozenset(SIGNALS), self._uses() if knows_uses else None
        )

    def _uses(self) -> pd.DataFrame:
        place, user = np.nonzero(self.use * self.attempts[:, None] >= 0.5)
        part = self.use[place, user]
        shared = pd.DataFrame({
            "place": place, "user": [f"u{each}" for each in user],
            "node_days": part * self.busy[place],
            "n_attempts": np.rint(part * self.attempts[place]).astype(int),
        })  # fmt: skip
        pinned = pd.DataFrame(self.pinned, columns=list(shared.columns))
        return pd.concat([shared, pinned], ignore_index=True) if self.pinned else shared
