"""A period again without some nodes and with another checkpoint interval: what is regained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd

from analytics import validate
from analytics.efficiency.habit_costs import MINUTES, habit_sets, replayed
from analytics.efficiency.left_out import Fleet, LeftOut, Without
from analytics.efficiency.resampled import (
    DRAWS,
    EACH,
    HABIT_DRAWS,
    Costs,
    Outcomes,
    Struck,
    causes_of,
    drawn,
    joined,
    spread,
)
from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analytics.arrays import Floats
    from analytics.efficiency.habit_costs import HabitSets
    from analytics.efficiency.habits import Habits, Times
    from analytics.efficiency.left_out import Node
    from analytics.efficiency.resampled import Sums

CURVE: Final = ("minutes", "gpu_hours", "lower", "upper")
Every = float | Literal["best"] | None


@dataclass(frozen=True)
class Change:
    """What is otherwise than it was."""

    nodes: tuple[Node, ...] = ()
    """Left out: cluster and node."""
    hindsight: bool = True
    """They were chosen by this very period, or perhaps so."""
    interval_min: Every = None
    """Minutes between checkpoints of runs on several nodes, > 0; `best` for that at which this
    period would have cost least; None as they saved."""


@dataclass(frozen=True)
class WhatIf:
    """A period played again; GPU-hours of jobs, as estimates whose n is what they rest on."""

    n_interruptions: int
    n_failures: int
    """Of them by failures of the infrastructure."""
    n_named: int
    """Of these with the node at fault."""
    interval_min: float | None
    """Of the runs on several nodes; None where they save as they did."""
    nodes: tuple[LeftOut, ...]
    as_was: Estimate
    """Lost work, restarts and writing, as they were; n = interruptions."""
    by_nodes: Estimate
    """Regained without the nodes; n = their failures."""
    gross: float
    """Cost of all failures of the nodes, before a healthy node's are taken off."""
    by_interval: Estimate
    """Regained by the interval alone; n = interruptions of runs on several nodes."""
    by_interval_left: Estimate
    """Regained by it of what is left without the nodes."""
    regained: Estimate
    """By both together."""
    waited: Estimate
    """GPU-hours that runs would have waited less to start again: not capacity, for others ran."""
    parts: Mapping[str, tuple[Estimate, Estimate]]
    """Part -> as it was, regained by both together: lost, restart, written."""
    causes: Mapping[str, tuple[Estimate, Estimate]]
    """Cause of the interruption -> cost as it was, regained; the most regained first. Writing has
    no cause."""
    runs: pd.DataFrame
    """Runs on several nodes that gain or give up anything, the most first: cluster, run_id, name,
    n_gpus, interruptions, by_nodes, by_interval, regained."""
    curve: pd.DataFrame
    """Cost of runs on several nodes by interval: minutes, gpu_hours, lower, upper; empty where
    none was interrupted."""
    present: Estimate
    """The same at the intervals at which they saved."""
    best_min: Estimate
    """Interval at which the curve is lowest, without a bound where that is an end of what was
    tried; unknown where writing costs nothing or interruptions lost nothing."""
    conf_level: float


def what_if(
    attempts: pd.DataFrame,
    habits: Mapping[str, Habits],
    exposure: pd.DataFrame,
    change: Change,
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> WhatIf:
    """GPU-hours regained without some nodes, with another checkpoint interval, and by both.

    Failure j costs x_j (lost work and the restart of the run). Nodes M with exposure E_M had K
    failures; healthy ones in their place would have had U = E_M K_o / E_o, after the K_o failures
    of the other nodes of their cluster in exposure E_o, summed over clusters. Without M the period
    regains

    .. math:: R_M = \\sum_{j \\in M} x_j - U \\ell, \\quad
        \\ell = \\frac{3 \\bar x + \\sum_{j \\in M} x_j}{3 + K}

    with the mean cost of a failure that names a node. Failures that name none, and those of users'
    programs, stay. Where all failures of a cluster of theirs name none, or no other node of it ran,
    what the nodes regain is unknown. At the interval D each interruption costs d_j less, and
    writing costs W(D) - W more: R_D = sum d_j - (W(D) - W); together the failures that are left
    gain, R = R_M + sum_{not M} d_j + U delta - (W(D) - W), delta being as l of d_j.

    Nodes chosen in hindsight had bad luck, too: the excess of node i counts by
    s_i = v u_i / (1 + v u_i), the posterior mean where rates of nodes are gamma with variance v
    around 1 (by moments), u_i being what is usual at its exposure. How much they differ is not well
    known: the interval reaches as far as with the excess in full.

    Intervals are quantiles over draws: each incident weighs as a gamma variable of mean 1, and
    half an incident of mean cost is added where it can add (so that nothing seen is not nothing);
    what is not known of the habits of runs is drawn, too. Runs and their work are held as they
    were. Where habits are assumed, the interval reaches over their range and has no level.

    Parameters
    ----------
    attempts : DataFrame
        Columns of `replay.COLUMNS`, `name` and, where known, `implicated`: the list of all nodes at
        fault. An interruption that names several is regained only where all of them are left out.
    habits
        Of `several_nodes` and `one_node`.
    exposure : DataFrame
        cluster, node, exposure_node_days.
    change : Change
        The nodes left out and the interval.

    Raises
    ------
    OutOfRangeError
        For an interval that is not > 0 or a level outside (0, 1).
    """
    validate.conf_level(conf_level)
    interval_min = change.interval_min
    if isinstance(interval_min, int | float):
        validate.positive("interval_min", interval_min, "pass minutes, e.g. 30")
    rng = np.random.default_rng(seed)
    attempts = attempts.reset_index(drop=True)
    saved = habit_sets(attempts, habits, HABIT_DRAWS, rng)
    central, _, corners = saved
    fleet = Fleet.of(attempts, exposure)
    without = Without.of(fleet, change.nodes, hindsight=change.hindsight)
    asked = _Asked(attempts, Struck.of(attempts), without)
    costs = Costs.of(asked.struck, central)
    held = costs.summed(without.gone)
    best = _best(held)
    if interval_min is not None:
        asked = replace(asked, interval_min=best if interval_min == "best" else float(interval_min))
        held = costs.summed(without.gone, asked.interval_min)
    chance = _chance(asked, held, saved, rng)
    outcome = _Spread(held.point(), chance, bool(corners), conf_level)
    return _report(asked, outcome, _with_cost(asked, central), central, best)


@dataclass(frozen=True)
class _Asked:
    """What is played again."""

    attempts: pd.DataFrame
    struck: Struck
    without: Without
    interval_min: float | None = None
    """Of runs on several nodes; None as they saved."""

    def summed(self, times: tuple[Times, ...]) -> Sums:
        """Costs under these times."""
        return Costs.of(self.struck, times).summed(self.without.gone, self.interval_min)


def _chance(
    asked: _Asked, held: Sums, saved: HabitSets, rng: np.random.Generator
) -> tuple[Outcomes, ...]:
    """Draws of chance, of habits that are modelled or at their bounds, and with the excess of the
    nodes left out counted in full: how much nodes differ is not well known. `held` in the mean.

    All but the habits that are modelled meet the same draws of chance: bounds differ by what is
    assumed alone.
    """
    _, of_habits, corners = saved
    chance = []
    if of_habits:
        each = (drawn([asked.summed(times)], EACH, rng) for times in of_habits)
        chance.append(joined([outcomes for (outcomes,) in each]))
    alike = [] if of_habits else [held]
    alike += [asked.summed(times) for times in corners]
    if asked.without.counts_for_less:
        in_full = asked.struck.excess(asked.without.in_full, held.rows)
        alike.append(replace(held, excess=in_full))
    return (*chance, *(drawn(alike, DRAWS, rng) if alike else ()))


def _best(sums: Sums) -> float | None:
    """Minutes at which the curve is lowest; None where writing costs nothing or nothing struck."""
    outcome = sums.point()
    if not sums.fixed[0] or outcome.curve[0, -2] <= sums.fixed[-2]:
        return None
    return float(outcome.best_min[0])


def _with_cost(asked: _Asked, times: tuple[Times, ...]) -> tuple[LeftOut, ...]:
    """The nodes left out with what their failures cost."""
    attempts = asked.attempts
    then = replayed(asked.struck.ran, times)
    cost = pd.Series(np.where(asked.without.gone.blamed, then.lost + then.restart, 0.0))
    by_node = cost.groupby([attempts["cluster"], attempts["node"]]).sum().to_dict()
    return tuple(
        replace(left, cost=float(by_node.get((left.cluster, left.node), 0.0)))
        for left in asked.without.nodes
    )


@dataclass(frozen=True)
class _Spread:
    """The outcome of what was, and what chance and unknown habits leave open."""

    point: Outcomes
    chance: tuple[Outcomes, ...]
    """Of the habits in the mean or drawn; then of the bounds of what is assumed, and of nodes
    chosen in hindsight as if their excess counted in full."""
    assumed: bool
    conf_level: float

    def of(self, quantity: Callable[[Outcomes], Floats], n: int) -> Estimate:
        """A quantity with its interval: over the assumed range, if there is one."""
        draws = [outcomes.settled(quantity(outcomes)) for outcomes in self.chance]
        value = float(self.point.settled(quantity(self.point))[0])
        return spread(value, draws, n, conf_level=self.conf_level, assumed=self.assumed)


def _report(
    asked: _Asked,
    outcome: _Spread,
    left_out: tuple[LeftOut, ...],
    times: tuple[Times, ...],
    best: float | None,
) -> WhatIf:
    """All quantities as estimates; `best` as `_best` finds it."""
    attempts, point, level = asked.attempts, outcome.point, outcome.conf_level
    struck = attempts["bucket"].notna()
    n, n_runs = int(struck.sum()), int((struck & attempts["several"]).sum())
    failed = attempts["bucket"].eq("lost_work")
    n_named = int((failed & attempts["node"].notna()).sum())
    nothing = unknown(level, 0)
    known = n > 0 and asked.without.comparable
    by_interval = outcome.of(lambda outcomes: outcomes.by_interval, n_runs) if n_runs else nothing
    if n and asked.interval_min is None:  # nothing regained where nothing is changed
        by_interval = Estimate(0.0, 0.0, 0.0, level, n_runs)
    # Where what the nodes regain is unknown, only the interval changes what is known.
    without = by_interval if asked.interval_min is not None else nothing
    return WhatIf(
        n_interruptions=n,
        n_failures=int(failed.sum()),
        n_named=n_named,
        interval_min=asked.interval_min,
        nodes=left_out,
        as_was=outcome.of(
            lambda outcomes: outcomes.cost("lost") + outcomes.cost("restart") + outcomes.written, n
        ) if n else nothing,
        by_nodes=outcome.of(lambda outcomes: outcomes.without, asked.without.n_failures)
        if known else nothing,
        gross=sum(outcomes.cost for outcomes in left_out),
        by_interval=by_interval,
        by_interval_left=outcome.of(lambda outcomes: outcomes.regained - outcomes.without, n_runs)
        if known else without,
        regained=outcome.of(lambda outcomes: outcomes.regained, n) if known else without,
        waited=outcome.of(lambda outcomes: outcomes.avoided("waited"), n) if known else nothing,
        parts=_parts(outcome, n) if n else {},
        causes=_causes(outcome, attempts) if n else {},
        runs=_runs(asked, point, times),
        curve=_curve(outcome) if n_runs else pd.DataFrame(columns=CURVE),
        present=outcome.of(lambda outcomes: outcomes.curve[:, -1], n_runs) if n_runs else nothing,
        best_min=unknown(level, n_runs) if best is None else _best_min(outcome, n_runs),
        conf_level=level,
    )  # fmt: skip


def _parts(outcome: _Spread, n: int) -> dict[str, tuple[Estimate, Estimate]]:
    """Each part as it was, and what is regained of it."""
    asked: dict[str, tuple[Callable[[Outcomes], Floats], Callable[[Outcomes], Floats]]] = {
        "lost": (lambda e: e.cost("lost"), lambda e: e.avoided("lost") + e.less()),
        "restart": (lambda e: e.cost("restart"), lambda e: e.avoided("restart")),
        "written": (lambda e: e.written, lambda e: 0.0 - e.more_written),
    }
    return {name: (outcome.of(was, n), outcome.of(less, n)) for name, (was, less) in asked.items()}


def _causes(outcome: _Spread, attempts: pd.DataFrame) -> dict[str, tuple[Estimate, Estimate]]:
    """The same of each cause, the most regained first, then the dearest."""
    struck = attempts["bucket"].notna()
    found = {}
    for cause, n in pd.Series(causes_of(attempts)[struck]).value_counts().items():
        name, n = str(cause), int(n)
        found[name] = (
            outcome.of(partial(Outcomes.cost, kind="cost", cause=name), n),
            outcome.of(partial(Outcomes.of_cause, cause=name), n),
        )
    order = sorted(found, key=lambda c: (-(found[c][1].value or 0.0), -(found[c][0].value or 0.0)))
    return {cause: found[cause] for cause in order}


def _runs(asked: _Asked, point: Outcomes, times: tuple[Times, ...]) -> pd.DataFrame:
    """What each run on several nodes regains: of failures of the nodes all the same share."""
    attempts = asked.attempts
    ran = asked.struck.ran
    then, now = (replayed(ran, times, every) for every in (None, asked.interval_min))
    cost = (then.lost + then.restart) * asked.without.gone.share
    whole = float(cost.sum())
    part = float(point.without[0]) / whole if whole else 0.0
    left = 1.0 - asked.without.gone.share * (part if whole else 0.0)
    rows = attempts[["cluster", "run_id", "name", "n_gpus"]].assign(
        interruptions=attempts["bucket"].notna().astype(int),
        by_nodes=cost * part,
        by_interval=point.settled((then.lost - now.lost) * left - (now.written - then.written)),
    )[attempts["several"] & attempts["run_id"].notna()]
    runs = rows.groupby(["cluster", "run_id"], as_index=False).agg(
        {"name": "first", "n_gpus": "max", "interruptions": "sum", "by_nodes": "sum",
         "by_interval": "sum"}
    )  # fmt: skip
    runs["regained"] = runs["by_nodes"] + runs["by_interval"]
    gains = runs[runs["regained"] != 0]
    order = np.lexsort((gains["run_id"].astype(str), -gains["regained"]))
    return gains.take(order).reset_index(drop=True)


def _curve(outcome: _Spread) -> pd.DataFrame:
    """Cost by interval, with its interval."""
    tails = [(1 - outcome.conf_level) / 2, (1 + outcome.conf_level) / 2]
    bounds = np.array(
        [np.quantile(outcomes.curve[:, :-1], tails, axis=0) for outcomes in outcome.chance]
    )
    value = outcome.point.curve[0, :-1]
    return pd.DataFrame(
        {
            "minutes": MINUTES,
            "gpu_hours": value,
            "lower": np.minimum(bounds[:, 0].min(axis=0), value),
            "upper": np.maximum(bounds[:, 1].max(axis=0), value),
        }
    )


def _best_min(outcome: _Spread, n: int) -> Estimate:
    """Where the curve is lowest; no bound where that is an end of what was tried."""
    found = outcome.of(lambda outcomes: outcomes.best_min, n)
    return replace(
        found,
        lower=None if found.lower == MINUTES[0] else found.lower,
        upper=None if found.upper == MINUTES[-1] else found.upper,
    )
