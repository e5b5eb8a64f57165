"""However often, in which pieces and whatever breaks off: what is collected is the same."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from contextlib import closing
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from app.actions import Options, ingest_files
from data.collect import load_sources
from data.collect.source import Known, Timing
from data.store import Store
from tests.data.collect.conftest import BEGIN, DAY, HOUR, iso

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

    from tests.data.collect.conftest import Host

APART = {
    "ingests", "rejected_rows", "store_meta", "stage_runs", "collected_windows", "collected_files",
}  # fmt: skip
END = BEGIN + 2 * DAY
LAST = BEGIN + 5 * DAY - HOUR
"""When every end is written."""
CONFIG = '[[source]]\nkind = "slurm"\ncommands = ["sacct", "sacctmgr"]\nlook_back_days = 1\n'


def content(root: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Rows of every table but those of the ingests and the collecting itself."""
    with closing(Store.open(root)) as store:
        names = store.rows("SELECT table_name FROM duckdb_tables()")
        return {
            name: sorted(store.rows(f"SELECT * FROM {name}"), key=repr)
            for (name,) in names
            if name not in APART
        }


def covered(root: Path) -> list[tuple[datetime, datetime]]:
    """Stretches of time that were collected of the accounting, put together."""
    with closing(Store.open(root)) as store:
        rows = store.rows(
            """SELECT from_at, until_at FROM collected_windows
               WHERE source = 'sacct' AND result <> 'failed' ORDER BY 1"""
        )
    found = rows[:1]
    for begin, end in rows[1:]:
        if begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((begin, end))
    return found


def filled(host: Host, seed: int) -> Host:
    """A host with jobs that end in time, late, or not at all."""
    chance = random.Random(seed)
    for number in range(1, 25):
        submit_at = (
            BEGIN + chance.randrange(-12, 48) * HOUR + timedelta(minutes=chance.randrange(60))
        )
        waits, runs = chance.choice((0, 0.1, 5)), chance.choice((0.2, 3, 30))
        late = chance.choice((0, 0, 0, 20)) if submit_at >= BEGIN else 0
        written_at = submit_at + (waits + runs + late) * HOUR
        host.job(
            number, submit_at, (waits, waits + runs), node=f"n{chance.randrange(4)}",
            state=chance.choice(("COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED by 1000")),
            written_at=written_at,
        )  # fmt: skip
    at = int((BEGIN + 7 * HOUR).timestamp())
    host.says("events", f"alps|n1|{at}|{at + 7000}|DOWN|gone|root\n")
    return host


def sources(host: Host) -> list[Any]:
    """The commands, as a configuration states them."""
    return load_sources(host.says("collect.toml", CONFIG))


def in_a_rhythm(host: Host, times: Iterable[datetime]) -> Host:
    """Collects at these times."""
    for number, now in enumerate(times):
        host.collect(now, sources(host), since=BEGIN if number == 0 else None)
    return host


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_by_the_hour_or_by_the_day_or_at_once_the_store_is_the_same(
    host_at: Callable[[], Host], seed: int
) -> None:
    chance = random.Random(seed)
    hours = sorted(chance.sample(range(1, 72), 2))
    rhythms = [[LAST], [*(BEGIN + hour * HOUR for hour in hours), LAST]]
    hosts = [in_a_rhythm(filled(host_at(), seed), rhythm) for rhythm in rhythms]
    stores = [content(host.root) for host in hosts]
    assert stores[0]["jobs"]
    assert {row[0] for row in hosts[0].rows("SELECT DISTINCT state FROM jobs")} == {
        "COMPLETED", "FAILED", "NODE_FAIL", "CANCELLED",
    }  # fmt: skip
    assert stores[1] == stores[0]
    whole = [(BEGIN, LAST - timedelta(seconds=300))]
    assert [covered(host.root) for host in hosts] == [whole] * 2


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_hour_for_three_days_the_store_is_the_same(
    host_at: Callable[[], Host], seed: int
) -> None:
    hours = [*(BEGIN + hour * HOUR for hour in range(1, 72)), LAST]
    stores = [
        content(in_a_rhythm(filled(host_at(), seed), rhythm).root)
        for rhythm in (hours, [LAST], [BEGIN + DAY, END, LAST])
    ]
    assert stores[1] == stores[0]
    assert stores[2] == stores[0]


@pytest.mark.slow
def test_what_was_exported_by_hand_is_not_doubled_by_what_is_collected(
    host_at: Callable[[], Host], tmp_path: Path
) -> None:
    host = filled(host_at(), 3)
    in_a_rhythm(host, [LAST])
    before = content(host.root)
    host.says("now", iso(LAST))
    export = tmp_path / "sacct.txt"
    command = [host.folder / "bin" / "sacct", "-S", iso(BEGIN), "-E", iso(END)]
    export.write_bytes(subprocess.check_output(command))
    ingest_files(host.root, "sacct", [str(export)], Options())
    after = content(host.root)
    derived = {"gpu_time", "job_runs"}  # emptied until they are asked for
    assert {name: after[name] for name in after if name not in derived} == {
        name: before[name] for name in before if name not in derived
    }


@pytest.mark.parametrize("windows", [[1, 2, 30, 31, 32, 200], [5], list(range(1, 100))])
def test_windows_leave_no_gap_and_reach_no_further_than_the_margin(windows: list[int]) -> None:
    timing = Timing(overlap_s=7200, margin_s=300, slice_s=86_400, look_back_days=2)
    known, asked = Known(until_at=BEGIN), []
    for hour in windows:
        now = BEGIN + hour * HOUR
        found = timing.windows(known, now)
        assert max(window.until_at for window in found) == now - timedelta(seconds=300)
        assert all(a.until_at == b.from_at for a, b in pairwise(found))
        assert found[0].from_at is not None
        assert found[0].from_at <= known.until_at - 2 * HOUR
        asked += found
        known = Known(until_at=found[-1].until_at, looked_back_at=now)
    assert all((window.until_at - window.from_at) <= DAY for window in asked if window.from_at)


COLLECTORS = """
import os, signal, sys, time
from datetime import datetime
from pathlib import Path
import pandas, pyarrow
from data.collect import collect, collecting, load_sources
from data.ingest import Options
from data.ingest.readers import known_readers
from data.stages import stages
known_readers(), stages()
collecting.AT_ONCE_S = 0.0  # each day is published
for line in sys.stdin:
    folder, now, since, kill_after_s, kill_at = line.split()
    begin, child = time.monotonic(), os.fork()
    if child == 0:
        os.environ["FAKE"], root = folder, Path(folder, "store")
        if (root / "CURRENT").exists():
            since = None
        collect(root, load_sources(Path(folder, "collect.toml")), Options(),
                now=datetime.fromisoformat(now), since=since and datetime.fromisoformat(since))
        os._exit(0)
    ended, status = 0, 0
    while not ended:
        ended, status = os.waitpid(child, os.WNOHANG)
        late = time.monotonic() - begin > float(kill_after_s)
        if not ended and (late or Path(folder, "store", kill_at).exists()):
            os.kill(child, signal.SIGKILL)
            ended, status = os.waitpid(child, 0)
        time.sleep(0.001)
    print(status, time.monotonic() - begin, flush=True)
"""


class Collectors:
    """Collectors, each a process of its own that goes on where the last one ended."""

    def __init__(self) -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-c", COLLECTORS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, host: Host, *, kill_after_s: float = 1e9, kill_at: str = "never") -> float | None:
        """Seconds that one took to come to its end; None where it was killed before: after a time,
        or once a file of the store is there.
        """
        host.says("now", iso(LAST))
        sources(host)
        asked = (host.folder, LAST.isoformat(), BEGIN.isoformat(), kill_after_s, kill_at)
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        print(*asked, file=self._server.stdin, flush=True)
        status, took_s = self._server.stdout.readline().split()
        assert status in ("0", str(int(signal.SIGKILL)))
        return float(took_s) if status == "0" else None

    def end(self) -> None:
        """Ends them all."""
        self._server.communicate()


@pytest.fixture
def collectors(host: Host) -> Iterator[Collectors]:
    """Started once the commands are on the PATH."""
    found = Collectors()
    yield found
    found.end()


@pytest.mark.slow
def test_a_collector_that_was_killed_is_gone_on_with(
    host_at: Callable[[], Host], collectors: Collectors
) -> None:
    whole, host = filled(host_at(), 4), filled(host_at(), 4)
    assert collectors.run(host, kill_at="building-3.duckdb") is None
    (asked,) = host.rows("SELECT count(*) FROM collected_windows WHERE source = 'sacct'")
    assert asked[0] in (2, 3), "what was published by then"
    host.collect(LAST, sources(host))
    assert not (host.root / "collecting").exists()
    assert content(host.root) == content(in_a_rhythm(whole, [LAST]).root)


@pytest.mark.slow
def test_of_200_kills_none_loses_or_doubles_anything(
    host_at: Callable[[], Host], collectors: Collectors
) -> None:
    host = filled(host_at(), 5)
    longest_s = collectors.run(host)
    assert longest_s is not None
    whole = content(host.root)
    chance = random.Random(0)
    kills = complete = 0
    reached_at = BEGIN
    host = filled(host_at(), 5)
    while kills < 200:
        took_s = collectors.run(host, kill_after_s=chance.uniform(0.02, 0.7) * longest_s)
        kills += took_s is None
        if (host.root / "CURRENT").exists():
            (reached,) = host.rows("SELECT max(until_at) FROM collected_windows")[0]
            assert reached >= reached_at, "nothing that was published was lost"
            reached_at = reached
        if took_s is not None:
            assert content(host.root) == whole
            complete, reached_at, host = complete + 1, BEGIN, filled(host_at(), 5)
    assert complete > 0
