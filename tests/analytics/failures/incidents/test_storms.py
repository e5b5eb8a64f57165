"""Nodes that fail together are told from nodes that fail at the same time by chance."""

from __future__ import annotations

import numpy as np


def rack_of_four(cluster, racks: int = 5) -> None:
    for number in range(4 * racks):
        cluster.stands(f"n{number}", f"r{number // 4}", f"p{number // 8}")


def test_three_nodes_of_one_rack_within_minutes_are_one(cluster) -> None:
    rack_of_four(cluster)
    for at, node in ((100, "n0"), (102, "n1"), (104, "n3")):
        cluster.fails(at, node)
    assert len(cluster.incidents().incidents) == 1


def test_two_nodes_of_one_rack_or_three_of_three_pods_are_not(cluster) -> None:
    rack_of_four(cluster)
    cluster.fails(100, "n0")
    cluster.fails(101, "n1")
    for node in ("n2", "n9", "n17"):
        cluster.fails(500, node)
    assert len(cluster.incidents().incidents) == 5


def test_three_nodes_of_one_rack_over_half_an_hour_are_not(cluster) -> None:
    rack_of_four(cluster)
    for at, node in ((100, "n0"), (110, "n1"), (120, "n3")):
        cluster.fails(at, node)
    assert len(cluster.incidents().incidents) == 3


def test_a_shared_cause_joins_nodes_wherever_they_stand_and_others_do_not(cluster) -> None:
    for number in range(4):
        cluster.fails(100 + number, f"n{number}", cause="filesystem_mount")
        cluster.fails(100 + number, f"m{number}", cause="gpu_memory")
    found = cluster.incidents().incidents
    assert found.groupby("cause").size().to_dict() == {"filesystem_mount": 1, "gpu_memory": 4}


def test_a_shared_cause_does_not_join_clusters(cluster) -> None:
    for number in range(4):
        cluster.fails(100 + number, f"n{number}", cause="power", cluster="cd"[number % 2])
    assert len(cluster.incidents().incidents) == 4


def test_events_alone_can_be_a_storm(cluster) -> None:
    for number in range(5):
        cluster.shows(100, f"n{number}", cause="ib_link")
    assert len(cluster.incidents().incidents) == 1


def test_a_storm_over_the_whole_fleet_is_one_whatever_its_causes(cluster) -> None:
    for number in range(200):
        cause = ("gpu_memory", "filesystem_mount", "node_lost", "pcie")[number % 4]
        cluster.fails(100 + number / 10, f"n{number:03d}", cause=cause, state="NODE_FAIL")
    found = cluster.incidents().incidents
    assert len(found) == 1
    assert found.loc[0, ["n_jobs", "n_nodes"]].tolist() == [200, 200]


def test_one_node_that_fails_many_times_is_no_storm_with_its_neighbour(cluster) -> None:
    rack_of_four(cluster)
    for _ in range(8):
        cluster.fails(100, "n0", cause="network")
    cluster.fails(102, "n1", cause="network")
    for day in range(1, 30):
        cluster.fails(1440 * day, "n5", cause="network")
    assert cluster.incidents().incidents["n_jobs"].max() == 8


def test_chance_merges_almost_nothing_on_two_thousand_nodes_with_18_failures_a_day(cluster) -> None:
    rng = np.random.default_rng(0)
    causes = ["filesystem_mount", "gpu_memory", "ib_link", "pcie"]
    n = 18 * 180
    for at in np.sort(rng.uniform(0, 180 * 1440, n)):
        cluster.fails(
            at, f"n{rng.integers(2000)}", cause=str(rng.choice(causes, p=[0.3, 0.3, 0.2, 0.2]))
        )
    for number in range(2000):
        cluster.stands(f"n{number}", f"r{number // 2}", f"p{number // 20}")
    found = cluster.incidents().incidents
    # half a year: at most one storm of three is expected by chance, and pairs on one node
    assert len(found) >= n - 6
    assert found["n_jobs"].max() <= 3


def test_a_busy_shared_cause_asks_for_more_nodes_than_three(cluster) -> None:
    rng = np.random.default_rng(1)
    n = 400 * 20  # 400 a day: 1.4 expected in any 5 minutes
    for at in rng.uniform(0, 20 * 1440, n):
        cluster.fails(at, f"n{rng.integers(5000)}", cause="network")
    for number in range(60):
        cluster.fails(14_000 + number / 20, f"x{number}", cause="network")
    found = cluster.incidents().incidents
    storm = found[found["n_jobs"] > 30]
    assert len(storm) == 1
    assert storm["n_jobs"].iloc[0] <= 80
    assert len(found) >= n - 40
