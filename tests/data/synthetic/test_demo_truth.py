"""What the demo planted is what a count over its tables finds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from data.synthetic import DemoCluster, DemoSpec, demo_cluster

if TYPE_CHECKING:
    from pathlib import Path

COUNTED_ABOVE_GPUS = 128
BUCKETS = [
    *("productive", "checkpoint", "startup", "lost_work", "lost_work_preempted", "queue_hold"),
    *("drained", "down_planned", "down_unplanned", "idle", "straggler", "other"),
]


def counted(demo: DemoCluster) -> pd.Series:
    """Which attempts, by key, infrastructure ended, from the tables alone.

    Those of the paper's rule, and those FAILED as an operator drains one of their nodes.
    """
    found, jobs = counted_by_the_paper(demo), demo.tables["jobs"].to_pandas()
    outages = demo.tables["node_events"].to_pandas().astype({"node": str, "reason": str})
    by_hand = outages[outages["reason"].str.startswith("operator: ")]
    held = demo.tables["job_nodes"].to_pandas().astype({"node": str})
    held = held[held["attempt_key"].isin(set(jobs.loc[jobs["state"] == "FAILED", "attempt_key"]))]
    ended = held.merge(by_hand, left_on=["node", "end_at"], right_on=["node", "start_at"])
    return found | found.index.isin(ended["attempt_key"])


def counted_by_the_paper(demo: DemoCluster) -> pd.Series:
    """Which attempts, by key, the paper's rule counts as failures, from the tables alone.

    NODE_FAIL, or a filled failed_node, or FAILED with a critical or fatal health event on one of
    its nodes from 10 minutes before to 5 minutes after its end.
    """
    jobs = demo.tables["jobs"].select(["attempt_key", "state", "failed_node", "end_at"]).to_pandas()
    jobs = jobs.set_index("attempt_key")
    lost = (jobs["state"] == "NODE_FAIL") | jobs["failed_node"].notna()
    failed = jobs.index[(jobs["state"] == "FAILED").to_numpy()]
    events = demo.tables["health_events"].to_pandas()
    events = events[events["severity"].isin(["critical", "fatal"])]
    held = demo.tables["job_nodes"].to_pandas()
    held = held[held["attempt_key"].isin(set(failed))]
    number = {node: i for i, node in enumerate(demo.tables["nodes"]["node"].to_pylist())}
    micros = 10**16
    at = events["observed_at"].astype("int64") + events["node"].astype(str).map(number) * micros
    at = np.sort(at.to_numpy())
    end = jobs.loc[held["attempt_key"], "end_at"].astype("int64").to_numpy()
    end = end + held["node"].astype(str).map(number).to_numpy() * micros
    seen = np.searchsorted(at, end + 300_000_000, "right") > np.searchsorted(at, end - 600_000_000)
    return lost | jobs.index.isin(held.loc[seen, "attempt_key"])


def failures_and_exposure(demo: DemoCluster, *, above: int) -> tuple[int, float]:
    jobs = demo.tables["jobs"].select(["attempt_key", "n_gpus", "elapsed_s"]).to_pandas()
    large = (jobs["n_gpus"] > above).to_numpy()
    exposure = (jobs["n_gpus"] * jobs["elapsed_s"])[large].sum() / 8 / 86_400
    return int(counted(demo).to_numpy()[large].sum()), float(exposure)


def covers(demo: DemoCluster) -> bool:
    """Whether the planted rate lies in the 90 % Poisson (Garwood) interval of the counted one."""
    n, node_days = failures_and_exposure(demo, above=COUNTED_ABOVE_GPUS)
    lower = chi2.ppf(0.05, 2 * n) / 2 / node_days if n else 0.0
    upper = chi2.ppf(0.95, 2 * n + 2) / 2 / node_days
    return bool(lower <= demo.truth.rate_per_1000_node_days / 1000 <= upper)


def planted(demo: DemoCluster) -> pd.DataFrame:
    return demo.truth.attempts.to_pandas().astype({"cause": str, "domain": str})


def hardware_failures(demo: DemoCluster) -> pd.Series:
    """Keys of the attempts that a planted failure of a node ended."""
    truth = planted(demo)
    return truth.loc[(truth["domain"] != "user") & (truth["cause"] != "requeued"), "attempt_key"]


def test_the_rule_counts_every_hardware_failure_and_hardly_anything_else(
    default_demo: DemoCluster,
) -> None:
    hits = hardware_failures(default_demo)
    found = counted(default_demo)
    assert found[hits].all()
    assert len(hits) > 80
    extra = set(found.index[found]) - set(hits)
    assert len(extra) <= 0.02 * len(hits)


def test_the_planted_rate_is_near_the_published_one(default_demo: DemoCluster) -> None:
    assert default_demo.truth.rate_per_1000_node_days == pytest.approx(6.5, abs=0.5)


@pytest.mark.slow
def test_the_rate_of_all_sizes_agrees_with_that_of_large_jobs(default_demo: DemoCluster) -> None:
    n, node_days = failures_and_exposure(default_demo, above=0)
    expected = default_demo.truth.rate_per_1000_node_days / 1000 * node_days
    assert n == pytest.approx(expected, abs=4 * np.sqrt(expected))


@pytest.mark.slow
def test_the_planted_rate_lies_in_the_interval_for_ten_seeds() -> None:
    n_covered = 0
    for seed in range(10):
        demo = demo_cluster(DemoSpec.of(n_jobs=20_000, seed=seed))
        n_covered += covers(demo)
        assert counted(demo)[hardware_failures(demo)].all()
    assert n_covered >= 7


@pytest.mark.slow
def test_the_planted_rate_lies_in_the_interval_for_85_of_100_seeds() -> None:
    covered = [covers(demo_cluster(DemoSpec.of(n_jobs=20_000, seed=seed))) for seed in range(100)]
    assert sum(covered) >= 85


def test_truth_names_every_failed_attempt_once(demo: DemoCluster) -> None:
    truth, jobs = planted(demo), demo.tables["jobs"].to_pandas()
    failed = jobs["state"].isin(["FAILED", "NODE_FAIL", "TIMEOUT", "OUT_OF_MEMORY", "REQUEUED"])
    assert truth["attempt_key"].is_unique
    assert set(truth["attempt_key"]) == set(jobs.loc[failed, "attempt_key"])
    ids = jobs.set_index("attempt_key")["job_id"]
    assert (truth.set_index("attempt_key")["job_id"] == ids[truth["attempt_key"]]).all()
    assert set(truth["domain"]) == {"user", "system_software", "hardware", "unknown"}


def test_every_cause_has_one_domain_and_user_failures_keep_their_state(
    default_demo: DemoCluster,
) -> None:
    truth = planted(default_demo)
    assert (truth.groupby("cause")["domain"].nunique() == 1).all()
    states = default_demo.tables["jobs"].to_pandas().set_index("attempt_key")["state"].astype(str)
    truth["state"] = states[truth["attempt_key"]].to_numpy()
    by_cause = truth.groupby("cause")["state"].agg(set)
    assert by_cause["time_limit"] == {"TIMEOUT"}
    assert by_cause["host_oom"] == {"OUT_OF_MEMORY"}
    assert by_cause["requeued"] == {"REQUEUED"}
    assert by_cause["node_lost"] == {"NODE_FAIL"}
    for cause in ("filesystem_mount", "gpu_driver"):
        assert by_cause[cause] == {"NODE_FAIL", "FAILED"}
    assert set(truth.loc[truth["domain"] == "user", "state"]) == {
        *("FAILED", "TIMEOUT", "OUT_OF_MEMORY"),
    }


@pytest.mark.slow
def test_definitions_of_a_failure_differ_on_the_faults_of_system_software(
    default_demo: DemoCluster,
) -> None:
    truth = planted(default_demo).set_index("attempt_key")
    software = truth.index[truth["domain"] == "system_software"]
    states = default_demo.tables["jobs"].to_pandas().set_index("attempt_key")["state"].astype(str)
    lost = states[software] == "NODE_FAIL"
    by_the_paper = counted_by_the_paper(default_demo)[software]
    assert 0 < lost.sum() < by_the_paper.sum() < len(software)
    assert not truth.loc[software[~by_the_paper], "has_event"].any()


def test_a_lost_node_and_some_lost_mounts_leave_no_event_and_all_other_faults_leave_one(
    default_demo: DemoCluster,
) -> None:
    truth = planted(default_demo)
    with_event = truth.groupby("cause")["has_event"].mean()
    assert with_event["node_lost"] == 0
    assert 0 < with_event["filesystem_mount"] < 1
    for cause in ("ib_link", "gpu_memory", "pcie", "nvlink", "gpu_driver"):
        assert with_event[cause] == 1
    user = truth[truth["domain"] == "user"]
    assert set(user.loc[user["has_event"], "cause"]) == {"illegal_memory_access"}


def test_the_ledger_sums_to_the_capacity_exactly(demo: DemoCluster, spec: DemoSpec) -> None:
    ledger = demo.truth.ledger
    assert list(ledger) == BUCKETS
    assert all(type(gpu_s) is int and gpu_s >= 0 for gpu_s in ledger.values())
    assert sum(ledger.values()) == 256 * 8 * 9 * 86_400 == spec.capacity_gpu_s
    for bucket in BUCKETS:
        assert ledger[bucket] > 0, bucket


def test_running_and_outage_buckets_agree_with_the_tables(demo: DemoCluster) -> None:
    ledger = demo.truth.ledger
    jobs = demo.tables["jobs"].to_pandas()
    running = (
        *("productive", "straggler", "checkpoint", "startup"),
        *("lost_work", "lost_work_preempted", "other"),
    )
    assert sum(ledger[b] for b in running) == (jobs["n_gpus"] * jobs["elapsed_s"]).sum()
    out = demo.tables["node_events"].to_pandas()
    end = demo.tables["nodes"]["last_seen_at"].to_pandas().max()
    gpu_s = (out["end_at"].fillna(end) - out["start_at"]).dt.total_seconds() * 8
    by_state = gpu_s.groupby(out["state"].astype(str)).sum()
    assert ledger["down_planned"] == by_state["MAINT"]
    assert ledger["drained"] == by_state["DRAIN"]
    assert ledger["down_unplanned"] == by_state["DOWN"]
    assert (out["planned"] == (out["state"] == "MAINT")).all()


def test_queue_hold_is_what_is_free_while_eligible_jobs_wait(demo: DemoCluster) -> None:
    """The same integral by brute force, every second of one day."""
    spec = DemoSpec.of(n_jobs=1500, n_nodes=64)
    small = demo_cluster(spec)
    begin = pd.Timestamp("2025-12-01", tz="UTC")
    free = np.full(spec.period_s + 1, spec.n_nodes * 8)
    wanted = np.zeros(spec.period_s + 1, dtype=np.int64)

    def second(times: pd.Series) -> np.ndarray:
        since = (times - begin).dt.total_seconds()
        return since.fillna(spec.period_s).clip(upper=spec.period_s).astype(int).to_numpy()

    jobs = small.tables["jobs"].to_pandas()
    ran = jobs[jobs["start_at"].notna()]
    for start, end, gpus in zip(
        second(ran["start_at"]), second(ran["end_at"]), ran["n_gpus"], strict=True
    ):
        free[start:end] -= gpus
    until = jobs["start_at"].fillna(jobs["end_at"])
    for start, end, gpus in zip(
        second(jobs["eligible_at"]), second(until), jobs["n_gpus"], strict=True
    ):
        wanted[start:end] += gpus
    out = small.tables["node_events"].to_pandas()
    for start, end in zip(second(out["start_at"]), second(out["end_at"]), strict=True):
        free[start:end] -= 8
    held = np.minimum(free, wanted)[: spec.period_s].sum()
    assert free[: spec.period_s].min() >= 0
    assert small.truth.ledger["queue_hold"] == held


def test_truth_is_written_as_json_with_the_agreed_keys(demo: DemoCluster, tmp_path: Path) -> None:
    demo.truth.to_json(tmp_path / "truth.json")
    truth = json.loads((tmp_path / "truth.json").read_text(encoding="utf-8"))
    assert set(truth) == {
        "rate_per_1000_node_days", "lemons", "lemon_nodes", "attempts", "ledger", "runs", "traces",
    }  # fmt: skip
    assert [trace["cause"] for trace in truth["traces"]] == ["worker", "stage", "sequence_length"]
    assert set(truth["attempts"][0]) == {
        "attempt_key", "job_id", "cause", "domain", "has_event", "node",
    }  # fmt: skip
    assert len(truth["attempts"]) == demo.truth.attempts.num_rows
    assert truth["lemons"] == sorted(truth["lemons"])
    assert set(truth["lemons"]) <= set(demo.tables["nodes"]["node"].to_pylist())
    assert [lemon["node"] for lemon in truth["lemon_nodes"]] == truth["lemons"]
    assert truth["ledger"] == demo.truth.ledger


def test_a_cluster_too_small_for_large_jobs_plants_its_rate_over_all_jobs() -> None:
    demo = demo_cluster(DemoSpec.of(n_jobs=1000, n_nodes=4))
    assert demo.tables["jobs"]["n_gpus"].to_pandas().max() == 24
    assert demo.truth.rate_per_1000_node_days == pytest.approx(6.5)
