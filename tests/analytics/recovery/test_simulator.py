"""The simulator, beside the exact form and an event loop that shares no line with it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.efficiency.ettr_forms import ettr_exact
from analytics.errors import OutOfRangeError
from analytics.recovery.histories import Hazards, Histories
from analytics.recovery.mechanism import Downtime, Kept, Mechanism
from analytics.recovery.simulator import PARTS, played
from tests.references import recovery_loop

SETTINGS = [
    (2048, 6.5, 5.0, 32.9, 5.0, 0.0),
    (2048, 6.5, 20.0, 10.0, 1.0, 3.0),
    (2000, 6.5, 5.0, 60.0, 0.0, 0.0),
    (1500, 6.5, 5.0, 38.4, 5.0, 0.0),
    (1500, 1.0, 5.0, 98.0, 5.0, 0.0),
    (1000, 6.5, 5.0, 60.0, 0.0, 1.0),
    (12_500, 6.5, 5.0, 7.0, 0.0, 1.0),
    (12_500, 2.34, 2.0, 2.0, 0.0, 1.0),
    (128, 23.7, 5.0, 60.0, 5.0, 60.0),
    (2048, 3.79, 10.0, 7.9, 1 / 6, 0.0),
    (64, 40.0, 30.0, 300.0, 20.0, 15.0),
    (3000, 20.0, 8.0, 15.0, 2.0, 10.0),
]
"""Nodes, failures per 1,000 node-days, restart, interval, write and queue in minutes."""
KEPT = Kept((1.0, 0.98, 0.9, 0.8) + (0.5,) * 14, "at once",
            Downtime(detect=0.2, init=1.0), every_min=2.0, ready_min=0.5)  # fmt: skip
SHRINKS = tuple(max(0.0, 1.0 - lost / 40) for lost in range(30))
BASE = Mechanism(
    interval_min=60.0,
    write_min=5.0,
    restart=Downtime(detect=3.0, isolate=1.0, init=5.0, load=2.0),
    requeue_min=45.0,
)
MISSING = replace(BASE, kept=replace(KEPT, counted="missing"), throughput=SHRINKS,
                  rejoin=Downtime(init=1.0))  # fmt: skip
POLICIES = {
    "checkpoints": BASE,
    "behind": replace(BASE, write_min=0.5, lag_min=40.0, steady_ratio=0.03),
    "in place": replace(BASE, in_place=True),
    "standby": replace(BASE, standby=3, swap_min=2.0),
    "repair alone": replace(BASE, standby=3, swap_min=2.0, cluster_gives=False),
    "no other node": replace(BASE, cluster_gives=False, in_place=True),
    "memory": replace(BASE, kept=KEPT, lag_min=10.0),
    "memory, standby": replace(BASE, kept=KEPT, standby=2, swap_min=1.0),
    "goes on": MISSING,
    "goes on, repair": replace(MISSING, standby=1, swap_min=3.0, cluster_gives=False,
                               steady_ratio=0.05),
    "replanned": replace(BASE, throughput=SHRINKS, restart_waits=False,
                         rejoin=Downtime(init=2.0, load=1.0)),
    "foretold": replace(BASE, throughput=SHRINKS, restart_waits=False, foretold_ratio=0.7,
                        migrate_min=1.5, rejoin=Downtime(init=2.0)),
}  # fmt: skip
HAZARDS = Hazards(
    nodes=40,
    rates={"node": 60.0, "process": 30.0, "rack": 3.0, "preemption": 100.0},
    rack_nodes=6,
    repair_hours=10.0,
    preempted_hours=2.0,
)


@pytest.mark.parametrize("setting", SETTINGS)
def test_checkpoints_alone_have_the_exact_form(setting: tuple[float, ...]) -> None:
    nodes, rate, restart, interval, write, queue = setting
    hazards = Hazards(nodes=int(nodes), rates={"node": 0.7 * rate, "process": 0.3 * rate})
    mechanism = Mechanism(interval, write, Downtime(init=restart), requeue_min=queue)
    days = 120.0 / float(hazards.per_min.sum()) / 1440.0  # some 120 failures a run
    found = played(hazards, mechanism, Histories(400, 2), days=days)
    exact = float(ettr_exact(float(hazards.per_min.sum()), restart, interval,
                             write_min=write, queue_min=queue))  # fmt: skip
    error = float(found.influence.std(ddof=1)) / np.sqrt(400)
    assert abs(found.ettr - exact) < 3.0 * error


def _differs_by(name: str, runs: int, of_loop: int) -> float:
    """Standard errors between simulator and event loop."""
    days = 10.0
    found = played(HAZARDS, POLICIES[name], Histories(runs, 77), days=days)
    value, error = recovery_loop.ettr(
        HAZARDS, POLICIES[name], runs=of_loop, days=days, seed=len(name)
    )
    own = float(found.influence.std(ddof=1)) / np.sqrt(runs)
    return abs(found.ettr - value) / float(np.hypot(own, error))


@pytest.mark.parametrize("name", ["memory, standby", "goes on, repair", "foretold"])
def test_policies_equal_an_event_loop(name: str) -> None:
    assert _differs_by(name, 1000, 150) < 3.0


def test_nodes_that_are_repaired_one_by_one_come_back_one_by_one() -> None:
    """Without spares a node is out for lambda R / (1 + lambda R) of its time, on average."""
    hazards = Hazards(nodes=128, rates={"node": 20.0}, repair_hours=24.0)
    policy = Mechanism(
        60.0, 0.0, Downtime(), cluster_gives=False, restart_waits=False,
        throughput=tuple(1.0 - lost / 128 for lost in range(129)),
    )  # fmt: skip
    found = played(hazards, policy, Histories(200, 1), days=100.0)
    out = 0.02 / 1.02
    assert found.shares["degraded"] / (1 - found.shares["lost"]) == pytest.approx(out, rel=0.05)


def test_a_rack_takes_no_more_nodes_than_are_left() -> None:
    hazards = Hazards(nodes=4, rates={"rack": 400.0, "node": 400.0}, rack_nodes=4)
    policy = replace(
        BASE, throughput=(1.0, 0.75, 0.5, 0.25), restart_waits=False, requeue_min=600.0
    )
    found = played(hazards, policy, Histories(50, 1), days=20.0)
    assert (found.minutes >= -1e-9).all()
    value, error = recovery_loop.ettr(hazards, policy, runs=150, days=20.0, seed=3)
    own = float(found.influence.std(ddof=1)) / np.sqrt(50)
    assert abs(found.ettr - value) < 3.5 * np.hypot(error, own)


@pytest.mark.slow
@pytest.mark.parametrize("name", POLICIES)
def test_every_part_of_a_policy_equals_an_event_loop(name: str) -> None:
    assert _differs_by(name, 20_000, 4000) < 3.0


def test_parts_sum_to_the_wall_clock_and_none_is_negative() -> None:
    found = played(HAZARDS, POLICIES["goes on, repair"], Histories(50, 1), days=5.0)
    assert found.wall.min() >= 5 * 1440.0
    assert (found.minutes >= -1e-9).all()
    assert sum(found.shares.values()) == pytest.approx(1.0)
    assert list(found.shares) == list(PARTS)


def test_the_same_failures_meet_every_policy() -> None:
    histories = Histories(20, 4)
    one = played(HAZARDS, BASE, histories, days=5.0)
    again = played(HAZARDS, BASE, Histories(20, 4), days=5.0)
    other = played(HAZARDS, replace(BASE, write_min=6.0), histories, days=5.0)
    np.testing.assert_array_equal(one.minutes, again.minutes)
    np.testing.assert_allclose(one.wall, other.wall)  # failures and queue alone decide it


def test_what_cannot_be_played_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="nothing to play"):
        played(Hazards(nodes=8, rates={}), BASE, Histories(2, 0), days=1.0)
    with pytest.raises(OutOfRangeError, match="days"):
        played(HAZARDS, BASE, Histories(2, 0), days=0.0)
    with pytest.raises(OutOfRangeError, match="play fewer runs"):
        played(Hazards(nodes=100_000, rates={"node": 1000.0}), BASE, Histories(1000, 0), days=30.0)
    with pytest.raises(OutOfRangeError, match="by kind"):
        Hazards(nodes=8, rates={"nodes": 1.0})
