"""Groups of nodes that have had more failures than others: by hand, and by simulation."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.reliability.availability import Spans
from analytics.reliability.mean_by_group import GroupMean, means_by_group

END = 1_000_000


def fleet(seed: int, ratios: tuple[float, ...], variance: float = 0.5) -> tuple[GroupMean, ...]:
    """Sixty nodes a group that fail twice on average, each by a factor of its own."""
    chance = np.random.default_rng(seed)
    names = [f"g{place}" for place in range(len(ratios)) for _ in range(60)]
    own = chance.gamma(1 / variance, variance, len(names)) * 2 * np.repeat(ratios, 60)
    counts = chance.poisson(own)
    node = np.repeat(np.arange(len(names)), counts)
    nodes = np.arange(len(names))
    there = Spans(nodes, np.zeros(len(names), np.int64), np.full(len(names), END))
    at_s = np.sort(chance.integers(1, END - 1, len(node)))
    return means_by_group(there, chance.permutation(node), at_s, names)


def test_means_are_failures_over_nodes() -> None:
    there = Spans(np.arange(4), np.zeros(4, np.int64), np.full(4, 100))
    node, at_s = np.array([0, 0, 1, 2]), np.array([10, 20, 30, 40])
    found = means_by_group(there, node, at_s, ["a", "a", "b", None])
    assert [(each.name, each.curve.last.value, each.curve.n_nodes) for each in found] == [
        ("a", 1.5, 2),
        ("b", 1.0, 1),
    ]
    assert [each.unlike for each in found] == [None, None]  # too few to tell


@pytest.mark.parametrize(("begin", "end"), [(END // 2, END), (0, END // 3)], ids=["late", "early"])
def test_a_group_that_was_there_for_less_of_the_time_is_compared_over_that(
    begin: int, end: int
) -> None:
    """All fail at one rate; half of the nodes are installed later, or leave earlier."""
    alarms = 0
    for seed in range(20):
        chance = np.random.default_rng(seed)
        nodes = np.arange(40)
        start = np.where(nodes < 20, 0, begin)
        until = np.where(nodes < 20, END, end)
        counts = chance.poisson(4.0 * (until - start) / END)
        node = np.repeat(nodes, counts)
        lasts = (until - start)[node]
        at_s = start[node] + (chance.random(len(node)) * lasts).astype(np.int64)
        names = ["a"] * 20 + ["b"] * 20
        found = means_by_group(Spans(nodes, start, until), node, at_s, names)
        alarms += any(each.unlike for each in found)
        by_name = {each.name: each for each in found}
        assert by_name["b"].last.value == pytest.approx(by_name["b"].curve.last.value)
        assert by_name["a"].last.value < by_name["a"].curve.last.value
    assert alarms <= 3


def test_groups_that_were_never_there_together_cannot_be_told() -> None:
    nodes = np.arange(8)
    start, until = np.where(nodes < 4, 0, 100), np.where(nodes < 4, 100, 200)
    node = np.repeat(nodes, 3)
    at_s = start[node] + np.tile([10, 20, 30], 8)
    found = means_by_group(Spans(nodes, start, until), node, at_s, ["a"] * 4 + ["b"] * 4)
    assert [each.unlike for each in found] == [None, None]


def test_nothing_is_no_error() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert means_by_group(Spans(nothing, nothing, nothing), nothing, nothing, []) == ()


def test_a_group_that_fails_twice_as_often_stands_out() -> None:
    found = fleet(3, (1.0, 2.2, 1.0))
    assert found[0].name == "g1"
    assert found[0].unlike


@pytest.mark.slow
def test_groups_alike_seldom_stand_out_and_unlike_ones_mostly_do() -> None:
    """300 fleets of four groups: alike, and one that fails twice as often."""
    alarms = sum(any(each.unlike for each in fleet(seed, (1.0,) * 4)) for seed in range(300))
    found = sum(
        any(each.unlike and each.name == "g0" for each in fleet(seed, (2.0, 1.0, 1.0, 1.0)))
        for seed in range(300)
    )
    print(f"alike: {alarms} of 300 with one that stands out; twice as often: {found} of 300 found")
    assert alarms / 300 <= 0.09
    assert found / 300 >= 0.9
