"""The schema browser tells every table and column, and the examples run on any store."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from app import questions
from data.errors import DataError
from data.queries import schema
from data.queries.examples import examples
from data.queries.parameters import EARLIEST, LATEST, parameters, values
from data.queries.selection import Selection
from data.sandbox import keep_spares
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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
    assert tables.set_index("table").loc["jobs", "n_rows"] > 1_000


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


def test_there_are_a_dozen_examples() -> None:
    assert len(examples()) >= 12
    assert len({each.title for each in examples()}) == len(examples())
    assert all(each.sql and not each.sql.endswith(";") for each in examples())


@pytest.mark.parametrize("title", [each.title for each in examples()])
@pytest.mark.parametrize("chosen", [Selection(), CHOSEN], ids=["everything", "filtered"])
def test_an_example_runs(store: Store, title: str, chosen: Selection) -> None:
    (sql,) = (each.sql for each in examples() if each.title == title)
    result = questions.ask_sql(store.path, sql, chosen).result()
    assert result.columns


@pytest.mark.parametrize("title", [each.title for each in examples()])
def test_an_example_runs_on_an_empty_store(empty_store: Path, title: str) -> None:
    (sql,) = (each.sql for each in examples() if each.title == title)
    with closing(Store.open(empty_store)) as opened:
        assert questions.ask_sql(opened.path, sql, Selection()).result().rows == []


def test_the_rate_by_rack_is_the_one_of_the_store(store: Store) -> None:
    (sql,) = (each.sql for each in examples() if "by rack" in each.title)
    result = questions.ask_sql(store.path, sql, Selection()).result()
    node_days = sum(row[result.columns.index("node_days")] for row in result.rows)
    assert node_days == pytest.approx(questions.mttf(store, Selection()).rate.exposure, rel=0.01)
    ((named,),) = store.rows(
        "SELECT count(*) FROM failures WHERE node IS NOT NULL AND (domain = 'hardware' OR node_lost)"
    )
    assert sum(row[result.columns.index("failures")] for row in result.rows) == named


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
