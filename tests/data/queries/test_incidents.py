"""Questions about incidents, in a store where two clusters use the same keys."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.answers.failures import incident
from data.filters import Selection
from data.publish import writer
from data.queries import incident_replay, incidents
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

END = datetime(2024, 3, 1, 12, tzinfo=UTC)


def _job(cluster: str, partition: str, end_at: datetime) -> dict[str, Any]:
    return {"cluster": cluster, "attempt_key": "1", "job_id": "1", "state": "NODE_FAIL",
            "partition": partition, "submit_at": end_at - timedelta(hours=2),
            "start_at": end_at - timedelta(hours=1), "end_at": end_at, "node_list": "n1",
            "failed_node": "n1", "n_nodes": 1, "n_gpus": 8}  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    root: Path = tmp_path_factory.mktemp("twins")
    again = _job("b", "short", END + timedelta(days=40)) | {
        "attempt_key": "2",
        "state": "COMPLETED",
        "failed_node": None,
    }
    soon = again | {"cluster": "a", "start_at": END + timedelta(minutes=5)}
    jobs = pd.DataFrame(
        [_job("a", "long", END), _job("b", "short", END - timedelta(days=9)), again, soon]
    )
    first = {"cluster": "a", "node": "n1", "rack": "r1", "source": "inventory",
             "first_seen_at": END - timedelta(days=9), "last_seen_at": END - timedelta(days=2)}  # fmt: skip
    moved = first | {"rack": "r0", "first_seen_at": END - timedelta(days=2), "last_seen_at": pd.NaT}
    with writer(root) as building:
        building.merge({"jobs": jobs, "nodes": pd.DataFrame([moved, first])})
        building.publish()
    found = Store.open(root)
    yield found
    found.close()


def test_an_attempt_leads_to_the_incident_of_its_own_cluster(store: Store) -> None:
    by_cluster = dict(store.rows("SELECT cluster, incident_id FROM incidents"))
    assert set(by_cluster) == {"a", "b"}
    for cluster, incident_id in by_cluster.items():
        found = incidents.of_attempt(store, cluster, "1")
        assert found["incident_id"].tolist() == [incident_id]


@pytest.mark.parametrize(("partition", "cluster"), [("long", ["a"]), ("short", ["b"])])
def test_a_partition_selects_incidents_of_its_own_attempts(
    store: Store, partition: str, cluster: list[str]
) -> None:
    found = incidents.incident_rows(store, Selection(partition=partition))
    assert found["cluster"].tolist() == cluster


def test_a_confirmed_cause_is_a_persons_also_where_it_is_the_derived_one(store: Store) -> None:
    (known,) = store.rows("SELECT incident_id, cause FROM incidents WHERE cluster = 'a'")
    before = incident.incident(store, known[0])
    assert (before.row["decided"], before.confidence) == (False, 0.0)
    made = State(store.root).annotate(f"incident:{known[0]}", "cause", known[1], author="ada")
    with closing(Store.open(store.root)) as again:
        found = incident.incident(again, known[0])
    assert (found.row["decided"], found.row["cause"], found.confidence) == (True, known[1], 1.0)
    State(store.root).undo(made.annotation_id, author="ada")


def test_a_job_starts_again_in_its_own_cluster_and_within_a_month(store: Store) -> None:
    found = {name: incident_replay.attempts(store, name, ["1"]) for name in ("a", "b")}
    assert found["a"]["restarted_at"].tolist() == [pd.Timestamp(END) + pd.Timedelta(minutes=5)]
    assert found["b"]["restarted_at"].isna().tolist() == [True]
    nodes = incident_replay.nodes(store, "a", ["1"], ["n9"])
    assert nodes["node"].tolist() == ["n1", "n9"]
    assert nodes["rack"].tolist() == ["r0", None], "where it stands since it moved"
    begin = END - timedelta(hours=1)
    held = incident_replay.held(store, "a", ["n1"], begin, END)
    assert held[["attempt_key", "end_at"]].values.tolist() == [["1", pd.Timestamp(END)]]
    assert incident_replay.event_days(store, "a") == []
    assert not incident_replay.preemptors_known(store, "a")
    assert incident_replay.job_days(store, "zz") is None
