"""What is there, what is out of service, and what was collected."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import Options, ingest_files
from data.filters import Selection
from data.queries import fleet
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
HEADER = "JobID|Cluster|Partition|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList"


@pytest.fixture
def rows(random_rows: Callable[[int], Any]) -> Any:
    """No rows yet."""
    return type(random_rows(0))()


@pytest.fixture
def two_ingests(tmp_path: Path) -> Iterator[Store]:
    """A store of two ingests, each with a broken record."""
    root = tmp_path / "store"
    for index in (1, 2):
        text = f"{HEADER}\n{index}|c|p|x|FAILED|2026-01-05T00:00:00|2026-01-05T01:00:00|"
        text += f"2026-01-0{5 + index}T00:00:00|1|gres/gpu=8|n1\n{index}x|c|p|x|NONSENSE\n"
        path = tmp_path / f"{index}.txt"
        path.write_text(text, encoding="utf-8")
        ingest_files(root, "sacct", [str(path)], Options())
    store = Store.open(root)
    yield store
    store.close()


def event(rows: Any, node: str, start_at: datetime, end_at: datetime | None, **values: Any) -> None:
    rows.node_events.append(
        {"cluster": "a", "node": node, "start_at": start_at, "end_at": end_at, "state": "DOWN",
         "reason": None, "planned": None} | values
    )  # fmt: skip


def test_nodes_are_out_of_service_at_the_end_of_the_period(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    event(rows, "back", BASE, BASE + DAY)
    event(rows, "out", BASE, BASE + DAY + HOUR)
    event(rows, "still out", BASE + HOUR, None)
    event(rows, "later", BASE + DAY + HOUR, None)
    event(rows, "elsewhere", BASE, None, cluster="b")
    store = store_of(rows)
    at_end = fleet.out_of_service(store, Selection(cluster="a", to_at=BASE + DAY))
    assert at_end["node"].tolist() == ["still out", "out"]
    now = fleet.out_of_service(store, Selection())
    assert now["node"].tolist() == ["later", "still out", "elsewhere"]
    assert now["since_at"].tolist() == [BASE + DAY + HOUR, BASE + HOUR, BASE]


def test_of_two_events_of_a_node_the_later_one_speaks_with_all_it_says(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    event(rows, "n", BASE, None, reason="disk", planned=True)
    event(rows, "n", BASE + HOUR, None, state="DRAIN")
    (found,) = fleet.out_of_service(store_of(rows), Selection()).to_dict("records")
    assert (found["state"], found["since_at"]) == ("DRAIN", BASE + HOUR)
    assert found["reason"] is None
    assert found["planned"] is not True


def test_records_reach_from_the_first_start_where_nobody_says_when_jobs_were_submitted(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    rows.job("a", start_at=BASE + HOUR, end_at=BASE + DAY)
    rows.job("b", start_at=BASE + 2 * HOUR, end_at=BASE + 3 * HOUR)
    for job in rows.jobs:
        job["submit_at"] = None
    assert fleet.extent(store_of(rows)) == (BASE + HOUR, BASE + DAY)


def test_nodes_are_counted_by_name_within_the_selected_clusters(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    rows.job("a", ("n1", "n2"), start_at=BASE, end_at=BASE + DAY)
    event(rows, "n1", BASE, None)
    rows.nodes = [
        {"cluster": "a", "node": "n1", "first_seen_at": BASE + k * DAY, "rack": None,
         "source": "inventory"} for k in range(2)
    ]  # fmt: skip
    store = store_of(rows)
    assert fleet.node_count(store, Selection()) == 3
    assert fleet.node_count(store, Selection(cluster="a")) == 1
    assert fleet.states_recorded(store, Selection()) == {"a": True, "gpu": False}
    assert fleet.states_recorded(store, Selection(cluster="a")) == {"a": True}
    assert fleet.states_recorded(store, Selection(cluster="x")) == {}


def test_filters_offer_the_most_frequent_value_first(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    for index, partition in enumerate(["b", "a", "b", None, "c", "c", "c"]):
        rows.job(f"j{index}", partition=partition, cluster=f"c{index % 2}", start_at=BASE)
    store = store_of(rows)
    assert fleet.distinct(store, "partition") == ["c", "b", "a"]
    assert fleet.distinct(store, "account") == ["x"]
    assert fleet.distinct(store, "cluster") == ["c0", "c1"]
    with pytest.raises(ValueError, match="no filter for 'user'"):
        fleet.distinct(store, "user")


def test_coverage_counts_rows_by_source_and_day_of_the_period(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    for day in (0, 0, 2, 5):
        rows.job(f"j{len(rows.jobs)}", start_at=BASE, end_at=BASE + day * DAY + HOUR)
    event(rows, "n", BASE + DAY, None)
    store = store_of(rows)
    selection = Selection(from_at=BASE + 2 * HOUR, to_at=BASE + 5 * DAY)
    found = fleet.coverage_days(store, selection)
    assert found[["cluster", "source", "n_rows"]].values.tolist() == [
        ["a", "node_events", 1],
        ["gpu", "jobs", 2],
        ["gpu", "jobs", 1],
    ]
    assert found["day"].tolist() == [BASE + DAY, BASE, BASE + 2 * DAY]
    assert fleet.extent(store) == (BASE, BASE + 5 * DAY + HOUR)


def test_rows_without_a_time_are_told_apart_by_cluster(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    for cluster in ("a", "b"):
        rows.health_events.append(
            {"cluster": cluster, "event_id": cluster, "node": "n", "observed_at": None,
             "source": "kernel", "check_name": "xid", "severity": None}
        )  # fmt: skip
    store = store_of(rows)
    assert fleet.undated(store, Selection())["cluster"].tolist() == ["a", "b"]
    assert fleet.undated(store, Selection(cluster="b")).values.tolist() == [
        ["b", "health_events.kernel", 1]
    ]


def test_ingests_and_rejected_records_come_newest_first(two_ingests: Store) -> None:
    ingests = fleet.ingests(two_ingests)
    assert [Path(path).name for path in ingests["path"]] == ["2.txt", "1.txt"]
    rejected = fleet.rejected_rows(two_ingests, None, limit=10)
    assert rejected["ingest_id"].tolist() == ingests["ingest_id"].tolist()
    assert rejected["line_no"].tolist() == [3, 3]
    one = fleet.rejected_rows(two_ingests, ingests["ingest_id"][1], limit=10)
    assert one["raw"].tolist() == ["1x|c|p|x|NONSENSE"]
    assert len(fleet.rejected_rows(two_ingests, None, limit=1)) == 1


def test_tables_are_counted(two_ingests: Store) -> None:
    counts = fleet.table_counts(two_ingests)
    assert (counts["jobs"], counts["rejected_rows"], counts["tickets"]) == (2, 2, 0)
    assert not fleet.is_synthetic(two_ingests)


def test_an_empty_store_holds_nothing(empty_store: Path) -> None:
    store = Store.open(empty_store)
    assert fleet.extent(store) == (None, None)
    assert fleet.clusters(store).empty
    assert fleet.node_count(store, Selection()) == 0
    assert fleet.out_of_service(store, Selection()).empty
    assert not fleet.is_synthetic(store)
    store.close()


def test_sources_that_every_site_can_have_stand_with_their_tables() -> None:
    assert fleet.SOURCES == (
        "jobs", "node_events", "node_failures", "health_events.kernel",
        "health_events.health_check",
    )  # fmt: skip
