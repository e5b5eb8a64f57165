"""A source late or silent: by time alone, by its own pauses, each once, and never of an archive."""

from __future__ import annotations

from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from app.alerts import asked as back
from app.alerts.rule import Watch
from app.alerts.rules import source_silent
from app.answers.fleet.actions import rows
from app.ask import of_store
from data.filters import Selection
from data.publish import writer
from data.site_alerts import AlertSettings
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.alerts.rule import Found

START = datetime(2026, 1, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def jobs(*days: int, cluster: str = "c") -> pd.DataFrame:
    """A job a day."""
    at = [START + day * DAY + HOUR for day in days]
    return pd.DataFrame({
        "cluster": cluster, "attempt_key": [f"{cluster}{day}" for day in days],
        "job_id": [str(day) for day in days], "state": "COMPLETED", "n_gpus": 8, "n_nodes": 1,
        "node_list": "n1", "submit_at": at, "start_at": at, "end_at": [each + HOUR for each in at],
    })  # fmt: skip


def kernel(*days: int, n: int = 20, cluster: str = "c") -> pd.DataFrame:
    """Lines of the kernel log on some days."""
    return pd.DataFrame([
        {"cluster": cluster, "event_id": f"{cluster} {day} {one}", "node": "n1",
         "observed_at": START + day * DAY + one * timedelta(minutes=30), "source": "kernel",
         "check_name": "xid", "xid": 43, "severity": "info"}
        for day in days for one in range(n)
    ])  # fmt: skip


def asked(cluster: str | None, *hours: float, result: str = "rows") -> pd.DataFrame:
    """Times at which the accounting was asked for."""
    at = [START + hour * HOUR for hour in hours]
    return pd.DataFrame({
        "source": "sacct" if cluster else "journal", "cluster": cluster, "reader": "sacct", "covers": "jobs", "node": None,
        "whole_cluster": True, "from_at": [each - 2 * HOUR for each in at], "until_at": at,
        "collected_at": at, "result": result, "n_rows": 1, "error": None, "asked": "sacct",
    })  # fmt: skip


def ingests(clusters: str, *hours: float) -> pd.DataFrame:
    """Files that were read."""
    return pd.DataFrame({
        "ingest_id": [f"{clusters} {hour}" for hour in hours], "source": "sacct",
        "cluster": clusters, "path": "jobs.txt",
        "ingested_at": [START + hour * HOUR for hour in hours],
    })  # fmt: skip


RARE = (0, 6, 15, 21, 30, 38, 44, 53, 61, 66)
RETURNED = (*range(30), *range(400, 410))
JOBS = {
    "collected": (0,), "kernel-stops": range(60), "jobs-stop": range(40), "rare": range(81),
    "archive": range(30), "year": RETURNED, "alone": range(30), "sound": range(60),
    "both": range(40), "read": range(10), "once": range(10),
}  # fmt: skip
"""Cluster -> days with jobs."""
KERNEL = {
    "kernel-stops": range(40), "jobs-stop": range(80), "rare": RARE, "archive": range(30),
    "year": RETURNED, "sound": range(60), "both": range(60),
}  # fmt: skip
READ = (0.0, 0.1, *(24.0 * day for day in range(1, 10)), 500.0)
"""Hours at which a file of the cluster `read` was read: daily, and again after days of nothing."""
NOONS = [24.0 * day + 12 for day in range(40)]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A cluster a case."""
    root = tmp_path_factory.mktemp("silent") / "store"
    windows = pd.concat([asked("collected", 1, 2, 3, 4), asked("both", *NOONS)])
    files = pd.concat([ingests("read", *READ), ingests("elsewhere,once", 1, 2, 90)])
    with writer(root) as building:
        building.load({
            "jobs": pd.concat([jobs(*days, cluster=name) for name, days in JOBS.items()]),
            "health_events": pd.concat([
                kernel(*days, cluster=name, n=1 if name == "rare" else 3)
                for name, days in KERNEL.items()
            ]),
        })  # fmt: skip
        building.connection.register("windows", windows)
        building.connection.execute("INSERT INTO collected_windows BY NAME FROM windows")
        building.connection.register("files", files)
        building.connection.execute("INSERT INTO ingests BY NAME FROM files")
        building.publish()
    with closing(Store.open(root)) as opened:
        yield opened


@contextmanager
def opened(folder: Path, windows: pd.DataFrame, *clusters: str) -> Iterator[Store]:
    """A store of clusters with jobs of ten days, and what was collected."""
    with writer(folder / "store") as building:
        building.load({"jobs": pd.concat([jobs(*range(10), cluster=name) for name in clusters])})
        building.connection.register("windows", windows)
        building.connection.execute("INSERT INTO collected_windows BY NAME FROM windows")
        building.publish()
    with closing(Store.open(folder / "store")) as held:
        yield held


def found(store: Store, cluster: str, day: float, from_day: float = 0) -> Found:
    """What the rule tells of a cluster by the end of some day."""
    watch = Watch(
        Selection(cluster), START + from_day * DAY, START + day * DAY, AlertSettings(), 0.1
    )
    return source_silent.find(of_store(store), watch)


def test_when_the_collector_stops_time_alone_tells_it(store: Store) -> None:
    assert not found(store, "collected", 27 / 24).episodes
    (one,) = found(store, "collected", 29 / 24).episodes
    assert one.severity == "critical"
    assert (one.since_at, one.raised_at) == (START + 4 * HOUR, START + 28 * HOUR)
    assert one.ended_at is None
    assert one.target == rows.target("source", "collected", "sacct", "collect")
    assert one.sentence == (
        "sacct of collected was collected until 1 Jan 2026 04:00 UTC, after 4 answers; nobody "
        "asked it again: does `faultline collect` still run?"
    )


def test_a_source_that_stops_while_others_go_on_is_told_once(store: Store) -> None:
    (one,) = found(store, "kernel-stops", 60).episodes
    assert (one.since_at, one.raised_at) == (START + 40 * DAY, START + 41 * DAY)
    assert one.ended_at is None
    assert one.severity == "warning"
    assert one.target == rows.target("source", "kernel-stops", "health_events.kernel")
    assert one.sentence.startswith("No kernel logs of kernel-stops since 9 Feb 2026, while others")


def test_jobs_that_stop_are_critical(store: Store) -> None:
    (one,) = found(store, "jobs-stop", 80).episodes
    assert one.severity == "critical"


def test_a_quiet_fortnight_of_a_rare_source_is_none(store: Store) -> None:
    assert found(store, "rare", 81).episodes == ()


def test_of_an_archive_and_of_a_year_of_nothing_nothing_is_told(store: Store) -> None:
    assert found(store, "archive", 900, from_day=810).episodes == ()
    assert found(store, "year", 410).episodes == ()


def test_one_source_alone_cannot_be_judged(store: Store) -> None:
    one = found(store, "alone", 90)
    assert one.episodes == ()
    assert one.blind is not None
    assert one.blind.startswith("cannot be judged: no source is collected")


def test_a_cluster_is_judged_by_its_own_sources(store: Store) -> None:
    assert found(store, "sound", 60).episodes == ()


def test_a_source_that_is_late_is_not_silent_too(store: Store) -> None:
    """Both see that the jobs stop: its collecting is told, with the better time."""
    (one,) = found(store, "both", 60).episodes
    assert one.target == rows.target("source", "both", "sacct", "collect")


def test_a_collector_that_stopped_is_told_for_ever_with_all_its_answers(store: Store) -> None:
    for day in (45, 400, 4_000):
        (one,) = found(store, "both", day, from_day=day - 1).episodes
        assert (one.since_at, one.raised_at) == (START + 39.5 * DAY, START + 41.5 * DAY)
        assert one.ended_at is None
        assert "after 40 answers; nobody asked it again" in one.sentence


def test_a_source_that_fails_for_months_keeps_when_it_began(tmp_path: Path) -> None:
    fails = pd.concat([asked("a", 1, 2), asked("a", *range(3, 2_000, 9), result="failed")])
    never = asked("b", *range(3, 2_000, 9), result="failed")
    with opened(tmp_path, pd.concat([fails, never]), "a", "b") as store:
        for day in (1, 60, 400):
            (one,) = found(store, "a", day, from_day=day - 1).episodes
            assert (one.since_at, one.raised_at) == (START + 2 * HOUR, START + 12 * HOUR)
            (one,) = found(store, "b", day, from_day=day - 1).episodes
            assert (one.since_at, one.raised_at) == (START + 3 * HOUR, START + 12 * HOUR)


def test_a_source_of_no_cluster_is_told_once_and_of_none(tmp_path: Path) -> None:
    with opened(tmp_path, asked(None, 1, 2, 3, 4), "alpha", "beta") as store:
        (one,) = found(store, "alpha", 3).episodes
        assert one.sentence.startswith("journal was collected until 1 Jan 2026 04:00 UTC")
        other = found(store, "beta", 3)
        assert (other.episodes, other.blind) == ((), None)
        past = back.past(of_store(store), source_silent.RULE, START + 900 * DAY)
    assert [told.episode for told in past.told] == [one]  # after the last record


def test_the_past_of_an_archive_was_seen_and_its_present_is_not(store: Store) -> None:
    """Until day 410 records of two sources went on; by day 2,000 nobody knows."""
    ask, by = of_store(store), START + 2_000 * DAY
    assert found(store, "year", 2_000, from_day=1_999).blind == source_silent.BLIND
    blind = dict(back.past(ask, source_silent.RULE, by).blind)
    assert "alone" in blind
    assert "year" not in blind


def test_when_nothing_is_read_any_more_time_alone_tells_it(store: Store) -> None:
    assert not found(store, "read", 11.9).episodes
    (one,) = found(store, "read", 12.1).episodes
    assert (one.since_at, one.raised_at) == (START + 9 * DAY, START + 12 * DAY)
    assert (one.ended_at, one.severity) == (None, "critical")
    assert one.target == rows.target("source", "read", "ingests")
    assert one.sentence == (
        "No file of read was read since 10 Jan 2026 00:00 UTC; usually the next came within 24.0 h "
        "(n = 10 days with one): does what runs `faultline ingest` still run?"
    )
    (over,) = found(store, "read", 21).episodes
    assert over.ended_at == START + 500 * HOUR


def test_files_that_were_never_read_regularly_are_not_judged(store: Store) -> None:
    for cluster in ("once", "archive"):  # the latter of two sources that ended together
        one = found(store, cluster, 200, from_day=199)
        assert (one.episodes, one.blind) == ((), source_silent.BLIND)
    assert found(store, "archive", 30).blind is None
