"""Spares of a job: published figures, and an enumeration of every draw from a fleet."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from analytics.errors import AnalysisError
from analytics.estimate import Estimate, unknown
from analytics.recovery.spares import quantile, spares
from analytics.reliability.availability import DOWN, PLANNED, OutAtOnce, Spans, out_at_once, states


def share(value: float) -> Estimate:
    return Estimate(value, value / 2, value * 2, 0.9, 10)


@pytest.mark.parametrize(("nodes", "keep"), [(128, 2), (256, 2), (512, 3), (1024, 4)])
def test_byterobust_keeps_as_many(nodes: int, keep: int) -> None:
    """SOSP 25: P99 of a binomial with p = 1.2e-3."""
    assert quantile(nodes, 1.2e-3, 0.99) == keep
    assert spares(nodes, share(1.2e-3)).keep == keep


def test_drawn_from_a_fleet_it_is_every_choice_of_its_nodes() -> None:
    """Six nodes, of which some were out at once; a job of four."""
    fleet = OutAtOnce(6, {0: 0.5, 1: 0.3, 3: 0.2})
    found = spares(4, share(0.1), fleet=fleet)
    for row in found.rows:
        expected = sum(
            ratio * np.mean([len({*range(out)} & {*job}) <= row.spares
                             for job in combinations(range(6), 4)])
            for out, ratio in fleet.ratio_by_out.items()
        )  # fmt: skip
        assert row.measured == pytest.approx(expected)
    assert found.keep_measured == next(
        row.spares for row in found.rows if (row.measured or 0) >= 0.99
    )


def test_the_last_spare_saves_what_the_job_would_have_stood_still() -> None:
    found = spares(10, share(0.02))
    still = [1 - row.enough for row in found.rows]
    for before, after, row in zip(still[:-1], still[1:], found.rows[1:], strict=True):
        assert row.saves == pytest.approx(24 * 10 * (before - after))
    assert found.rows[0].saves == 0


@pytest.mark.parametrize(
    ("nodes", "out_ratio", "fleet"),
    [
        (10, 0.02, None),
        (1000, 0.05, None),  # of so many the first spares save next to nothing by themselves
        (40, 0.01, OutAtOnce(50, {0: 0.8, 1: 0.1, 12: 0.1})),
        (50, 0.3, OutAtOnce(50, {0: 0.999, 50: 0.001})),
    ],
)
def test_those_are_worth_having_with_which_the_job_gains_most(
    nodes: int, out_ratio: float, fleet: OutAtOnce | None
) -> None:
    """Counted over every number of spares, and every number of the job's nodes that can be out."""
    if fleet is None:
        chances = [stats.binom.pmf(out, nodes, out_ratio) for out in range(nodes + 1)]
    else:
        chances = [
            sum(ratio * stats.hypergeom.pmf(of_job, fleet.nodes, out, nodes)
                for out, ratio in fleet.ratio_by_out.items())
            for of_job in range(nodes + 1)
        ]  # fmt: skip
    gained = [nodes * sum(chances[: k + 1]) - k for k in range(nodes + 1)]
    found = spares(nodes, share(out_ratio), fleet=fleet)
    assert found.worth == gained.index(max(gained))
    assert found.rows[-1].spares >= found.worth


def test_bounds_are_those_of_the_share() -> None:
    found = spares(500, share(0.01))
    low, high = found.keep_at
    assert low is not None
    assert found.keep is not None
    assert high is not None
    assert low <= found.keep <= high
    assert found.rows[-1].spares >= high


def test_what_is_not_known_needs_no_number() -> None:
    found = spares(8, unknown(0.9, 0))
    assert (found.keep, found.rows, found.worth) == (None, (), None)
    never = spares(8, share(0.0), fleet=OutAtOnce(8, {0: 1.0}))
    assert (never.keep, never.keep_measured, never.worth) == (0, 0, 0)
    larger = spares(9, share(0.01), fleet=OutAtOnce(8, {0: 1.0}))
    assert larger.keep_measured is None  # than the fleet it would be drawn from
    for bad in ({"nodes": 0}, {"nodes": 8, "enough": 1.0}):
        with pytest.raises(AnalysisError):
            spares(bad.pop("nodes"), share(0.01), **bad)  # type: ignore[arg-type]


def test_nodes_out_at_once_are_those_that_nobody_planned() -> None:
    def spans(*rows: tuple[int, int, int]) -> Spans:
        return Spans(*np.array(rows, dtype=np.int64).T)

    there = spans(*((node, 0, 100) for node in range(3)))
    out = spans((0, 0, 50), (1, 40, 60), (2, 0, 100))
    found = out_at_once(states(there, out, np.array([DOWN, DOWN, PLANNED])))
    assert found is not None
    assert found.nodes == 3
    assert found.ratio_by_out == pytest.approx({0: 0.4, 1: 0.5, 2: 0.1})
