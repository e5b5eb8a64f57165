"""Stores that cannot be written, wholly or any more: they are read, and a write is one line."""

from __future__ import annotations

import errno
import json
import os
import resource
import shutil
from contextlib import closing
from typing import TYPE_CHECKING

import duckdb
import pytest

from app.actions import Options, annotate, ingest_files
from data import landing
from data.backup import backup
from data.current import SCHEMA_VERSION
from data.errors import StoreBusyError, StoreError
from data.ingest import store_files
from data.ingest.reader import Batch
from data.publish import writer
from data.publish.lock import locked
from data.sandbox import run_query
from data.state import State
from data.store import Store, require_current
from tests.written_current import as_earlier

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SACCT = """JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|NODE_FAIL|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|1|gres/gpu=8|n1
"""
NODE = "node:c/n1"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of one attempt and one annotation, and what was ingested."""
    folder = tmp_path_factory.mktemp("original")
    (folder / "sacct.txt").write_text(SACCT, encoding="utf-8")
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    annotate(folder / "store", NODE, "note", "loose")
    return folder


@pytest.fixture
def root(tmp_path: Path, original: Path) -> Path:
    """The store, to be written to."""
    shutil.copytree(original, tmp_path, dirs_exist_ok=True)
    return tmp_path / "store"


@pytest.fixture
def frozen(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The same, of an older schema, in a folder that cannot be written, whoever runs the test."""
    current = json.loads((root / "CURRENT").read_text("utf-8"))
    with duckdb.connect(str(root / current["file"])) as connection:
        connection.execute("DROP TABLE incidents")
        connection.execute("DROP TABLE straggler_traces")
    as_earlier(root, 4)
    may = os.access
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda path, mode: path != root and may(path, mode))
        root.chmod(0o555)
        yield root
        root.chmod(0o755)


@pytest.mark.slow
def test_an_older_store_in_a_folder_without_write_access_is_read(frozen: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in frozen.iterdir()}
    for _ in range(2):
        with closing(Store.open(frozen)) as store:
            assert store.current.schema_version == SCHEMA_VERSION
            assert store.rows("SELECT count(*) FROM incidents WHERE NOT retired") == [(1,)]
            assert store.said.parameters["said_value"] == ["loose"]
            assert store.root == frozen
    assert {path.name: path.stat().st_mtime_ns for path in frozen.iterdir()} == before
    first, second = require_current(frozen), require_current(frozen)
    assert first == second
    assert run_query(frozen / first.file, "SELECT count(*) AS n FROM jobs").rows == [(1,)]


def test_an_older_store_is_backed_up_as_it_is(frozen: Path, tmp_path: Path) -> None:
    assert backup(frozen, tmp_path / "backup").current.schema_version == 4


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_writing_without_access_is_refused_in_one_line(root: Path, tmp_path: Path) -> None:
    root.chmod(0o555)
    try:
        with pytest.raises(StoreError, match=r"scratch: Permission denied.*the store is as it was"):
            ingest_files(root, "sacct", [str(tmp_path / "sacct.txt")], Options())
        with pytest.raises(StoreError, match=r"state\.sqlite: cannot be read or written"):
            annotate(root, NODE, "note", "more")
        (root / "state.sqlite").chmod(0o444)
        assert [made.value for made in State(root).history()] == ["loose"]
    finally:
        root.chmod(0o755)


def test_what_people_said_is_read_where_a_full_disk_has_no_room_for_the_index_of_the_log(
    root: Path,
) -> None:
    said = State(root).history()
    for ending in ("wal", "shm"):
        (root / f"state.sqlite-{ending}").unlink(missing_ok=True)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        assert State(root).history() == said
        with pytest.raises(StoreError, match=r"state\.sqlite: cannot be read or written"):
            State(root).record("ada", "ingest", {})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    State(root).record("ada", "ingest", {})


def test_a_restore_cut_off_where_nothing_can_be_written_is_told(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / landing.READY).mkdir()
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(StoreError, match="restored: a restore was cut off here: any command"):
            Store.open(root)
    Store.open(root).close()
    assert not (root / landing.READY).exists()


def test_who_opens_the_store_waits_for_a_restore_that_is_landing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / landing.READY).mkdir()
    monkeypatch.setattr(landing, "WAIT_S", 0.1)
    with locked(root), pytest.raises(StoreBusyError):
        Store.open(root)
    Store.open(root).close()


def test_a_file_of_a_batch_that_cannot_be_written_leaves_no_part(root: Path) -> None:
    def cut_off(path: Path) -> None:
        path.write_bytes(b"a part")
        raise OSError(errno.ENOSPC, "No space left on device")

    batch = Batch(files={"straggler_traces/b.parquet": cut_off})
    told = pytest.raises(StoreError, match="the disk is full: the store is as it was; make room")
    with told, writer(root) as building:
        store_files(building, batch)
    assert not list(root.rglob("*.new"))
