"""What people and rules said stays, whatever becomes of the snapshots."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from app.actions import restore_said
from data.errors import DataError, StoreError
from data.publish import writer
from data.state import State
from data.store import Store

JOB = "attempt:a/1"


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path)


def holding(state: State) -> list[tuple[str, str, str]]:
    """Target, field and value of what holds."""
    return [(row[1], row[4], row[5]) for row in state.annotations()]


def test_the_audit_shows_the_newest_first(state: State) -> None:
    state.record("ada", "ingest", {"path": Path("a.txt")})
    state.record("grace", "demo", {})
    assert [row[1:] for row in state.audit()] == [
        ("grace", "demo", "{}"),
        ("ada", "ingest", '{"path": "a.txt"}'),
    ]
    assert len(state.audit(limit=1)) == 1
    assert state.audit()[0][0].endswith("+00:00")


def test_reading_makes_no_file(tmp_path: Path, state: State) -> None:
    assert (state.audit(), state.annotations(), state.history(), state.version()) == (
        [],
        [],
        [],
        "",
    )
    assert not list(tmp_path.iterdir())


def test_it_is_made_where_it_is_not_and_kept_where_it_is(tmp_path: Path, state: State) -> None:
    state.record("ada", "ingest", {})
    State(tmp_path).create()
    assert len(State(tmp_path).audit()) == 1


def test_it_is_in_wal_mode_with_every_table(tmp_path: Path, state: State) -> None:
    state.create()
    with sqlite3.connect(tmp_path / "state.sqlite") as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        names = {
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type='table'")
        }
    connection.close()
    assert names >= {"annotations", "saved_queries", "past_queries", "keys", "audit"}


def test_rows_of_tables_that_this_version_does_not_know_stay(tmp_path: Path, state: State) -> None:
    earlier = (
        "CREATE TABLE alerts (alert_id TEXT PRIMARY KEY, target TEXT NOT NULL, value TEXT)",
        "CREATE TABLE mutes (mute_id TEXT PRIMARY KEY, target TEXT NOT NULL, until_at TEXT)",
        "INSERT INTO alerts VALUES ('1', 'node:a/n1', 'down'), ('2', 'node:a/n2', NULL)",
        "INSERT INTO mutes VALUES ('1', 'node:a/n1', NULL)",
    )
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as connection, connection:
        for statement in earlier:
            connection.execute(statement)
    said = state.annotate(JOB, "cause", "nic", author="ada")
    with writer(tmp_path) as building:
        building.publish()
    Store.open(tmp_path).close()
    state.undo(said.annotation_id, author="ada")
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as connection:
        alerts = connection.execute("SELECT * FROM alerts ORDER BY 1").fetchall()
        mutes = connection.execute("SELECT * FROM mutes").fetchall()
    assert alerts == [("1", "node:a/n1", "down"), ("2", "node:a/n2", None)]
    assert mutes == [("1", "node:a/n1", None)]


def test_of_a_target_and_field_the_newest_holds(state: State) -> None:
    state.annotate(JOB, "cause", "nic", author="ada")
    state.annotate(JOB, "note", "see ticket 7", author="ada")
    state.annotate("node:a/n1", "cause", "pcie", author="ada")
    state.annotate(JOB, "cause", "pcie", author="grace")
    assert holding(state) == [
        (JOB, "note", "see ticket 7"), ("node:a/n1", "cause", "pcie"), (JOB, "cause", "pcie"),
    ]  # fmt: skip


def test_an_undo_brings_back_what_was_said_before(state: State) -> None:
    state.annotate(JOB, "cause", "nic", author="ada")
    second = state.annotate(JOB, "cause", "pcie", author="grace")
    undone = state.undo(second.annotation_id, author="ada")
    assert (undone.value, undone.author, undone.undone_by) == ("pcie", "grace", "ada")
    assert undone.undone_at is not None
    assert holding(state) == [(JOB, "cause", "nic")]


def test_undoing_what_holds_no_more_changes_nothing_that_holds(state: State) -> None:
    first = state.annotate(JOB, "cause", "nic", author="ada")
    state.annotate(JOB, "cause", "pcie", author="ada")
    state.undo(first.annotation_id, author="ada")
    assert holding(state) == [(JOB, "cause", "pcie")]


def test_what_was_undone_or_never_said_cannot_be_undone(state: State) -> None:
    made = state.annotate(JOB, "cause", "nic", author="ada")
    state.undo(made.annotation_id, author="ada")
    with pytest.raises(DataError, match=r"was undone before, at .*: say it anew"):
        state.undo(made.annotation_id, author="ada")
    with pytest.raises(
        DataError, match="annotation 'none' is unknown: `faultline annotate --list`"
    ):
        state.undo("none", author="ada")
    assert len(state.audit()) == 2


def test_the_history_keeps_what_was_undone_and_by_whom(state: State) -> None:
    first = state.annotate(JOB, "cause", "nic", author="ada")
    undone = state.undo(first.annotation_id, author="grace")
    second = state.annotate(JOB, "cause", "pcie", author="ada")
    state.annotate("node:a/n1", "note", "lemon", author="ada")
    assert state.history(JOB) == [second, undone]
    assert [made.target for made in state.history()] == ["node:a/n1", JOB, JOB]


def test_a_clock_that_is_set_back_does_not_make_the_older_one_newer(state: State) -> None:
    first = state.annotate(JOB, "cause", "nic", author="ada")
    with state._writing() as connection:
        connection.execute(
            "UPDATE annotations SET made_at = '2999-01-01T00:00:00+00:00' WHERE annotation_id = ?",
            (first.annotation_id,),
        )
    state.annotate(JOB, "cause", "pcie", author="ada")
    assert holding(state) == [(JOB, "cause", "pcie")]


def test_every_write_is_in_the_audit(state: State) -> None:
    made = state.annotate(JOB, "cause", "nic", author="ada")
    state.undo(made.annotation_id, author="grace")
    undo, say = state.audit()
    assert (say[1:3], undo[1:3]) == (("ada", "annotate"), ("grace", "undo"))
    assert made.annotation_id in say[3]
    assert JOB in say[3]
    assert made.annotation_id in undo[3]


def test_the_version_changes_with_every_annotation_and_undo_only(state: State) -> None:
    seen = [state.version()]
    first = state.annotate(JOB, "cause", "nic", author="ada")
    seen.append(state.version())
    second = state.annotate(JOB, "cause", "nic", author="ada")
    seen.append(state.version())
    for made in (second, first):
        state.undo(made.annotation_id, author="ada")
        seen.append(state.version())
    assert len(set(seen)) == len(seen)
    state.record("ada", "ingest", {})
    assert state.version() == seen[-1]


def test_a_version_that_was_read_counts_until_somebody_writes(tmp_path: Path, state: State) -> None:
    said = state.annotate(JOB, "cause", "nic", author="ada")
    for path in tmp_path.glob("state.sqlite*"):
        os.utime(path, (0, 0))
    before = state.version()
    assert state.version() == before
    state.undo(said.annotation_id, author="ada")
    assert state.version() != before


def test_several_processes_write_at_once(tmp_path: Path, state: State) -> None:
    code = (
        "import sys, pathlib; from data.state import State; state = State(pathlib.Path('.'))\n"
        "for n in range(20):\n"
        "    made = state.annotate('attempt:a/1', 'note', str(n), author=sys.argv[1])\n"
        "    if n % 2: state.undo(made.annotation_id, author=sys.argv[1])"
    )
    paths = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    writers = [
        subprocess.Popen([sys.executable, "-c", code, str(n)], cwd=tmp_path, env=os.environ | paths)
        for n in range(4)
    ]
    assert [process.wait() for process in writers] == [0] * 4
    history = state.history()
    assert len(history) == len({made.annotation_id for made in history}) == 80
    assert sum(made.undone_at is not None for made in history) == 40
    assert all(made.undone_by == made.author for made in history if made.undone_at)
    assert len(state.audit(limit=1000)) == 120
    assert len(state.annotations()) == 1


def test_annotations_that_hold_are_copied_into_the_snapshot(tmp_path: Path, state: State) -> None:
    state.annotate(JOB, "cause", "nic", author="ada")
    undone = state.annotate(JOB, "cause", "pcie", author="grace")
    state.undo(undone.annotation_id, author="grace")
    for _ in range(2):
        with writer(tmp_path) as building:
            building.publish()
        store = Store.open(tmp_path)
        copied = "SELECT target, author, field, value FROM annotations"
        assert store.rows(copied) == [(JOB, "ada", "cause", "nic")]
        store.close()


@pytest.mark.parametrize("harm", ["emptied", "cut off", "gone"])
def test_what_people_said_is_never_lost_without_a_word(
    tmp_path: Path, state: State, harm: str
) -> None:
    state.annotate(JOB, "cause", "nic", author="ada")
    with writer(tmp_path) as building:
        building.publish()
    file = tmp_path / "state.sqlite"
    whole = file.read_bytes()
    if harm == "gone":
        file.unlink()
    else:
        file.write_bytes(b"" if harm == "emptied" else whole[: len(whole) // 2])
    with pytest.raises(StoreError, match=r"state\.sqlite: .*annotate --restore"):
        Store.open(tmp_path)
    with (
        pytest.raises(StoreError, match=r"state\.sqlite: .*annotate --restore"),
        writer(tmp_path) as building,
    ):
        building.publish()
    assert restore_said(tmp_path, author="grace") == 1
    assert holding(state) == [(JOB, "cause", "nic")]
    aside = [path.read_bytes() for path in tmp_path.glob("damaged-*-state.sqlite")]
    assert aside == (
        [] if harm == "gone" else [b"" if harm == "emptied" else whole[: len(whole) // 2]]
    )
    with pytest.raises(StoreError, match="is sound: there is nothing to restore"):
        restore_said(tmp_path)


def test_a_file_of_a_newer_version_is_not_written(tmp_path: Path, state: State) -> None:
    state.create()
    with closing(sqlite3.connect(tmp_path / "state.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match=r"written by a newer Faultline \(schema 99"):
        state.record("ada", "ingest", {})


def test_a_damaged_file_is_told_in_one_line(tmp_path: Path, state: State) -> None:
    (tmp_path / "state.sqlite").write_bytes(b"this is no database, however long it is" * 50)
    for act in (state.audit, state.create, state.annotations, state.version):
        with pytest.raises(StoreError, match=r"state\.sqlite: cannot be read or written \(.*\)"):
            act()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_it_can_be_read_in_a_folder_without_write_access(tmp_path: Path, state: State) -> None:
    state.annotate(JOB, "cause", "nic", author="ada")
    tmp_path.chmod(0o555)
    try:
        assert holding(state) == [(JOB, "cause", "nic")]
    finally:
        tmp_path.chmod(0o755)
