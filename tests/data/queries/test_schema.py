"""The schema browser tells every table and column, and the examples run on any store."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from app.actions import PAGE_LIMITS
from app.answers.reliability import mttf
from data.errors import DataError
from data.filters import Selection
from data.publish import writer
from data.queries import schema
from data.queries.schema import EARLIEST, LATEST, examples, parameters, values
from data.sandbox import RunningQuery, keep_spares
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY = datetime(2025, 12, 1, tzinfo=UTC)
CHOSEN = Selection(
    cluster="demo",
    from_at=datetime(2025, 12, 2, tzinfo=UTC),
    to_at=datetime(2025, 12, 5, tzinfo=UTC),
    partition="learn",
    account="vision",
    min_gpus=8,
)


@pytest.fixture(scope="module", autouse=True)
def _spares() -> Iterator[None]:
    keep_spares(2)
    yield
    keep_spares(0)


@pytest.fixture(scope="module")
def store(demo_store: Path) -> Iterator[Store]:
    with closing(Store.open(demo_store)) as opened:
        yield opened


def test_every_table_and_column_is_explained(store: Store) -> None:
    tables, columns = schema.tables(store), schema.columns(store)
    assert tables["comment"].str.len().gt(0).all()
    assert columns["comment"].str.len().gt(0).all()
    assert set(columns["table"]) == set(tables["table"])
    n_rows = tables.set_index("table")["n_rows"]
    assert n_rows["jobs"] > 1_000
    for table in n_rows.index:
        assert store.rows(f'SELECT count(*) FROM "{table}"') == [(n_rows[table],)]


def test_rows_that_were_deleted_are_not_counted(tmp_path: Path) -> None:
    insert = "INSERT INTO tickets (cluster, ticket_id) SELECT 'a', i FROM range(9) AS r(i)"
    for change in (insert, "DELETE FROM tickets WHERE ticket_id < '3'"):
        with writer(tmp_path) as building:
            with building.transaction():
                building.connection.execute(change)
            building.publish()
    with closing(Store.open(tmp_path)) as opened:
        assert schema.tables(opened).set_index("table").loc["tickets", "n_rows"] == 6


def test_units_come_from_the_names(store: Store) -> None:
    columns = schema.columns(store).set_index(["table", "column"])["unit"]
    assert columns["jobs", "end_at"] == "UTC"
    assert columns["jobs", "elapsed_s"] == "s"
    assert columns["incidents", "lost_gpu_seconds"] == "GPU-seconds"
    assert columns["jobs", "name"] == ""


def test_sample_rows_are_of_the_table(store: Store) -> None:
    rows = schema.sample_rows(store, "jobs", 3)
    assert len(rows) == 3
    assert "attempt_key" in rows


@pytest.mark.parametrize("table", ["nowhere", 'jobs" --', "duckdb_settings", ""])
def test_a_table_that_is_none_is_refused(store: Store, table: str) -> None:
    with pytest.raises(DataError, match="is unknown: the schema browser lists all"):
        schema.sample_rows(store, table, 3)


def ask_sql(path: Path, sql: str, selection: Selection) -> RunningQuery:
    """A query as the page asks it."""
    return RunningQuery(path, sql, PAGE_LIMITS, values(selection))


def test_there_are_a_dozen_examples() -> None:
    assert len(examples()) >= 12
    assert len({each.title for each in examples()}) == len(examples())
    assert all(each.sql and not each.sql.endswith(";") for each in examples())


@pytest.mark.slow
@pytest.mark.parametrize("title", (each.title for each in examples()))
@pytest.mark.parametrize("chosen", [CHOSEN, Selection()], ids=["filtered", "everything"])
def test_an_example_runs(store: Store, title: str, chosen: Selection) -> None:
    (sql,) = (each.sql for each in examples() if each.title == title)
    result = ask_sql(store.path, sql, chosen).result()
    assert result.columns


@pytest.mark.slow
@pytest.mark.parametrize("title", (each.title for each in examples()))
def test_an_example_runs_on_an_empty_store(empty_store: Path, title: str) -> None:
    (sql,) = (each.sql for each in examples() if each.title == title)
    with closing(Store.open(empty_store)) as opened:
        assert ask_sql(opened.path, sql, Selection()).result().rows == []


def test_the_rate_by_rack_is_the_one_of_the_store(store: Store) -> None:
    (sql,) = (each.sql for each in examples() if "by rack" in each.title)
    result = ask_sql(store.path, sql, Selection()).result()
    node_days = sum(row[result.columns.index("node_days")] for row in result.rows)
    assert node_days == pytest.approx(mttf.measured(store, Selection()).rate.exposure, rel=0.01)
    ((named,),) = store.rows(
        "SELECT count(*) FROM failures WHERE node IS NOT NULL AND (domain = 'hardware' OR node_lost)"
    )
    assert sum(row[result.columns.index("failures")] for row in result.rows) == named


def test_racks_of_two_clusters_and_nodes_without_one_stay_apart(tmp_path: Path) -> None:
    """Both clusters call a rack `r1`, and a node of the first stands in none."""
    nodes = pd.DataFrame({"cluster": ["a", "b", "a"], "node": ["n1", "n1", "n2"],
                          "first_seen_at": DAY, "last_seen_at": DAY, "gpus": 8,
                          "rack": ["r1", "r1", None], "source": "inventory"})  # fmt: skip
    jobs = pd.DataFrame(
        [{"cluster": cluster, "attempt_key": f"{cluster}{node}", "job_id": node, "state": state,
          "submit_at": DAY, "start_at": DAY, "end_at": DAY + timedelta(days=days), "n_nodes": 1,
          "n_gpus": 8, "node_list": node}
         for cluster, node, state, days in [("a", "n1", "NODE_FAIL", 1), ("b", "n1", "COMPLETED", 2),
                                            ("a", "n2", "NODE_FAIL", 4)]]
    )  # fmt: skip
    with writer(tmp_path) as building:
        building.merge({"nodes": nodes, "jobs": jobs})
        building.publish()
    (sql,) = (each.sql for each in examples() if "by rack" in each.title)
    with closing(Store.open(tmp_path)) as opened:
        result = ask_sql(opened.path, sql, Selection()).result()
    assert result.columns[:4] == ("cluster", "rack", "failures", "node_days")
    assert sorted(row[:4] for row in result.rows) == [
        ("a", "r1", 1, 1), ("a", "unknown", 1, 4), ("b", "r1", 0, 2),
    ]  # fmt: skip


def test_what_the_filters_leave_open_is_open() -> None:
    assert all(each.open for each in parameters(Selection()))
    found = values(Selection())
    assert (found["from_at"], found["to_at"]) == (EARLIEST, LATEST)
    assert found["cluster"] is None


def test_filters_become_parameters() -> None:
    assert not any(each.open for each in parameters(CHOSEN))
    assert values(CHOSEN) == {
        "cluster": "demo", "from_at": CHOSEN.from_at, "to_at": CHOSEN.to_at,
        "partition": "learn", "account": "vision", "min_gpus": 8,
    }  # fmt: skip
