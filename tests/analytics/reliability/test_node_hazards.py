"""What makes nodes fail sooner: what was planted is found, what one node does is not its level's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from analytics.reliability.node_hazards import DAY_US, OTHERS, NodeHazards, node_hazards

Columns = dict[str, Any]


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
    incidents: Columns = {"cluster": [], "node": [], "failed_us": []}
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
                for name, value in zip(incidents, ("c", f"n{node}", at), strict=True):
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
    steps["level"] = np.where(steps["step"] >= 15, "b", "a").astype(object)
    hazards = found(steps, incidents)
    assert ratio_of(hazards, "fact") == (None, None, None)


def test_incidents_before_the_period_count_and_those_of_the_step_itself_do_not() -> None:
    steps, incidents = fleet(2, ratio=1.0)
    alone = found(steps, incidents)
    long_ago = {
        "cluster": np.array(["c"] * 100, dtype=object),
        "node": np.array([f"n{n}" for n in range(100)], dtype=object),
        "failed_us": np.full(100, -10 * DAY_US),
    }
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
    steps["level"][steps["node"] == "n7"] = "rack 7"
    more = {
        "cluster": np.array(["c"] * 20, dtype=object),
        "node": np.array(["n7"] * 20, dtype=object),
        "failed_us": np.arange(20) * DAY_US + 1,
    }
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
    none = {"cluster": np.array([]), "node": np.array([]), "failed_us": np.array([], np.int64)}
    assert found(nothing, none).n_nodes == 0


def test_nodes_of_which_the_fact_is_not_known_are_left_out_and_counted() -> None:
    steps, incidents = fleet(5)
    unknown = steps["node"] < "n2"
    without = float(steps["exposure"][unknown].sum())
    steps["level"][unknown] = None
    hazards = found(steps, incidents)
    assert hazards.without == pytest.approx(without)
    steps["level"][:] = None
    assert found(steps, incidents).without == 0.0  # of none it is known: the rest is still told


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
