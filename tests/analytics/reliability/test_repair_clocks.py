"""Clocks of repairs by hand, and whole racks beside a walk through every second."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from analytics.reliability.availability import DOWN, PLANNED, Spans, states, whole_groups
from analytics.reliability.repair_clocks import quantile, to_drain, to_hands

HOUR, DAY = 3_600, 86_400


def spans(*rows: tuple[int, int, int]) -> Spans:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Spans(columns[:, 0], columns[:, 1], columns[:, 2])


def moments(*rows: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return columns[:, 0], columns[:, 1]


OUT = spans((0, 10 * DAY, 11 * DAY), (1, 5 * DAY, 5 * DAY + HOUR), (1, 20 * DAY, 21 * DAY))


def test_to_drain_is_from_the_last_failure_within_a_day() -> None:
    failures = moments(
        (0, 10 * DAY - 3 * HOUR),
        (0, 10 * DAY - 2 * HOUR),  # the last one counts
        (0, 10 * DAY + 1),  # after it
        (1, 4 * DAY - 1),  # more than a day before
        (1, 20 * DAY),  # at once
        (2, 5 * DAY),  # another node
    )
    clock = to_drain(OUT, *failures)
    assert sorted(clock.hours) == [0.0, 2.0]
    assert (clock.told, clock.outages) == (2, 3)


def test_to_hands_is_to_the_first_ticket_before_the_return() -> None:
    tickets = moments(
        (0, 10 * DAY + 4 * HOUR),
        (0, 10 * DAY + 2 * HOUR),  # the first one counts
        (1, 5 * DAY + 2 * HOUR),  # after it returned
        (1, 20 * DAY - HOUR // 2),  # shortly before: hands were there
    )
    clock = to_hands(OUT, *tickets)
    assert sorted(clock.hours) == [0.0, 2.0]


def test_a_failure_or_a_ticket_is_of_one_outage() -> None:
    twice = spans((0, DAY, DAY + HOUR), (0, DAY + 20 * HOUR, DAY + 21 * HOUR))
    clock = to_drain(twice, *moments((0, DAY - HOUR // 6)))
    assert clock.hours.tolist() == pytest.approx([1 / 6])
    soon = spans((0, DAY, DAY + HOUR), (0, DAY + HOUR + 1_800, DAY + 4 * HOUR))
    tickets = moments((0, DAY + HOUR), (0, DAY + 3 * HOUR))
    clock = to_hands(soon, *tickets)
    assert clock.hours.tolist() == pytest.approx([1.0, 1.5])


def test_a_rack_is_whole_only_while_all_of_its_nodes_are_there() -> None:
    there = spans((0, 0, 1000), (1, 990, 1000), (2, 0, 1000), (3, 0, 1000))
    found = whole_groups(
        states(there, spans(), np.zeros(0, dtype=np.int64)), np.array([0, 0, 1, 1])
    )
    assert found[0].any_ratio == pytest.approx(0.01)
    assert found[1].any_ratio == pytest.approx(1.0)


def test_without_outages_or_records_nothing_is_told() -> None:
    for clock in (to_drain(OUT, *moments()), to_hands(spans(), *moments((0, 1)))):
        assert clock.told == 0
        assert clock.percentiles[50].value is None


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_a_quantile_is_held_by_its_ranks(share: float) -> None:
    chance, held = np.random.default_rng(2), 0
    truth = -np.log(1 - share)
    for _ in range(2_000):
        found = quantile(chance.exponential(size=40), share, 0.9)
        above = found.lower is None or found.lower <= truth
        held += above and (found.upper is None or truth <= found.upper)
    assert held / 2_000 >= 0.885


def test_whole_racks_are_those_of_a_walk_through_every_second() -> None:
    chance = np.random.default_rng(8)
    n_racks, size, end = 5, 3, 400
    there = spans(*((node, 0, end) for node in range(n_racks * size)))
    rows = [
        (int(node), int(start), int(start + chance.integers(1, 40)))
        for node, start in zip(
            chance.integers(0, n_racks * size, 30), chance.integers(0, end, 30), strict=True
        )
    ]
    kinds = np.array([PLANNED if at % 4 == 0 else DOWN for at in range(30)])
    rack = np.arange(n_racks * size) // size
    found = {each.out: each for each in whole_groups(states(there, spans(*rows), kinds), rack)}
    broken = [
        {node // size for node, begin, until in rows if begin <= second < until}
        for second in range(end)
    ]
    assert {0, 1, 2} <= found.keys()
    for k, each in found.items():
        assert each.any_ratio == pytest.approx(np.mean([len(out) <= k for out in broken]))
        choices = list(combinations(range(n_racks), n_racks - k))
        fixed = np.mean([not out & {*choice} for out in broken for choice in choices])
        assert each.fixed_ratio == pytest.approx(fixed)
    assert found[max(found)].any_ratio == 1.0


def test_nodes_that_are_racks_of_their_own_or_of_none_have_no_groups() -> None:
    there = spans((0, 0, 10), (1, 0, 10))
    found = states(there, spans(), np.zeros(0, dtype=np.int64))
    assert whole_groups(found, np.array([0, 1])) == []
    assert whole_groups(found, np.array([-1, -1])) == []
    assert (
        whole_groups(states(spans(), spans(), np.zeros(0, np.int64)), np.zeros(0, np.int64)) == []
    )
