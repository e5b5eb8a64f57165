"""The demo's mix is the published one (papers.md A1, A2, A4, A8; RSC-1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from data.synthetic import DemoCluster, DemoSpec, demo_cluster

if TYPE_CHECKING:
    from collections.abc import Sequence

PUBLISHED_STATES = {  # papers.md A2, Fig. 3, % of jobs
    "COMPLETED": 60,
    "FAILED": 24,
    "PREEMPTED": 10,
    "REQUEUED": 2,
    "TIMEOUT": 0.6,
    "OUT_OF_MEMORY": 0.1,
    "NODE_FAIL": 0.1,
    "CANCELLED": 3.2,
}


def state_shares(demo: DemoCluster) -> dict[str, float]:
    states = demo.tables["jobs"]["state"].to_pandas().astype(str)
    return (states.value_counts(normalize=True) * 100).to_dict()


def gpu_time(demo: DemoCluster) -> pd.DataFrame:
    jobs = demo.tables["jobs"].select(["n_gpus", "elapsed_s"]).to_pandas()
    return jobs.assign(gpu_s=jobs["n_gpus"] * jobs["elapsed_s"])


def utilisation(demo: DemoCluster, spec: DemoSpec) -> float:
    return float(gpu_time(demo)["gpu_s"].sum() / spec.capacity_gpu_s)


@pytest.mark.slow
def test_state_shares_are_published_ones_to_one_point(default_demo: DemoCluster) -> None:
    shares = state_shares(default_demo)
    for state, published in PUBLISHED_STATES.items():
        assert shares[state] == pytest.approx(published, abs=0.5), state
    assert shares["RUNNING"] + shares.get("PENDING", 0) < 0.2


def test_state_shares_hold_for_a_tenth_of_the_jobs(demo: DemoCluster) -> None:
    shares = state_shares(demo)
    for state in ("COMPLETED", "FAILED", "PREEMPTED", "REQUEUED", "CANCELLED"):
        assert shares[state] == pytest.approx(PUBLISHED_STATES[state], abs=1.5), state


@pytest.mark.slow
def test_small_jobs_are_many_and_large_jobs_hold_the_gpu_time(default_demo: DemoCluster) -> None:
    rows = gpu_time(default_demo)
    n_gpus, share = rows["n_gpus"], rows["gpu_s"] / rows["gpu_s"].sum()
    assert (n_gpus == 1).mean() > 0.40
    assert (n_gpus <= 8).mean() > 0.90
    assert share[n_gpus <= 8].sum() < 0.10
    assert share[n_gpus >= 256].sum() == pytest.approx(0.66, abs=0.02)
    assert set(np.log2(n_gpus.unique()) % 1) == {0.0}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "low", "high"),
    [
        ((20_000, 256), 0.79, 0.87),
        ((20_000, 32), 0.79, 0.87),
        ((6_000, 64), 0.77, 0.89),
        ((3_000, 8), 0.72, 0.90),
        ((2_000, 1), 0.65, 0.90),
    ],
)
def test_utilisation_stays_near_83_percent_when_jobs_alone_scale_days(
    given: Sequence[int], low: float, high: float
) -> None:
    spec = DemoSpec.of(*given)
    assert low < utilisation(demo_cluster(spec), spec) < high


@pytest.mark.slow
def test_utilisation_of_the_default_is_83_percent(default_demo: DemoCluster) -> None:
    assert utilisation(default_demo, DemoSpec()) == pytest.approx(0.83, abs=0.02)


def test_submissions_rise_by_day_and_fall_at_the_weekend(default_demo: DemoCluster) -> None:
    jobs = default_demo.tables["jobs"].select(["submit_at", "restarts"]).to_pandas()
    first = jobs.loc[jobs["restarts"] == 0, "submit_at"]
    by_hour = first.groupby(first.dt.hour).size()
    assert by_hour[15] > 2 * by_hour[3]
    by_day = first.groupby(first.dt.dayofweek).size()
    assert by_day[5:].mean() < 0.7 * by_day[:5].mean()


def test_partitions_owners_and_priorities_follow_size(default_demo: DemoCluster) -> None:
    jobs = default_demo.tables["jobs"].to_pandas()
    assert set(jobs["partition"]) == {"learn", "dev", "eval"}
    assert set(jobs.loc[jobs["n_gpus"] > 8, "partition"].astype(str)) == {"learn"}
    assert set(jobs.loc[jobs["n_gpus"] > 128, "qos"].astype(str)) == {"high"}
    assert jobs["user"].nunique() > 80
    assert (jobs.groupby("user", observed=True)["account"].nunique() == 1).all()
    assert (
        jobs[jobs["qos"] == "high"]["priority"].min() > jobs[jobs["qos"] == "low"]["priority"].max()
    )
    assert (jobs.groupby("job_id")["user"].nunique() == 1).all()


@pytest.mark.slow
def test_fewer_than_one_completed_job_in_a_hundred_sees_a_critical_event(
    default_demo: DemoCluster,
) -> None:
    """The paper's calibration of health checks (A4)."""
    events = default_demo.tables["health_events"].to_pandas()
    events = events[events["severity"].isin(["critical", "fatal"])].astype({"node": str})
    jobs = default_demo.tables["jobs"].to_pandas()
    completed = set(jobs.loc[jobs["state"] == "COMPLETED", "attempt_key"])
    held = default_demo.tables["job_nodes"].to_pandas().astype({"node": str})
    rows = held[held["attempt_key"].isin(completed)].merge(events, on="node")
    window = rows["observed_at"].between(rows["start_at"], rows["end_at"] + pd.Timedelta("5min"))
    assert rows.loc[window, "attempt_key"].nunique() < 0.01 * len(completed)


def test_lemons_stand_out_after_a_quarter(default_demo: DemoCluster) -> None:
    lemons = default_demo.truth.lemons
    assert len(lemons) == 3
    tickets = default_demo.tables["tickets"].to_pandas().astype({"node": str})
    n_tickets = (
        tickets.groupby("node")
        .size()
        .reindex(default_demo.tables["nodes"]["node"].to_pylist(), fill_value=0)
    )
    others = n_tickets.drop(lemons)
    assert n_tickets[lemons].mean() > 5 * others.mean()


def test_the_leading_causes_are_the_published_ones(default_demo: DemoCluster) -> None:
    truth = default_demo.truth.attempts.to_pandas()
    causes = truth.loc[truth["domain"] != "user", "cause"].astype(str)
    leading = causes[causes != "requeued"].value_counts().index[:5]
    assert {"ib_link", "gpu_memory", "filesystem_mount", "pcie"} & set(leading) >= {
        "ib_link",
        "gpu_memory",
    }
