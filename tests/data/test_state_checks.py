"""A row of state.sqlite that is not as it was written is told before anything is shown of it."""

from __future__ import annotations

import random
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from data.access import PRIVATE
from data.errors import DataError, StoreError
from data.saved_queries import SavedQueries
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOB = "attempt:a/1"
DAMAGED = r"state\.sqlite: is damaged \(the rows of {} are not those that were written\): put it"


@pytest.fixture
def state(tmp_path: Path) -> SavedQueries:
    """What people said of a store: something in every table."""
    state = SavedQueries(tmp_path)
    state.create("0123456789abcdef", {"cluster.c.gpus_per_node": "8"})
    first = state.annotate(JOB, "cause", "nic", author="ada")
    state.annotate(JOB, "note", "a loose riser", author="bob")
    state.undo(first.annotation_id, author="bob")
    state.save("all jobs", "SELECT * FROM jobs", author="ada")
    state.remember("SELECT 1", "1 row", author="ada")
    state.redaction_key()
    return state


def by_hand(state: State, *statements: str) -> None:
    """Changes the file as another program would, or a disk."""
    with closing(sqlite3.connect(state._path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def asked(state: SavedQueries) -> dict[str, Callable[[], Any]]:
    """Everything that is shown of it."""
    return {
        "history": state.history, "annotations": state.annotations, "statuses": state.statuses,
        "version": state.version, "answers": state.version_of_answers, "audit": state.audit,
        "saved": state.saved, "past": lambda: state.past("ada"), "store": state.store_id,
        "settings": state.settings, "key": state.redaction_key,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("table", "statement", "shown"),
    [
        ("annotations", "UPDATE annotations SET value = 'pcie'", "annotations"),
        ("annotations", "UPDATE annotations SET undone_by = 'eve' WHERE undone_by <> ''", "history"),
        ("annotations", "DELETE FROM annotations WHERE field = 'note'", "version"),
        ("annotations", "UPDATE annotations SET rowid = rowid + 7", "statuses"),
        ("saved_queries", "UPDATE saved_queries SET sql = 'SELECT 2'", "saved"),
        ("past_queries", "DELETE FROM past_queries", "past"),
        ("keys", "UPDATE keys SET value = zeroblob(32)", "key"),
        ("keys", "DELETE FROM keys", "key"),
        ("audit", "UPDATE audit SET author = 'eve' WHERE action = 'undo'", "audit"),
        ("audit", "INSERT INTO audit VALUES (99, '', 'eve', 'undo', '{}')", "audit"),
        ("facts", "UPDATE facts SET value = 'f' WHERE name = 'store'", "store"),
        ("facts", "DELETE FROM facts WHERE name = 'site'", "settings"),
    ],
)  # fmt: skip
def test_a_row_that_changed_came_or_went_is_told(
    state: SavedQueries, table: str, statement: str, shown: str
) -> None:
    others = {name: ask() for name, ask in asked(state).items()}
    by_hand(state, statement)
    with pytest.raises(StoreError, match=DAMAGED.format(table)):
        asked(state)[shown]()
    with pytest.raises(StoreError, match=DAMAGED.format(table)):
        state.copy_to(state._path.parent / "..", PRIVATE)
    assert not state.is_sound()
    still = {name: ask for name, ask in asked(state).items() if name not in _OF[table]}
    assert {name: ask() for name, ask in still.items()} == {name: others[name] for name in still}


_OF = {
    "annotations": ("history", "annotations", "statuses", "version", "answers"),
    "saved_queries": ("saved",), "past_queries": ("past",), "keys": ("key",), "audit": ("audit",),
    "facts": ("store", "settings"),
}  # fmt: skip


@pytest.mark.parametrize(
    "statement",
    ["DROP TABLE checks", "DELETE FROM checks", "UPDATE checks SET digest = digest + 1"],
)
def test_a_file_that_lost_its_checks_is_not_taken_for_an_old_one(
    state: SavedQueries, statement: str
) -> None:
    by_hand(state, statement)
    for ask in (state.history, state.audit, state.saved, state.store_id):
        with pytest.raises(StoreError, match=r"state\.sqlite: .*annotate --restore"):
            ask()
    assert not state.is_sound()


def test_what_is_written_over_damage_does_not_hide_it(state: SavedQueries) -> None:
    by_hand(state, "UPDATE annotations SET value = 'pcie'")
    state.annotate(JOB, "cause", "nvlink", author="ada")
    with pytest.raises(StoreError, match=DAMAGED.format("annotations")):
        state.annotations()
    (undoing, *_) = [row[3] for row in state.audit()]
    with pytest.raises(DataError, match=DAMAGED.format("annotations")):
        state.undo(undoing, author="ada")


def test_a_file_of_a_version_that_checked_nothing_is_read_and_checked_from_the_next_write_on(
    state: SavedQueries,
) -> None:
    shown = asked(state)
    before = {name: ask() for name, ask in shown.items()}
    by_hand(
        state, "DROP TABLE checks", "DROP TABLE facts", "PRAGMA user_version = 1",
        "ALTER TABLE annotations DROP COLUMN undone_by",
    )  # fmt: skip
    now = {name: ask() for name, ask in shown.items() if name != "key"}
    assert (now.pop("store"), now.pop("settings")) == ("", None)
    assert now == {name: before[name] for name in now}
    state.record("ada", "ingest", {})
    assert state.history() == before["history"]
    by_hand(state, "UPDATE annotations SET value = 'pcie'")
    with pytest.raises(StoreError, match=DAMAGED.format("annotations")):
        state.history()


def turned(state: SavedQueries, n_bits: int) -> tuple[int, int]:
    """Turns so many bits of the file, one at a time; how often it was told, and how often not."""
    shown = asked(state)
    before = {name: ask() for name, ask in shown.items()}
    sound, chance, n_told = state._path.read_bytes(), random.Random(8), 0
    used = [at for at in range(len(sound)) if sound[at]]
    for _ in range(n_bits):
        content = bytearray(sound)
        at, bit = chance.choice(used), chance.randrange(8)
        content[at] ^= 1 << bit
        for log in state._path.parent.glob("state.sqlite-*"):
            log.unlink()
        state._path.write_bytes(content)
        told = False
        for name, ask in shown.items():
            try:
                assert ask() == before[name], (at, bit, name)
            except StoreError:
                told = True
        n_told += told
    return n_told, n_bits - n_told


def test_a_bit_that_turned_is_told_or_changes_nothing(state: SavedQueries) -> None:
    assert min(turned(state, 60)) > 0


@pytest.mark.slow
def test_of_three_thousand_bits_that_turned_none_changes_what_is_shown(state: SavedQueries) -> None:
    n_told, n_not = turned(state, 3_000)
    print(f"of 3,000 bits {n_told:,} told, {n_not:,} without any effect")
    assert n_told > 1_000


def test_the_pages_version_of_a_long_file_is_looked_through_once(tmp_path: Path) -> None:
    state = State(tmp_path)
    state.create()
    rows = [(f"{n:06}", f"node:a/n{n}", "ada", "", "note", f"said {n}") for n in range(5_000)]
    with state._writing() as connection:
        connection.executemany(
            "INSERT INTO annotations (annotation_id, target, author, made_at, field, value) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            rows,
        )
    spent = []
    for _ in range(8):
        begin = time.process_time()
        assert state.version_of_answers() == "004999-0"
        spent.append(1e3 * (time.process_time() - begin))
    print(f"5,000 annotations: first {spent[0]:.1f} ms, then {min(spent[1:]):.1f} ms")
    assert min(spent[1:]) < spent[0] / 2
