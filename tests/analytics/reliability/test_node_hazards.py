"""What makes nodes fail sooner: what was planted is found, what one node does is not its level's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analytics.reliability.node_hazards import OTHERS, NodeHazards, node_hazards

Columns = dict[str, Any]
DAY_US = 86_400_000_000
INCIDENTS = ("cluster", "node", "failed_us", "step", "level", "age", "inside")


def further(nodes: list[str], days: list[int], level: str, *, inside: bool) -> Columns:
    """Incidents of nodes on days."""
    return {
        "cluster": np.array(["c"] * len(nodes), dtype=object),
        "node": np.array(nodes, dtype=object),
        "failed_us": np.array(days) * DAY_US + 1,
        "step": np.array(days),
        "level": np.array([level] * len(nodes), dtype=object),
        "age": np.array(["unknown"] * len(nodes), dtype=object),
        "inside": np.full(len(nodes), inside),
    }


def fleet(
    seed: int,
    *,
    n_nodes: int = 200,
    days: int = 30,
    ratio: float = 3.0,
    learns: float = 1.0,
    variance: float = 0.0,
) -> tuple[Columns, Columns]:
    """Half of the nodes have driver b from day 15 on, which fails `ratio` times as often; from then
    on all fail twice as often; each incident multiplies by `learns`, and nodes have factors of
    their own."""
    chance = np.random.default_rng(seed)
    own = chance.gamma(1 / variance, variance, n_nodes) if variance else np.ones(n_nodes)
    steps: Columns = {name: [] for name in ("cluster", "node", "step", "exposure", "level", "age")}
    incidents: Columns = {name: [] for name in INCIDENTS}
    for node in range(n_nodes):
        before = 0
        for day in range(days):
            level = "b" if node % 2 and day >= days // 2 else "a"
            share = float(chance.choice([0.25, 1.0]))
            rate = own[node] * 0.01 * share * (2 if day >= days // 2 else 1) * learns**before
            rate *= ratio if level == "b" else 1.0
            for name, value in zip(
                steps, ("c", f"n{node}", day, share, level, "unknown"), strict=True
            ):
                steps[name].append(value)
            if chance.random() < 1 - np.exp(-rate):
                at = day * DAY_US + int(chance.integers(DAY_US))
                row = ("c", f"n{node}", at, day, level, "unknown", True)
                for name, value in zip(incidents, row, strict=True):
                    incidents[name].append(value)
                before += 1
    objects = {"cluster", "node", "level", "age"}
    return tuple(  # type: ignore[return-value]
        {k: np.array(v, dtype=object if k in objects else None) for k, v in table.items()}
        for table in (steps, incidents)
    )


def found(steps: Columns, incidents: Columns) -> NodeHazards:
    return node_hazards(steps, incidents, days=1)


def ratio_of(hazards: NodeHazards, what: str) -> tuple[float | None, float | None, float | None]:
    (one,) = [each.ratio.ratio for each in hazards.covariates if each.what == what]
    return one.lower, one.value, one.upper


def test_a_bad_driver_is_told_from_bad_days_that_all_nodes_had() -> None:
    lower, value, _ = ratio_of(hazards := found(*fleet(2)), "fact")
    assert lower is not None
    assert value is not None
    assert 1.0 < lower < value < 6.0
    assert hazards.model is not None
    assert hazards.n_events == hazards.model.n_events
    assert hazards.n_nodes == 200


def test_where_all_nodes_have_it_at_once_bad_days_and_driver_cannot_be_told_apart() -> None:
    steps, incidents = fleet(1)
    for table in (steps, incidents):
        table["level"] = np.where(table["step"] >= 15, "b", "a").astype(object)
    hazards = found(steps, incidents)
    assert not [each for each in hazards.covariates if each.what == "fact"]


def test_incidents_before_the_period_count_and_those_of_the_step_itself_do_not() -> None:
    steps, incidents = fleet(2, n_nodes=110, ratio=1.0)
    alone = found(steps, incidents)
    long_ago = further([f"n{n}" for n in range(100)], [-10] * 100, "a", inside=False)
    both = {name: np.concatenate([long_ago[name], incidents[name]]) for name in incidents}
    assert found(steps, both).n_events == alone.n_events
    before = next(each for each in alone.covariates if each.what == "incidents")
    after = next(each for each in found(steps, both).covariates if each.what == "incidents")
    assert after.node_days > before.node_days
    too_long_ago = both | {
        "failed_us": np.where(both["failed_us"] < 0, -100 * DAY_US, both["failed_us"])
    }
    assert found(steps, too_long_ago).covariates == alone.covariates


def test_what_one_node_does_is_no_property_of_its_level() -> None:
    steps, incidents = fleet(3, ratio=1.0)
    for table in (steps, incidents):
        table["level"][table["node"] == "n7"] = "rack 7"
    more = further(["n7"] * 20, [*range(20)], "rack 7", inside=True)
    hazards = found(steps, {name: np.concatenate([incidents[name], more[name]]) for name in more})
    assert "rack 7" not in {each.level for each in hazards.covariates} - {OTHERS}
    assert hazards.own_factors[0][0] == "c/n7"


@pytest.mark.parametrize("kept", [0, 1, 5])
def test_of_few_failures_nothing_is_told(kept: int) -> None:
    steps, incidents = fleet(4)
    few = {name: column[:kept] for name, column in incidents.items()}
    hazards = found(steps, few)
    assert hazards.model is None
    assert hazards.covariates == ()
    assert hazards.n_events == kept


def test_nothing_at_all_is_no_error() -> None:
    nothing = {name: column[:0] for name, column in fleet(4, n_nodes=1, days=1)[0].items()}
    none = further([], [], "", inside=True)
    assert found(nothing, none).n_nodes == 0


def test_nodes_of_which_the_fact_is_not_known_are_left_out_and_counted() -> None:
    steps, incidents = fleet(5)
    unknown = steps["node"] < "n2"
    without = float(steps["exposure"][unknown].sum())
    for table in (steps, incidents):
        table["level"][table["node"] < "n2"] = None
    hazards = found(steps, incidents)
    assert hazards.without == pytest.approx(without)
    assert hazards.unplaced == 0
    steps["level"][:] = None
    assert found(steps, incidents).without == 0.0  # of none it is known: the rest is still told


def test_what_never_ran_is_counted_and_what_was_before_is_no_failure() -> None:
    steps, incidents = fleet(6)
    alone = found(steps, incidents)
    never = further(["n1"] * 3, [40, 41, 42], "a", inside=True)
    no_row_at_all = further(["n999"] * 2, [3, 4], "a", inside=True)
    of_another = further(["n1"], [3], "a", inside=True)
    of_another["cluster"] = np.array(["not asked for"], dtype=object)
    before = further(["n1"] * 3, [0, 1, 2], "a", inside=False)
    all_ = (incidents, never, no_row_at_all, of_another, before)
    again = found(steps, {name: np.concatenate([one[name] for one in all_]) for name in INCIDENTS})
    assert again.n_events == alone.n_events
    assert (alone.unplaced, again.unplaced) == (0, 5)


def test_a_level_that_fails_first_whenever_it_can_has_no_ratio() -> None:
    """Within each step of two levels: over all steps both fail and both do not."""
    steps, incidents = fleet(7)
    steps["age"] = np.where((steps["node"] < "n2") & (steps["step"] < 3), "young", "old").astype(
        object
    )
    incidents["age"] = np.where(
        (incidents["node"] < "n2") & (incidents["step"] < 3), "young", "old"
    ).astype(object)
    kept = (incidents["step"] >= 3) | (incidents["age"] == "young")
    first = {name: column[kept] for name, column in incidents.items()}
    hazards = found(steps, first)
    assert all(
        each.ratio.ratio.value is None or 1e-4 < each.ratio.ratio.value < 1e4
        for each in hazards.covariates
    )
    assert hazards.model is not None
    assert hazards.model.frailty is not None
    variance = hazards.model.frailty.variance
    assert variance.value is not None
    assert variance.lower is not None
    assert variance.lower <= variance.value


@pytest.mark.slow
@pytest.mark.parametrize("planted", [{}, {"variance": 0.7}, {"learns": 1.3}])
def test_intervals_hold_the_planted_ratio_whatever_else_differs(planted: dict[str, float]) -> None:
    """200 fleets each; a share by chance alone lies within 85 and 95 %."""
    held, before = 0, 0
    for seed in range(200):
        hazards = found(*fleet(seed, **planted))
        lower, _, upper = ratio_of(hazards, "fact")
        assert lower is not None
        assert upper is not None
        held += lower <= 3.0 <= upper
        lower, _, upper = ratio_of(hazards, "incidents")
        before += lower is None or upper is None or lower <= planted.get("learns", 1.0) <= upper
    print(f"{planted}: {held} of 200 hold the driver's ratio, {before} that of incidents before")
    assert 0.84 <= held / 200 <= 0.96
    assert "variance" in planted or before / 200 >= 0.84
