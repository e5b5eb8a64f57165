"""Accounting that is reduced makes the attempts that a store makes of it, however it came."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.actions import Options, ingest_files
from data.errors import DataError, SourceError
from data.ingest.readers.schedulers.sacct_fields import PRESETS
from data.reduce.job_engine import DuckDBJobs
from data.reduce.manifest import load
from data.store import Store
from tests.data.reduce.accounts import Row, attempts_of, content, dumps, one_more, reduced, written

HEADER = "JobID|Cluster|State|Submit|Start|End|ElapsedRaw|SLUID|NNodes|NodeList"
DAY = "2026-01-05"


def line(job: str = "1", state: str = "COMPLETED", times: str = "08 09 10", **more: str) -> str:
    """A record of a day, by the hours of submit, start and end; 00 is Unknown."""
    hours = [f"{DAY}T{hour}:00:00" if hour != "00" else "Unknown" for hour in times.split()]
    elapsed, sluid = more.get("elapsed", "3600"), more.get("sluid", "")
    cluster = more.get("cluster", "a")
    return "|".join([job, cluster, state, *hours, elapsed, sluid, "1", more.get("nodes", "n1")])


def dump(path: Path, *lines: str) -> Path:
    path.write_text("\n".join([HEADER, *lines, ""]))
    return path


def test_each_record_that_gives_way_is_told_by_its_reason(tmp_path: Path) -> None:
    whole = [
        line("1", "PENDING", "08 00 00"), line("1", "RUNNING", "08 09 00"), line("1"), line("1"),
        line("1.batch"), line("2_3", "RUNNING", "08 09 00", elapsed="60"),
        line("2_3", "RUNNING", "08 09 00", elapsed="90"), line("3+0", "PREEMPTED", "08 09 10"),
        line("3+0", "COMPLETED", "08 11 12"), line("4", "COMPLETED", "08 09 11"), line("4"),
        line("5", sluid="s5"), line("5"), line("6", sluid="s6"), line("6", times="08 10 11",
        sluid="s6"), HEADER, line("7", "LOST"), line("8", times="99 09 10"), "1|a|COMPLETED",
    ]  # fmt: skip
    path = dump(tmp_path / "a.txt", *whole)
    result = reduced(tmp_path / "out", path)
    assert dict(result.manifest.total("skipped")) == {
        "job_step": 1, "header": 1, "an earlier state of the same submission": 2,
        "the same record once more": 1, "ends before another record of the attempt": 2,
        "another record of the attempt with the same end counts": 1,
        "no SLUID, which another record of the attempt has": 1,
    }  # fmt: skip
    assert dict(result.manifest.total("rejected")) == {
        "State is no Slurm state": 1, "submit is no time": 1, "too few fields": 1,
    }  # fmt: skip
    kept = attempts_of("reduced-jobs", tmp_path / "out")
    assert [(row[2], row[5]) for row in kept if row[2] in ("3+0", "5", "6")]  # two attempts of 3+0
    assert len(kept) == result.counts["rows_kept"] == 7
    assert kept == attempts_of("sacct", path)


@cache
def made() -> list[list[Row]]:
    return dumps(0, n_jobs=40, n_dumps=3)


@pytest.fixture(scope="module")
def raw(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Attempts of the dumps as they are merged one after the other."""
    folder = tmp_path_factory.mktemp("raw")
    paths = [written(rows, folder / f"{k}.txt") for k, rows in enumerate(made())]
    return attempts_of("sacct", *paths)


@pytest.mark.parametrize(
    "form",
    ["parquet", *(pytest.param(form, marks=pytest.mark.slow) for form in ("txt", "csv", "jsonl"))],
)
def test_dumps_that_overlap_become_the_attempts_of_a_store(
    tmp_path: Path, raw: list[Any], form: str
) -> None:
    paths = [written(rows, tmp_path / f"{k}.{form}") for k, rows in enumerate(made())]
    result = reduced(tmp_path / "out", *paths)
    assert result.counts["rows_read"] == sum(map(len, made()))
    assert result.counts["rows_kept"] == len(raw)
    assert attempts_of("reduced-jobs", tmp_path / "out") == raw


@pytest.mark.slow
@settings(max_examples=8)
@given(order=st.permutations(range(3)), first=st.integers(1, 3), most_rows=st.integers(20, 400))
def test_no_order_of_files_runs_and_pieces_changes_the_attempts(
    raw: list[Any], order: list[int], first: int, most_rows: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        paths = [written(rows, folder / f"{k}.parquet") for k, rows in enumerate(made())]
        reduced(folder / "out", *(paths[k] for k in order[:first]), most_rows=most_rows)
        reduced(folder / "out", *(paths[k] for k in order), most_rows=most_rows)
        reduced(folder / "once", *paths)
        assert content(folder / "out") == content(folder / "once")
        assert attempts_of("reduced-jobs", folder / "out") == raw


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 9))
def test_other_dumps_and_zones_become_the_attempts_of_a_store(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    stated = {"timezone": chance.choice(["Europe/Berlin", "UTC", "America/New_York"])}
    whole, unnamed = dumps(seed, n_jobs=80, n_dumps=5), seed % 4 == 0
    if unnamed:  # nobody names a cluster until the ingest does
        whole = [
            [row | {"Cluster": row["Cluster"].removeprefix("a").removeprefix("b")} for row in rows]
            for rows in whole
        ]
    paths = [
        written(rows, tmp_path / f"{k}.{chance.choice(['txt', 'csv', 'jsonl', 'parquet'])}")
        for k, rows in enumerate(whole)
    ]
    texts = [written(rows, tmp_path / f"text-{k}.txt") for k, rows in enumerate(whole)]
    named = {"cluster": "c"} if seed % 2 else {}
    result = reduced(tmp_path / "out", *paths, **stated, **named)
    assert not result.manifest.refused
    stated |= {"cluster": "d"} if unnamed else {}
    wanted = attempts_of("sacct", *texts, **stated, **named)
    assert attempts_of("reduced-jobs", tmp_path / "out", **stated) == wanted
    assert result.counts["rows_kept"] == len(wanted) + unnamed  # one tie, left to the store


def test_a_day_of_which_other_records_are_reduced_than_were_counted_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DuckDBJobs, "survey", one_more(DuckDBJobs.survey))
    told = f"{DAY}: 3 records were counted and 2 were reduced"
    with pytest.raises(DataError, match=told):
        reduced(tmp_path / "out", dump(tmp_path / "a.txt", line("1"), line("2")))
    manifest = load(tmp_path / "out")
    assert manifest is not None
    assert manifest.partitions == {}


def test_a_late_record_makes_its_day_anew_and_no_other(tmp_path: Path) -> None:
    first = dump(tmp_path / "1.txt", line("1", "RUNNING", "08 09 00"),
                 line("2").replace(DAY, "2026-01-04"))  # fmt: skip
    late, out = dump(tmp_path / "2.txt", line("1")), tmp_path / "out"
    assert reduced(out, first).days_done == ["2026-01-04", DAY]
    assert reduced(out, first).days_done == []
    with pytest.raises(SourceError, match=r"2026-01-05 is done and has to be made anew.*1\.txt"):
        reduced(out, late)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    result = reduced(out, first, late)
    assert result.days_done == [DAY]
    assert "1 records of" in result.notices[0]
    kept = {path for path in out.rglob("*.parquet") if before.get(path) == path.stat().st_mtime_ns}
    assert [path.parent.name for path in kept] == ["day=2026-01-04"]
    assert attempts_of("reduced-jobs", out) == attempts_of("sacct", first, late)


def test_ids_and_times_of_other_types_are_those_that_sacct_prints(tmp_path: Path) -> None:
    times = pd.to_datetime([f"{DAY}T08:00:00", None, f"{DAY}T08:00:00"])
    frame = pd.DataFrame({
        "JobID": [1.0, 2.0, 3.0], "State": ["COMPLETED", "PENDING", "RUNNING"], "Submit": times,
        "Start": times.tz_localize("UTC"), "End": [None, None, None], "NNodes": [1.0, None, 2.0],
        "ElapsedRaw": [3600, 0, 5], "Cluster": "a", "Comment": "x",
    })  # fmt: skip
    frame.to_parquet(tmp_path / "a.parquet")
    result = reduced(tmp_path / "out", tmp_path / "a.parquet")
    assert result.counts == {"rows_read": 3, "rows_kept": 3, "rows_skipped": 0, "rows_rejected": 0}
    assert set(result.manifest.partitions) == {DAY, "unknown"}
    text = [
        f"1|a|COMPLETED|{DAY}T08:00:00|{DAY}T08:00:00Z||3600||1|", "2|a|PENDING||||0|||",
        f"3|a|RUNNING|{DAY}T08:00:00|{DAY}T08:00:00Z||5||2|",
    ]  # fmt: skip
    wanted = attempts_of("sacct", dump(tmp_path / "a.txt", *text))
    assert attempts_of("reduced-jobs", tmp_path / "out") == wanted


def test_int96_are_instants_as_spark_writes_them(tmp_path: Path) -> None:
    times = pd.to_datetime([f"{DAY}T08:00:00"])
    frame = pd.DataFrame({"JobID": ["1"], "State": "COMPLETED", "Submit": times, "Cluster": "a"})
    frame.to_parquet(tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    reduced(tmp_path / "out", tmp_path / "a.parquet", timezone="Asia/Tokyo")
    found = attempts_of("reduced-jobs", tmp_path / "out", timezone="Asia/Tokyo")
    path = dump(tmp_path / "a.txt", f"1|a|COMPLETED|{DAY}T08:00:00Z||||||")
    assert found == attempts_of("sacct", path, timezone="Asia/Tokyo")


@pytest.mark.slow
def test_files_with_other_columns_and_types_are_read_side_by_side(tmp_path: Path) -> None:
    row = {"JobID": 1, "State": "COMPLETED", "Submit": f"{DAY}T08:00:00", "NNodes": 2, "id": 7}
    pd.DataFrame([row]).to_parquet(tmp_path / "1.parquet")
    pd.DataFrame([row | {"JobID": "2_3", "NNodes": "1K"}]).to_parquet(tmp_path / "2.parquet")
    other = {"jobidraw": 4, "STATE": "FAILED", "AllocNodes": 3, "day": "x"}
    pd.DataFrame([other]).to_parquet(tmp_path / "3.parquet")
    result = reduced(tmp_path / "out", tmp_path)
    assert result.counts["rows_kept"] == 3
    found = attempts_of("reduced-jobs", tmp_path / "out")
    assert sorted(((row[2], row[30]) for row in found), key=str) == [
        ("1", 2), ("2_3", 1024), ("4", 3)
    ]  # fmt: skip


@pytest.mark.slow
def test_what_ties_and_names_no_cluster_is_left_to_the_store(tmp_path: Path) -> None:
    text = [line("1", "RUNNING", "08 09 00", elapsed=str(s), cluster="") for s in (60, 90, 90)]
    path = dump(tmp_path / "a.txt", *text)
    result = reduced(tmp_path / "out", path)
    assert result.counts["rows_kept"] == 2
    assert any("pass --cluster" in told for told in result.notices)
    for cluster in ("a", "b"):
        found = attempts_of("reduced-jobs", tmp_path / "out", cluster=cluster)
        assert found == attempts_of("sacct", path, cluster=cluster)
    assert reduced(tmp_path / "of-a", path, cluster="a").counts["rows_kept"] == 1
    assert attempts_of("reduced-jobs", tmp_path / "of-a") == attempts_of("sacct", path, cluster="a")


def test_files_that_cannot_be_read_are_told_and_the_others_done(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    dump(folder / "good.txt", line())
    (folder / "empty.txt").touch()
    (folder / "broken.parquet").write_bytes(b"PAR1 and nothing")
    (folder / "other.csv").write_text("JobID,Start\n1,2\n")
    (folder / "torn.csv").write_text(
        'JobID,State,JobName\n1,FAILED,"a,\nb"\n2,FAILED\n3,FAILED,x,y\n'
    )
    (folder / "no.jsonl").write_text('{"JobID": 5.0, "State": "FAILED"}\n{"JobID": 2\n')
    (folder / "_SUCCESS").touch()
    result = reduced(tmp_path / "out", folder)
    told = {Path(path).name: why for path, why in result.manifest.refused.items()}
    assert sorted(told) == ["broken.parquet", "empty.txt", "other.csv"]
    assert "is empty" in told["empty.txt"]
    assert "is damaged" in told["broken.parquet"]
    assert "column State is missing (found JobID, Start)" in told["other.csv"]
    assert result.manifest.total("rejected") == {
        "too few fields": 1, "too many fields": 1, "JobID is no job id": 1,
    }  # fmt: skip
    assert result.counts["rows_kept"] == 3
    assert [row[2] for row in attempts_of("reduced-jobs", tmp_path / "out")] == ["1", "1", "5"]


def test_a_broken_record_is_found_in_its_place_whatever_part_of_a_text_is_read_first(
    tmp_path: Path,
) -> None:
    header = "JobID|State|Submit|JobName"
    lines = [header]
    for job in range(4_000):  # a header in the place of a broken record would be refused
        state, name = "LOST" if job % 100 == 0 else "FAILED", "torn\napart" if job == 50 else "x"
        lines += [f"{job}|{state}|{DAY}T08:00:00|{name}", header]
    path = tmp_path / "a.txt"
    path.write_text("\n".join([*lines, ""]))
    result = reduced(tmp_path / "out", path)
    assert result.counts["rows_kept"] == 3_960
    assert result.manifest.total("rejected") == {"State is no Slurm state": 40}
    assert result.manifest.total("skipped") == {"header": 4_000}


@pytest.mark.slow
def test_local_times_are_read_in_no_other_zone_than_they_were_compared_in(tmp_path: Path) -> None:
    reduced(tmp_path / "out", dump(tmp_path / "a.txt", line()), timezone="Asia/Tokyo")
    with pytest.raises(SourceError, match=r"read in Asia/Tokyo.*pass --timezone Asia/Tokyo"):
        attempts_of("reduced-jobs", tmp_path / "out")
    assert attempts_of("reduced-jobs", tmp_path / "out", timezone="Asia/Tokyo")


@pytest.mark.slow
def test_a_folder_of_another_reduction_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    path, out = dump(tmp_path / "a.txt", line()), tmp_path / "out"
    reduced(out, path)
    with pytest.raises(DataError, match="is a reduction of jobs with zone UTC"):
        reduced(out, path, timezone="Asia/Tokyo")
    with pytest.raises(SourceError, match="holds no reduction of metrics"):
        attempts_of("reduced-metrics", out)
    (file,) = out.rglob("*.parquet")
    pd.DataFrame({"jobid": ["x"]}).to_parquet(file)
    with pytest.raises(SourceError, match="is damaged"):
        attempts_of("reduced-jobs", out)
    file.unlink()
    with pytest.raises(SourceError, match=r"is absent, and manifest\.json names it"):
        attempts_of("reduced-jobs", out)


@pytest.mark.slow
def test_half_of_all_records_of_one_user_day_and_job_are_reduced_by_shares(tmp_path: Path) -> None:
    rows = [line(str(k), times="08 09 00", state="RUNNING") for k in range(300)]
    rows += [line(str(k)) for k in range(300)] + [line("7", elapsed=str(k)) for k in range(300)]
    path = dump(tmp_path / "a.txt", *rows)
    result = reduced(tmp_path / "out", path, most_rows=100)
    assert result.counts["rows_kept"] == 300
    assert len(result.manifest.files("jobs")) > 3
    assert attempts_of("reduced-jobs", tmp_path / "out") == attempts_of("sacct", path)


@pytest.mark.slow
def test_an_hour_that_comes_twice_is_told_by_the_running_time(tmp_path: Path) -> None:
    times = "2026-10-25T01:45:00|2026-10-25T01:45:00|2026-10-25T02:15:00"
    rows = [f"{job}|a|COMPLETED|{times}|{s}||1|n1" for job, s in (("1", 1800), ("1", 5400))]
    path = dump(tmp_path / "a.txt", *rows)
    zone = "Europe/Berlin"
    reduced(tmp_path / "out", path, timezone=zone)
    found = attempts_of("reduced-jobs", tmp_path / "out", timezone=zone)
    assert found == attempts_of("sacct", path, timezone=zone)


@pytest.mark.slow
@pytest.mark.parametrize(("divider", "n_files", "n_attempts"), [("|", 4, 311), ("|#", 4, 2)])
def test_the_odd_files_of_gcm_become_the_attempts_of_a_store(
    tmp_path: Path, shared_data: Path, divider: str, n_files: int, n_attempts: int
) -> None:
    apart = ("-expected.txt", "-with-invalid-lines.txt")  # the only record there is rejected
    paths = [
        path
        for path in sorted((shared_data / "slurm/gcm").glob("sample-sacct-*.txt"))
        if not path.name.endswith(apart)
        and ("|#" in path.read_text(errors="replace").splitlines()[0]) == (divider == "|#")
    ]
    assert len(paths) == n_files
    result = reduced(tmp_path / "out", *paths)
    assert not result.manifest.refused
    assert result.counts["rows_kept"] == n_attempts
    wanted = attempts_of("sacct", *paths, delimiter=divider)
    assert attempts_of("reduced-jobs", tmp_path / "out") == wanted


@pytest.mark.slow
def test_real_accounting_becomes_the_attempts_of_a_store(tmp_path: Path, shared_data: Path) -> None:
    header = "|".join(PRESETS["xdmod"])
    lines = (shared_data / "slurm/xdmod/pozidriv.log").read_text().strip().splitlines()
    paths = [tmp_path / "pozidriv.txt", tmp_path / "again.txt"]
    for path, some in zip(paths, (lines, lines[::3]), strict=True):
        path.write_text("\n".join([header, *some, ""]))
    result = reduced(tmp_path / "out", *paths)
    assert result.counts["rows_kept"] == len(lines) == 11_704  # each of another job
    assert dict(result.manifest.total("skipped")) == {"the same record once more": len(lines[::3])}
    assert attempts_of("reduced-jobs", tmp_path / "out") == attempts_of("sacct", *paths)


@pytest.mark.slow
def test_a_store_fed_by_a_reduction_holds_what_one_fed_by_the_files_holds(tmp_path: Path) -> None:
    paths = [written(rows, tmp_path / f"{k}.txt") for k, rows in enumerate(made())]
    result = reduced(tmp_path / "out", *paths, timezone="Europe/Berlin")
    assert not result.manifest.refused
    options = Options(timezone="Europe/Berlin")
    ingest_files(tmp_path / "raw", "sacct", list(map(str, paths)), options)
    ingest_files(tmp_path / "store", "auto", [str(tmp_path / "out")], options)
    apart = {"ingests", "rejected_rows", "stage_runs", "collected_windows", "store_meta"}
    with (
        closing(Store.open(tmp_path / "raw")) as one,
        closing(Store.open(tmp_path / "store")) as two,
    ):
        names = {row[0] for row in one.rows("SELECT table_name FROM duckdb_tables()")} - apart
        assert {"jobs", "job_nodes", "clusters", "coverage", "failures"} <= names
        for name in sorted(names):
            query = f"SELECT * FROM {name} ORDER BY ALL"
            assert one.rows(query) == two.rows(query), name
    shutil.rmtree(tmp_path / "raw")
