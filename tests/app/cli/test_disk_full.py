"""A disk that fills up anywhere: one line, exit 2, no part of a file, and the store as it was.

A limit on the size of files stands for the full disk: each write beyond it fails, at any byte that
a test chooses, for any user on any machine.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app.show.files import write_file
from data.errors import DataError
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MORE = """JobID|Cluster|Partition|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
7|c|gpu|x|NODE_FAIL|2026-01-08T00:00:00|2026-01-08T00:00:00|2026-01-09T00:00:00|1|gres/gpu=8|n4
"""
OPERATIONS = {
    "ingest": ["ingest", "sacct", "more.txt"],
    "publish": ["ledger"],
    "annotate": ["annotate", "node:c/n2", "--note", "a note " * 200],
    "report": ["report", "--node", "n2", "--as", "md,json", "--out", "out/report"],
    "export": ["sql", "FROM jobs", "--as", "xlsx", "--out", "out/jobs.xlsx"],
    "backup": ["backup", "out/backup"],
    "restore": ["restore", "kept", "--force"],
}
"""What is tried -> the command, in a folder with the store, a backup and more.txt."""
OWN = ("state.sqlite", "state.sqlite-wal", "state.sqlite-shm", "writer.lock")
"""Files of a store that SQLite and the lock keep themselves."""
LOG = 8_192
"""Bytes that an annotation adds to SQLite's log at least."""
FEW, MANY = 2, 50
"""Points at which the disk is full."""


@contextmanager
def full_at(n_bytes: int) -> Iterator[None]:
    """No file can become longer; Python ignores the signal that tells of it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files_of(folder: Path) -> dict[str, tuple[int, int, int]]:
    """Files and folders -> what changes when one is written or replaced."""
    found = {}
    for path in folder.rglob("*"):
        told = path.stat()
        if path.name not in OWN:
            same = 0 if path.is_dir() else told.st_mtime_ns
            found[str(path.relative_to(folder))] = (told.st_ino, told.st_size * (same > 0), same)
    return found


@pytest.fixture
def place(tmp_path: Path, sacct_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store, records to come and a folder for what is written."""
    shutil.copytree(sacct_store, tmp_path / "store")
    (tmp_path / "more.txt").write_text(MORE, encoding="utf-8")
    unnamed = tmp_path / "store" / "metrics" / "straggler_traces" / "a.parquet"
    unnamed.parent.mkdir(parents=True)
    unnamed.touch()  # the next snapshot names it no longer: it stays until that is published
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def longest_written(place: Path, run: Callable[[], Any]) -> int:
    """Bytes of the longest file that a command writes where there is room; all is put back."""
    kept = place.parent / f"{place.name}-kept"
    shutil.copytree(place, kept)
    before = files_of(place)
    assert run().code == 0
    after = {name: told for name, told in files_of(place).items() if before.get(name) != told}
    shutil.rmtree(place)
    kept.rename(place)
    os.chdir(place)
    return max((size for _, size, _ in after.values()), default=0)


def tried(faultline: Callable[..., Any], place: Path, name: str, n_points: int) -> int:
    """Fills the disk at points of the longest file; nothing is lost, and how often it was told."""

    def run() -> Any:
        return faultline(*OPERATIONS[name], "--store", "store")

    def answers() -> list[str]:
        asked = (["mttf"], ["failures", "--list"], ["annotate", "--list"])[-1 if quick else 0 :]
        return [faultline(*question, "--store", "store").out for question in asked]

    quick = n_points == FEW
    faultline("annotate", "node:c/n3", "--status", "open", "--store", "store")
    assert faultline("backup", "kept", "--store", "store").code == 0
    longest = longest_written(place, run) or LOG
    before, said, n_refused = files_of(place), answers(), 0
    for point in range(n_points):
        with full_at((2 * point + 1) * longest // (2 * n_points)):
            told = run()
        case = (name, point, told)
        n_refused += told.code == 2
        assert told.err.count("\n") == 1, case
        assert told.err.startswith("faultline "), case
        assert "Traceback" not in told.err, case
        assert files_of(place) == before, case
    assert answers() == said
    assert State(place / "store").is_sound()
    assert quick or run().code == 0
    return n_refused


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_full_disk_loses_nothing(faultline: Callable[..., Any], place: Path, name: str) -> None:
    assert tried(faultline, place, name, FEW) == FEW


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_disk_full_at_fifty_points_loses_nothing(
    faultline: Callable[..., Any], place: Path, name: str
) -> None:
    assert tried(faultline, place, name, MANY) == MANY


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "buffered"),
    [("ingest --list", True), ("ingest --help", True), ("ingest --help", False)],
)
def test_an_output_that_cannot_be_written_is_told_in_one_line(
    arguments: str, buffered: bool
) -> None:
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, *([] if buffered else ["-u"]), "-m", "app.cli"]
        ended = subprocess.run(
            [*command, *arguments.split()],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={"PATH": os.environ["PATH"]},
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert re.match("faultline( ingest)?: /dev/full: the disk is full", ended.stderr)


def test_help_whose_reader_left_is_no_error() -> None:
    command = f"{sys.executable} -m app.cli --help | true; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_file_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    write_file(path, b"before")
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    with (
        full_at(3),
        pytest.raises(DataError, match=r"link\.csv: cannot be written \(File too large"),
    ):
        write_file(link, b"after")
    assert path.read_bytes() == b"before"
    write_file(link, b"after")
    assert (path.read_bytes(), link.is_symlink()) == (b"after", True)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["link.csv", "rows.csv"]
    write_file(Path("/dev/null"), b"gone")
    assert Path("/dev/null").is_char_device()
