"""No node is drained for what it shares with others or for one user's jobs; ratios cover.

The fleets are made by rules that the analysis does not assume.
"""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import numpy as np
import pandas as pd
import pytest

from analytics.nodes.lemons import JudgedCluster, lemons
from analytics.nodes.one_user import OneUser
from analytics.nodes.records import NodeRecords
from analytics.nodes.settled import NOTHING_SAVED, settled
from tests.analytics.nodes.troubled_fleet import SECOND, Spread, Trouble, of_ratios, troubled

MANY = pytest.param(200, marks=pytest.mark.slow)


def judged(records: NodeRecords) -> JudgedCluster:
    return settled(lemons([records])[0])


@pytest.mark.parametrize("n_fleets", [2, MANY])
@pytest.mark.parametrize("trouble", get_args(Trouble))
@pytest.mark.parametrize("knows_uses", [True, False])
def test_no_healthy_node_is_drained_and_lemons_beside_are_found(
    trouble: Trouble, n_fleets: int, knows_uses: bool
) -> None:
    drained, found = [], 0
    for seed in range(n_fleets):
        fleet = troubled(seed, trouble, knows_uses=knows_uses)
        nodes = judged(fleet.records).nodes
        listed = {at for at, node in enumerate(nodes) if node.verdict == "lemon"}
        drained += [(seed, nodes[at].node) for at in listed - set(fleet.lemons.tolist())]
        found += sum(at in listed or nodes[at].why == NOTHING_SAVED for at in fleet.lemons)
    print(f"\n{trouble}: {found} of {2 * n_fleets} lemons found, drained besides: {drained}")
    assert not drained
    assert found >= 0.8 * 2 * n_fleets


@pytest.mark.slow
@pytest.mark.parametrize("times", [10.0, 33.0])
@pytest.mark.parametrize("spread", get_args(Spread))
def test_intervals_of_ratios_cover(spread: Spread, times: float) -> None:
    covered, of_listed = [], []
    for seed in range(200):
        fleet = of_ratios(seed, spread, times)
        (cluster,) = lemons([fleet.records])
        for node, truth in zip(cluster.nodes, fleet.ratio, strict=True):
            assert node.ratio is not None
            assert node.ratio.lower is not None
            assert node.ratio.upper is not None
            covered.append(node.ratio.lower <= truth <= node.ratio.upper)
            of_listed += [covered[-1]] if node.verdict in ("lemon", "watch") else []
    shares = float(np.mean(covered)), float(np.mean(of_listed))
    print(f"\n{spread}, lemons of {times:.0f} times: {shares[0]:.3f}, of listed {shares[1]:.3f}")
    assert all(0.85 <= share <= 0.95 for share in shares), shares


def with_downs(records: NodeRecords, *downs: tuple[int, float, str | None]) -> NodeRecords:
    """The records and further failures: node, day, user."""
    rows = pd.DataFrame(downs, columns=["place", "day", "user"]).assign(
        until_day=np.nan, signal="job_failure", share=1.0, evident=True, n_nodes=1,
        lost_gpu_hours=4.0, reason=None, n_records=1,
    )  # fmt: skip
    return replace(records, events=pd.concat([records.events, rows], ignore_index=True))


@pytest.fixture(scope="module")
def calm() -> NodeRecords:
    """A fleet of 400 nodes in which nothing happens to the first ten."""
    records = of_ratios(3, "gamma", 10.0).records
    events = records.events[records.events["place"] >= 10]
    return replace(records, events=events.reset_index(drop=True))


def test_what_three_nodes_share_is_one_fault_and_said_of_each(calm: NodeRecords) -> None:
    times = [2.3, 7.9, 13.1, 19.6, 25.2]
    downs = [(at, day + at * 4 * SECOND, f"u{at}") for day in times for at in (1, 2, 3)]
    downs.append((3, 10.5, "u7"))
    found = judged(with_downs(calm, *downs))
    (fault,) = found.faults
    assert (fault.nodes, fault.n_times) == (("n0001", "n0002", "n0003"), 5)
    assert fault.within_s == pytest.approx(8, abs=0.01)
    assert (fault.n_together, fault.n_down) == ((5, 5, 5), (5, 5, 6))
    assert {node.verdict for node in found.nodes[1:4]} == {"watch"}
    assert [node.ratio.n for node in found.nodes[1:4] if node.ratio] == [0, 0, 1]


def test_a_lemon_that_fell_with_a_neighbour_twice_is_still_one(calm: NodeRecords) -> None:
    alone = [(1, day, f"u{day}") for day in (0.9, 3.41, 5.13, 8.77, 11.02, 14.6, 19.9, 22.3, 26.1)]
    twice = [(at, day, "u1") for at in (1, 2) for day in (2.23, 17.58)]
    found = judged(with_downs(calm, *alone, *twice))
    assert len(found.faults) == 1
    assert [node.verdict for node in found.nodes[1:3]] == ["lemon", "fine"]


@pytest.mark.parametrize("resolution", [1 / 24, 1.0])
def test_what_is_recorded_by_the_hour_or_day_falls_together_by_the_clock(
    calm: NodeRecords, resolution: float
) -> None:
    rng = np.random.default_rng(0)
    days = {at: np.sort(rng.choice(np.arange(0, 28, resolution), 11, False)) for at in (1, 2)}
    downs = [(at, float(day), f"u{k}") for at in days for k, day in enumerate(days[at])]
    found = judged(with_downs(calm, *downs))
    assert not found.faults
    assert [node.verdict for node in found.nodes[1:3]] == ["lemon", "lemon"]


def uses(calm: NodeRecords, *rows: tuple[int, str, float, int]) -> NodeRecords:
    columns = ["place", "user", "node_days", "n_attempts"]
    return replace(calm, uses=pd.DataFrame(rows, columns=columns))


def test_one_user_is_doubted_unless_others_fail_there_or_the_user_runs_well_elsewhere(
    calm: NodeRecords,
) -> None:
    failing = [(1, 1.0 + 2.6 * k, "ada") for k in range(10)]
    at_fault = with_downs(calm, *failing)
    beside = uses(at_fault, (1, "ada", 10.0, 12), (1, "bob", 14.0, 80))
    node = judged(beside).nodes[1]
    assert (node.verdict, node.one_user) == ("watch", OneUser(10, 10, 14.0))
    alone = uses(at_fault, (1, "ada", 24.0, 92))
    assert judged(alone).nodes[1].one_user == OneUser(10, 10, 0.0)
    elsewhere = uses(at_fault, *((at, "ada", 24.0, 92) for at in range(1, 300)))
    assert judged(elsewhere).nodes[1].verdict == "lemon"
    others = [(1, 2.3 + 4 * k, "bob") for k in range(5)]
    assert (
        judged(replace(with_downs(beside, *others), uses=beside.uses)).nodes[1].verdict == "lemon"
    )


def test_where_draining_may_save_nothing_it_is_said_how_many_days_decide(
    calm: NodeRecords,
) -> None:
    few = [(1, 4.0 + 5 * k, f"u{k}") for k in range(5)]
    cheap = calm.events.assign(
        lost_gpu_hours=calm.events["lost_gpu_hours"] * (calm.events["place"] % 9 == 0)
    )
    quiet = replace(calm, events=cheap)
    records = with_downs(quiet, *few)
    records.events.loc[records.events["place"] == 1, "lost_gpu_hours"] = 0.1
    node = judged(records).nodes[1]
    assert (node.verdict, node.why) == ("watch", NOTHING_SAVED)
    assert node.quiet_days is not None
    assert 4 <= node.quiet_days <= 28


def test_a_node_whose_every_occasion_ends_a_job_saves_by_its_own_share(calm: NodeRecords) -> None:
    silent = calm.events.assign(signal="out", until_day=calm.events["day"], lost_gpu_hours=0.0)
    failing = [(1, 1.0 + 2.1 * k, f"u{k}") for k in range(12)]
    node = judged(with_downs(replace(calm, events=silent), *failing)).nodes[1]
    assert (node.verdict, node.why) == ("lemon", "")
