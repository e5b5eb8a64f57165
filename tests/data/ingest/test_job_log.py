"""Logs of jobs: names, caps, what a line says, and the attempt a log belongs to."""

from __future__ import annotations

import gzip
import lzma
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import zstandard

from data.errors import DataError, SourceError
from data.ingest import IngestResult, Options, ingest
from data.ingest.readers.logs.job_log import log_name
from data.publish import writer
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Sequence

ACCOUNTS = """JobID|JobIDRaw|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|1|c|FAILED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T06:00:00|1|gres/gpu=8|n1
1|1|c|FAILED|2026-01-05T06:10:00|2026-01-05T06:20:00|2026-01-05T09:00:00|1|gres/gpu=8|n2
7_3|9|c|FAILED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-05T06:00:00|1|gres/gpu=8|n1
"""


def store_of(root: Path, *inputs: tuple[str, Path], **options: Any) -> list[IngestResult]:
    """Reads inputs one after another, each with a publish of its own."""
    results = []
    for source, path in inputs:
        with writer(root) as building:
            stated = Options(cluster="c", timezone="UTC", **options)
            results.append(ingest(building, source, str(path), stated))
            building.publish()
    return results


def rows(root: Path, sql: str) -> list[dict[str, Any]]:
    store = Store.open(root)
    frame = store.frame(sql).astype(object)
    store.close()
    return frame.where(frame.notna(), None).to_dict("records")


@pytest.fixture
def accounts(tmp_path: Path) -> Path:
    path = tmp_path / "accounts.txt"
    path.write_text(ACCOUNTS, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def accounts_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store of these accounts; only to be copied."""
    folder = tmp_path_factory.mktemp("accounts")
    (folder / "accounts.txt").write_text(ACCOUNTS, encoding="utf-8")
    store_of(folder / "store", ("sacct", folder / "accounts.txt"))
    return folder / "store"


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    folder = tmp_path / "logs"
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "slurm-1.out").write_text("2026-01-05 08:00:00 start\nKeyError: 'a'\n", "utf-8")
    (folder / "deep" / "er" / "run-9.err").write_text("no date here\n", "utf-8")
    (folder / "notes.md").write_text("mine\n", "utf-8")
    return folder


@pytest.mark.parametrize(
    ("path", "job_id"),
    [
        ("slurm-4711.out", "4711"), ("slurm-4711.err", "4711"), ("4711.out", "4711"),
        ("4711_3.err", "4711_3"), ("slurm-4711_12.out", "4711_12"), ("train-big-4711.log", "4711"),
        ("a/b/my.run_4711.out", "4711"), ("pre-train-4711_0.out", "4711_0"),
        ("STDIN.o4711", "4711"), ("4711_0_log.out", "4711"), ("4711_5_0_log.err", "4711_5"),
        ("slurm-4711.out.gz", "4711"), ("slurm-4711.out.zst", "4711"), ("007.out", "7"),
    ],
)  # fmt: skip
def test_usual_names_hold_the_job(path: str, job_id: str) -> None:
    found = log_name(path)
    assert found is not None
    assert found.job_id == job_id


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt", "slurm.out", "4711", "slurm-4711.out.bak", ".hidden",
        "train-2024.log", "layer12.log", "layer-12.log", "big/train-2024-01-05.log", "2024_01.log",
        "train-20240105_120000.out", "05-01-2024.log", "20240105.log", "train_1704067200.log",
        "train-rank-3.err", "checkpoint_50000.log", "node.7.out",
    ],
)  # fmt: skip
def test_other_names_hold_none(path: str) -> None:
    assert log_name(path) is None


@pytest.mark.parametrize(
    ("path", "pattern", "job_id"),
    [
        ("train-2024.log", "%x-%j.log", "2024"), ("rank-3.log", "%x-%j.log", "3"),
        ("slurm-2024.out", None, "2024"), ("job_2024.log", None, "2024"),
        ("train.o2024", None, "2024"), ("ranks-4711.log", None, "4711"),
    ],
)  # fmt: skip
def test_a_name_that_says_so_holds_a_job_whatever_its_number(
    path: str, pattern: str | None, job_id: str
) -> None:
    found = log_name(path, pattern)
    assert found is not None
    assert found.job_id == job_id


@pytest.mark.parametrize(
    ("pattern", "path", "said"),
    [
        ("%x/%j/rank%t-%N.txt", "logs/big/4711/rank3-gpu-7.txt", ("4711", "gpu-7", 3)),
        ("job%j-%N.log", "job12-node1.cluster.log", ("12", "node1.cluster", None)),
        ("%A_%a-%%.out", "5_2-%.out", ("5_2", None, None)),
        ("%j/*.log", "5/anything at all.log", ("5", None, None)),
        ("%5j.o", "00012.o", ("12", None, None)),
        ("%j-%j.o", "12-12.o", ("12", None, None)),
        ("%J.o", "12.0.o", ("12", None, None)),
    ],
)
def test_a_pattern_says_what_a_name_holds(
    pattern: str, path: str, said: tuple[str, str | None, int | None]
) -> None:
    found = log_name(path, pattern)
    assert found is not None
    assert (found.job_id, found.node, found.rank) == said


@pytest.mark.parametrize(
    ("pattern", "match"),
    [("out.txt", "must hold the job id"), ("%x-%N.out", "must hold"), ("%j-%q", "%q is unknown")],
)
def test_a_pattern_that_cannot_name_a_job_is_refused(
    tmp_path: Path, logs: Path, pattern: str, match: str
) -> None:
    with pytest.raises(DataError, match=match):
        store_of(tmp_path / "store", ("job-log", logs), pattern=pattern)


def test_a_folder_is_read_and_every_file_accounted_for(tmp_path: Path, logs: Path) -> None:
    (logs / "slurm-2.out").write_bytes(b"\x00\x01\x02\x03\x04\x05\x06\x0e" * 600)
    (logs / "slurm-3.out").touch()
    (result,) = store_of(tmp_path / "store", ("job-log", logs))
    assert (result.rows_read, result.rows_kept, result.rows_rejected) == (6, 3, 1)
    assert result.skipped_by_reason == {"name_without_job_id": 1, "empty_file": 1}
    assert "2 of 2" in " ".join(result.notices)
    found = rows(tmp_path / "store", "FROM job_logs ORDER BY file, line_no")
    assert [(row["job_id"], row["file"], row["line_no"], row["text"]) for row in found] == [
        ("9", "deep/er/run-9.err", 1, "no date here"),
        ("1", "slurm-1.out", 1, "2026-01-05 08:00:00 start"),
        ("1", "slurm-1.out", 2, "KeyError: 'a'"),
    ]
    assert {row["attempt_key"] for row in found} == {None}


@pytest.mark.slow
@pytest.mark.parametrize("order", [[1, 0], [0, 1], [1, 0, 1, 0]])
def test_the_attempt_does_not_depend_on_the_order_of_ingests(
    tmp_path: Path, logs: Path, accounts: Path, order: Sequence[int]
) -> None:
    inputs = [("sacct", accounts), ("job-log", logs)]
    store_of(tmp_path / "store", *(inputs[place] for place in order))
    found = rows(
        tmp_path / "store",
        "SELECT DISTINCT file, jobs.job_id, start_at FROM job_logs JOIN jobs USING (attempt_key) "
        "ORDER BY file",
    )
    assert [(row["file"], row["job_id"], row["start_at"].hour) for row in found] == [
        ("deep/er/run-9.err", "7_3", 0),  # raw id of an array's task
        ("slurm-1.out", "1", 6),
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dated", "hour"), [("2026-01-05T05:59:00Z", 0), ("2026-01-05T06:30:00Z", 6), ("undated", 6),
                        ("2026-01-05T06:01:00Z", 0), ("2027-01-01T00:00:00Z", 6)],
)  # fmt: skip
def test_a_log_belongs_to_the_attempt_of_its_last_date_else_to_the_last_one(
    tmp_path: Path, accounts_store: Path, dated: str, hour: int
) -> None:
    shutil.copytree(accounts_store, tmp_path / "store")
    log = tmp_path / "slurm-1.out"
    log.write_text(f"{dated} gone\n", encoding="utf-8")
    store_of(tmp_path / "store", ("job-log", log))
    (row,) = rows(tmp_path / "store", "SELECT start_at FROM job_logs JOIN jobs USING (attempt_key)")
    assert row["start_at"].hour == hour


def test_the_same_folder_again_changes_nothing(tmp_path: Path, logs: Path, accounts: Path) -> None:
    *_, again = store_of(
        tmp_path / "store", ("job-log", logs), ("sacct", accounts), ("job-log", logs)
    )
    assert again.tables == {"job_logs": 0}
    assert again.rows_kept == 3


def test_a_long_log_keeps_its_first_and_last_lines_with_their_numbers(tmp_path: Path) -> None:
    log = tmp_path / "slurm-1.out"
    log.write_text("".join(f"line {n}\n" for n in range(1, 101)), encoding="utf-8")
    (result,) = store_of(tmp_path / "store", ("job-log", log), first_lines=2, last_lines=3)
    assert (result.rows_read, result.rows_kept) == (100, 5)
    assert result.skipped_by_reason == {"between_first_and_last_lines": 95}
    found = rows(tmp_path / "store", "FROM job_logs ORDER BY line_no")
    assert [row["line_no"] for row in found] == [1, 2, 98, 99, 100]
    assert all(row["text"] == f"line {row['line_no']}" for row in found)


@pytest.mark.parametrize("last_lines", [0, 1])
def test_a_cap_of_no_lines_is_kept_to(tmp_path: Path, last_lines: int) -> None:
    log = tmp_path / "slurm-1.out"
    log.write_text("a\nb\nc\n", encoding="utf-8")
    (result,) = store_of(tmp_path / "store", ("job-log", log), first_lines=1, last_lines=last_lines)
    assert result.rows_kept == 1 + last_lines


@pytest.mark.parametrize(
    ("ending", "packed"),
    [(".gz", gzip.compress), (".xz", lzma.compress), (".zst", zstandard.compress)],
)
def test_packed_logs_are_unpacked(tmp_path: Path, ending: str, packed: Any) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / f"slurm-1.out{ending}").write_bytes(packed(b"one\ntwo\n"))
    store_of(tmp_path / "store", ("job-log", folder))
    assert len(rows(tmp_path / "store", "FROM job_logs")) == 2


def test_a_cut_log_among_others_is_rejected_unless_asked_for(tmp_path: Path, logs: Path) -> None:
    (logs / "slurm-2.out.gz").write_bytes(gzip.compress(b"one\ntwo\n")[:-6])
    (whole,) = store_of(tmp_path / "store", ("job-log", logs), partial=False)
    assert (whole.rows_kept, whole.rows_rejected) == (3, 1)
    assert "gzip data ends early or is broken" in next(iter(whole.rejected_by_reason))
    (partial,) = store_of(tmp_path / "store", ("job-log", logs), partial=True)
    assert (partial.rows_kept, partial.rows_rejected) == (5, 0)
    assert "files that end early, read up to there: 1" in partial.notices


def test_bytes_that_are_no_text_do_not_stop_a_log(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "slurm-1.out").write_bytes(b"a\xff\n\0\0b\r\n" + b"x" * 200_000 + b" end\nlast")
    (result,) = store_of(tmp_path / "store", ("job-log", folder))
    found = rows(tmp_path / "store", "FROM job_logs ORDER BY line_no")
    assert [row["text"][-4:].strip() for row in found] == ["a\ufffd", "b", "end", "last"]
    assert max(len(row["text"]) for row in found) == 4_000
    assert any("not UTF-8" in text for text in result.notices)


def test_parquet_among_the_logs_is_rejected(tmp_path: Path, logs: Path) -> None:
    (logs / "slurm-2.out").write_bytes(b"PAR1" + bytes(range(256)) * 16 + b"PAR1")
    (result,) = store_of(tmp_path / "store", ("job-log", logs))
    assert result.rejected_by_reason == {"is Parquet, and this reads text: give the log itself": 1}
    assert (result.rows_read, result.rows_kept) == (5, 3)


def test_a_folder_that_cannot_be_listed_is_rejected(tmp_path: Path) -> None:
    folder = tmp_path / "logs"
    for place in ("a", "b"):
        (folder / place).mkdir(parents=True)
        (folder / place / "slurm-1.out").write_text("one\n", encoding="utf-8")

    def b_is_moved_away(_: str) -> None:
        shutil.rmtree(folder / "b", ignore_errors=True)

    (result,) = store_of(tmp_path / "store", ("job-log", folder), progress=b_is_moved_away)
    assert result.rejected_by_reason == {"cannot be read (No such file or directory)": 1}
    assert (result.rows_read, result.rows_kept) == (2, 1)
    assert rows(tmp_path / "store", "SELECT raw FROM rejected_rows") == [{"raw": "b"}]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "logged_at", "rank", "node"),
    [
        ("[rank3]: 2026-01-05T10:00:00.5+01:00 x", (9, 0, 500_000), 3, None),
        ("3: [2026-01-05 10:00:00,250] x", (10, 0, 250_000), 3, None),
        ("2026/01/05 10:00:00 x", (10, 0, 0), None, None),
        ("1767607200.250 x", (10, 0, 250_000), None, None),
        ("[1,7]<stderr>: x", None, 7, None),
        ("2026-13-45 10:00:00 x", None, None, None),
        ("gpu-7:12:34 [0] NCCL WARN x", None, None, "gpu-7"),
        ("loss 2026 at 10:00", None, None, None),
    ],
)
def test_a_line_says_its_time_rank_and_host(
    tmp_path: Path,
    text: str,
    logged_at: tuple[int, int, int] | None,
    rank: int | None,
    node: str | None,
) -> None:
    log = tmp_path / "slurm-1.out"
    log.write_text(text + "\n", encoding="utf-8")
    store_of(tmp_path / "store", ("job-log", log))
    (row,) = rows(tmp_path / "store", "FROM job_logs")
    hour, minute, microsecond = logged_at or (0, 0, 0)
    expected = datetime(2026, 1, 5, hour, minute, 0, microsecond, UTC) if logged_at else None
    assert (row["logged_at"], row["rank"], row["node"]) == (expected, rank, node)


def test_local_times_are_those_of_the_cluster(tmp_path: Path) -> None:
    log = tmp_path / "slurm-1.out"
    log.write_text("2026-07-05 10:00:00 x\n", encoding="utf-8")
    with writer(tmp_path / "store") as building:
        ingest(building, "job-log", str(log), Options(timezone="Europe/Berlin"))
        building.publish()
    (row,) = rows(tmp_path / "store", "FROM job_logs")
    assert row["logged_at"] == datetime(2026, 7, 5, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    ("names", "match"),
    [
        ([], "holds no files"),
        (["notes.txt", "b.md"], "no name of its 2 files holds a job id: pass --pattern"),
        (["slurm-1.out"], r"all logs in it are empty \(1\)"),
    ],
)
def test_a_folder_without_logs_is_refused(tmp_path: Path, names: list[str], match: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    for name in names:
        (folder / name).touch()
    with pytest.raises(SourceError, match=match):
        store_of(tmp_path / "store", ("job-log", folder))


def test_a_file_whose_name_holds_no_job_is_refused(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("x\n", encoding="utf-8")
    with pytest.raises(SourceError, match="its name holds no job id: pass --pattern"):
        store_of(tmp_path / "store", ("job-log", log))
