"""Every policy: its parameters, its mechanism switched off, and what must hold of all."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.efficiency.ettr_forms import ettr_exact, ettr_v2, optimal_interval
from analytics.errors import OutOfRangeError
from analytics.recovery.histories import Hazards, Histories
from analytics.recovery.policies.standby import TABLE_7
from analytics.recovery.policy import BASE, Site, policies
from analytics.recovery.simulator import played
from app.answers.recovery.systems import ANALYSES

SHARED = Path(__file__).parents[4] / "shared" / "facts" / "recovery.md"
SITE = Site(
    hazards=Hazards(nodes=64, rates={"node": 40.0, "process": 20.0, "rack": 2.0,
                                     "preemption": 30.0}, rack_nodes=4),
    queue_min=20.0, detect_min=8.0, isolate_min=4.0, load_min=2.0, pipeline_nodes=8,
)  # fmt: skip
ALONE = replace(SITE, pipeline_nodes=64)
"""One pipeline: nothing has a replica."""
NO_PREEMPTION = {"foretold_ratio": 0.0}
OFF: dict[str, tuple[Site, dict[str, float]]] = {
    "torchsnapshot": (SITE, {"speedup": 1.0}),
    "check-n-run": (SITE, {"fewer_bytes": 1.0, "stall_min": 5.0}),
    "deepfreeze": (SITE, {"stall_min": 5.0}),
    "datastates": (SITE, {"stall_ratio": 1.0}),
    "fastpersist": (SITE, {"speedup": 1.0}),
    "bytecheckpoint": (SITE, {"stall_min": 5.0, "load_min": 2.0}),
    "dcp-async": (SITE, {"stall_ratio": 1.0}),
    "by-hand": (SITE, {"detect_min": 8.0, "init_min": 5.0, "queue_min": 20.0}),
    "megascale": (SITE, {"detect_min": 8.0, "isolate_min": 4.0, "init_min": 5.0}),
    "c4": (SITE, {"detect_ratio": 1.0, "isolate_ratio": 1.0, "init_ratio": 1.0}),
    "llama3-recorder": (SITE, {"isolate_min": 4.0}),
    "minder": (SITE, {"isolate_min": 4.0}),
    "vela": (SITE, {"standby": 0.0}),
    "warm-standby": (SITE, {"p_failure": 0.0}),
    "gemini": (SITE, {"copies": 1.0}),
    "reft": (SITE, {"group_nodes": 1.0}),
    "byterobust-memory": (SITE, {"copies": 1.0}),
    "transom": (SITE, {"copies": 1.0}),
    "dlrover": (SITE, {"copies": 1.0}),
    "just-in-time": (ALONE, {}),
    "replica-state": (ALONE, {}),
    "checkpointless": (ALONE, {}),
    "drop-replica": (ALONE, {}),
    "lazarus": (ALONE, {}),
    "bamboo": (replace(SITE, pipeline_nodes=1), {}),
    "oobleck": (SITE, {"faults": 0.0}),
    "recycle": (ALONE, {}),
    "swarm": (ALONE, {}),
    "varuna": (ALONE, {"deepest": 1.0}),
    "universal": (replace(SITE, hazards=Hazards(nodes=1, rates={"node": 900.0})), {}),
    "parcae": (SITE, NO_PREEMPTION),
}
"""Policy -> a site and parameters by which its mechanism does nothing."""
ALWAYS = {BASE, "checkfreq", "unicron"}
"""Without such a state: the base; an interval by a rule of its own; processes restart in place."""


def test_every_policy_that_can_be_switched_off_is_told() -> None:
    assert set(OFF) | ALWAYS == set(policies())


@pytest.mark.parametrize("key", OFF)
def test_a_policy_that_is_switched_off_equals_the_one_it_builds_on(key: str) -> None:
    site, parameters = OFF[key]
    policy = policies()[key]
    assert policy.builds_on is not None
    ground = policies()[policy.builds_on].mechanism(site)
    histories = Histories(20, 1)
    off = played(site.hazards, policy.mechanism(site, parameters), histories, days=3.0)
    base = played(site.hazards, ground, histories, days=3.0)
    assert off.ettr == pytest.approx(base.ettr, abs=1e-12)


@pytest.mark.parametrize(
    "key", [key for key, each in policies().items() if each.mechanism(SITE).kept is not None]
)
def test_a_state_that_is_never_to_be_had_leaves_what_is_built_on(key: str) -> None:
    policy = policies()[key]
    ground = policies()[policy.builds_on or BASE].mechanism(SITE)
    mechanism = policy.mechanism(SITE)
    assert mechanism.kept is not None
    lost = replace(
        mechanism, kept=replace(mechanism.kept, survives=(0.0,)), throughput=ground.throughput,
        steady_ratio=0.0, interval_min=ground.interval_min,
    )  # fmt: skip
    histories = Histories(20, 1)
    off = played(SITE.hazards, lost, histories, days=3.0)
    base = played(SITE.hazards, ground, histories, days=3.0)
    assert off.ettr == pytest.approx(base.ettr, abs=1e-12)
    on = played(SITE.hazards, mechanism, histories, days=3.0)
    assert on.ettr > base.ettr


def test_restarts_by_hand_are_no_faster_than_the_site() -> None:
    slow = replace(SITE, queue_min=120.0, detect_min=60.0, restart_min=20.0)
    hand, base = policies()["by-hand"].mechanism(slow), slow.mechanism()
    assert hand == base


def test_published_downtimes_stand_as_they_are_printed() -> None:
    hand = policies()["by-hand"].values
    assert hand["detect_min"] + hand["queue_min"] + hand["init_min"] + 15.0 == 68.0
    rare = Site(
        hazards=Hazards(nodes=100, rates={"node": 0.5}), restart_min=0.0, write_min=0.0,
        interval_min=30.0,
    )  # fmt: skip
    found = played(rare.hazards, policies()["by-hand"].mechanism(rare), Histories(400, 1), days=400)
    failures = float(rare.hazards.per_min.sum()) * (1 - found.shares["wait"])
    away = (1 - found.shares["productive"]) / failures
    assert away == pytest.approx(68.0, rel=0.03)  # 15 minutes are what is computed again
    ratios = [requeue / update for _, requeue, update in TABLE_7]
    assert sum(ratios) / 4 == pytest.approx(11.04, abs=0.02)


def test_a_ratio_above_one_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="at most 1"):
        policies()["gemini"].mechanism(SITE, {"steady_ratio": 1.5})


def test_unicron_where_processes_never_fail_and_detection_is_no_sooner_equals_its_base() -> None:
    site = replace(SITE, hazards=Hazards(nodes=64, rates={"node": 40.0}))
    off = policies()["unicron"].mechanism(site, {"detect_min": 8.0})
    histories = Histories(20, 1)
    base = played(site.hazards, site.mechanism(), histories, days=3.0)
    assert played(site.hazards, off, histories, days=3.0).ettr == pytest.approx(base.ettr)


def test_checkfreq_keeps_its_overhead_and_writes_one_checkpoint_at_a_time() -> None:
    found = policies()["checkfreq"].mechanism(SITE, {"overhead_ratio": 0.02, "stall_min": 0.5})
    assert found.write_min / found.interval_min <= 0.02 + 1e-12
    assert found.lag_min <= found.interval_min
    slow = policies()["checkfreq"].mechanism(replace(SITE, write_min=60.0))
    assert slow.interval_min >= slow.lag_min > 0


def test_a_parameter_that_a_policy_does_not_have_is_refused() -> None:
    with pytest.raises(OutOfRangeError, match="one of gemini: copies"):
        policies()["gemini"].mechanism(SITE, {"copy": 2.0})
    with pytest.raises(OutOfRangeError, match=r"gemini\.copies"):
        policies()["gemini"].mechanism(SITE, {"copies": -1.0})


def test_every_parameter_says_where_it_is_from_and_how_sure_it_is() -> None:
    for key, policy in policies().items():
        assert policy.does.endswith("."), key
        assert policy.asks, key
        for each in policy.parameters:
            assert each.source, (key, each.name)
            assert each.unit, (key, each.name)
            assert each.certainty in ("reported", "recalled", "derived", "assumed")
            if each.certainty == "assumed":
                assert not re.search(r"\d", each.source), (key, each.name)


@pytest.mark.skipif(not SHARED.exists(), reason="the list of systems is not there")
def test_every_system_of_the_literature_is_listed() -> None:
    said = " ".join(
        [each.system for each in policies().values()] + [each.system for each in ANALYSES]
    ).lower()
    rows = [line.split("|")[1].strip() for line in SHARED.read_text("utf-8").splitlines()
            if line.startswith("| ") and not line.startswith("| system")]  # fmt: skip
    assert len(rows) > 25
    for row in rows:
        name = re.split(r"[ ,(/]", row)[0].lower()
        names = {"synchronous": "young/daly", "ibm": "vela", "cost-efficient": "cost-efficient",
                 "just-in-time": "just-in-time", "pytorch": "pytorch"}  # fmt: skip
        assert names.get(name, name) in said, row


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["gemini", "byterobust-memory", "transom", "dlrover", "reft"]),
    st.integers(8, 200),
    st.floats(5.0, 80.0),
    st.floats(0.0, 40.0),
)
def test_a_state_in_memory_is_at_least_as_good_as_what_it_falls_back_to(
    key: str, nodes: int, rate: float, queue: float
) -> None:
    site = replace(SITE, hazards=Hazards(nodes=nodes, rates={"node": rate}), queue_min=queue)
    policy = policies()[key]
    ground = policies()[policy.builds_on or BASE].mechanism(site)
    equal = {"persist_min": ground.interval_min}
    if "steady_ratio" in policy.values:
        equal["steady_ratio"] = 0.0
    histories = Histories(30, 3)
    memory = played(site.hazards, policy.mechanism(site, equal), histories, days=10.0)
    base = played(site.hazards, ground, histories, days=10.0)
    assert memory.ettr >= base.ettr - 1e-3


@settings(max_examples=15, deadline=None)
@given(
    st.sampled_from(["nodes", "rate", "restart_min", "write_min", "queue_min"]),
    st.integers(20, 500),
    st.floats(2.0, 40.0),
    st.floats(1.0, 20.0),
)
def test_ettr_falls_with_what_costs(moved: str, nodes: int, rate: float, restart: float) -> None:
    def at(factor: float) -> float:
        given: dict[str, Any] = {"restart_min": restart, "write_min": 4.0, "queue_min": 10.0}
        if moved in given:
            given[moved] *= factor
        hazards = Hazards(
            nodes=round(nodes * (factor if moved == "nodes" else 1.0)),
            rates={"node": rate * (factor if moved == "rate" else 1.0)},
        )
        site = Site(hazards=hazards, **given)
        return played(hazards, site.mechanism(), Histories(40, 5), days=20.0).ettr

    assert at(2.0) <= at(1.0)  # equal where no checkpoint less is written


def test_limits_of_the_forms() -> None:
    rate, restart = 0.01, 5.0
    assert float(ettr_v2(rate, restart, 1e-6, write_min=0.0)) == pytest.approx(1 - rate * restart)
    exact = float(ettr_exact(rate, restart, 1e-6))
    hazards = Hazards(nodes=1000, rates={"node": 14.4})
    site = Site(hazards=hazards, restart_min=restart, write_min=0.0)
    found = played(hazards, site.mechanism(), Histories(200, 1), days=30.0)
    error = float(found.influence.std()) / 200**0.5
    assert abs(found.ettr - exact) < 3 * error
    assert exact == pytest.approx(2.718281828 ** (-rate * restart), rel=1e-4)


@given(st.floats(1e-5, 0.05), st.floats(0.1, 10.0), st.floats(0.1, 10.0))
def test_young_daly_is_near_the_best_while_failures_are_rare(
    rate: float, restart: float, write: float
) -> None:
    if rate * (restart + write) >= 0.1:
        return
    young = (2 * write / rate) ** 0.5
    best = float(optimal_interval(rate, write))
    lost = ettr_exact(rate, restart, best, write_min=write) - ettr_exact(
        rate, restart, young, write_min=write
    )
    assert 0 <= float(lost) + 1e-12 < 0.01
