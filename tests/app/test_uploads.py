"""What a person uploads is read in a process of its own, which its limits and Cancel end."""

from __future__ import annotations

import io
import os
import resource
import time
from typing import TYPE_CHECKING

import pytest

from app.actions import DataError, Options, RunningUpload, Upload, ingest_files

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
SACCT = HEADER + (
    "1|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1\n"
)
TORN = HEADER.encode() + b"x\n" * 10_000_000  # half a minute of mending


def upload(root: Path, content: bytes | str, source: str = "auto") -> RunningUpload:
    records = io.BytesIO(content.encode() if isinstance(content, str) else content)
    return RunningUpload(root, source, Upload("mine.txt", records), Options(timezone="UTC"))


def files(root: Path) -> dict[str, bytes]:
    """All but the lock, which says who wrote last, and what SQLite keeps beside a file in use."""
    beside = ("writer.lock", "-shm", "-wal")
    found = (path for path in root.rglob("*") if path.is_file() and not path.name.endswith(beside))
    return {path.name: path.read_bytes() for path in found}


def of_children_s() -> float:
    """Processor time of the processes of this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with one job, which is there after each upload that comes to nothing."""
    folder = tmp_path_factory.mktemp("filled")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


@pytest.mark.slow
def test_cancel_ends_the_process_within_two_seconds_of_work_and_leaves_the_store_as_it_was(
    filled: Path,
) -> None:
    before, ended_s = files(filled), of_children_s()
    running = upload(filled, TORN)
    pid = running._child._process.pid
    while "to mend" not in running.progress:
        assert not running.wait(0.05), running.result()
    used_s = time.clock_gettime(~pid << 3 | 2)  # Linux numbers the clocks of processes so
    running.cancel()
    assert of_children_s() - ended_s - used_s < 2
    with pytest.raises(DataError, match="the upload was cancelled: the store is as it was"):
        running.result()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert files(filled) == before


@pytest.mark.slow
def test_a_file_that_needs_more_memory_than_the_limit_is_refused(filled: Path) -> None:
    (filled / "site.toml").write_text("[limits]\nline_mb = 100\nupload_memory_mb = 1000\n")
    before = files(filled)
    unfolding = "[" + "{}," * 11_000_000 + "{}]\n"
    told = "more memory than 1,000 MB, upload_memory_mb of site.toml: raise it there, or read"
    with pytest.raises(DataError, match=told):
        upload(filled, unfolding, "gcm-health").result()
    assert files(filled) == before


@pytest.mark.slow
def test_a_file_that_takes_longer_than_the_limit_is_refused(filled: Path) -> None:
    (filled / "site.toml").write_text("[limits]\nupload_minutes = 0.05\n")
    before = files(filled)
    begin = time.monotonic()
    with pytest.raises(DataError, match=r"took longer than 0\.05 minutes, upload_minutes of site"):
        upload(filled, TORN).result()
    assert time.monotonic() - begin < 3 + 2
    assert files(filled) == before


@pytest.mark.slow
def test_a_file_over_the_limit_of_files_is_refused(filled: Path) -> None:
    (filled / "site.toml").write_text("[limits]\nupload_file_gb = 0.01\n")
    before = files(filled)
    with pytest.raises(DataError, match=r"a file larger than 0\.01 GB, upload_file_gb of site"):
        upload(filled, HEADER.encode() + b"\xff\n" * 10_000_000).result()
    assert files(filled) == before


def test_what_is_wrong_with_a_mapping_or_a_meta_file_names_no_path(tmp_path: Path) -> None:
    deep = io.BytesIO(b"a = " + b"[" * 100_000)
    sent = Upload("log.csv", io.BytesIO(b"a,b\n1,2\n"), mapping=deep, mapping_name="my.toml")
    with pytest.raises(DataError, match=r"^my\.toml: is nested too deeply"):
        RunningUpload(tmp_path / "store", "failure-log", sent, Options()).result()
    assert not (tmp_path / "store").exists()
