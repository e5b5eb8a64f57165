"""Saved queries are for everybody, come back after a delete, and their past is each person's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from data.errors import DataError
from data.saved_queries import PAST_KEPT, SavedQueries, told
from data.state import State


@pytest.fixture
def queries(tmp_path: Path) -> SavedQueries:
    return SavedQueries(tmp_path)


def names(queries: SavedQueries) -> list[str]:
    return [each.name for each in queries.saved()]


def test_reading_makes_no_file(tmp_path: Path, queries: SavedQueries) -> None:
    assert (queries.saved(), queries.past("ada")) == ([], [])
    assert not list(tmp_path.iterdir())


def test_saved_queries_are_listed_by_name(queries: SavedQueries) -> None:
    queries.save("racks", "SELECT 1", author="ada")
    queries.save("Causes", "SELECT 2", author="grace")
    assert names(queries) == ["Causes", "racks"]
    first = queries.saved()[0]
    assert (first.sql, first.author) == ("SELECT 2", "grace")
    assert first.made_at.endswith("+00:00")


def test_a_deleted_query_comes_back(queries: SavedQueries) -> None:
    made = queries.save("racks", "SELECT 1", author="ada")
    queries.delete(made.query_id, author="grace")
    assert names(queries) == []
    queries.restore(made.query_id, author="grace")
    assert queries.saved() == [made]
    assert [row[1:3] for row in queries.audit()] == [
        ("grace", "restore query"), ("grace", "delete query"), ("ada", "save query"),
    ]  # fmt: skip


def test_a_query_is_renamed(queries: SavedQueries) -> None:
    made = queries.save("racks", "SELECT 1", author="ada")
    queries.rename(made.query_id, "racks", author="ada")
    queries.rename(made.query_id, "by rack", author="ada")
    assert names(queries) == ["by rack"]


def test_a_name_is_taken_until_its_query_is_deleted(queries: SavedQueries) -> None:
    made = queries.save("racks", "SELECT 1", author="ada")
    other = queries.save("other", "SELECT 2", author="grace")
    with pytest.raises(DataError, match="ada has saved a query as 'racks': choose another name"):
        queries.save("racks", "SELECT 2", author="grace")
    with pytest.raises(DataError, match="choose another name"):
        queries.rename(other.query_id, "racks", author="grace")
    queries.delete(made.query_id, author="ada")
    queries.save("racks", "SELECT 2", author="grace")
    assert names(queries) == ["other", "racks"]


@pytest.mark.parametrize("change", ["delete", "restore"])
def test_a_query_that_is_not_there_is_refused(queries: SavedQueries, change: str) -> None:
    with pytest.raises(DataError, match="saved query 'x' is unknown"):
        getattr(queries, change)("x", author="ada")
    with pytest.raises(DataError, match="saved query 'x' is unknown"):
        queries.rename("x", "y", author="ada")


def test_the_past_is_of_each_person_and_the_newest_comes_first(queries: SavedQueries) -> None:
    queries.remember("SELECT 1", "1 row", author="ada")
    queries.remember("SELECT 2", "failed", author="ada")
    queries.remember("SELECT 3", "1 row", author="grace")
    assert [(each.sql, each.outcome) for each in queries.past("ada")] == [
        ("SELECT 2", "failed"), ("SELECT 1", "1 row"),
    ]  # fmt: skip
    assert queries.past("eve") == []


def test_old_queries_are_forgotten(queries: SavedQueries) -> None:
    for n in range(PAST_KEPT + 3):
        queries.remember(f"SELECT {n}", "", author="ada")
    past = queries.past("ada")
    assert (len(past), past[-1].sql) == (PAST_KEPT, "SELECT 3")


def test_a_state_of_an_earlier_version_gets_what_it_lacks(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "state.sqlite") as connection:
        connection.execute(
            "CREATE TABLE saved_queries (query_id TEXT PRIMARY KEY, name TEXT NOT NULL, "
            "author TEXT NOT NULL, made_at TEXT NOT NULL, sql TEXT NOT NULL)"
        )
    connection.close()
    queries = SavedQueries(tmp_path)
    assert (queries.saved(), queries.past("ada")) == ([], [])
    State(tmp_path).create()
    made = queries.save("racks", "SELECT 1", author="ada")
    assert queries.saved() == [made]


def test_the_audit_names_the_saved_query_that_is_run_and_no_other(
    tmp_path: Path, queries: SavedQueries
) -> None:
    made = queries.save("racks", "SELECT 1", author="ada")
    assert told(tmp_path, "SELECT 1")["query_id"] == made.query_id
    assert told(tmp_path, "SELECT 1")["saved_as"] == "racks"
    assert [*told(tmp_path, "SELECT 1 ")] == ["sql", "sha256"]
    queries.delete(made.query_id, author="ada")
    assert queries.of_text("SELECT 1") is None
    assert [*told(tmp_path, "SELECT 1")] == ["sql", "sha256"]
