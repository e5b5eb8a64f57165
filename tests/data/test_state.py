"""What people and rules said stays, whatever becomes of the snapshots."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from data.errors import StoreError
from data.publish import writer
from data.state import State


def annotate(root: Path, *rows: tuple[str, str | None]) -> None:
    """Puts annotations into the database as a later version will: id and when it was undone."""
    with sqlite3.connect(root / "state.sqlite") as connection:
        connection.executemany(
            "INSERT INTO annotations VALUES (?, 'failure:1', 'ada', '2024-01-01T00:00:00+00:00', "
            "'cause', 'nic', ?)",
            rows,
        )
    connection.close()


def test_the_audit_shows_the_newest_first(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.record("ada", "ingest", {"path": Path("a.txt")})
    state.record("grace", "demo", {})
    assert [row[1:] for row in state.audit()] == [
        ("grace", "demo", "{}"),
        ("ada", "ingest", '{"path": "a.txt"}'),
    ]
    assert len(state.audit(limit=1)) == 1
    assert state.audit()[0][0].endswith("+00:00")


def test_it_is_made_where_it_is_not_and_kept_where_it_is(tmp_path: Path) -> None:
    assert State(tmp_path).audit() == []
    State(tmp_path).record("ada", "ingest", {})
    State(tmp_path).create()
    assert len(State(tmp_path).audit()) == 1


def test_it_is_in_wal_mode_with_every_table(tmp_path: Path) -> None:
    State(tmp_path).create()
    with sqlite3.connect(tmp_path / "state.sqlite") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        names = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
    connection.close()
    assert names >= {"annotations", "saved_queries", "alerts", "mutes", "audit"}


def test_annotations_that_hold_are_copied_into_the_snapshot(tmp_path: Path) -> None:
    State(tmp_path).create()
    annotate(tmp_path, ("a1", None), ("a2", "2024-01-02T00:00:00+00:00"))
    assert [row[0] for row in State(tmp_path).annotations()] == ["a1"]
    for _ in range(2):
        with writer(tmp_path) as building:
            building.publish()
            copied = "SELECT annotation_id, author, field, value FROM annotations"
        from data.store import Store

        store = Store.open(tmp_path)
        assert store.rows(copied) == [("a1", "ada", "cause", "nic")]
        store.close()


def test_a_damaged_file_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"this is no database, however long it is" * 50)
    for act in (State(tmp_path).audit, State(tmp_path).create, State(tmp_path).annotations):
        with pytest.raises(StoreError, match=r"state\.sqlite: cannot be read or written \(.*\)"):
            act()
