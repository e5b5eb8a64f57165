"""Many incidents that are not named: those that matter little are drawn together."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.efficiency import incidents_weighed
from analytics.efficiency.incidents_weighed import Incidents, mean_halves

N, N_NAMED, N_DRAWS = 6_000, 60, 2_000


@pytest.mark.parametrize("tail", [1.1, 3.0])  # without a variance, and with one
def test_incidents_drawn_together_spread_as_those_drawn_one_by_one(
    monkeypatch: pytest.MonkeyPatch, tail: float
) -> None:
    rng = np.random.default_rng(5)
    cost = 10 * rng.pareto(tail, N)
    cause = np.where(rng.random(N) < 0.002, 3, rng.integers(0, 3, N))  # one of them is rare
    rows = np.column_stack([cost, *(np.where(cause == each, cost, 0.0) for each in range(4))])
    incidents = Incidents(N, N_NAMED, np.arange(N), np.arange(N))

    def totals(n_alone: int, seed: int) -> np.ndarray:
        monkeypatch.setattr(incidents_weighed, "ALONE", n_alone)
        parts = [(rows, mean_halves(rows))]
        (found,) = incidents.totals(parts, N_DRAWS, np.random.default_rng(seed))
        return np.asarray(found / rows.sum(axis=0))

    one_by_one, again, together = totals(N, 1), totals(N, 2), totals(600, 3)
    tails = (0.05, 0.5, 0.95)
    spread = np.quantile(one_by_one, tails, axis=0)
    by_chance = np.abs(np.quantile(again, tails, axis=0) - spread)
    apart = np.abs(np.quantile(together, tails, axis=0) - spread)
    assert (apart <= by_chance + 0.1 * np.ptp(spread, axis=0)).all()
    assert together.std(axis=0) == pytest.approx(one_by_one.std(axis=0), rel=0.08)
    of_causes = together[:, 1:] @ rows.sum(axis=0)[1:] / rows[:, 0].sum()
    assert of_causes == pytest.approx(together[:, 0], rel=1e-10)


def test_the_named_weigh_the_same_whether_or_not_others_are_drawn_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(incidents_weighed, "ALONE", 20)
    incidents = Incidents(200, 30, np.arange(200), np.arange(200))
    rows = np.random.default_rng(5).random((200, 2))
    rows[30:, 0] = 0.0  # a column of the named alone
    none = np.zeros((incidents_weighed.N_HALVES, 2))
    of_all, of_named = np.random.default_rng(1), np.random.default_rng(1)
    for _ in range(2):  # habits that are modelled are drawn several times
        (drawn,) = incidents.totals([(rows, none)], 50, of_all)
        (alone,) = incidents.named.totals([(rows[:30], none)], 50, of_named)
        assert drawn[:, 0] == pytest.approx(alone[:, 0], rel=1e-12)
