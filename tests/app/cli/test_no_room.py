"""A disk without room, a real one: each command that writes says that it is full, and loses nothing."""

from __future__ import annotations

import errno
import io
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from app import actions
from app.actions.uploads import RunningUpload, Upload
from data.disk_full import DiskFullError, disk_full
from data.errors import DataError
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROWS = "".join(
    f"{n}|c|gpu|x|NODE_FAIL|2026-01-08T00:00:00|2026-01-08T00:00:00|2026-01-09T00:00:00|1"
    f"|gres/gpu=8|n{n % 7}\n"
    for n in range(7, 2_000)
)
MORE = f"JobID|Cluster|Partition|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n{ROWS}"
LINE = "2026-03-02T06:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, off the bus\n"
OPERATIONS = {
    "ingest": ["ingest", "sacct", "more.txt"],
    "annotate": ["annotate", "node:c/n2", "--note", "a note " * 1_400],
    "export": ["sql", "FROM jobs, range(99999)", "--as", "csv", "--out", "DISK/jobs.csv"],
    "backup": ["backup", "DISK/backup"],
    "ledger": ["ledger"],
    "job-log": ["ingest", "job-log", "logs"],
    "collect": ["collect", "--config", "collect.toml"],
    "restore": ["restore", "kept", "--force"],
    "report": ["report", "--node", "n2", "--as", "pdf", "--out", "DISK/report"],
    "packed": ["ingest", "sacct", "more.txt.gz"],
}
"""What is tried -> the command; DISK is the folder on which there is no room."""
POINTS = (0, 4_096, 100_000, 300_000)
"""Bytes that are left."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may mount no disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def room(disk: Path, n_bytes: int) -> Iterator[None]:
    """So many bytes are left on the disk."""
    free = shutil.disk_usage(disk).free - n_bytes
    with (disk / "others").open("wb", buffering=0) as filler:
        os.posix_fallocate(filler.fileno(), 0, max(1, free))
    try:
        yield
    finally:
        (disk / "others").unlink()


@pytest.fixture
def store(tmp_path: Path, disk: Path, sacct_store: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store on that disk, and files elsewhere to be read into it."""
    shutil.copytree(sacct_store, disk / "store")
    monkeypatch.chdir(tmp_path)
    Path("more.txt").write_text(MORE, encoding="utf-8")
    subprocess.run(["gzip", "--keep", "more.txt"], check=True)
    for name in ("logs", "kernel"):
        Path(name).mkdir()
    Path("logs/slurm-2.out").write_bytes(b"a line of a log\xff\n" * 30_000)
    Path("kernel/a.log").write_text(LINE * 3_000, encoding="utf-8")
    Path("collect.toml").write_text(
        '[[source]]\nkind = "folder"\npath = "kernel/*"\nreader = "kernel-log"\n', "utf-8"
    )
    return disk / "store"


def held(faultline: Callable[..., Any], store: Path) -> list[str]:
    """What a store answers."""
    questions = (["failures", "--list"], ["annotate", "--list"])
    return [faultline(*each, "--store", store).out for each in questions]


def tried(faultline: Callable[..., Any], store: Path, name: str, points: tuple[int, ...]) -> int:
    """Runs a command where little room is left; how often the disk was too small for it."""
    disk = store.parent
    command = [each.replace("DISK", str(disk)) for each in OPERATIONS[name]]
    if name == "restore":
        assert faultline("backup", "kept", "--store", store).code == 0
    before, n_full = held(faultline, store), 0
    for n_bytes in points:
        files = sorted(disk.rglob("*"))
        with room(disk, n_bytes):
            told = faultline(*command, "--store", store)
        if told.code == 0:
            continue
        n_full += 1
        case = (name, n_bytes, told)
        said = [line for line in told.err.splitlines() if "the disk is full" in line]
        assert told.code == 2, case
        assert len(said) == 1, case
        assert f"{disk}" in said[0], case
        assert said[0].endswith("make room on it, then run this again"), case
        assert "check access" not in told.err, case
        kept = ("writer.lock", "state.sqlite-wal", "state.sqlite-shm")
        new = set(disk.rglob("*")) - set(files)
        assert not [path for path in new if path.name not in kept], case
        assert held(faultline, store) == before, case
        assert State(store).is_sound()
    assert faultline(*command, "--store", store).code == 0
    return n_full


@pytest.mark.service
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_disk_without_room_is_called_full(
    faultline: Callable[..., Any], store: Path, name: str
) -> None:
    assert tried(faultline, store, name, POINTS[:1]) == 1


@pytest.mark.service
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_disk_with_too_little_room_is_called_full(
    faultline: Callable[..., Any], store: Path, name: str
) -> None:
    print(f"\n{name}: full {tried(faultline, store, name, POINTS)} of {len(POINTS)} times, lost 0")


@pytest.mark.service
def test_an_upload_that_finds_no_room_says_so(store: Path) -> None:
    upload = Upload("more.txt", io.BytesIO(MORE.encode() * 20))
    with (
        room(store.parent, 0),
        pytest.raises(DataError, match=r"store: the disk is full: make room"),
    ):
        RunningUpload(store, "sacct", upload, actions.Options())


@pytest.mark.service
def test_a_folder_for_temporary_files_without_room_is_named(
    faultline: Callable[..., Any], store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(store, tmp_path / "elsewhere")
    monkeypatch.setattr("tempfile.tempdir", str(store.parent))
    elsewhere = ["--store", tmp_path / "elsewhere"]
    for command in (["links", "more.txt.gz"], ["validate-plan", "more.txt.gz", *elsewhere]):
        with room(store.parent, 0):
            told = faultline(*command)
        assert told.code == 2, told
        assert f"{store.parent}: the disk is full" in told.err, told


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "/a/b"), "/a: the disk is full: make"),
        (OSError(errno.EDQUOT, "Disk quota exceeded", "/a/b"), "/a: the disk is full (your quota"),
        (OSError(errno.EFBIG, "File too large", "/a/b"), None),
        (OSError("could not write: No space left on device"), "/c: the disk is full: make room"),
        (RuntimeError('Could not write file "/a/d/x": No space left on device'), "/a/d: the disk"),
        (OSError(errno.EACCES, "Permission denied", "/a/b"), None),
        (ValueError("a full disk"), None),
    ],
)
def test_what_means_a_full_disk(error: Exception, told: str | None) -> None:
    found = disk_full(error, Path("/c"))
    assert (None if found is None else str(found)[: len(told or "")]) == told
    assert found is None or isinstance(found, DiskFullError)
