"""The demo's schedule could have happened: checked by sweeps over the tables alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.synthetic import DemoCluster, DemoSpec, demo_cluster

if TYPE_CHECKING:
    from collections.abc import Callable


def micros(times: pd.Series, end: pd.Timestamp) -> pd.Series:
    """Microseconds since the epoch; what is not known lasts until the end of the period."""
    return times.fillna(end).astype("datetime64[us, UTC]").astype("int64")


def end_of_period(demo: DemoCluster) -> pd.Timestamp:
    return demo.tables["nodes"]["last_seen_at"].to_pandas().max()


def stays(demo: DemoCluster) -> pd.DataFrame:
    """One row per attempt and node, with its times in microseconds."""
    jobs = demo.tables["jobs"].select(["attempt_key", "start_at", "end_at"]).to_pandas()
    rows = demo.tables["job_nodes"].select(["attempt_key", "node", "n_gpus"]).to_pandas()
    rows = rows.astype({"node": str}).merge(jobs, on="attempt_key", validate="many_to_one")
    end = end_of_period(demo)
    return rows.assign(start=micros(rows["start_at"], end), end=micros(rows["end_at"], end))


def most_gpus_in_use(demo: DemoCluster) -> int:
    """The largest number of GPUs in use at once on any node."""
    rows = stays(demo)
    begins = rows[["node", "start", "n_gpus"]].set_axis(["node", "at", "gpus"], axis=1)
    ends = rows[["node", "end", "n_gpus"]].set_axis(["node", "at", "gpus"], axis=1)
    steps = pd.concat([begins, ends.assign(gpus=-ends["gpus"])])
    in_use = steps.sort_values(["node", "at", "gpus"]).groupby("node")["gpus"].cumsum()
    return int(in_use.max()) if len(in_use) else 0


def runs_on_nodes_out_of_service(demo: DemoCluster) -> int:
    """Attempts that run on a node while an interval of node_events holds."""
    out = demo.tables["node_events"].to_pandas().astype({"node": str})
    end = end_of_period(demo)
    out = out.assign(start=micros(out["start_at"], end), end=micros(out["end_at"], end))
    by_node = dict(list(stays(demo).groupby("node")))
    n_found = 0
    for node, intervals in out.sort_values("start").groupby("node"):
        starts, ends = intervals["start"].to_numpy(), intervals["end"].to_numpy()
        assert (starts[1:] >= ends[:-1]).all(), f"outages of {node} overlap"
        if node in by_node:
            runs = by_node[node]
            last = np.searchsorted(starts, runs["end"].to_numpy()) - 1
            until = np.append(ends, 0)[last]
            n_found += int((until > runs["start"].to_numpy()).sum())
    return n_found


def test_a_node_is_never_oversubscribed(demo: DemoCluster) -> None:
    assert most_gpus_in_use(demo) == 8


@pytest.mark.slow
def test_no_job_runs_on_a_node_out_of_service(default_demo: DemoCluster) -> None:
    assert len(default_demo.tables["node_events"]) > 500
    assert runs_on_nodes_out_of_service(default_demo) == 0


@given(
    n_jobs=st.integers(1, 400),
    n_nodes=st.integers(1, 40),
    days=st.one_of(st.none(), st.floats(0.001, 20)),
    seed=st.integers(0, 1000),
)
def test_clusters_of_any_size_hold_together(
    n_jobs: int, n_nodes: int, days: float | None, seed: int
) -> None:
    spec = DemoSpec.of(n_jobs, n_nodes, days, seed)
    demo = demo_cluster(spec)
    assert demo.tables["jobs"].num_rows == n_jobs
    assert most_gpus_in_use(demo) <= 8
    assert runs_on_nodes_out_of_service(demo) == 0
    assert sum(demo.truth.ledger.values()) == spec.capacity_gpu_s
    assert min(demo.truth.ledger.values()) >= 0
    assert demo.truth.rate_per_1000_node_days > 0


def test_jobs_up_to_eight_gpus_hold_one_node_and_larger_ones_whole_nodes(
    demo: DemoCluster,
) -> None:
    rows = demo.tables["job_nodes"].to_pandas()
    held = rows.groupby("attempt_key")["n_gpus"].agg(["size", "min", "max"])
    jobs = demo.tables["jobs"].to_pandas().set_index("attempt_key")
    for time in ("start_at", "end_at"):
        of_attempt = jobs.loc[rows["attempt_key"], time].reset_index(drop=True)
        pd.testing.assert_series_equal(rows[time], of_attempt)
    started = jobs[jobs["start_at"].notna()]
    assert set(held.index) == set(started.index)
    n_gpus = started.loc[held.index, "n_gpus"]
    assert (held["size"] == started.loc[held.index, "n_nodes"]).all()
    assert (held["size"] == np.ceil(n_gpus / 8)).all()
    assert (held["min"] == held["max"]).all()
    assert (held["max"] == n_gpus.clip(upper=8)).all()


def test_times_of_an_attempt_follow_one_another(demo: DemoCluster) -> None:
    jobs = demo.tables["jobs"].to_pandas()
    started = jobs[jobs["start_at"].notna()]
    assert (jobs["submit_at"] <= jobs["eligible_at"]).all()
    assert (started["eligible_at"] <= started["start_at"]).all()
    ended = started[started["end_at"].notna()]
    assert (ended["elapsed_s"] >= 0).all()
    assert ((ended["end_at"] - ended["start_at"]).dt.total_seconds() == ended["elapsed_s"]).all()
    assert (ended["elapsed_s"] <= ended["timelimit_s"] + 60).all()
    assert set(started.loc[started["end_at"].isna(), "state"]) <= {"RUNNING"}
    assert set(jobs.loc[jobs["start_at"].isna(), "state"]) <= {"PENDING", "CANCELLED"}


def test_a_requeued_job_is_submitted_again_when_its_last_attempt_ends(demo: DemoCluster) -> None:
    jobs = demo.tables["jobs"].to_pandas().sort_values(["job_id", "restarts"])
    before = jobs.groupby("job_id")[["restarts", "end_at", "state", "n_gpus"]].shift()
    again = jobs["restarts"] > 0
    assert again.sum() > 1000
    assert (jobs.loc[again, "restarts"] == before.loc[again, "restarts"] + 1).all()
    assert (jobs.loc[again, "submit_at"] == before.loc[again, "end_at"]).all()
    assert (jobs.loc[again, "n_gpus"] == before.loc[again, "n_gpus"]).all()
    ended_by = set(before.loc[again, "state"].astype(str))
    assert ended_by == {"PREEMPTED", "REQUEUED", "NODE_FAIL", "FAILED"}
    assert (jobs.loc[jobs["attempt"] == 1, "restarts"] == 0).all()


def test_a_preempted_attempt_names_the_job_that_then_starts_on_its_node(
    demo: DemoCluster,
) -> None:
    rows = stays(demo)
    jobs = demo.tables["jobs"].to_pandas().set_index("attempt_key")
    preempted = jobs[jobs["state"] == "PREEMPTED"]
    assert preempted["preempted_by"].notna().all()
    assert jobs.loc[jobs["state"] != "PREEMPTED", "preempted_by"].isna().all()
    rows["job_id"] = rows["attempt_key"].map(jobs["job_id"])
    starts = set(zip(rows["job_id"], rows["start_at"], strict=True))
    wanted = zip(preempted["preempted_by"], preempted["end_at"], strict=True)
    assert all(one in starts for one in wanted)


def test_node_lists_expand_to_the_nodes_of_the_attempt(
    demo: DemoCluster, expand: Callable[[str], list[str]]
) -> None:
    jobs = demo.tables["jobs"].to_pandas()
    held = demo.tables["job_nodes"].to_pandas().astype({"node": str})
    nodes = held.groupby("attempt_key")["node"].agg(set)
    started = jobs[jobs["start_at"].notna()]
    wide = started[started["n_nodes"] > 1]
    for rows in (wide, started.sample(500, random_state=0)):
        for key, text in zip(rows["attempt_key"], rows["node_list"], strict=True):
            assert set(expand(text)) == nodes[key]


@pytest.fixture
def expand() -> Callable[[str], list[str]]:
    def expanded(text: str) -> list[str]:
        if "[" not in text:
            return [text]
        stem, inner = text.rstrip("]").split("[")
        found = []
        for part in inner.split(","):
            low, _, high = part.partition("-")
            found += [f"{stem}{i:0{len(low)}d}" for i in range(int(low), int(high or low) + 1)]
        return found

    return expanded
