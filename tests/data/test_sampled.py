"""Another file in a snapshot's place is told by every reader, for less than opening it costs."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import pytest

from data.access import PRIVATE
from data.current import read_current, replace_file
from data.errors import StoreError
from data.publish import writer
from data.sampled import BLOCK, HEADERS, sampled
from data.state import State
from data.store import Store, require_current

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path, empty_store: Path) -> Path:
    return shutil.copytree(empty_store, tmp_path / "store")


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """Another store, valid in itself, that holds as little."""
    with writer(tmp_path / "other") as building:
        building.publish()
    return tmp_path / "other"


def test_another_valid_snapshot_is_told_before_it_is_opened(root: Path, other: Path) -> None:
    mine, theirs = root / "warehouse-1.duckdb", other / "warehouse-1.duckdb"
    assert mine.stat().st_size == theirs.stat().st_size
    shutil.copyfile(theirs, mine)
    for opened in (Store.open, require_current, Store.without_said):
        with pytest.raises(StoreError, match="is not the file that CURRENT says was published"):
            opened(root)


def test_what_people_said_in_another_store_is_told(root: Path, other: Path) -> None:
    State(other).annotate("node:a/n1", "note", "of the other one", author="ada")
    State(other).copy_to(root, PRIVATE)
    for opened in (Store.open, require_current):
        with pytest.raises(StoreError, match=r"state\.sqlite: is not of this store, but of anoth"):
            opened(root)
    with pytest.raises(StoreError, match="is not of this store"), writer(root):
        pass
    assert Store.without_said(root).snapshot == 1


def test_a_store_keeps_its_id_over_publishes_and_without_its_current(root: Path) -> None:
    first = read_current(root)
    assert first is not None
    (root / "CURRENT").unlink()
    with writer(root) as building:
        building.publish()
    second = read_current(root)
    assert second is not None
    assert first.store_id == second.store_id == State(root).store_id() != ""
    with Store.open(root)._cursor() as cursor:
        assert cursor.execute("SELECT store_id FROM store_meta").fetchall() == [(first.store_id,)]


def test_a_snapshot_of_before_that_was_replaced_is_no_way_back(root: Path, other: Path) -> None:
    with writer(root) as building:
        building.publish()
    shutil.copyfile(other / "warehouse-1.duckdb", root / "warehouse-1.duckdb")
    from data.publish import plan

    with pytest.raises(StoreError, match="snapshot 1 is not kept"):
        plan(root, snapshot=1)


def test_size_headers_end_and_the_checksums_of_blocks_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "some.duckdb"
    content = bytearray(os.urandom(HEADERS + 3 * BLOCK))
    path.write_bytes(content)
    sound = sampled(path)
    for at in (0, HEADERS - 1, HEADERS, HEADERS + 2 * BLOCK + 7, len(content) - 1):
        content[at] ^= 1
        path.write_bytes(content)
        assert sampled(path) != sound, at
        content[at] ^= 1
    path.write_bytes(content + b"x")
    assert sampled(path)[0] == sound[0] + 1


def test_of_a_snapshot_that_is_large_as_little_is_read(tmp_path: Path) -> None:
    seconds = {}
    for n_bytes in (10 << 20, 1 << 30):
        path = tmp_path / f"{n_bytes}.duckdb"
        replace_file(path, "")
        os.truncate(path, n_bytes)
        tries = []
        for _ in range(20):
            begin = time.process_time()
            sampled(path)
            tries.append(time.process_time() - begin)
        seconds[n_bytes] = min(tries)
        print(f"{n_bytes / 1e6:,.0f} MB: sampled in {1e3 * seconds[n_bytes]:.2f} ms")
    assert seconds[1 << 30] < 0.005
