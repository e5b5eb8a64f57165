"""Lemons are found, and neither chance, users, large jobs, racks nor front ends pass for them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from analytics.nodes.chance import discoveries, tail, weights
from analytics.nodes.draining import back_test, savings, without_them
from analytics.nodes.lemons import lemons
from analytics.nodes.one_user import OneUser
from tests.analytics.nodes.made_fleet import COLUMNS, Made, made

if TYPE_CHECKING:
    from analytics.nodes.lemons import JudgedCluster, JudgedNode
    from analytics.nodes.records import NodeRecords

NAN = float("nan")


def judged(records: NodeRecords) -> JudgedCluster:
    (found,) = lemons([records])
    return found


def hits(fleet: Made) -> tuple[int, int]:
    """Nodes listed, and lemons among them."""
    listed = set(np.flatnonzero(judged(fleet.records).lemons).tolist())
    return len(listed), len(listed & set(fleet.lemons))


def with_events(fleet: Made, *rows: tuple[object, ...]) -> NodeRecords:
    more = pd.DataFrame(rows, columns=list(COLUMNS))
    events = pd.concat([fleet.records.events, more], ignore_index=True)
    return replace(fleet.records, events=events)


def failure(at: int, day: float, user: str = "u1", **other: object) -> tuple[object, ...]:
    row = dict.fromkeys(COLUMNS) | {
        "place": at, "day": day, "until_day": NAN, "signal": "job_failure", "share": 1.0,
        "user": user, "evident": True, "n_nodes": 1, "lost_gpu_hours": 4.0,
    }  # fmt: skip
    return tuple((row | other).values())


def quiet(fleet: Made) -> int:
    """A node without a record."""
    return min(set(range(len(fleet.records.nodes))) - set(fleet.records.events["place"]))


@pytest.fixture(scope="module")
def calm() -> Made:
    return made(1, n_nodes=400)


def verdict(records: NodeRecords, at: int) -> JudgedNode:
    return judged(records).nodes[at]


def test_lemons_of_all_kinds_are_found_and_hardly_anything_else() -> None:
    listed, found = hits(made(3, n_nodes=1000, n_lemons=12))
    assert found >= 11
    assert listed - found <= 1


@pytest.mark.slow
def test_recall_and_precision_of_2000_nodes_by_expected_occasions() -> None:
    recall, precision = {}, {}
    for events in (2, 4, 6, 8, 10, (6, 20)):
        several = [hits(made(seed, n_lemons=24, events=events)) for seed in range(5)]
        listed, found = (sum(each) for each in zip(*several, strict=True))
        recall[events], precision[events] = found / 120, found / max(listed, 1)
    print(f"\nrecall by occasions expected {recall}, precision {precision}")
    assert min(precision[e] for e in (6, 8, 10, (6, 20))) >= 0.90, precision
    assert min(precision[e] for e in (2, 4)) >= 0.80, precision
    assert recall[6] >= 0.80, recall
    assert recall[(6, 20)] >= 0.90, recall
    assert recall[2] < recall[4] < recall[6] < recall[8], recall


@pytest.mark.parametrize(("n_seeds", "n_nodes"), [
    (30, 60), pytest.param(200, 2000, marks=pytest.mark.slow)
])  # fmt: skip
def test_a_fleet_without_lemons_gives_a_list_in_a_tenth_of_the_fleets(
    n_seeds: int, n_nodes: int
) -> None:
    listed = [hits(made(1000 + seed, n_nodes=n_nodes))[0] > 0 for seed in range(n_seeds)]
    print(f"\n{sum(listed)} of {n_seeds} fleets of {n_nodes} nodes without lemons give a list")
    assert np.mean(listed) <= 0.10


def test_one_unlucky_week_is_to_be_watched_and_six_over_the_month_are_a_lemon(calm: Made) -> None:
    at = quiet(calm)
    week = [failure(at, 10 + 1.1 * k, f"u{k}") for k in range(6)]
    month = [failure(at, 1 + 4.4 * k, f"u{k}") for k in range(6)]
    one = verdict(with_events(calm, *week), at)
    assert (one.verdict, one.why) == ("watch", "stands out only by one week")
    assert verdict(with_events(calm, *month), at).verdict == "lemon"


def test_jobs_of_one_user_pinned_to_a_node_do_not_make_it_a_lemon(calm: Made) -> None:
    at = quiet(calm)
    pinned = [failure(at, 1 + 2.2 * k, "pinned", evident=False) for k in range(12)]
    one = verdict(with_events(calm, *pinned), at)
    assert (one.verdict, one.one_user) == ("watch", OneUser(12, 12, None))


def test_checks_that_fire_daily_and_end_nothing_make_no_lemon(calm: Made) -> None:
    at = quiet(calm)
    daily = [failure(at, 1.5 * k, "checks", signal="xid", evident=False) for k in range(17)]
    assert verdict(with_events(calm, *daily), at).verdict == "watch"
    ending = [failure(at, 1.5 * k, f"u{k}", evident=False) for k in range(0, 17, 3)]
    assert verdict(with_events(calm, *daily, *ending), at).verdict == "lemon"


def test_ten_times_the_jobs_are_ten_times_the_exposure(calm: Made) -> None:
    nodes = calm.records.nodes.assign(busy_days=2.0, n_attempts=20)
    few = np.arange(0, 400, 10)
    nodes.loc[few, ["busy_days", "n_attempts"]] = [20.0, 200]
    rng = np.random.default_rng(0)
    rows = [
        failure(at, day, f"u{rng.integers(9)}")
        for at in range(400)
        for day in rng.uniform(0, 28, rng.poisson(4.0 if at % 10 == 0 else 0.4))
    ]
    events = pd.DataFrame(rows, columns=list(COLUMNS))
    busy = judged(replace(calm.records, nodes=nodes, events=events))
    flat = judged(replace(calm.records, nodes=nodes.assign(busy_days=4.0, n_attempts=40),
                          events=events))  # fmt: skip
    assert (busy.lemons.sum(), flat.lemons.sum() > 10) == (0, True)


def test_a_large_job_that_fails_lies_on_none_of_its_nodes(calm: Made) -> None:
    rows = [
        failure(at, 2.0 * k, f"u{k}", share=1 / 128, evident=False)
        for k in range(12)
        for at in range(128)
    ]
    assert not judged(with_events(calm, *rows)).lemons.any()


def test_a_bad_rack_is_one_finding_and_not_eight_bad_nodes(calm: Made) -> None:
    rng = np.random.default_rng(0)
    rows = [failure(at, float(day), f"u{at}{day:.0f}") for at in range(8, 16)
            for day in rng.uniform(0, 28, 4)]  # fmt: skip
    found = judged(with_events(calm, *rows))
    assert [(group.grouping, group.name) for group in found.groups] == [("rack", "r1")]
    assert found.lemons.sum() <= 1


def test_what_strikes_many_nodes_at_once_is_of_none(calm: Made) -> None:
    storm = [failure(at, 3.0 + 4 * k + at / 1e5, f"u{at}") for k in range(5) for at in range(40)]
    found = judged(with_events(calm, *storm))
    assert (found.n_at_once, found.lemons.sum()) == (200, 0)


def test_exclusions_alone_make_no_lemon(calm: Made) -> None:
    at = quiet(calm)
    rows = [failure(at, 2.0 * k, f"u{k}", signal="excluded") for k in range(9)]
    assert verdict(with_events(calm, *rows), at).verdict in ("fine", "watch")


def test_front_ends_are_told_by_role_by_name_and_by_the_jobs_they_never_ran(calm: Made) -> None:
    nodes = calm.records.nodes.copy()
    nodes.loc[0, "role"] = "front end"
    nodes.loc[1, "node"] = "login03"
    nodes.loc[2, ["holds_jobs", "busy_days", "n_attempts"]] = [False, 0.0, 0]
    rows = [failure(at, 1 + 4.4 * k, f"u{k}") for at in range(3) for k in range(6)]
    found = judged(replace(with_events(calm, *rows), nodes=nodes))
    assert {each.verdict for each in found.nodes[:3]} == {"front end"}
    assert not found.lemons.any()


def test_nodes_without_record_or_job_are_unknown_and_so_are_all_where_nothing_is_collected(
    calm: Made,
) -> None:
    at = quiet(calm)
    nodes = calm.records.nodes.copy()
    nodes.loc[at, ["busy_days", "n_attempts"]] = [0.0, 0]
    assert verdict(replace(calm.records, nodes=nodes), at).verdict == "unknown"
    bare = replace(calm.records, events=calm.records.events.iloc[:0], collected=frozenset())
    assert {each.verdict for each in judged(bare).nodes} == {"unknown"}
    assert lemons([]) == []


def test_a_kind_without_a_source_is_left_out_and_not_zero(calm: Made) -> None:
    events = calm.records.events[calm.records.events["signal"] != "ticket"]
    kept = calm.records.collected - {"ticket"}
    one = verdict(replace(calm.records, events=events, collected=kept), 0)
    assert "ticket" not in one.occasions
    assert "out" in one.occasions


def test_a_list_of_an_earlier_month_saves_what_the_truth_would_have_saved() -> None:
    for seed in range(2):
        fleet = made(seed, n_nodes=1000, n_lemons=12)
        found = judged(fleet.records)
        truth = np.isin(np.arange(1000), list(fleet.lemons))
        ours, theirs = (back_test(found, fleet.after, each) for each in (found.lemons, truth))
        assert ours.saved_ratio is not None
        assert theirs.saved_ratio is not None
        assert abs(ours.saved_ratio - theirs.saved_ratio) <= 0.05
        assert ours.expected.lower is not None
        assert ours.expected.lower <= ours.saved_gpu_hours


def test_without_its_lemons_a_month_has_fewer_failures_by_what_healthy_nodes_would_add() -> None:
    fleet = made(2, n_nodes=300, n_lemons=4)
    found = judged(fleet.records)
    one = without_them(found, found.lemons, large_hours=400.0)
    failed = fleet.records.events.query("signal == 'job_failure'")
    here = failed[found.lemons[failed["place"]]]["share"].sum()
    assert one.avoided.value == pytest.approx(here - found.usual.mean[found.lemons, 0].sum())
    assert one.avoided.upper is not None
    assert one.avoided.upper <= here
    assert one.large_mttf_hours_without.value >= one.large_mttf_hours.value  # type: ignore[operator]
    assert all(each.gpu_hours.lower <= each.gpu_hours.value  # type: ignore[operator]
               for each in savings(found, found.lemons))  # fmt: skip


def test_the_tail_of_one_kind_is_that_of_the_negative_binomial() -> None:
    from scipy import stats

    counts, mean = np.array([[2], [5], [9]]), np.array([[0.5], [0.5], [2.0]])
    exact = stats.nbinom.sf([1, 4, 8], 10, 10 / (10 + mean[:, 0]))
    assert tail(counts, mean, weights(np.array([0.5])), 0.1) == pytest.approx(exact, rel=0.3)
    assert tail(np.array([[1]]), np.array([[1e-6]]), weights(np.array([1.0])), 0.1).tolist() == [1]
    assert not discoveries(np.array([]), 0.05).any()
