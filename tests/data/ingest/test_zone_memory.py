"""The zone of a cluster's local times: remembered, told, and never contradicted unnoticed."""

from __future__ import annotations

import json
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from app.actions import IngestResult, Options, ingest_files
from data.errors import DataError
from data.publish import roll_back
from data.publish.writer import writer
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

HEADER = "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
BERLIN, UTC = Options(timezone="Europe/Berlin"), Options(timezone="UTC")
STATED = Options()
LINE = "2026-07-01T12:00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen\n"


def accounting(root: Path, *, zone: str = "", day: int = 5, jobs: Sequence[int] = (1, 2, 3)) -> str:
    """Jobs of different waiting and running times; times of a zone, or local ones."""
    lines = "".join(
        f"{job}|c|COMPLETED|2026-01-{day:02}T0{job}:00:00{zone}|2026-01-{day:02}T0{job}:0{job}:00"
        f"{zone}|2026-01-{day:02}T1{job}:00:0{job}{zone}|1|gres/gpu=8|n1\n"
        for job in jobs
    )
    path = root.parent / f"sacct{zone}{day}.txt"
    path.write_text(HEADER + lines)
    return str(path)


def read(root: Path, path: str, options: Options, source: str = "sacct") -> IngestResult:
    (result,), _ = ingest_files(root, source, [path], options)
    return result


def submitted(root: Path) -> list[str]:
    with closing(Store.open(root)) as store:
        sql = "SELECT strftime(submit_at, '%d %H') FROM jobs ORDER BY submit_at"
        return [hour for (hour,) in store.rows(sql)]


def zone(root: Path) -> str:
    with closing(Store.open(root)) as store:
        ((found,),) = store.rows("SELECT timezone FROM clusters")
    return str(found)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"


def test_a_forgotten_timezone_is_the_one_of_before_and_doubles_nothing(root: Path) -> None:
    first = read(root, accounting(root), BERLIN)
    assert first.zones == {"c": "Europe/Berlin"}
    again = read(root, accounting(root), STATED)
    assert submitted(root) == ["05 00", "05 01", "05 02"]
    assert "local times of c read in Europe/Berlin, as before (ingest 1.1)" in again.notices
    assert not any("read as UTC" in text for text in again.notices)
    assert zone(root) == "Europe/Berlin"


def test_a_kernel_log_is_read_in_the_zone_that_accounting_stated(root: Path) -> None:
    read(root, accounting(root), BERLIN)
    log = root.parent / "kernel.log"
    log.write_text(LINE)
    told = "local times of c read in Europe/Berlin, the cluster's as another source stated it"
    result = read(root, str(log), Options(cluster="c"), "kernel-log")
    assert f"{told} (ingest 1.1)" in result.notices
    with closing(Store.open(root)) as store:
        sql = "SELECT strftime(observed_at, '%H') FROM health_events"
        assert store.rows(sql) == [("10",)]
    with pytest.raises(
        DataError, match="would be read in Asia/Tokyo, but local times of cluster c"
    ):
        read(root, str(log), Options(cluster="c", timezone="Asia/Tokyo"), "kernel-log")


def test_a_source_that_was_read_in_a_zone_of_its_own_stays_in_it(root: Path) -> None:
    """Accounting in local time, kernel logs in UTC: each is read as it was, told once."""
    log = root.parent / "kernel.log"
    log.write_text(LINE)
    own = Options(cluster="c", timezone="UTC", own_zone=True)
    read(root, accounting(root), BERLIN)
    for options in (own, Options(cluster="c"), own):
        read(root, str(log), options, "kernel-log")
    with closing(Store.open(root)) as store:
        sql = "SELECT strftime(observed_at, '%H') FROM health_events"
        assert store.rows(sql) == [("12",)]
    assert zone(root) == "Europe/Berlin"


@pytest.mark.slow
def test_what_one_source_assumed_binds_no_other(root: Path) -> None:
    log = root.parent / "kernel.log"
    log.write_text(LINE)
    read(root, str(log), Options(cluster="c"), "kernel-log")
    read(root, accounting(root), BERLIN)
    read(root, str(log), Options(cluster="c"), "kernel-log")  # as before: nothing doubles
    with closing(Store.open(root)) as store:
        assert store.rows("SELECT count(*) FROM health_events") == [(1,)]
    with pytest.raises(
        DataError, match=r"were read in UTC so far, as nobody stated a zone \(from "
    ):
        read(root, str(log), Options(cluster="c", timezone="Europe/Berlin"), "kernel-log")


def test_what_was_read_as_utc_for_want_of_a_zone_is_taken_back_first(root: Path) -> None:
    path = accounting(root)
    read(root, path, STATED)
    message = (
        r"would be read in Europe/Berlin, but local times of cluster c were read in UTC so far, as "
        r"nobody stated a zone \(from ingest 1\.1, .*sacct5\.txt, on\): leave --timezone out if "
        r"UTC is right; take that ingest back by `faultline rollback 1\.1` if it is not"
    )
    with pytest.raises(DataError, match=message):
        read(root, path, BERLIN)
    roll_back(root, ingest_id="1.1")
    read(root, path, BERLIN)
    assert submitted(root) == ["05 00", "05 01", "05 02"]


def test_a_zone_of_site_toml_that_contradicts_names_the_section(root: Path) -> None:
    read(root, accounting(root), STATED)
    (root / "site.toml").write_text('[cluster.c]\ntimezone = "Europe/Berlin"\n')
    with pytest.raises(DataError, match=r"write timezone = 'UTC' into \[cluster\.c\] of site.toml"):
        read(root, accounting(root, day=6), STATED)


def test_zones_whose_clocks_agree_in_the_period_contradict_nothing(root: Path) -> None:
    read(root, accounting(root), BERLIN)
    read(root, accounting(root), Options(timezone="Europe/Paris"))
    assert len(submitted(root)) == 3


def test_a_file_may_be_in_another_zone_which_is_not_remembered(root: Path) -> None:
    read(root, accounting(root), BERLIN)
    alone = replace(UTC, own_zone=True)
    result = read(root, accounting(root, day=8, jobs=(4, 5, 6)), alone)
    assert "local times of c read in UTC, as stated for this file" in result.notices
    assert result.command == f"faultline ingest sacct --file-timezone UTC {root.parent}/sacct8.txt"
    read(root, accounting(root, day=9, jobs=(7, 8, 9)), STATED)
    assert submitted(root)[3:] == ["08 04", "08 05", "08 06", "09 06", "09 07", "09 08"]


def test_jobs_that_are_there_in_another_zone_are_refused_whatever_was_remembered(
    root: Path,
) -> None:
    read(root, accounting(root, zone="+02:00"), STATED)  # offsets say all: nothing to remember
    assert zone(root) == "UTC"
    message = (
        "3 of its jobs are in the store already, 2 h 00 min earlier: they were read in another"
    )
    with pytest.raises(DataError, match=message):
        read(root, accounting(root), STATED)
    assert submitted(root) == ["04 23", "05 00", "05 01"]
    ingest_files(root, "sacct", [accounting(root), accounting(root, zone="+02:00")], STATED)
    assert len(submitted(root)) == 3  # the one that would double is left out, the other read


def test_a_job_that_comes_again_is_no_sign_of_another_zone(root: Path) -> None:
    """Jobs of scrontab keep their id, and start anew every hour for as long as before."""
    read(root, accounting(root, zone="Z"), STATED)
    shifted = accounting(root, day=6, jobs=(1, 2))  # two by chance, a day later to the hour
    read(root, shifted, STATED)
    assert len(submitted(root)) == 5
    requeued = root.parent / "requeued.txt"
    requeued.write_text(
        HEADER
        + "".join(
            f"{job}|c|COMPLETED|2026-01-05T0{job}:30:00|2026-01-05T0{job}:31:00|"
            f"2026-01-05T1{job}:00:00|1|gres/gpu=8|n1\n"
            for job in (1, 2, 3)
        )
    )
    read(root, str(requeued), STATED)  # submitted half an hour later, and waited for as long
    assert len(submitted(root)) == 8


def test_a_store_of_before_tells_where_it_read_times_as_utc(root: Path) -> None:
    read(root, accounting(root), STATED)
    with writer(root) as building:
        building.connection.execute("UPDATE ingests SET zones = NULL")
        building.publish()
    with pytest.raises(DataError, match="were read in UTC so far, as nobody stated a zone"):
        read(root, accounting(root, day=6), BERLIN)
    with closing(Store.open(root)) as store:
        ((notices,),) = store.rows("SELECT notices FROM ingests")
    assert any("read as UTC" in text for text in json.loads(notices))
