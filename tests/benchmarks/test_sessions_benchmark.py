"""Twenty people at one dashboard: how long each waits for a page, and what memory each takes."""

from __future__ import annotations

import asyncio
import os
import random
import re
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.cli import main
from tests.app.server.reader import read, reader
from tests.app.server.running import ROOT, Server, cookie_of

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.benchmark, pytest.mark.slow]

PAGES = ("", "failures", "mttf", "ettr", "ledger", "incidents")
SESSIONS = 20
THINK_S = 5.0
ALONE_ROUNDS, ALONE_THINK_S = 3, 0.3
SEED = 7
MOST_RATIO = 4.0
"""The 95th percentile of all sessions to the median of one alone."""
MOST_MB = 3.0
"""Of memory for each further session."""


@dataclass(frozen=True)
class Measured:
    """One run of the server."""

    alone: list[float]
    """Seconds of the pages of one session, each opened before."""
    together: list[float]
    """Of all sessions at a time."""
    mb_each: float
    """Memory of the server for each further session."""

    @property
    def ratio(self) -> float:
        """The 95th percentile together to the median alone."""
        return _p95(self.together) / statistics.median(self.alone)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """`faultline serve` on the default demo."""
    store = tmp_path / "store"
    assert main(["demo", "--store", str(store)]) == 0
    assert main(["ledger", "--store", str(store)]) == 0
    process = subprocess.Popen(
        [sys.executable, "-m", "app.cli", "serve", "--store", str(store), "--port", "0"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    started = Server(process, process.stdout.readline())
    yield started
    started.stop()


def test_twenty_sessions_wait_little_longer_than_one(server: Server) -> None:
    measured = asyncio.run(_measured(server))
    print(
        f"\n{SESSIONS} sessions, think time {THINK_S:g} s, {os.cpu_count()} cores: "
        f"median {1000 * statistics.median(measured.together):.0f} ms, "
        f"p95 {1000 * _p95(measured.together):.0f} ms; "
        f"one alone: median {1000 * statistics.median(measured.alone):.0f} ms; "
        f"ratio {measured.ratio:.1f}; {measured.mb_each:.1f} MB a further session"
    )
    assert measured.ratio < MOST_RATIO
    assert measured.mb_each < MOST_MB


async def _measured(server: Server) -> Measured:
    """One session opens every page, then again alone; then all at a time, as people do."""
    url, pid = f"http://127.0.0.1:{server.port}/", server.process.pid
    cookie = cookie_of(server)
    chance = random.Random(SEED)
    async with reader(url, cookie) as tab:
        await read(tab, PAGES, chance, 0.0)
        alone = await read(tab, PAGES * ALONE_ROUNDS, chance, ALONE_THINK_S)
        of_one = _memory_mb(pid)
    done = asyncio.Barrier(SESSIONS + 1)

    async def one(seed: int) -> list[float]:
        async with reader(url, cookie) as tab:
            seconds = await read(tab, PAGES, random.Random(seed), THINK_S)
            await done.wait()  # all stay open until the memory is read
            await done.wait()
        return seconds

    async with asyncio.TaskGroup() as group:
        sessions = [group.create_task(one(SEED + 1 + n)) for n in range(SESSIONS)]
        await done.wait()
        mb_each = (_memory_mb(pid) - of_one) / (SESSIONS - 1)
        await done.wait()
    return Measured(alone, [seconds for each in sessions for seconds in each.result()], mb_each)


def _p95(seconds: list[float]) -> float:
    return sorted(seconds)[round(0.95 * (len(seconds) - 1))]


def _memory_mb(pid: int) -> float:
    """Memory of a process, what it shares with others by its part."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    found = re.search(r"^Pss:\s+(\d+) kB", rollup, re.MULTILINE)
    assert found is not None
    return int(found[1]) / 1024
