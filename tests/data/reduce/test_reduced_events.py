"""Events that are reduced answer as all of their records do, in whatever pieces they came."""

from __future__ import annotations

import gzip
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.actions import Options, ingest_files
from data.errors import DataError
from data.reduce.manifest import load
from data.reduce.spark_scan import SPACES
from data.store import Store
from tests.data.reduce.events import answers, events, reduced, store_of
from tests.data.reduce.samples import content, written

LINES = """Host,time,XID,message,severity,check
n1,2026-01-05T10:00:01Z,79,"pid=1, fell off",,
n1,2026-01-05T10:00:05Z,79,"pid=2, fell off",,
n1,2026-01-05T10:00:09Z,79,"pid=0, fell off",,
n1,2026-01-05T10:00:59Z,79,"pid=5, fell off",,
n1,2026-01-05T10:01:00Z,79,"pid=5, fell off",,
"""


def told(out: Path) -> list[tuple[Any, ...]]:
    """Of each burst xid, number, seconds since 10:00 of first, last and least, and its words."""
    return [
        (row[8], row[10], *((us - 1767607200_000_000) / 1e6 for us in row[11:14]), *row[14:17])
        for row in sorted(content(out, "bursts"), key=lambda row: row[11])
    ]


def test_what_is_told_alike_in_a_minute_is_one_burst_with_first_last_and_least_record(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    result = reduced(tmp_path / "out", tmp_path / "a.csv")
    assert told(tmp_path / "out") == [
        (79, 4, 1, 59, 9, "pid=1, fell off", "pid=5, fell off", "pid=0, fell off"),
        (79, 1, 60, 60, 60, *["pid=5, fell off"] * 3),
    ]
    assert result.counts["rows_kept"] == 5


ALIKE = {
    "of a process, by the second": (["1,13,a 1,,", "2,13,a 2,,"], 2),
    "other words": (["1,79,a 1,,", "2,79,b 2,,"], 2),
    "numbers that tell the severity": (["1,149,0x1f,,", "2,149,0x2f,,"], 2),
    "a code in the text": (["1,,Xid 13,critical,nhc", "2,,Xid 79,critical,nhc"], 2),
    "other numbers": (["1,,port 1,critical,nhc", "2,,port 2,critical,nhc"], 1),
    "other severity": (["1,,port 1,critical,nhc", "2,,port 1,warning,nhc"], 2),
    "before 1970": (["-1,79,a,,", "1,79,a,,"], 2),
}


def test_records_alike_share_all_that_an_analysis_looks_at(tmp_path: Path) -> None:
    lines = [f'"{node}",{line}' for node, (lines, _) in ALIKE.items() for line in lines]
    lines += [f'"{node}, ""8""",1,79,a,,' for node in "nN"]
    (tmp_path / "a.csv").write_text("\n".join([LINES.splitlines()[0], *lines]))
    reduced(tmp_path / "out", tmp_path / "a.csv")
    found = Counter(row[2] for row in content(tmp_path / "out", "bursts"))
    wanted = {name: n for name, (_, n) in ALIKE.items()}
    assert found == wanted | {'n, "8"': 1, 'N, "8"': 1}  # the store knows that they are one


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A store of all records, and the folder of one of their reduction."""
    folder, frame = tmp_path_factory.mktemp("both"), events()
    half = frame["node"].isin(("n3", "n5"))  # true repeats lie in one file
    pieces = [written(frame[half == k], folder / f"{k}.parquet") for k in (False, True)]
    reduced(folder / "out", *pieces)
    store_of(folder / "reduced", 0, out=folder / "out")
    return store_of(folder / "raw", 0, frame=frame), folder


@pytest.mark.slow
def test_a_store_fed_by_a_reduction_answers_as_one_fed_by_the_records(
    both: tuple[Path, Path],
) -> None:
    by_records, by_bursts = answers(both[0]), answers(both[1] / "reduced")
    assert by_bursts.keys() == by_records.keys()
    for name, wanted in by_records.items():
        assert by_bursts[name] == wanted, name


@pytest.mark.slow
def test_a_reduction_after_its_records_changes_nothing(both: tuple[Path, Path]) -> None:
    sql = "SELECT * EXCLUDE (node_written) FROM health_events ORDER BY ALL"
    root, out = both[0], both[1] / "out"
    with closing(Store.open(root)) as store:
        before = store.rows(sql)
    ingest_files(root, "auto", [str(out)], Options(cluster="a"))
    with closing(Store.open(root)) as store:
        assert store.rows(sql) == before


@pytest.mark.slow
def test_a_larger_version_of_a_burst_replaces_a_smaller_one(tmp_path: Path) -> None:
    sql = """SELECT sum(n_records), count(*), min(observed_at), (SELECT sum(n_rows) FROM coverage)
      FROM health_events"""
    first, late = tmp_path / "1.csv", tmp_path / "2.csv"
    header, *lines = LINES.splitlines()
    first.write_text("\n".join([header, *lines[1:]]))
    late.write_text("\n".join([header, lines[0]]))
    reduced(tmp_path / "small", first)
    result = reduced(tmp_path / "small", first, late)
    assert "1 records" in "".join(result.notices)
    assert "made anew" in "".join(result.notices)
    reduced(tmp_path / "other", first)
    found = []
    for n, order in enumerate((("other", "small"), ("small", "other"))):
        for each in order:
            ingest_files(tmp_path / f"store-{n}", "auto", [str(tmp_path / each)], Options())
        with closing(Store.open(tmp_path / f"store-{n}")) as store:
            found.append(store.rows(sql))
    assert found[0] == found[1]
    assert (*found[0][0][:2], found[0][0][3]) == (5, 4, 5)


WRONG = """node,at,check_name,xid,severity,message
n1,1767650400,nhc,,critical,x
n1,1767650401000,nhc,,OK,x
,1767650400,nhc,,critical,x
n1,yesterday,nhc,,critical,x
n1,1767650400,,,critical,x
n1,1767650400,,0,,x
n1,1767650400,,7.5,,x
n1,1767650400,,79.0,,x
n1,1767650400,nhc,,emergency,x
n1,2026-01-05 23:00:00,nhc,,critical,x
"""


def test_every_record_is_kept_skipped_or_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(WRONG)
    result = reduced(tmp_path / "out", tmp_path / "a.csv", timezone="Europe/Berlin")
    assert (result.counts["rows_read"], result.counts["rows_kept"]) == (10, 3)
    assert result.manifest.total("skipped") == {"passed": 1, "code 0, which is none": 1}
    assert result.manifest.total("rejected") == {
        "no node": 1, "its time is none": 1, "no check and no code": 1,
        "its code is no whole number": 1,
        "its severity is none of info, warning, critical, fatal": 1,
    }  # fmt: skip
    rows = content(tmp_path / "out", "bursts")
    assert sorted((row[5], row[8], row[10], row[11]) for row in rows) == [
        ("nhc", None, 2, 1767650400_000_000), ("xid", 79, 1, 1767650400_000_000),
    ]  # fmt: skip


def test_records_that_overlapping_files_repeat_count_once(tmp_path: Path) -> None:
    header, *lines = LINES.splitlines()
    (tmp_path / "1.csv").write_text("\n".join([header, *lines, lines[0]]))
    (tmp_path / "2.csv").write_text("\n".join([header, *lines[:3]]))
    result = reduced(tmp_path / "out", tmp_path)
    assert [row[1] for row in told(tmp_path / "out")] == [5, 1]  # a file's own repeats count
    (done,) = result.manifest.partitions.values()
    assert (done.rows_in, done.repeated) == (9, 3)


FEW = events(3, busy=0.1).sample(60, random_state=0)


@pytest.mark.slow
@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    order=st.permutations(range(60)), pieces=st.lists(st.integers(0, 2), min_size=60, max_size=60)
)
def test_what_is_written_depends_on_the_set_of_records_alone(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], pieces: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("pieces")
    written(FEW, folder / "whole.parquet")
    reduced(folder / "a", folder / "whole.parquet")
    mixed = FEW.iloc[order]
    files = [
        written(mixed[[each == k for each in pieces]], folder / f"{k}.parquet") for k in range(3)
    ]
    reduced(folder / "b", *files, most_rows=20)
    assert content(folder / "b", "bursts") == content(folder / "a", "bursts")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_forms_of_one_table_give_the_same(tmp_path: Path, form: str) -> None:
    rows = FEW.assign(xid=FEW.xid.astype("string"))
    reduced(tmp_path / "a", written(FEW, tmp_path / "a.parquet"))
    reduced(tmp_path / "b", written(rows, tmp_path / f"b.{form}", observed_at="Timestamp"))
    assert content(tmp_path / "b", "bursts") == content(tmp_path / "a", "bursts")


def test_what_lines_of_json_name_late_is_read(tmp_path: Path) -> None:
    line = '{{"node": "n1", "time": 1767650400, "xid": 79, "message": "x"{}}}'
    gpus = [', "gpu": "3"' if k == 3_000 else "" for k in range(3_001)]
    (tmp_path / "a.jsonl").write_text("\n".join(line.format(gpu) for gpu in gpus))
    reduced(tmp_path / "out", tmp_path / "a.jsonl")
    found = {row[3]: row[10] for row in content(tmp_path / "out", "bursts")}
    assert found == {None: 3_000, "3": 1}


BROKEN_LINES = """node,at,xid,message
n1,2026-01-05T10:00:00Z,79,"fell
off, ""now"" or so"
n1,2026-01-05T10:01:00Z,79
n1,2026-01-05T10:02:00Z,79,whole
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.csv.zst"])
def test_a_message_of_csv_may_hold_the_ends_of_lines(tmp_path: Path, name: str, end: str) -> None:
    pack = {".gz": gzip.compress, ".zst": zstandard.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(BROKEN_LINES.replace("\n", end).encode()))
    result = reduced(tmp_path / "out", tmp_path / name)
    assert (result.counts["rows_read"], result.counts["rows_kept"]) == (3, 3)
    found = [row[14] for row in sorted(content(tmp_path / "out", "bursts"), key=lambda r: r[11])]
    assert found == ['fell\noff, "now" or so', None, "whole"]


def test_what_spark_trims_is_what_duckdb_trims() -> None:
    trimmed = duckdb.sql(
        """SELECT string_agg(chr(code::INT), '' ORDER BY code) FROM range(1, 65536) AS all_(code)
           WHERE code NOT BETWEEN 55296 AND 57343 AND trim(chr(code::INT) || 'x') = 'x'"""
    ).fetchall()
    assert trimmed == [(SPACES,)]


def test_a_file_that_cannot_be_read_is_told_and_the_others_are_done(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    (tmp_path / "empty.csv").touch()
    (tmp_path / "other.csv").write_text("host,when\nn1,2026-01-05\n")
    (tmp_path / "bare.csv").write_text("host,time,message\nn1,2026-01-05,x\n")
    (tmp_path / "prose.log").write_text("a day like any other\n")
    (tmp_path / "cut.parquet").write_bytes(b"PAR1")
    result = reduced(tmp_path / "out", tmp_path)
    why = {Path(path).name: text for path, text in result.manifest.refused.items()}
    assert "is empty" in why["empty.csv"]
    assert "no column of at" in why["other.csv"]
    assert "no column of check_name/xid/sxid" in why["bare.csv"]
    assert "is no kernel log" in why["prose.log"]
    assert "is damaged" in why["cut.parquet"]
    assert result.counts["rows_kept"] == 5


def test_a_folder_of_the_other_kind_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(LINES)
    reduced(tmp_path / "out", tmp_path / "a.csv")
    with pytest.raises(DataError, match="is a reduction of events"):
        reduced(tmp_path / "out", tmp_path / "a.csv", cluster="b")
    with pytest.raises(DataError, match="holds no reduction of metrics"):
        ingest_files(tmp_path / "store", "reduced-metrics", [str(tmp_path / "out")], Options())
    assert load(tmp_path / "out") is not None


KERNEL = [
    "Jan  5 10:00:0{n} gpu-1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid={n}, GPU has fallen off",
    "Jan  5 10:00:0{n} gpu-1 kernel: usb 1-1: new device {n}",
]


def log(folder: Path) -> Path:
    """A kernel log, half of whose lines are no event."""
    path = folder / "kern.log"
    path.write_text("\n".join(line.format(n=n) for n in range(9) for line in KERNEL) + "\n")
    return path


BY_MINUTE = """SELECT cluster, node, gpu, date_trunc('minute', observed_at) AS minute, source,
  check_name, severity, xid, sxid, sum(coalesce(n_records, 1)), min(observed_at), max(observed_at),
  min(message) FROM health_events WHERE observed_at IS NOT NULL GROUP BY ALL ORDER BY ALL"""
IDS = "SELECT event_id FROM health_events"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["kernel-log", "ras-log"])
def test_logs_are_read_as_their_readers_read_them(
    tmp_path: Path, shared_data: Path, source: str
) -> None:
    path = log(tmp_path) if source == "kernel-log" else shared_data / "loghub" / "BGL_2k.log"
    raw, fed, out = (tmp_path / name for name in ("raw", "fed", "out"))
    ((ingested,), _) = ingest_files(raw, source, [str(path)], Options(cluster="a"))
    counts = reduced(out, path).counts
    assert counts["rows_read"] == ingested.rows_read
    assert counts["rows_skipped"] == sum(ingested.skipped_by_reason.values())
    ingest_files(fed, "auto", [str(out)], Options(cluster="a"))
    with closing(Store.open(raw)) as by_records, closing(Store.open(fed)) as by_bursts:
        assert by_bursts.rows(BY_MINUTE) == by_records.rows(BY_MINUTE)
        assert {*by_bursts.rows(IDS)} <= {*by_records.rows(IDS)}


def test_a_log_is_reduced(tmp_path: Path) -> None:
    result = reduced(tmp_path / "out", log(tmp_path))
    assert (result.counts["rows_read"], result.counts["rows_kept"]) == (18, 9)
    assert result.manifest.total("skipped") == {"no_fault": 9}
    (burst,) = content(tmp_path / "out", "bursts")
    assert (burst[2], burst[8], burst[10]) == ("gpu-1", 79, 9)
    assert any("times without a year" in text for text in result.notices)
