"""The mean cumulative function against its formula in plain loops, and its coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from analytics.reliability.availability import Spans
from analytics.reliability.mean_cumulative import mean_cumulative

YEAR = 365 * 86_400


def generated(seed: int, n: int = 12) -> tuple[Spans, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    first, last = rng.integers(0, YEAR // 3, n), rng.integers(YEAR // 2, YEAR, n)
    node = rng.integers(0, n, 40)
    return Spans(np.arange(n), first, last), node, rng.integers(0, YEAR, 40)


@pytest.mark.parametrize("seed", range(4))
def test_value_and_variance_are_those_of_the_formula(seed: int) -> None:
    there, node, at = generated(seed)
    found = mean_cumulative(there, node, at, conf_level=0.9)
    spells = list(zip(*(column.tolist() for column in vars(there).values()), strict=True))

    def present(who: int, when: int) -> bool:
        return any(who == n and s <= when < e for n, s, e in spells)

    events = [
        (t, n) for t, n in sorted(zip(at.tolist(), node.tolist(), strict=True)) if present(n, t)
    ]
    assert found.n_events == len(events)
    for place in (10, 30, len(found.at_s) - 1):
        until = int(found.at_s[place])
        risk = {t: sum(present(k, t) for k in range(12)) for t, _ in events}
        value = sum(1 / risk[t] for t, _ in events if t <= until)
        assert found.value[place] == pytest.approx(value)
        variance = sum(
            sum(present(k, t) / risk[t] * ((n == k) - 1 / risk[t]) for t, n in events if t <= until)
            ** 2
            for k in range(12)
        )
        if value:
            n = max(2, int(found.at_risk[place]))
            wide = np.exp(stats.t.ppf(0.95, n - 1) * np.sqrt(variance * n / (n - 1)) / value)
            assert found.upper[place] == pytest.approx(value * wide)
            assert found.lower[place] == pytest.approx(value / wide)


def test_a_node_that_comes_later_is_at_risk_from_then_on() -> None:
    there = Spans(np.array([0, 1]), np.array([0, 50]), np.array([100, 100]))
    found = mean_cumulative(there, np.array([0, 0, 1]), np.array([10, 60, 70]))
    assert found.last.value == pytest.approx(1 + 0.5 + 0.5)
    assert (found.at_risk[0], found.at_risk[-1]) == (1, 2)


def test_failures_of_nodes_that_were_not_there_are_left_out() -> None:
    there = Spans(np.array([0]), np.array([10]), np.array([20]))
    found = mean_cumulative(there, np.array([0, 0, 1]), np.array([5, 15, 15]))
    assert (found.n_events, found.n_nodes) == (1, 1)
    nothing = np.zeros(0, np.int64)
    assert mean_cumulative(Spans(nothing, nothing, nothing), nothing, nothing).last.value is None
    assert mean_cumulative(there, nothing, nothing).last.value == 0.0


@pytest.mark.slow
def test_its_interval_covers_where_nodes_differ() -> None:
    """60 nodes whose rates are gamma distributed, half of them leaving early."""
    held = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        last = np.where(np.arange(60) % 2, YEAR, YEAR // 2)
        rate = rng.gamma(2, 1.5, 60)
        node = np.repeat(np.arange(60), rng.poisson(rate * last / YEAR))
        at = (rng.random(len(node)) * last[node]).astype(np.int64)
        there = Spans(np.arange(60), np.zeros(60, np.int64), last)
        end = mean_cumulative(there, node, at).last
        held += (end.lower or 0) <= 3.0 <= (end.upper or 0)
    print(f"{held} of 300")
    assert 0.84 <= held / 300 <= 0.95
