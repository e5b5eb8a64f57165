"""Availability against an event loop, shares of known months, intervals, and what little there is."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from analytics.reliability.availability import (
    DAY_S,
    DOWN,
    DRAINED,
    PLANNED,
    STATES,
    UP,
    WEEK_S,
    Spans,
    by_period,
    capacity,
    occurrence,
    outages,
    passed_before,
    ratios,
    states,
)
from analytics.reliability.failure_rate import poisson_rate
from analytics.reliability.fleet_availability import Out, Spell, fleet_availability

HOUR = 3600


def spans(*rows: tuple[int, int, int]) -> Spans:
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Spans(*columns)


def generated(n_nodes: int, seed: int = 0) -> tuple[Spans, Spans, np.ndarray]:
    """A year: nodes that come late or leave, overlapping and open outages, planned work."""
    rng, year = np.random.default_rng(seed), 365 * DAY_S
    first = np.where(rng.random(n_nodes) < 0.2, rng.integers(0, year // 2, n_nodes), 0)
    last = np.where(rng.random(n_nodes) < 0.1, rng.integers(year // 2, year, n_nodes), year)
    n = 6 * n_nodes
    start = rng.integers(-30 * DAY_S, year + DAY_S, n)
    lasted = np.maximum(rng.lognormal(9, 1.5, n), 0).astype(np.int64)
    open_ = rng.random(n) < 0.01
    out = Spans(
        rng.integers(0, n_nodes, n), start, np.where(open_, year + 99 * DAY_S, start + lasted)
    )
    kind = rng.choice([PLANNED, DOWN, DRAINED], n, p=[0.3, 0.5, 0.2])
    return Spans(np.arange(n_nodes), first, last), out, kind


def by_event_loop(there: Spans, out: Spans, kind: np.ndarray) -> np.ndarray:
    """Seconds of each node in each state: every event in turn, one node after the other."""
    sums = np.zeros((len(there.node), len(STATES)), dtype=np.int64)
    mine: dict[int, list[tuple[int, int, int]]] = {}
    for node, start, end, what in zip(
        out.node.tolist(), out.start_s.tolist(), out.end_s.tolist(), kind.tolist(), strict=True
    ):
        mine.setdefault(node, []).append((start, end, what))
    for node, begin, over in zip(
        there.node.tolist(), there.start_s.tolist(), there.end_s.tolist(), strict=True
    ):
        times = sorted({begin, over, *(t for s, e, _ in mine.get(node, []) for t in (s, e))})
        for at, until in itertools.pairwise(times):
            if not begin <= at < over:
                continue
            active = [what for s, e, what in mine.get(node, []) if s <= at < e]
            sums[node, min(active, default=UP)] += min(until, over) - at
    return sums


def test_a_year_of_two_thousand_nodes_is_that_of_an_event_loop_to_the_second() -> None:
    there, out, kind = generated(2_000)
    found = states(there, out, kind)
    expected = by_event_loop(there, out, kind)
    assert (found.seconds(np.arange(2_000), 2_000) == expected).all()
    assert (by_period(found, WEEK_S)[1].sum(axis=0) == expected.sum(axis=0)).all()
    shares = ratios(found)
    total = expected.sum()
    assert shares.node_seconds == total
    assert shares.available.value == expected[:, UP].sum() / total
    assert shares.planned.value == expected[:, PLANNED].sum() / total
    assert shares.unplanned.value == expected[:, [DOWN, DRAINED]].sum() / total


def test_the_order_of_records_changes_nothing() -> None:
    there, out, kind = generated(50, seed=1)
    order = np.random.default_rng(2).permutation(len(kind))
    other = Spans(out.node[order], out.start_s[order], out.end_s[order])
    assert (states(there, out, kind).seconds() == states(there, other, kind[order]).seconds()).all()


def test_hector_in_july_2010_was_serviceable_as_published() -> None:
    """744 hours, 10:04 scheduled and 4:51 unscheduled down."""
    there = spans((0, 0, 744 * HOUR))
    planned, unplanned = 10 * HOUR + 4 * 60, 4 * HOUR + 51 * 60
    out = spans((0, 100 * HOUR, 100 * HOUR + planned), (0, 300 * HOUR, 300 * HOUR + unplanned))
    shares = ratios(states(there, out, np.array([PLANNED, DOWN])))
    assert round(100 * (shares.serviceable.value or 0), 2) == 99.34


def test_llama_3_was_interrupted_as_published() -> None:
    """54 days on 16,384 GPUs: 466 interruptions, 419 of them unexpected."""
    hours = 54 * 24.0
    times = [poisson_rate(n, hours).inverted(1.0).value or 0 for n in (466, 419)]
    assert [round(each, 2) for each in times] == [2.78, 3.09]
    assert round(1000 * (poisson_rate(419, 54 * 16384 / 8).value or 0), 2) == 3.79


def test_states_of_one_outage_are_one() -> None:
    """Down, down and drained, drained without a break; a later one; one within another."""
    rows = spans((0, 10, 20), (0, 20, 30), (0, 30, 45), (0, 50, 90), (0, 60, 70), (1, 40, 50))
    is_open = np.array([False, False, False, True, False, False])
    found = outages(rows, is_open)
    assert found.spans.start_s.tolist() == [10, 50, 40]
    assert found.spans.end_s.tolist() == [45, 90, 50]
    assert found.is_open.tolist() == [False, True, False]


def test_mtbf_counts_time_up_alone() -> None:
    there = spans(*((node, 0, 100 * DAY_S) for node in range(4)))
    out = spans((0, 50 * DAY_S, 90 * DAY_S))
    found = states(there, out, np.array([DOWN]))
    occurred = occurrence(found, out.start_s, np.zeros(0, np.int64))
    assert occurred.mtbf_hours.value == pytest.approx(360 * 24)
    assert occurred.fit.value == pytest.approx(1e9 / (360 * 24))
    assert occurred.annual_failure_ratio.value == pytest.approx(1 - np.exp(-8766 / 8640))


def test_without_an_outage_mtbf_has_a_lower_bound_alone() -> None:
    nothing = np.zeros(0, np.int64)
    found = states(spans((0, 0, 100 * DAY_S)), spans(), nothing)
    occurred = occurrence(found, nothing, nothing)
    assert occurred.mtbf_hours.value is None
    assert occurred.mtbf_hours.lower == pytest.approx(100 * 24 / 2.9957, rel=1e-3)
    whole = ratios(found).available
    assert (whole.value, whole.lower, whole.upper) == (1.0, None, None)


def test_capacity_is_that_of_every_second() -> None:
    there, out, kind = generated(30, seed=3)
    small = Spans(there.node, there.start_s // DAY_S, there.end_s // DAY_S)
    days = Spans(out.node, out.start_s // DAY_S, out.end_s // DAY_S)
    found = states(small, days, kind)
    up, held = np.zeros(365, int), np.zeros(365, int)
    for node, start, end in zip(*(c.tolist() for c in vars(small).values()), strict=True):
        held[start:end] += 1
        mine = [(s, e) for n, s, e in zip(*(c.tolist() for c in vars(days).values()), strict=True)
                if n == node]  # fmt: skip
        for day in range(start, end):
            up[day] += not any(s <= day < e for s, e in mine)
    for each in capacity(found):
        assert each.ratio == pytest.approx((held - up <= each.out).mean())
    assert capacity(found)[-1].ratio == 1.0


def test_where_nodes_go_out_together_less_capacity_is_found_than_one_by_one() -> None:
    there = spans(*((node, 0, 1000) for node in range(100)))
    out = spans(*((node, 0, 10) for node in range(50)))
    found = capacity(states(there, out, np.full(50, DOWN)))
    assert found[0].ratio == 0.99
    few = next(each for each in found if each.out == 8)
    assert few.ratio == 0.99 < few.independent


def test_nodes_that_fail_together_make_the_interval_wider() -> None:
    there = spans(*((node, 0, 70 * DAY_S) for node in range(40)))
    alone = spans(*((node, node * DAY_S, (node + 1) * DAY_S) for node in range(40)))
    together = spans(*((node, 10 * DAY_S, 11 * DAY_S) for node in range(40)))
    kind = np.full(40, DOWN)
    one, other = (ratios(states(there, out, kind)).available for out in (alone, together))
    assert one.value == other.value
    assert (other.upper or 0) - (other.lower or 0) > 2 * ((one.upper or 0) - (one.lower or 0))


def test_what_passed_before_a_time_is_summed_exactly() -> None:
    there, *_ = generated(20, seed=5)
    at = np.sort(np.random.default_rng(0).integers(-DAY_S, 400 * DAY_S, 50))
    expected = [
        sum(max(0, min(end, t) - start)
            for start, end in zip(there.start_s.tolist(), there.end_s.tolist(), strict=True))
        for t in at.tolist()
    ]  # fmt: skip
    assert passed_before(there, at).tolist() == expected


def out_row(node: str | None, start: int, end: int, **values: object) -> Out:
    row = {"state": "DOWN", "planned": False, "is_open": False, "logged": False} | values
    return Out("a", node, start, end, **row)  # type: ignore[arg-type]


def spell(node: str, start: int, end: int, cluster: str = "a") -> Spell:
    return Spell(cluster, node, "r1", start, end)


def test_an_open_outage_counts_as_longer_than_it_has_lasted() -> None:
    year = 365 * DAY_S
    rows = [out_row(f"n{k}", k * DAY_S, k * DAY_S + 2 * HOUR) for k in range(9)]
    rows.append(out_row("n9", year - 100 * HOUR, year, is_open=True))
    found = fleet_availability([spell(f"n{k}", 0, year) for k in range(10)], rows, {})
    assert (found.repairs.n, found.repairs.n_open) == (10, 1)
    assert found.repairs.percentiles[50].value == 2.0
    assert found.repairs.percentiles[95].value is None, "the longest is not over"
    assert found.repairs.mean_hours.value == pytest.approx((9 * 2 + 100) / 10)
    assert [each.node for each in found.still_out] == ["n9"]


def test_days_without_records_of_states_count_nowhere() -> None:
    rows = [out_row("n0", 5 * DAY_S, 6 * DAY_S)]
    whole = fleet_availability([spell("n0", 0, 20 * DAY_S)], rows, {})
    part = fleet_availability([spell("n0", 0, 20 * DAY_S)], rows, {"a": [(10, 13), (18, 1_000)]})
    assert whole.ratios.node_seconds == 20 * DAY_S
    assert part.ratios.node_seconds == 14 * DAY_S
    assert (whole.days_unseen, part.days_unseen) == (0, 6)
    assert part.ratios.available.value == pytest.approx(13 / 14)


def test_a_cluster_without_records_of_states_is_not_judged() -> None:
    rows = [out_row("n0", 5 * DAY_S, 6 * DAY_S)]
    spells = [spell("n0", 0, 20 * DAY_S), spell("n0", 0, 20 * DAY_S, "b")]
    found = fleet_availability(spells, rows, {})
    assert found.not_judged == ("b",)
    assert found.ratios.node_seconds == 20 * DAY_S
    nothing = fleet_availability(spells[1:], [], {})
    assert nothing.ratios.available.value is None
    assert nothing.occurrence.mtbf_hours.value is None
    assert nothing.repairs.n == 0


def test_planned_work_is_known_only_where_a_record_tells_it() -> None:
    spells = [spell("n0", 0, 20 * DAY_S)]
    told = fleet_availability(spells, [out_row("n0", 0, HOUR)], {})
    untold = fleet_availability(spells, [out_row("n0", 0, HOUR, planned=None)], {})
    logged = fleet_availability(spells, [out_row("n0", 0, HOUR, logged=True)], {})
    maintained = fleet_availability(
        spells, [out_row("n0", 0, HOUR, planned=None, state="MAINT")], {}
    )
    known = [each.planned_known for each in (told, untold, logged, maintained)]
    assert known == [True, False, False, True]


def test_an_outage_belongs_to_the_period_in_which_it_began() -> None:
    rows = [
        out_row("n0", -DAY_S, DAY_S),
        out_row("n0", 2 * DAY_S, 3 * DAY_S),
        out_row("n0", 9 * DAY_S, 12 * DAY_S),
    ]
    found = fleet_availability([spell("n0", 0, 10 * DAY_S)], rows, {})
    assert (found.occurrence.n, found.repairs.n) == (2, 2)
    assert found.ratios.unplanned.value == pytest.approx(0.3)
    assert found.repairs.mean_hours.value == pytest.approx((24 + 72) / 2)


def test_rows_of_a_failure_log_are_repairs_of_their_own() -> None:
    rows = [out_row("n0", 0, 4 * HOUR, logged=True), out_row("n0", HOUR, 3 * HOUR, logged=True),
            out_row(None, HOUR, 2 * HOUR, logged=True)]  # fmt: skip
    found = fleet_availability([spell("n0", 0, 10 * DAY_S)], rows, {})
    assert found.repairs.n == 3
    assert found.repairs.mean_hours.value == pytest.approx(7 / 3)
    assert found.ratios.unplanned.value == pytest.approx(4 / 240)
