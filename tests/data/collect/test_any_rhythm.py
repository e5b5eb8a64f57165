"""However often, in which pieces and whatever breaks off: what is collected is the same."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
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
    from collections.abc import Callable, Iterable
    from datetime import datetime
    from pathlib import Path

    from tests.data.collect.conftest import Host

APART = {
    "ingests", "rejected_rows", "store_meta", "stage_runs", "collected_windows", "collected_files",
}  # fmt: skip
END = BEGIN + 2 * DAY
LAST = BEGIN + 5 * DAY
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


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_by_the_hour_or_by_the_day_or_at_once_the_store_is_the_same(
    host_at: Callable[[], Host], seed: int
) -> None:
    chance = random.Random(seed)
    hours = sorted(chance.sample(range(1, 72), 4))
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


COLLECTOR = """
import sys
from datetime import datetime
from pathlib import Path
from data.collect import collect, collecting, load_sources
from data.ingest import Options
collecting.AT_ONCE_S = 0.0  # each day is published
root, config, since, now = sys.argv[1:]
collect(Path(root), load_sources(Path(config)), Options(), now=datetime.fromisoformat(now),
        since=datetime.fromisoformat(since) if since else None)
"""


def started(host: Host) -> subprocess.Popen[bytes]:
    """A collector of its own that goes on where the last one ended."""
    since = "" if (host.root / "CURRENT").exists() else BEGIN.isoformat()
    host.says("now", iso(LAST))
    sources(host)
    asked = [host.root, host.folder / "collect.toml", since, (LAST).isoformat()]
    return subprocess.Popen([sys.executable, "-c", COLLECTOR, *map(str, asked)])


def test_a_collector_that_was_killed_is_gone_on_with(host_at: Callable[[], Host]) -> None:
    whole, host = filled(host_at(), 4), filled(host_at(), 4)
    process = started(host)
    limit = time.monotonic() + 60
    while not list(host.root.glob("building-3.*")) and time.monotonic() < limit:
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    (asked,) = host.rows("SELECT count(*) FROM collected_windows WHERE source = 'sacct'")
    assert asked[0] in (2, 3), "what was published by then"
    host.collect(LAST, sources(host))
    assert not (host.root / "collecting").exists()
    assert content(host.root) == content(in_a_rhythm(whole, [LAST]).root)


@pytest.mark.slow
def test_of_200_kills_none_loses_or_doubles_anything(host_at: Callable[[], Host]) -> None:
    whole = content(in_a_rhythm(filled(host_at(), 5), [LAST]).root)
    host = filled(host_at(), 5)
    begin = time.monotonic()
    assert started(host).wait() == 0
    longest_s = time.monotonic() - begin
    assert content(host.root) == whole
    chance = random.Random(0)
    kills = complete = 0
    until_at = None
    host = filled(host_at(), 5)
    while kills < 200:
        process = started(host)
        try:
            process.wait(chance.uniform(0.2, 1.1) * longest_s)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
        if not (host.root / "CURRENT").exists():
            continue
        ((reached,),) = host.rows("SELECT max(until_at) FROM collected_windows")
        assert until_at is None or reached >= until_at, "nothing published was lost"
        until_at = reached
        if process.returncode == 0:
            assert content(host.root) == whole
            complete, until_at, host = complete + 1, None, filled(host_at(), 5)
    assert complete > 0
