"""A source whose clock or zone lies off another's is found, and a healthy one is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.random import Generator, default_rng

from analytics.fleet.clock_offset import clock_offsets

HOUR, DAY = 3600.0, 86_400.0
WINTER_2024 = 1_704_067_200.0
Events = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def random_events(chance: Generator, n: int, *, days: float = 120, nodes: int = 60) -> Events:
    return WINTER_2024 + chance.uniform(0, days * DAY, n), chance.integers(0, nodes, n)


def seen(chance: Generator, ends: Events, n: int, *, lag_s: float = 30.0) -> Events:
    """Events shortly before n of the ends, on their nodes."""
    which = chance.permutation(len(ends[0]))[:n]
    return ends[0][which] - chance.exponential(lag_s, n), ends[1][which]


def together(*parts: Events) -> Events:
    return np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts])


def shifted(events: Events, seconds: float) -> Events:
    return events[0] + seconds, events[1]


def found(source: Events, reference: Events) -> list[tuple[str, float]]:
    prompt = np.ones(len(source[0]), dtype=bool)
    return [(one.kind, one.offset_s) for one in clock_offsets(*source, *reference, prompt=prompt)]


@pytest.mark.parametrize("hours", [-11, -8, -5, -1, 1, 2, 5.5, 5.75, 9, 13])
def test_a_source_read_in_another_zone_is_found_among_unrelated_events(hours: float) -> None:
    chance = default_rng(0)
    ends = random_events(chance, 3_000)
    log = together(shifted(seen(chance, ends, 25), hours * HOUR), random_events(chance, 100))
    assert found(log, ends) == [("zone", hours * HOUR)]


@pytest.mark.parametrize("minutes", [-38, -7, -3, 4, 7, 38])
def test_a_clock_that_is_some_minutes_off_is_found(minutes: float) -> None:
    chance = default_rng(1)
    ends = random_events(chance, 3_000)
    log = shifted(seen(chance, ends, 60, lag_s=3.0), minutes * 60)
    ((kind, offset),) = found(log, ends)
    assert (kind, round(offset / 60)) == ("skew", minutes)


def test_summer_time_is_told_as_two_offsets() -> None:
    chance = default_rng(2)
    ends = random_events(chance, 3_000, days=366)
    log = seen(chance, ends, 60)
    summer = (log[0] > WINTER_2024 + 92 * DAY) & (log[0] < WINTER_2024 + 300 * DAY)
    offsets = clock_offsets(log[0] + np.where(summer, 2 * HOUR, HOUR), log[1], *ends)
    assert [(one.season, one.offset_s) for one in offsets] == [("summer", 7200), ("winter", 3600)]


def test_what_agrees_is_counted() -> None:
    chance = default_rng(3)
    ends = random_events(chance, 2_000)
    log = shifted(seen(chance, ends, 40, lag_s=2.0), 2 * HOUR)
    (one,) = clock_offsets(*log, *ends)
    assert 35 <= one.n_near <= one.n <= 42
    assert one.n_by_chance < 3
    assert one.n_in_step < 6
    assert len(one.at_s) >= one.n


@pytest.mark.parametrize("n", [0, 1, 4])
def test_too_few_events_say_nothing(n: int) -> None:
    ends = random_events(default_rng(4), 500)
    assert found(shifted(seen(default_rng(5), ends, n), 2 * HOUR), ends) == []
    assert found(ends, (np.empty(0), np.empty(0, dtype=int))) == []


def unrelated(chance: Generator) -> tuple[Events, Events]:
    n, nodes = int(chance.choice([10, 40, 200])), int(chance.choice([10, 60]))
    return random_events(chance, n, nodes=nodes), random_events(chance, 1_500, nodes=nodes)


def storms(chance: Generator) -> tuple[Events, Events]:
    """Both come in storms over many nodes, each at its own times."""

    def burst(hours: float) -> Events:
        n = int(chance.integers(5, 60))
        at = WINTER_2024 + hours * HOUR + chance.uniform(0, 170, n)
        return at, chance.permutation(60)[:n]

    centres = chance.uniform(0, 2_000, 8)
    source = together(*(burst(hours) for hours in centres))
    others = (burst(hours + chance.uniform(-8, 8)) for hours in centres[:4])
    return source, together(*others, random_events(chance, 500))


def hourly(chance: Generator) -> tuple[Events, Events]:
    """Checks and jobs by the clock: both at full hours."""
    checks, ends = random_events(chance, 200), random_events(chance, 1_500)
    return (np.round(checks[0] / HOUR) * HOUR + 5, checks[1]), (
        np.round(ends[0] / HOUR) * HOUR, ends[1])  # fmt: skip


def healthy(chance: Generator) -> tuple[Events, Events]:
    ends = random_events(chance, 1_500)
    n = int(chance.integers(5, 300))
    return together(seen(chance, ends, n, lag_s=60), random_events(chance, 50)), ends


def crash_loops(chance: Generator) -> tuple[Events, Events]:
    """Jobs that fail every half hour, with an event each time."""
    loops = [WINTER_2024 + chance.uniform(0, 90 * DAY) + np.arange(20) * 1800.0 for _ in range(8)]
    at, node = np.concatenate(loops), np.repeat(chance.integers(0, 60, 8), 20)
    kept = chance.random(len(at)) < 0.7
    return (at[kept] - 20, node[kept]), (at, node)


@pytest.mark.parametrize("n", [25, pytest.param(1_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("case", [unrelated, storms, hourly, healthy, crash_loops])
def test_sources_that_do_not_contradict_are_accused_in_one_of_a_hundred_at_most(
    case: Callable[[Generator], tuple[Events, Events]], n: int
) -> None:
    n_accused = sum(bool(found(*case(default_rng(seed)))) for seed in range(n))
    assert n_accused <= n / 100


def test_a_watchdog_that_ends_some_jobs_an_hour_later_is_no_clock() -> None:
    chance = default_rng(6)
    ends = random_events(chance, 3_000)
    hung = shifted(seen(chance, ends, 100), -HOUR - 20)
    assert found(together(hung, seen(chance, ends, 30)), ends) == []
