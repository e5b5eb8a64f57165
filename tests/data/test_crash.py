"""A writer killed anywhere leaves the last good snapshot, and only one writes at a time."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from data.errors import StoreBusyError, StoreError
from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList"
DELAYS = (0.4, 0.7, 0.9, 1.2)
"""Seconds after which the writer is killed: from start-up to after the publish."""


def _file(path: Path, first: int, n: int) -> str:
    lines = [
        f"{first + i}|COMPLETED|{'|'.join(f'2024-01-01T0{hour}:00:00' for hour in range(3))}"
        "|1|gres/gpu=8|n1"
        for i in range(n)
    ]
    path.write_text("\n".join([HEADER, *lines]) + "\n", encoding="utf-8")
    return str(path)


def _count(root: Path) -> int:
    store = Store.open(root)
    try:
        ((n,),) = store.rows("SELECT count(*) FROM jobs")
        return int(n)
    finally:
        store.close()


def test_kill_9_anywhere_leaves_a_good_store(tmp_path: Path) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [_file(tmp_path / "a.txt", 0, 1000)], Options())
    more = _file(tmp_path / "b.txt", 1000, 60_000)
    seen = set()
    for delay in DELAYS:
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli", "ingest", "sacct", more, "--store", str(root)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        seen.add(_count(root))
    assert seen <= {1000, 61_000}
    ingest_files(root, "sacct", [more], Options())
    assert _count(root) == 61_000
    assert not list(root.glob("building-*"))


def test_sigterm_ends_an_ingest_cleanly(tmp_path: Path) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [_file(tmp_path / "a.txt", 0, 10)], Options())
    before = {path.name: path.read_bytes() for path in root.glob("*.duckdb")}
    more = _file(tmp_path / "b.txt", 10, 200_000)
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "ingest", "sacct", more, "--store", str(root)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not list(root.glob("building-*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (143, "")
    assert err.splitlines()[-1] == "faultline ingest: ended by SIGTERM"
    assert {path.name: path.read_bytes() for path in root.glob("*.duckdb")} == before
    assert not list(root.glob("building-*"))
    assert not (root / "scratch").exists()
    assert _count(root) == 10


def test_a_second_writer_is_told_who_writes(tmp_path: Path) -> None:
    root = tmp_path / "store"
    busy = pytest.raises(StoreBusyError, match=r"is being written by process \d+")
    with writer(root), busy, writer(root):
        pass


def test_a_reader_keeps_its_snapshot_while_another_is_published(tmp_path: Path) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [_file(tmp_path / "a.txt", 0, 3)], Options())
    old = Store.open(root)
    ingest_files(root, "sacct", [_file(tmp_path / "b.txt", 3, 2)], Options())
    assert old.rows("SELECT count(*) FROM jobs") == [(3,)]
    old.close()
    assert _count(root) == 5


def test_a_failed_ingest_leaves_the_store_untouched(tmp_path: Path) -> None:
    root = tmp_path / "store"
    ingest_files(root, "sacct", [_file(tmp_path / "a.txt", 0, 3)], Options())
    before = (root / "CURRENT").read_bytes()
    broken = tmp_path / "broken.txt"
    broken.write_text(f"{HEADER}\nx|y|z\n", encoding="utf-8")
    with pytest.raises(Exception, match="no record of 1 can be read"):
        ingest_files(root, "sacct", [str(broken)], Options())
    assert (root / "CURRENT").read_bytes() == before


def test_a_store_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no store: `faultline ingest` or `faultline demo`"):
        Store.open(tmp_path)


def test_a_store_that_lost_its_current_is_taken_up_again(tmp_path: Path) -> None:
    root = tmp_path / "store"
    for n in (1, 2):
        ingest_files(root, "sacct", [_file(tmp_path / f"{n}.txt", 10 * n, 3)], Options())
    (root / "CURRENT").unlink()
    ingest_files(root, "sacct", [_file(tmp_path / "3.txt", 30, 3)], Options())
    assert _count(root) == 9
