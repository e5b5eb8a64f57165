"""What the demo's training metrics say of its large runs is what was planted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.training_log import attempt_progress, run_habits
from data.synthetic import DemoCluster, DemoSpec, demo_cluster

if TYPE_CHECKING:
    from collections.abc import Callable

LOST = ("lost_work", "lost_work_preempted", "other")


def attempts_of(demo: DemoCluster) -> pd.DataFrame:
    """Attempts of the logged jobs that started, a run a job, and what their loss is called."""
    columns = ["cluster", "attempt_key", "job_id", "start_at", "end_at", "state", "n_gpus"]
    jobs = demo.tables["jobs"].select([*columns, "elapsed_s"]).to_pandas()
    logged = {str(run["job_id"]) for run in demo.truth.runs}
    jobs = jobs[jobs["job_id"].isin(logged) & jobs["start_at"].notna()]
    causes = demo.truth.attempts.to_pandas().set_index("attempt_key")
    struck = causes["domain"].isin(["hardware", "system_software"]) | (
        causes["cause"] == "node_lost"
    )
    loss = jobs["state"].astype(str).map({"PREEMPTED": "lost_work_preempted", "REQUEUED": "other"})
    return jobs.assign(
        run_id=jobs["job_id"],
        loss=loss.where(~jobs["attempt_key"].isin(struck.index[struck]), "lost_work"),
    )


def found_gpu_seconds(demo: DemoCluster) -> dict[str, dict[str, float]]:
    """GPU-seconds by bucket of each logged job, from its training metrics."""
    attempts = attempts_of(demo)
    progress = attempt_progress(demo.tables["training_metrics"].to_pandas(), attempts)
    rows = attempts.merge(progress.drop(columns="run_id"), on=["cluster", "attempt_key"])
    gpus = rows["n_gpus"]
    parts = {name: rows["unsaved_s"] * (rows["loss"] == name) * gpus for name in LOST}
    parts |= {"startup": rows["startup_s"] * gpus, "checkpoint": rows["checkpoint_s"] * gpus}
    parts["productive"] = rows["elapsed_s"] * gpus - sum(parts.values())
    sums = pd.DataFrame(parts).groupby(rows["job_id"]).sum()
    return {str(job): dict(row) for job, row in sums.iterrows()}


def assert_within_one_percent(demo: DemoCluster) -> None:
    found = found_gpu_seconds(demo)
    for run in demo.truth.runs:
        for bucket, planted in run["gpu_seconds"].items():
            assert found[run["job_id"]][bucket] == pytest.approx(planted, rel=0.01), bucket


def test_the_metrics_give_the_planted_buckets_of_each_run_within_one_percent(
    demo: DemoCluster, default_demo: DemoCluster
) -> None:
    assert_within_one_percent(demo)
    assert_within_one_percent(default_demo)


@pytest.mark.slow
def test_they_do_so_for_twenty_seeds() -> None:
    for seed in range(1, 21):
        assert_within_one_percent(demo_cluster(DemoSpec.of(n_jobs=20_000, seed=seed)))


def test_the_habits_of_each_run_are_the_planted_ones(default_demo: DemoCluster) -> None:
    habits = run_habits(
        attempt_progress(
            default_demo.tables["training_metrics"].to_pandas(), attempts_of(default_demo)
        )
    )
    assert len(habits) == 20
    assert (habits["checkpoint_interval_s"] == 3600).all()
    assert (habits["checkpoint_write_s"] == 60).all()
    assert (habits["restart_s"] == 300).all()
    assert habits["n_intervals"].min() > 10


def disturbed(shake: Callable[[pd.DataFrame], pd.DataFrame], demo: DemoCluster) -> pd.DataFrame:
    """Difference in seconds of what disturbed metrics say from what whole ones say, of attempts that ended."""
    metrics, attempts = demo.tables["training_metrics"].to_pandas(), attempts_of(demo)
    attempts = attempts[attempts["end_at"].notna()]
    columns = ["startup_s", "checkpoint_s", "unsaved_s"]
    whole, found = (
        attempt_progress(rows, attempts).set_index("attempt_key")[columns]
        for rows in (metrics, shake(metrics))
    )
    return (found - whole).abs()


def test_sparse_rows_skewed_clocks_and_missing_times_change_it_by_seconds(
    demo: DemoCluster,
) -> None:
    late = pd.Timedelta(7, "s")
    plain = "checkpoint_event.isna()"
    cases: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], float]] = {
        "shuffled": (lambda rows: rows.sample(frac=1, random_state=0), 0.0),
        "clock": (lambda rows: rows.assign(logged_at=rows["logged_at"] + late), 7.0),
        "no step times": (lambda rows: rows.assign(step_time_s=np.nan), 1e-6),
        "every fifth": (
            lambda rows: pd.concat([rows.query(plain).iloc[::5], rows.query(f"not {plain}")]),
            60.0,
        ),
        "no write times": (lambda rows: rows.assign(checkpoint_s=np.nan), 1e-6),
    }
    for name, (shake, most) in cases.items():
        assert disturbed(shake, demo).max().max() <= most, name


def test_steps_come_again_after_a_restart_that_loaded_a_checkpoint(
    default_demo: DemoCluster,
) -> None:
    rows = default_demo.tables["training_metrics"].to_pandas()
    loaded = rows[rows["checkpoint_event"] == "loaded"]
    assert len(loaded) > 5
    for job, step, at in loaded[["job_id", "step", "logged_at"]].itertuples(index=False):
        before = rows[(rows["job_id"] == job) & (rows["logged_at"] < at)]
        saved = before[before["checkpoint_event"] == "saved"]
        assert saved["step"].max() == step
        assert before["step"].max() >= step
    steps = rows[rows["checkpoint_event"].isna()]
    assert steps.groupby("job_id")["step_time_s"].nunique().eq(1).all()
    assert steps.groupby("job_id")["loss"].agg(lambda loss: loss.iloc[-1] < loss.iloc[0]).all()


def test_the_metrics_stay_small_and_belong_to_the_largest_runs(default_demo: DemoCluster) -> None:
    rows = default_demo.tables["training_metrics"]
    assert 20_000 < rows.num_rows < 400_000
    truth = default_demo.truth
    jobs = default_demo.tables["jobs"].select(["job_id", "n_gpus", "elapsed_s"]).to_pandas()
    held = (jobs["n_gpus"] * jobs["elapsed_s"]).where(jobs["n_gpus"] > 8).groupby(jobs["job_id"])
    assert [run["job_id"] for run in truth.runs] == list(
        held.sum().sort_values(ascending=False, kind="stable").index[:20]
    )
    for run in truth.runs:
        assert sum(run["gpu_seconds"].values()) == held.sum()[run["job_id"]]
