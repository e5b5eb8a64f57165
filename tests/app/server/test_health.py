"""/healthz and pages answer at once, whatever the disk of the store does."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import subprocess
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.actions import Options, ingest_files
from app.server.disk import Disk
from tests.app.server.fuse import hanging
from tests.app.server.running import Server, cookie_of, start

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SACCT = """\
JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
"""
WITHIN_S = 0.2
HANGING_READS = 3
"""Of CURRENT, site.toml and state.sqlite: one of each."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Path]]:
    """A server and its store."""
    folder = tmp_path_factory.mktemp("served")
    (folder / "sacct.txt").write_text(SACCT)
    store = folder / "a-store"
    ingest_files(store, "sacct", [str(folder / "sacct.txt")], Options())
    (store / "site.toml").write_text('[cluster.c]\ngpu_model = "H100"\n')
    server = start(folder)
    yield server, store
    server.process.kill()
    server.process.communicate()


@contextmanager
def in_place_of(path: Path, put: Callable[[Path], object]) -> Iterator[None]:
    """Something else stands where a file or folder was."""
    aside = path.with_name(f"{path.name}-aside")
    path.rename(aside)
    try:
        put(path)
        yield
    finally:
        path.unlink(missing_ok=True)
        aside.rename(path)


@contextmanager
def locked(store: Path) -> Iterator[None]:
    with closing(sqlite3.connect(store / "state.sqlite", isolation_level=None)) as other:
        other.execute("PRAGMA locking_mode=EXCLUSIVE")
        other.execute("BEGIN EXCLUSIVE")
        other.execute("CREATE TABLE held (n)")
        yield
        other.execute("ROLLBACK")


@contextmanager
def full(store: Path) -> Iterator[None]:
    """The store on a disk without room."""
    copy = store.with_name("copy")
    shutil.copytree(store, copy, dirs_exist_ok=True)
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", store], check=False
    ).returncode:
        pytest.skip("a disk of its own cannot be mounted here")
    try:
        shutil.copytree(copy, store, dirs_exist_ok=True)
        with suppress(OSError), (store / "rest").open("wb") as rest:
            while True:
                rest.write(b"x" * 4096)
        assert shutil.disk_usage(store).free < 4096
        yield
    finally:
        subprocess.run(["umount", "-l", store], check=True)


@contextmanager
def hung(store: Path) -> Iterator[None]:
    if not os.access("/dev/fuse", os.W_OK):
        pytest.skip("no file system of our own can be mounted here")
    with hanging(store):
        yield


BRACKETS = "[" * 200_000
CASES: dict[str, tuple[Callable[[Path], object], int, str]] = {
    "state.sqlite is locked": (locked, 200, ""),
    "the disk is full": (full, 200, ""),
    "the store hangs (FUSE)": (hung, 503, "CURRENT cannot be read: its disk does not answer"),
    "CURRENT is a pipe": (
        lambda store: in_place_of(store / "CURRENT", os.mkfifo), 503, "CURRENT: cannot be read",
    ),
    "site.toml is a pipe": (
        lambda store: in_place_of(store / "site.toml", os.mkfifo), 503, "site.toml: cannot be read",
    ),
    "CURRENT is 200,000 brackets": (
        lambda store: in_place_of(store / "CURRENT", lambda path: path.write_text(BRACKETS)),
        503, "CURRENT: is not what a publish writes",
    ),
    "the store is gone": (
        lambda store: in_place_of(store, lambda path: None), 503, "the store is gone",
    ),
}  # fmt: skip


def asked(server: Server, path: str, **headers: str) -> tuple[float, int, str]:
    """How long an answer took, its status and its text."""
    began = time.perf_counter()
    answer = server.ask(path, **headers)
    text = answer.read().decode()
    return time.perf_counter() - began, answer.status, text


def threads(server: Server) -> int:
    return len(list(Path(f"/proc/{server.process.pid}/task").iterdir()))


def tried(server: Server, n: int, status: int, reason: str) -> list[float]:
    """Seconds of /healthz in so many trials, pages asked between them."""
    cookie = cookie_of(server)
    before, took = threads(server), []
    for _ in range(n):
        seconds, found, text = asked(server, "/healthz")
        assert found == status, text
        assert reason in json.loads(text).get("reason", ""), text
        assert server_path(server) not in text
        page_s, page_status, _ = asked(server, "/mttf?min_gpus=64", Cookie=cookie)
        assert page_status == 200
        took += [seconds]
        assert page_s < 1, "a page's HTML waits for no disk"
    assert threads(server) <= before + HANGING_READS
    return took


def server_path(server: Server) -> str:
    return str(Path(f"/proc/{server.process.pid}/cwd").readlink())


def told(name: str, took: list[float]) -> None:
    ordered = sorted(took)
    median, p95 = (1000 * ordered[int(len(ordered) * share)] for share in (0.5, 0.95))
    print(f"| {name} | {len(took)} | {median:.0f} | {p95:.0f} | {1000 * ordered[-1]:.0f} |")


def of_all(served: tuple[Server, Path], n: int) -> None:
    server, store = served
    print("\n| the store | trials | median ms | p95 | most |\n|---|---|---|---|---|")
    told("as it should be", tried(server, n, 200, ""))
    for name, (broken, status, reason) in CASES.items():
        with broken(store):  # type: ignore[attr-defined]
            took = tried(server, n, status, reason)
        told(name, took)
        assert max(took) < WITHIN_S, name
    told("as it should be again", tried(server, n, 200, ""))


@pytest.mark.slow
def test_health_answers_at_once_whatever_the_disk_does(served: tuple[Server, Path]) -> None:
    of_all(served, 2)


@pytest.mark.service
def test_health_answers_at_once_in_100_trials(served: tuple[Server, Path]) -> None:
    of_all(served, 100)


def test_a_store_that_goes_before_anybody_asked_is_gone_and_one_not_made_yet_is_empty(
    tmp_path: Path,
) -> None:
    store = tmp_path / "store"
    assert asyncio.run(Disk(store).health()) == (None, None)
    (tmp_path / "sacct.txt").write_text(SACCT)
    ingest_files(store, "sacct", [str(tmp_path / "sacct.txt")], Options())
    disk = Disk(store)
    shutil.rmtree(store)
    assert asyncio.run(disk.health()) == (None, "the store is gone")


@pytest.mark.service
def test_a_hundred_logins_while_the_audit_is_locked_hold_nobody(
    served: tuple[Server, Path],
) -> None:
    server, store = served
    with locked(store):
        for _ in range(100):
            cookie_of(server)
        assert asked(server, "/healthz")[0] < WITHIN_S
