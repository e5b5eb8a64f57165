"""A period played again: what must hold whatever the records, and what a hand can count."""

from __future__ import annotations

from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.best_interval import best_interval
from analytics.efficiency.ettr_forms import daly_young_interval, optimal_interval
from analytics.efficiency.habits import OBSERVED, ONE_NODE, SEVERAL_NODES, Habit, Habits, habits
from analytics.efficiency.what_if import Change, WhatIf, what_if
from analytics.efficiency.without_nodes import Period
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate
from tests.analytics.efficiency.simulated_cluster import N_NODES, Cluster, Truth

HOURLY = Habit(interval_s=3600, write_s=60, restart_s=300)
STATED = Habits(HOURLY, (HOURLY,) * 4, "configured", 0, None)
FREE = replace(
    STATED, central=replace(HOURLY, write_s=0), corners=(replace(HOURLY, write_s=0),) * 4
)
UNSEEN = pd.DataFrame(columns=OBSERVED)
ASSUMED = {
    "several_nodes": habits(UNSEEN, stated={}, assumed=SEVERAL_NODES),
    "one_node": habits(UNSEEN, stated={}, assumed=ONE_NODE),
}
CLUSTER = Cluster.drawn(np.random.default_rng(3), spread=0.0)
ATTEMPTS = CLUSTER.attempts(CLUSTER.month(np.random.default_rng(4)))
EXPOSURE = CLUSTER.exposure()


def played(change: Change, attempts: pd.DataFrame = ATTEMPTS, of: Habits = STATED) -> WhatIf:
    return what_if(attempts, {"several_nodes": of, "one_node": of}, EXPOSURE, change)


def nodes(*places: int) -> tuple[tuple[str, str], ...]:
    return tuple(("c", f"n{place}") for place in places)


def by_failures() -> list[int]:
    counts = ATTEMPTS["node"].dropna().str[1:].astype(int).value_counts()
    return [int(place) for place in counts.index]


def test_nothing_changed_regains_exactly_nothing() -> None:
    found = played(Change())
    for hours in (found.regained, found.by_nodes, found.by_interval, found.waited):
        assert (hours.value, hours.lower, hours.upper) == (0.0, 0.0, 0.0)
    assert found.runs.empty


def test_the_interval_at_which_runs_save_already_regains_exactly_nothing() -> None:
    found = played(Change(interval_min=60.0))
    assert (found.regained.value, found.regained.lower, found.regained.upper) == (0.0, 0.0, 0.0)


def test_what_rounding_alone_leaves_is_nothing() -> None:
    habit = replace(HOURLY, interval_s=float(np.nextafter(3600.0, 0.0)))
    as_saved = replace(STATED, central=habit, corners=(habit,) * 4)
    found = played(Change(nodes(*by_failures()[:3]), interval_min=60.0), of=as_saved)
    for hours in (found.by_interval, found.by_interval_left):
        assert (hours.value, hours.lower, hours.upper) == (0.0, 0.0, 0.0)
    assert set(found.runs["by_interval"]) == {0.0}
    assert all(
        less.value == 0.0 or abs(less.value or 0.0) > 1e-6 for _, less in found.causes.values()
    )


def test_more_nodes_never_cost_less_and_all_of_them_no_more_than_there_was() -> None:
    order = by_failures()
    gross = [played(Change(nodes(*order[:k]))).gross for k in (0, 3, len(order))]
    assert gross == sorted(gross)
    assert gross[0] == 0.0
    was = played(Change()).parts
    assert gross[-1] == pytest.approx(
        sum(was[part][0].value or 0.0 for part in ("lost", "restart"))
    )


def test_parts_causes_and_runs_add_up_to_what_is_regained() -> None:
    found = played(Change(nodes(*by_failures()[:3]), interval_min=20.0))
    total = found.regained.value
    assert total == pytest.approx(sum(less.value or 0.0 for _, less in found.parts.values()))
    written = found.parts["written"][1].value or 0.0
    causes = sum(less.value or 0.0 for _, less in found.causes.values())
    assert total == pytest.approx(causes + written)
    assert total == pytest.approx(
        (found.by_nodes.value or 0.0) + (found.by_interval_left.value or 0.0)
    )
    alone = played(Change(nodes(*by_failures()[:3])))
    assert alone.runs["regained"].sum() == pytest.approx(alone.by_nodes.value)


def test_the_order_of_rows_and_of_nodes_changes_nothing() -> None:
    change = Change(nodes(*by_failures()[:3]), interval_min=20.0)
    turned = Change(change.nodes[::-1], interval_min=20.0)
    mixed = ATTEMPTS.sample(frac=1.0, random_state=1)
    assert played(turned, mixed).regained.value == pytest.approx(played(change).regained.value)


def test_a_node_that_fails_as_others_do_regains_nothing_in_the_mean() -> None:
    """One failure on each node of two: without one of them the other is as bad."""
    row = (
        ATTEMPTS[ATTEMPTS["bucket"].notna()]
        .iloc[[0, 0]]
        .assign(node=["n1", "n2"], event=["a", "b"], run_id=["x", "y"])
    )
    two = EXPOSURE[EXPOSURE["node"].isin(["n1", "n2"])]
    habit = {"several_nodes": STATED, "one_node": STATED}
    found = what_if(row, habit, two, Change(nodes(1)))
    assert found.by_nodes.value == pytest.approx(0.0, abs=1e-9)
    assert found.nodes[0].usual == 1.0
    assert found.gross > 0


def test_hindsight_counts_for_less_where_nodes_hardly_differ() -> None:
    even = ATTEMPTS.assign(
        node=[None if node is None else f"n{place % N_NODES}"
              for place, node in enumerate(ATTEMPTS["node"])]
    )  # fmt: skip
    worst = nodes(*range(3))
    before, within = (played(Change(worst, how), even) for how in (False, True))
    assert within.nodes[0].counted == 0.0
    assert before.nodes[0].counted == 1.0
    lemons = played(Change(nodes(*by_failures()[:1]))).nodes[0]
    assert 0.2 < lemons.counted < 1.0


def test_sets_of_nodes_regain_what_the_period_without_them_does() -> None:
    worst = by_failures()[:3]
    sets = [nodes(*worst), nodes(worst[0]), nodes(worst[2])]
    habit = {"several_nodes": STATED, "one_node": STATED}
    period = Period.of(ATTEMPTS, habit, EXPOSURE)
    together = [period.without(each).at(CONF_LEVEL) for each in sets]
    for found, each in zip(together, sets, strict=True):
        alone = played(Change(each, "best")).by_nodes
        assert astuple(found) == pytest.approx(astuple(alone), rel=1e-12)


def test_sets_of_nodes_regain_the_same_where_incidents_are_shared_and_habits_assumed() -> None:
    """Of each ten attempts one incident, of each three one that had to make room."""
    place = np.arange(len(ATTEMPTS))
    room = ATTEMPTS["bucket"].notna() & (place % 3 == 0)
    shared = ATTEMPTS.assign(
        event=[f"{n // 10}" for n in place],
        bucket=ATTEMPTS["bucket"].mask(room, "lost_work_preempted"),
    )
    worst = nodes(*by_failures()[:2])
    alone = what_if(shared, ASSUMED, EXPOSURE, Change(worst), conf_level=0.5).by_nodes
    assert Period.of(shared, ASSUMED, EXPOSURE).without(worst).at(0.5) == alone
    assert (alone.value or 0.0) > 0


def test_a_job_that_two_nodes_are_at_fault_for_is_saved_by_draining_both_alone() -> None:
    """All failures of the worst node are as much another's."""
    first, second = by_failures()[:2]
    both = ATTEMPTS.assign(
        implicated=[
            [node, f"n{second}"] if node == f"n{first}" else None for node in ATTEMPTS["node"]
        ]
    )
    alone, other, pair = (
        played(Change(nodes(*each)), both) for each in ((first,), (second,), (first, second))
    )
    assert (alone.nodes[0].failures, alone.nodes[0].cost) == (0, 0.0)
    assert alone.by_nodes.value <= 0  # type: ignore[operator]
    assert pair.by_nodes.value > alone.by_nodes.value + other.by_nodes.value + 1  # type: ignore[operator]
    assert pair.nodes[0].failures == played(Change(nodes(first))).nodes[0].failures


def test_failures_without_a_node_stay_and_without_any_node_nothing_is_known() -> None:
    unnamed = ATTEMPTS.assign(node=None)
    found = played(Change(nodes(1, 2)), unnamed)
    assert found.by_nodes.value is None
    assert found.regained.value is None
    assert found.as_was.value == pytest.approx(played(Change()).as_was.value)
    interval = played(Change(interval_min=20.0), unnamed).regained.value
    assert interval == pytest.approx(played(Change(interval_min=20.0)).regained.value)


def test_each_cluster_is_held_against_its_own_nodes() -> None:
    """Another cluster, whose nodes fail five times as often, moves nothing of the first."""
    others = pd.concat(
        [ATTEMPTS.assign(cluster="d", event=ATTEMPTS["event"] + f"-{n}") for n in range(5)],
        ignore_index=True,
    )
    both = pd.concat([ATTEMPTS, others], ignore_index=True)
    exposure = pd.concat([EXPOSURE, EXPOSURE.assign(cluster="d")], ignore_index=True)
    worst = by_failures()[0]
    here, there = ("c", f"n{worst}"), ("d", f"n{worst}")
    habit = {"several_nodes": STATED, "one_node": STATED}

    def without(*left_out: tuple[str, str]) -> WhatIf:
        return what_if(both, habit, exposure, Change(left_out))

    first, second, together = without(here), without(there), without(here, there)
    assert together.nodes == (*first.nodes, *second.nodes)
    assert second.nodes[0].usual == pytest.approx(5 * first.nodes[0].usual)
    assert first.by_nodes.value == pytest.approx(played(Change((here,))).by_nodes.value, rel=0.01)
    assert together.by_nodes.value == pytest.approx(
        (first.by_nodes.value or 0.0) + (second.by_nodes.value or 0.0), rel=0.01
    )
    nameless = both.assign(node=both["node"].where(both["cluster"].eq("c")))
    unknown = what_if(nameless, habit, exposure, Change((there,)))
    assert (unknown.by_nodes.value, unknown.regained.value) == (None, None)
    assert unknown.n_failures == first.n_named == 6 * unknown.n_named


def test_without_an_interruption_nothing_is_known() -> None:
    calm = ATTEMPTS.assign(bucket=None, node=None)
    found = played(Change(nodes(1), interval_min="best"), calm)
    assert (found.n_interruptions, found.regained.value, found.interval_min) == (0, None, None)
    assert (found.as_was.value, found.best_min.value, len(found.curve)) == (None, None, 0)
    assert played(Change(interval_min="best"), ATTEMPTS.iloc[:0]).regained.value is None


def test_writing_that_costs_nothing_has_no_best_interval() -> None:
    found = played(Change(interval_min="best"), of=FREE)
    assert (found.best_min.value, found.interval_min) == (None, None)
    shorter = played(Change(interval_min=10.0), of=FREE).regained
    assert shorter.lower is not None
    assert shorter.lower > 0


def test_assumed_habits_give_a_range_without_a_level() -> None:
    stated = what_if(ATTEMPTS, {"several_nodes": STATED, "one_node": STATED}, EXPOSURE, Change())
    assumed = what_if(ATTEMPTS, ASSUMED, EXPOSURE, Change())
    assert assumed.as_was.assumed
    assert not stated.as_was.assumed
    assert (assumed.as_was.upper or 0.0) > (stated.as_was.upper or 0.0)


def test_only_runs_on_several_nodes_take_another_interval() -> None:
    small = ATTEMPTS.assign(several=False)
    found = played(Change(interval_min=10.0), small)
    assert (found.by_interval.value, len(found.curve)) == (None, 0)


def test_what_a_run_shows_of_itself_takes_the_place_of_the_habit() -> None:
    own = ATTEMPTS.assign(interval_s=600.0, write_s=30.0, restart_s=60.0)
    same = played(Change(interval_min=10.0), own)
    assert same.regained.value == 0.0
    lost, usual = (each.parts["lost"][0].value or 0.0 for each in (same, played(Change())))
    assert lost < usual / 3


def test_saves_of_one_second_are_an_interval_of_one() -> None:
    none, second = (
        played(Change(interval_min=10.0), ATTEMPTS.assign(interval_s=each, write_s=0.0))
        for each in (0.0, 1.0)
    )
    assert none.as_was.value == second.as_was.value
    assert (none.regained.value or 0.0) < 0.0


@pytest.mark.parametrize("minutes", [0.0, -5.0, float("nan")])
def test_an_interval_that_is_none_is_refused(minutes: float) -> None:
    with pytest.raises(OutOfRangeError, match="interval_min"):
        played(Change(interval_min=minutes))


def test_the_best_interval_of_a_job_is_that_of_the_closed_forms() -> None:
    rate = Estimate(6.5, 5.0, 8.0, 0.9, 60)
    found = best_interval(4096, rate, STATED, conf_level=0.9)
    per_min = 512 * 6.5 / 1000 / 1440
    assert found.exact_min.value == pytest.approx(float(optimal_interval(per_min, 1.0)))
    assert found.daly_young_min.value == pytest.approx(float(daly_young_interval(per_min, 1.0)))
    assert not found.apart
    assert best_interval(65_536, rate, STATED, conf_level=0.9).apart
    lower, upper = (float(optimal_interval(512 * r / 1000 / 1440, 1.0)) for r in (8.0, 5.0))
    assert (found.exact_min.lower, found.exact_min.upper) == pytest.approx((lower, upper))


def test_a_best_interval_is_open_where_no_failure_was_seen_and_unknown_without_a_rate() -> None:
    none_seen = Estimate(0.0, 0.0, 3.0, 0.9, 0)
    found = best_interval(1024, none_seen, STATED, conf_level=0.9).exact_min
    assert (found.value, found.upper) == (None, None)
    assert found.lower == pytest.approx(float(optimal_interval(128 * 3 / 1000 / 1440, 1.0)))
    unknown = Estimate(None, None, None, 0.9, 0)
    assumed = ASSUMED["several_nodes"]  # writes may cost nothing
    for rate, of in (
        (unknown, STATED), (Estimate(6.5, 5.0, 8.0, 0.9, 60), FREE), (none_seen, assumed)
    ):  # fmt: skip
        found = best_interval(1024, rate, of, conf_level=0.9).exact_min
        assert (found.value, found.lower, found.upper) == (None, None, None)
    found = best_interval(1024, Estimate(6.5, 5.0, 8.0, 0.9, 60), assumed, conf_level=0.9).exact_min
    assert (found.assumed, found.lower) == (True, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("hindsight", "minutes", "least"),
    [(False, 30.0, 0.8), (True, 120.0, 0.9)],
    ids=["known before", "in hindsight"],
)
def test_the_interval_covers_the_truth_of_simulated_clusters(
    hindsight: bool, minutes: float, least: float
) -> None:
    """Saves and failures by the clock; three nodes by the month before, or by the month itself.

    METHODS states what 300 months hold; of 100 chance alone takes or gives up to a tenth.
    """
    rng, n = np.random.default_rng(0), 100
    held = np.zeros(2)
    for turn in range(n):
        if turn % 5 == 0:
            cluster = Cluster.drawn(rng, spread=0.0)
            truth = Truth.of(cluster, minutes * 60, rng, 150)
        month = cluster.month(rng)
        shown = month if hindsight else cluster.month(rng)
        counts = np.bincount(np.concatenate([each for _, each in shown]), minlength=N_NODES)
        worst = np.argsort(-counts, kind="stable")[:3]
        found = what_if(
            cluster.attempts(month),
            {"several_nodes": STATED, "one_node": STATED},
            cluster.exposure(),
            Change(nodes(*worst), hindsight, minutes),
            seed=turn,
        )
        pairs = ((found.by_nodes, truth.by_nodes(worst)), (found.by_interval, truth.by_interval))
        held += [(e.lower or 0.0) <= true <= (e.upper or 0.0) for e, true in pairs]
    assert held[0] / n >= least
    assert held[1] / n >= 0.8
