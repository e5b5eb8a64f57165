"""When nodes came back, what failed next, and which actions hold: by hand and on simulated fleets."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.nodes.repair_outcomes import fails_within, outcomes
from analytics.nodes.repairs import DAY_S, Failure, Stay, repairs, windows, zones

if TYPE_CHECKING:
    from analytics.nodes.repair_outcomes import RepairOutcomes
    from analytics.nodes.repairs import Repair

HORIZON = 28.0


def out(start: float, end: float | None, node: str = "n0") -> Stay:
    return Stay("c", node, "outage", start * DAY_S, None if end is None else end * DAY_S)


def ticket(start: float, end: float | None, action: str | None, key: str = "T", **of: Any) -> Stay:
    node = of.pop("node", "n0")
    ends = None if end is None else end * DAY_S
    return Stay("c", node, "ticket", start * DAY_S, ends, key, action, **of)


def fails(*days: float, node: str = "n0", domain: str | None = "hardware") -> list[Failure]:
    return [Failure("c", node, day * DAY_S, "gpu_ecc", domain, f"{node}@{day}") for day in days]


def found(stays: list[Stay], failures: list[Failure], until: float = 100.0) -> list[Repair]:
    return list(repairs(stays, failures, {"c": until * DAY_S}).found)


def days(repair: Repair) -> tuple[float, float, bool]:
    """Returned, days watched, whether it then failed."""
    return repair.returned_s / DAY_S, repair.days, repair.failure is not None


def test_a_ticket_belongs_to_the_outage_whose_end_is_the_return() -> None:
    (one,) = found([out(1, 3), ticket(2, 9, "replaced the GPU")], fails(0.9, 5))
    assert days(one) == (3.0, 2.0, True)
    assert one.action == "replaced the GPU"


def test_two_tickets_at_once_are_one_repair_with_both_actions() -> None:
    both = [ticket(1, 3, "replaced the GPU", "T1"), ticket(2, 4, "Reseated  a riser", "T2")]
    (one,) = found(both, [])
    assert days(one) == (4.0, 96.0, False)
    assert one.action == "Reseated a riser + replaced the GPU"
    assert [each.key for each in one.tickets] == ["T1", "T2"]


def test_spellings_of_an_action_are_one_action() -> None:
    stays = [ticket(1, 2, "reboot"), ticket(5, 6, "Reboot."), ticket(9, 10, " reboot ")]
    assert {each.action for each in found(stays, [])} == {"reboot"}


def test_without_an_end_there_is_no_return() -> None:
    stays = [out(50, None), ticket(10, None, "reboot"), ticket(60, None, None)]
    told = repairs(stays, [], {"c": 100 * DAY_S})
    assert (told.found, told.n_open) == ((), 2)  # one ticket is of the outage that lasts
    (one,) = found([ticket(1.5, None, "reboot"), out(1, 2)], [])
    assert (one.action, one.returned_s) == ("reboot", 2 * DAY_S)


def test_a_ticket_without_an_outage_is_a_repair_and_an_outage_without_one_too() -> None:
    told = found([ticket(1, 2, None), out(10, 11), out(99, 99.5)], fails(9.5))
    assert [(each.action, each.returned_s / DAY_S) for each in told] == [
        ("action not stated", 2.0), ("no ticket", 11.0), ("no ticket", 99.5),
    ]  # fmt: skip
    assert [each.earlier for each in told] == [0, 1, 1]
    assert [each.after_failure for each in told] == [False, True, False]


def test_the_next_outage_ends_the_watch_and_a_failure_in_it_is_what_it_began_with() -> None:
    first, second = found([out(1, 2), out(10, 12)], fails(10.01))
    assert days(first) == (2.0, 8.0, True)
    assert days(second) == (12.0, 88.0, False)
    drained, _ = found([out(1, 2), out(10, 12)], fails(40))
    assert days(drained) == (2.0, 8.0, False)


def test_a_failure_as_the_node_returns_is_not_its_next_one() -> None:
    (one,) = found([out(1, 2)], fails(1.5, 2))
    assert days(one) == (2.0, 98.0, False)


def test_windows_end_at_the_failure_or_the_horizon_and_zones_lie_around_them() -> None:
    told = found([out(1, 2), out(10, 12), out(80, 81)], fails(10))
    assert [(a / DAY_S, b / DAY_S) for a, b in windows(told, HORIZON)] == [
        (2, 10), (12, 40), (81, 100),
    ]  # fmt: skip
    (spans,) = zones(told, HORIZON).values()
    assert [(a / DAY_S, b / DAY_S) for a, b in spans] == [(1, 40), (80, 109)]


def test_kaplan_and_meier_by_hand() -> None:
    share = fails_within([5, 10, 10, 20, 30, 30], [1, 0, 1, 1, 0, 0], 28)
    assert share.value == pytest.approx(1 - (5 / 6) * (4 / 5) * (2 / 3))
    assert fails_within([5, 6], [0, 0], 28).value is None  # nobody was watched so long
    none = fails_within([30] * 10, [0] * 10, 28)
    assert (none.value, none.lower) == (0.0, 0.0)
    assert none.upper == pytest.approx(1 - 0.05 ** (1 / 10))
    assert fails_within([], [], 28).value is None
    few = fails_within([5, 5, 30, 30], [1, 1, 0, 0], 28, n_items=1)
    many = fails_within([5, 5, 30, 30], [1, 1, 0, 0], 28)
    assert (few.lower or 0) < (many.lower or 0) < 0.5 < (many.upper or 0) < (few.upper or 0)


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(AnalysisError, match="horizon_days must be"):
        outcomes([], [], {}, horizon_days=0)
    with pytest.raises(AnalysisError, match="conf_level"):
        fails_within([1], [1], 28, conf_level=90)


def test_one_action_three_nodes_and_none_at_all_are_told() -> None:
    nobody = outcomes([], [], {})
    assert (nobody.actions, nobody.fails_again.value, nobody.returned) == ((), None, ())
    stays = [out(1, 2, f"n{node}") for node in range(3)]
    told = found(stays, fails(5, node="n1"))
    few = outcomes(told, [28.0, 3.0, 28.0], {})
    (only,) = few.actions
    assert (only.n_repairs, only.n_failed, only.verdict) == (3, 1, "too little data")
    assert only.fails_again.value == pytest.approx(1 / 3)
    assert few.beside_nodes.value is None


def test_a_node_that_fails_again_and_again_is_for_its_vendor() -> None:
    stays = [out(day, day + 1, node) for node in ("bad", "soft") for day in (1, 20, 40)]
    stays += [out(1, 2, f"n{node}") for node in range(20)]
    failures = fails(10, 30, node="bad") + fails(10, 30, node="soft", domain="system_software")
    told = found(stays, failures)
    held = [(b - a) / DAY_S for a, b in windows(told, HORIZON)]
    returned = outcomes(told, held, {}).returned
    assert [(each.of[1], len(each.repairs), each.for_vendor) for each in returned] == [
        ("bad", 2, True), ("soft", 2, False),
    ]  # fmt: skip
    assert returned[0].p_value < 0.1


def fleet(
    seed: int, hazards: dict[str, float], *, n: int = 300, days: float = 365.0, frailty: float = 0.0
) -> tuple[list[Repair], list[float], dict[Any, Any]]:
    """Nodes that fail at 0.004 a day times their own frailty, are out for a day and repaired by a
    random action; for 28 days after it the rate is so many times as high as the action says.
    """
    rng = np.random.default_rng(seed)
    own = rng.gamma(1 / frailty, frailty, n) if frailty else np.ones(n)
    stays, failures = list[Stay](), list[Failure]()
    for node in range(n):
        at, until, factor = 0.0, 0.0, 1.0
        while at < days:
            rate = 0.004 * own[node]
            step = rng.exponential(1 / (rate * factor)) if at < until else np.inf
            if at < until and at + step > until:
                step, at = rng.exponential(1 / rate), until
            elif at >= until:
                step = rng.exponential(1 / rate)
            at += step
            if at >= days:
                break
            action = str(rng.choice(list(hazards)))
            failures += fails(at, node=f"n{node}")
            stays += [out(at, at + 1, f"n{node}"),
                      ticket(at + 0.1, at + 1, action, node=f"n{node}")]  # fmt: skip
            at, factor = at + 1, hazards[action]
            until = at + HORIZON
    told = found(stays, failures, days)
    held = [(b - a) / DAY_S for a, b in windows(told, HORIZON)]
    spans = zones(told, HORIZON)
    others = {}
    for node in range(n):
        of = ("c", f"n{node}")
        away = [(a / DAY_S, min(b / DAY_S, days)) for a, b in spans.get(of, [])]
        n_out = sum(
            each.node == of[1] and not any(a < each.at_s / DAY_S <= b for a, b in away)
            for each in failures
        )
        others[of] = (n_out, days - sum(b - a for a, b in away))
    return told, held, others


def judged(seed: int, hazards: dict[str, float], **of: Any) -> RepairOutcomes:
    return outcomes(*fleet(seed, hazards, **of))


def test_an_action_that_does_nothing_is_told_from_those_that_work() -> None:
    told = judged(1, {"swap": 1.0, "reboot": 8.0, "reseat": 1.0}, n=300)
    assert [each.action for each in told.failing] == ["reboot"]
    reboot = next(each for each in told.actions if each.action == "reboot")
    assert reboot.beside_nodes.lower is not None
    assert reboot.beside_nodes.lower > 4
    assert (reboot.fails_again.value or 0) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("frailty", [0.0, 1.0])
def test_repairs_of_one_kind_are_seldom_said_to_differ(frailty: float) -> None:
    """Three actions that do the same, well or badly, over 200 fleets: at most 1 in 20 alarms."""
    for factor in (1.0, 5.0):
        alarms = [
            any(
                each.verdict in ("does not hold", "holds better")
                for each in judged(
                    seed, dict.fromkeys(("swap", "reboot", "reseat"), factor), n=120,
                    frailty=frailty,
                ).actions
            )
            for seed in range(200)
        ]  # fmt: skip
        assert np.mean(alarms) <= 0.08


@pytest.mark.slow
@pytest.mark.parametrize("hazards", [
    {"works": 1.0, "nothing": 5.0}, {"nothing": 5.0, "worse": 10.0}, {"works": 1.0, "worse": 10.0},
], ids=str)  # fmt: skip
def test_intervals_beside_other_nodes_and_other_repairs_hold_the_truth(
    hazards: dict[str, float],
) -> None:
    """Over 200 fleets of equal nodes; the ratio of two actions is that of their factors."""
    beside_nodes, beside_repairs = coverage(hazards, 200)
    assert 0.86 <= beside_nodes <= 0.97
    assert 0.86 <= beside_repairs <= 0.97


def coverage(hazards: dict[str, float], fleets: int, **of: Any) -> tuple[float, float]:
    """Shares of intervals that hold the true ratio to other nodes, and to the other action."""
    to_nodes, to_repairs = list[bool](), list[bool]()
    for seed in range(fleets):
        for each in judged(seed, hazards, n=120, **of).actions:
            (other,) = (factor for name, factor in hazards.items() if name != each.action)
            for ratio, true, kept in (
                (each.beside_nodes, hazards[each.action], to_nodes),
                (each.beside_repairs, hazards[each.action] / other, to_repairs),
            ):
                upper = np.inf if ratio.upper is None else ratio.upper
                kept.append((ratio.lower or 0.0) <= true <= upper)
    return float(np.mean(to_nodes)), float(np.mean(to_repairs))


def test_many_failures_and_tickets_of_one_node_cost_in_proportion_to_their_number() -> None:
    n, year_s = 5_000, 365 * DAY_S
    stays = [
        Stay("c", "n1", kind, at * 3600.0, at * 3600.0 + 60.0)
        for kind, first in (("outage", 0), ("ticket", n))
        for at in range(first, first + n)
    ]
    failures = [Failure("c", "n1", at * 3600.0 + 1800.0) for at in range(2 * n)]
    began = time.process_time()
    told = repairs(stays, failures, {"c": 10 * year_s})
    took_s = time.process_time() - began
    assert (len(told.found), told.found[-1].earlier) == (2 * n, 90 * 24)
    assert took_s < 1.5, "a search of all earlier ones for each takes ten times that"
