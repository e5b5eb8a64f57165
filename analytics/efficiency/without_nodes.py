"""A period played once, and what it regains without any of its nodes: `WhatIf.by_nodes` of each."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics import validate
from analytics.efficiency.habit_costs import Ran, habit_sets, replayed, times_of
from analytics.efficiency.incidents_weighed import Incidents, streams
from analytics.efficiency.left_out import Excess, Fleet, Without
from analytics.efficiency.resampled import DRAWS, EACH, HABIT_DRAWS, spread
from analytics.estimate import Estimate, unknown

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from analytics.arrays import Floats
    from analytics.efficiency.habits import Habits, Times
    from analytics.efficiency.left_out import Gone, Node


@dataclass(frozen=True)
class Regained:
    """GPU-hours regained without some nodes."""

    value: float | None
    """None where failures do not tell these nodes from others."""
    chance: tuple[Floats, ...]
    """Draws, as `spread` takes them."""
    assumed: bool
    """Whether habits are."""
    n: int
    """Failures of the nodes."""

    def at(self, conf_level: float) -> Estimate:
        """With its interval at a level."""
        validate.conf_level(conf_level)
        if self.value is None:
            return unknown(conf_level, 0)
        return spread(self.value, self.chance, self.n, conf_level=conf_level, assumed=self.assumed)


@dataclass(frozen=True)
class _Drawn:
    """A habit with draws of chance."""

    costs: Floats
    """GPU-hours of each attempt, lost work and restart; shape (attempts, 2)."""
    weights: Floats
    """As `Incidents.weights` has them."""


@dataclass(frozen=True)
class Period:
    """What failures cost and draws of chance, the same whatever nodes are left out.

    Of the incidents with a failure or a node that is named: no other goes with a node. The draws
    take 8 KB an incident, 16 KB where habits are modelled.
    """

    fleet: Fleet
    incidents: Incidents
    chances: tuple[tuple[_Drawn, ...], ...]
    in_mean: _Drawn
    """The habit in the mean."""
    assumed: bool
    named: dict[tuple[int, bytes], tuple[Floats, Floats]] = field(default_factory=dict)
    """`Excess.named` of a habit and of the attempts blamed, and its sum in each draw: the same for
    all nodes of a cluster, one by one."""

    @classmethod
    def of(
        cls,
        attempts: pd.DataFrame,
        habits: Mapping[str, Habits],
        exposure: pd.DataFrame,
        *,
        seed: int = 0,
    ) -> Period:
        """Attempts, habits and exposure as `what_if` takes them; where no habit is modelled those
        of incidents that are named are enough."""
        rng = np.random.default_rng(seed)
        attempts = attempts.reset_index(drop=True)
        saved = habit_sets(attempts, habits, HABIT_DRAWS, rng)
        incidents = Incidents.of(attempts).named
        rows = incidents.order
        ran = Ran.of(attempts).some(rows)

        def costs(times: tuple[Times, ...]) -> Floats:
            played = replayed(ran, times_of(times, rows))
            return np.column_stack([played.lost, played.restart])

        def weights(n: int) -> Floats:
            return np.vstack([drawn for _, drawn in incidents.weights(n, 0, streams(rng))])

        central, of_habits, corners = saved
        modelled = [_Drawn(costs(times), weights(EACH)) for times in of_habits]
        same = weights(DRAWS)
        in_mean = _Drawn(costs(central), same)
        alike = [
            *([] if of_habits else [in_mean]),
            *(_Drawn(costs(each), same) for each in corners),
        ]
        return cls(
            Fleet.of(attempts.take(rows).reset_index(drop=True), exposure),
            replace(incidents, order=np.arange(len(rows))),
            tuple(map(tuple, filter(None, (modelled, *([each] for each in alike))))),
            in_mean,
            bool(corners),
        )

    def without(self, nodes: Sequence[Node]) -> Regained:
        """What is regained without these nodes, chosen in hindsight."""
        left_out = Without.of(self.fleet, nodes, hindsight=True)
        if not self.incidents.n or not left_out.comparable:
            return Regained(None, (), self.assumed, 0)
        excess = Excess.of(left_out.gone, self.incidents, self.in_mean.costs)
        value = excess.regained(excess.by_incident.sum(axis=0)[None, :]).sum()
        chance = [
            np.concatenate([self._drawn(left_out.gone, each) for each in group])
            for group in self.chances
        ]
        if left_out.counts_for_less:
            chance.append(self._drawn(left_out.in_full, self.in_mean))
        return Regained(float(value), tuple(chance), self.assumed, left_out.n_failures)

    def _drawn(self, gone: Gone, drawn: _Drawn) -> Floats:
        """GPU-hours of each draw."""
        key = id(drawn), gone.blamed.tobytes()
        named, in_draws = self.named.get(key, (None, None))
        excess = Excess.of(gone, self.incidents, drawn.costs, named)
        if in_draws is None:
            in_draws = (excess.named.T @ drawn.weights[: self.incidents.n_named]).T
            self.named[key] = excess.named, in_draws
        own = (np.vstack([excess.own, excess.halves()]).T @ drawn.weights).T
        found: Floats = excess.regained(np.hstack([own, in_draws])).sum(axis=1)
        return found
