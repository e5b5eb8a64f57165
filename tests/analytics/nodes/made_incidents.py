"""Fleets whose incidents come as no model of ours says: a past, and the days that follow it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.nodes.validation_plan import BENCHMARKS, UNKNOWN, NodeRecord, PastIncident

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Floats
    from analytics.nodes.validation_plan import NodeTest

KINDS = (*(benchmark.causes[0] for benchmark in BENCHMARKS), "filesystem_mount")
"""A cause of each kind; the last one no test shows."""
HIDDEN = 0.2
"""Share of incidents of which no record tells the cause."""
HABITS = ("lognormal", "lemons", "bursts", "mended")
"""How incidents come: nodes differ; few are 33 times as bad and gaps are Weibull; each fault strikes
several times within days; lemons are mended at some time and others become such, costs by Pareto."""


@dataclass(frozen=True)
class Incident:
    """One, as it was."""

    node: int
    day: float
    gpu_hours: float
    cause: str


@dataclass(frozen=True)
class Backtest:
    """What was known, and what came."""

    records: tuple[NodeRecord, ...]
    after: tuple[Incident, ...]
    """Of the horizon."""
    horizon_days: float

    def came(self, tests: Sequence[NodeTest]) -> tuple[float, float]:
        """GPU-hours that incidents of these nodes cost, and those that their tests find."""
        shown = {
            test.record.node: {
                cause for each in BENCHMARKS if each.name in test.tests for cause in each.causes
            }
            for test in tests
        }
        of = [each for each in self.after if f"n{each.node}" in shown]
        found = [each for each in of if each.cause in shown[f"n{each.node}"]]
        return sum(each.gpu_hours for each in of), sum(each.gpu_hours for each in found)


def drawn(habit: str, seed: int) -> Backtest:
    """A fleet of 40 to 300 nodes, 28 to 120 days of it, and 14 or 28 that follow."""
    rng = np.random.default_rng([HABITS.index(habit), seed])
    n_nodes, window = int(rng.integers(40, 300)), float(rng.uniform(28, 120))
    horizon = float(rng.choice([14.0, 28.0]))
    per_day = float(rng.lognormal(np.log(0.006), 0.5))
    busy = rng.beta(8, 2, n_nodes)
    node, day = _times(habit, per_day * busy, window + horizon, rng)
    cost = _costs(habit, node, n_nodes, rng)
    cause = _causes(node, n_nodes, rng)
    order = np.argsort(day, kind="stable")
    all_of = [
        Incident(int(node[at]), float(day[at]), float(cost[at]), str(cause[at])) for at in order
    ]
    told = np.where(rng.random(len(all_of)) < HIDDEN, UNKNOWN, [each.cause for each in all_of])
    known: dict[int, list[PastIncident]] = {}
    for each, cause_told in zip(all_of, told.tolist(), strict=True):
        if each.day < window:
            known.setdefault(each.node, []).append(
                PastIncident(each.day, each.gpu_hours, cause_told)
            )
    records = tuple(
        NodeRecord("c", f"n{at}", window * busy[at], window, tuple(known.get(at, ())), 8.0)
        for at in range(n_nodes)
    )
    return Backtest(records, tuple(each for each in all_of if each.day >= window), horizon)


def _times(
    habit: str, per_day: Floats, days: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Node and day of each incident."""
    n_nodes = len(per_day)
    if habit == "lognormal":
        rate = per_day * rng.lognormal(-0.5, 1.0, n_nodes)
        n = rng.poisson(rate * days)
        return np.repeat(np.arange(n_nodes), n), rng.uniform(0, days, n.sum())
    if habit == "lemons":
        rate = per_day * np.where(rng.random(n_nodes) < 0.015, 33.0, 1.0)
        return _renewals(rate, days, 0.7, rng)
    if habit == "bursts":
        n = rng.poisson(per_day * days / 3 * rng.gamma(1.0, 1.0, n_nodes))
        first, node = rng.uniform(-5, days, n.sum()), np.repeat(np.arange(n_nodes), n)
        more = rng.geometric(1 / 3, n.sum())
        day = np.repeat(first, more) + rng.exponential(2.0, more.sum())
        kept = (day >= 0) & (day < days)
        return np.repeat(node, more)[kept], day[kept]
    spells = max(1, round(days / 40))
    lemon = rng.random((n_nodes, spells)) < 0.03
    n = rng.poisson(per_day[:, None] * np.where(lemon, 20.0, 0.7) * days / spells)
    node, spell = np.nonzero(np.ones_like(n))
    node, spell = np.repeat(node, n.ravel()), np.repeat(spell, n.ravel())
    return node, (spell + rng.random(len(node))) * days / spells


def _renewals(
    rate: Floats, days: float, shape: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Incidents with Weibull gaps, begun long before."""
    from scipy.special import gamma

    before = 1000.0
    most = int(rng.poisson(1) + 20 + 3 * rate.max() * (days + before))
    gaps = rng.weibull(shape, (len(rate), most)) / (gamma(1 + 1 / shape) * rate[:, None])
    day = gaps.cumsum(axis=1) - before
    node = np.broadcast_to(np.arange(len(rate))[:, None], day.shape)
    kept = (day >= 0) & (day < days)
    return node[kept], day[kept]


def _costs(habit: str, node: Floats, n_nodes: int, rng: np.random.Generator) -> Floats:
    """GPU-hours of each incident, of jobs that differ by node; one in five hits none."""
    n = len(node)
    if habit == "mended":
        cost = np.minimum(4.0 * (1 + rng.pareto(1.6, n)), 500.0)
    elif habit == "bursts":
        cost = rng.gamma(0.6, 30.0, n)
    else:
        cost = rng.lognormal(2.0, rng.uniform(0.8, 1.6), n)
    of_node = rng.lognormal(0.0, 0.4, n_nodes)
    return np.where(rng.random(n) < 0.2, 0.0, cost * of_node[node])


def _causes(node: Floats, n_nodes: int, rng: np.random.Generator) -> Floats:
    """Cause of each incident: shares of the site's own, and a node's that half of its share."""
    site = rng.dirichlet(np.ones(len(KINDS)))
    own = rng.choice(len(KINDS), n_nodes, p=site)
    kind = np.where(
        rng.random(len(node)) < 0.5, own[node], rng.choice(len(KINDS), len(node), p=site)
    )
    return np.array(KINDS)[kind]
