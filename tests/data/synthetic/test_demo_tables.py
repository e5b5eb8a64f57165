"""The demo's tables fit the store, are the same for the same seed, and keep their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from analytics.failures.xid import xid_entries
from data.errors import DataError
from data.synthetic import DemoCluster, DemoSpec, demo_cluster
from data.tables import tables

if TYPE_CHECKING:
    import pyarrow as pa

KEYS = {
    "clusters": ["cluster"],
    "nodes": ["cluster", "node", "first_seen_at"],
    "planted_causes": ["cluster", "attempt_key"],
    "node_facts": ["cluster", "node", "gpu", "key", "from_at"],
    "jobs": ["cluster", "attempt_key"],
    "job_nodes": ["cluster", "attempt_key", "node"],
    "node_events": ["cluster", "node", "start_at"],
    "health_events": ["cluster", "event_id"],
    "tickets": ["cluster", "ticket_id"],
    "job_logs": ["cluster", "attempt_key", "file", "line_no"],
    "training_metrics": ["cluster", "job_id", "step", "rank", "logged_at", "checkpoint_event"],
}


def test_every_column_is_one_of_the_stores() -> None:
    demo = demo_cluster(DemoSpec.of(n_jobs=300, n_nodes=8))
    assert set(demo.tables) == set(KEYS)
    for name, table in demo.tables.items():
        assert set(table.column_names) <= tables()[name].columns.keys(), name


@pytest.mark.parametrize("name", KEYS)
def test_keys_are_unique(demo: DemoCluster, name: str) -> None:
    rows = demo.tables[name].select(KEYS[name]).to_pandas()
    assert len(rows) > 0
    assert not rows.duplicated().any()


def test_times_are_utc_in_microseconds(demo: DemoCluster) -> None:
    for name, table in demo.tables.items():
        for field in table.schema:
            if field.name.endswith("_at"):
                assert str(field.type) == "timestamp[us, tz=UTC]", f"{name}.{field.name}"


def test_the_same_spec_gives_the_same_tables_and_truth() -> None:
    spec = DemoSpec.of(n_jobs=2000, n_nodes=64, seed=7)
    one, other = demo_cluster(spec), demo_cluster(spec)
    for name, table in one.tables.items():
        assert table.equals(other.tables[name]), name
    assert one.truth.as_dict() == other.truth.as_dict()


def test_another_seed_gives_another_cluster() -> None:
    one, other = (demo_cluster(DemoSpec.of(n_jobs=500, n_nodes=64, seed=s)) for s in (1, 2))
    assert not one.tables["jobs"].equals(other.tables["jobs"])


def test_the_jobs_table_has_exactly_as_many_rows_as_asked_for(
    demo: DemoCluster, default_demo: DemoCluster
) -> None:
    assert demo.tables["jobs"].num_rows == 20_000
    assert default_demo.tables["jobs"].num_rows == 200_000


def test_the_cluster_is_marked_as_synthetic(demo: DemoCluster) -> None:
    (row,) = demo.tables["clusters"].to_pylist()
    assert row == {
        "cluster": "demo",
        "gpus_per_node": 8,
        "gpu_model": "A100-SXM4-80GB",
        "timezone": "UTC",
        "scheduler": "slurm",
        "synthetic": True,
    }


def test_nodes_stand_two_to_a_rack_and_came_in_deliveries(demo: DemoCluster) -> None:
    nodes = demo.tables["nodes"].to_pandas()
    assert len(nodes) == 256
    assert (nodes.groupby("rack", observed=True).size() == 2).all()
    assert (nodes.groupby("pod", observed=True)["rack"].nunique() <= 10).all()
    assert nodes["first_seen_at"].nunique() == 4
    assert (nodes["first_seen_at"] < demo.tables["jobs"].to_pandas()["submit_at"].min()).all()


def test_driver_facts_of_a_node_follow_one_another(default_demo: DemoCluster) -> None:
    facts = default_demo.tables["node_facts"].to_pandas()
    drivers = facts[facts["key"] == "driver"].sort_values(["node", "from_at"])
    assert drivers.groupby("node", observed=True).size().max() == 2
    following = drivers.groupby("node", observed=True)["from_at"].shift(-1)
    changed = drivers["to_at"].notna()
    assert changed.sum() > 200
    assert (following[changed] == drivers["to_at"][changed]).all()


def test_xids_have_the_severity_that_a_publish_gives_them(default_demo: DemoCluster) -> None:
    events = default_demo.tables["health_events"].to_pandas()
    kinds = events.loc[events["source"] == "kernel", ["xid", "severity"]].drop_duplicates()
    assert len(kinds) >= 9
    for xid, severity in kinds.itertuples(index=False):
        assert xid_entries()[int(xid)].severity == severity, xid


def test_kernel_lines_name_the_gpu_that_the_row_names(default_demo: DemoCluster) -> None:
    events = default_demo.tables["health_events"].to_pandas()
    kernel = events[events["source"] == "kernel"].astype({"gpu": str, "message": str})
    for gpu, xid, message in kernel[["gpu", "xid", "message"]].itertuples(index=False):
        assert message.startswith(f"NVRM: Xid (PCI:{gpu}): {int(xid)}, ")
    assert events.loc[events["source"] == "health_check", "xid"].isna().all()


def test_failed_node_is_named_for_node_fail_alone(default_demo: DemoCluster) -> None:
    jobs = default_demo.tables["jobs"].to_pandas()
    lost = jobs["state"] == "NODE_FAIL"
    assert lost.sum() > 20
    assert jobs.loc[lost, "failed_node"].notna().all()
    assert jobs.loc[~lost, "failed_node"].isna().all()
    held = default_demo.tables["job_nodes"].to_pandas().astype({"node": str})
    pairs = set(zip(held["attempt_key"], held["node"], strict=True))
    assert all(
        pair in pairs
        for pair in zip(jobs.loc[lost, "attempt_key"], jobs.loc[lost, "failed_node"], strict=True)
    )


def test_no_job_runs_on_a_node_it_excluded(default_demo: DemoCluster) -> None:
    jobs = default_demo.tables["jobs"].to_pandas().astype({"node_list": str, "excluded_nodes": str})
    excluding = jobs[jobs["excluded_nodes"] != "nan"]
    assert len(excluding) > 200
    assert (excluding["excluded_nodes"] != excluding["node_list"]).all()


def test_logs_belong_to_attempts_and_end_with_them(default_demo: DemoCluster) -> None:
    logs = default_demo.tables["job_logs"].to_pandas()
    jobs = default_demo.tables["jobs"].to_pandas().set_index("attempt_key")
    assert 1_000 < logs["attempt_key"].nunique() <= 3_060
    last = logs.groupby("attempt_key")["logged_at"].max()
    assert (last == jobs.loc[last.index, "end_at"]).all()
    struck = jobs[jobs["state"] == "NODE_FAIL"].index
    texts = logs[logs["attempt_key"].isin(struck)].groupby("attempt_key")["text"].last()
    assert texts.str.contains("NODE FAILURE").all()


def test_every_repair_has_a_ticket(default_demo: DemoCluster) -> None:
    tickets = default_demo.tables["tickets"].to_pandas().astype({"node": str})
    events = default_demo.tables["node_events"].to_pandas().astype({"node": str})
    down = events[events["state"] == "DOWN"]
    assert len(down) > 10
    merged = down.merge(tickets, on="node")
    waited_s = (merged["opened_at"] - merged["start_at"]).dt.total_seconds()
    found = merged[waited_s.between(0, 600)]
    assert set(found["start_at"]) == set(down["start_at"])


def test_progress_is_reported() -> None:
    said: list[str] = []
    demo_cluster(DemoSpec.of(n_jobs=200, n_nodes=4), said.append)
    assert said[0] == "generating 200 jobs on 4 nodes over 5.76 days"
    assert said[-1] == "writing tables"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n_jobs": 0}, "jobs must be a whole number from 1 to .*, got 0"),
        ({"n_jobs": -3}, "jobs must be .* got -3"),
        ({"n_nodes": 0}, "nodes must be a whole number from 1 to .*, got 0"),
        ({"days": 0}, "days must be above 0 .*, got 0"),
        ({"days": -1.5}, r"days must be above 0 .*, got -1\.5"),
        ({"days": float("nan")}, "days must be above 0 .*, got nan"),
        ({"days": float("inf")}, "days must be above 0 .*, got inf"),
        ({"seed": -1}, "seed must be a whole number from 0 to .*, got -1"),
        ({"n_jobs": 5, "n_nodes": 1, "days": 1e9}, r"days must be .* at most 3660, got 1e\+09"),
    ],
)
def test_nonsense_is_refused_in_one_line(given: dict[str, int], message: str) -> None:
    with pytest.raises(DataError, match=message) as refused:
        DemoSpec.of(**given)
    assert "\n" not in str(refused.value)
    assert isinstance(refused.value, ValueError)
    with pytest.raises(DataError, match=message):
        DemoSpec(**given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, (200_000, 256, 90.0)),
        ({"n_jobs": 20_000}, (20_000, 256, 9.0)),
        ({"n_jobs": 2_000, "n_nodes": 32}, (2_000, 32, 7.2)),
        ({"n_nodes": 32}, (25_000, 32, 90.0)),
        ({"days": 9}, (20_000, 256, 9)),
        ({"n_jobs": 4_000_000, "n_nodes": 2_000, "days": 330}, (4_000_000, 2_000, 330)),
    ],
)
def test_what_is_not_given_follows_from_what_is(
    given: dict[str, int], expected: tuple[int, int, float]
) -> None:
    spec = DemoSpec.of(**given)
    assert (spec.n_jobs, spec.n_nodes, spec.days) == pytest.approx(expected)


def test_a_single_job_on_a_single_node_is_a_demo() -> None:
    demo = demo_cluster(DemoSpec(n_jobs=1, n_nodes=1, days=0.01))
    table: pa.Table = demo.tables["jobs"]
    assert table.num_rows == 1
    assert demo.truth.lemons == []
