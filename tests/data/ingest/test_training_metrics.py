"""Training metrics: CSV exports of several frameworks, broken rows, and their attempts."""

from __future__ import annotations

import contextlib
import itertools
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from app.actions import build_ledger, ingest_files
from data.errors import DataError
from data.ingest.formats.source import opened
from data.ingest.reader import Batch, Options
from data.ingest.readers import known_readers
from data.ingest.readers.training import training_metrics
from data.ingest.readers.training.quantities import known_columns
from data.queries import training
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = 1_767_225_600  # 2026-01-01T00:00:00Z
SACCT = """\
JobID|JobIDRaw|State|Submit|Start|End|NNodes|AllocTRES|NodeList
7|7|PREEMPTED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|2|gres/gpu=16|n[1-2]
7|7|COMPLETED|2026-01-01T01:00:00|2026-01-01T01:30:00|2026-01-01T03:00:00|2|gres/gpu=16|n[1-2]
9_4|13|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|2|gres/gpu=16|n[3-4]
"""


def rows_of(folder: Path, text: str | bytes, **options: Any) -> tuple[Batch, list[dict[str, Any]]]:
    """What the reader makes of a text, and its rows with None for what is unknown."""
    path = folder / "metrics.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with duckdb.cursor() as connection, opened(str(path), folder) as found:
        connection.execute("SET TimeZone='UTC'")
        batch = training_metrics.read(found, Options(**{"job_id": "7"} | options), connection)
        table = batch.tables["training_metrics"]
        rows = [dict(zip(table.columns, row, strict=True)) for row in table.fetchall()]
    n_skipped = sum(batch.skipped_by_reason.values())
    assert batch.rows_read == batch.rows_kept + n_skipped + len(batch.rejected)
    assert batch.rows_kept == len(rows)
    return batch, rows


def known(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


AT = datetime(2026, 1, 1, tzinfo=UTC)
BASE = {"cluster": "cluster", "job_id": "7", "logged_at": AT}
EXPORTS: dict[str, tuple[str, dict[str, Any]]] = {
    "plain": (
        ("step,logged_at,loss,step_time_s,grad_norm,throughput,rank,lr\n"
        "100,2026-01-01T00:00:00Z,2.5,6.5,0.4,51000,3,0.0003\n"),
        {"step": 100, "loss": 2.5, "step_time_s": 6.5, "grad_norm": 0.4, "throughput": 51000,
         "rank": 3, "learning_rate": 0.0003},
    ),
    "wandb": (
        ('"_step","_timestamp","train/loss","train/grad_norm","train/learning_rate","_runtime"\n'
        f'"100","{EPOCH}.0","2.5","0.4","0.0003","812.5"\n'),
        {"step": 100, "loss": 2.5, "grad_norm": 0.4, "learning_rate": 0.0003,
         "series": {"_runtime": 812.5}},
    ),
    "tensorboard": (
        f"Wall time,Step,Value\r\n{EPOCH}.0,100,2.5\r\n",
        {"step": 100, "series": {"Value": 2.5}},
    ),
    "megatron": (
        ("timestamp;iteration;elapsed time per iteration (ms);lm loss;grad norm;loss scale\n"
        "2026-01-01 00:00:00;100;6500.0;2.5;0.4;1.0\n"),
        {"step": 100, "step_time_s": 6.5, "loss": 2.5, "grad_norm": 0.4,
         "loss_scale": 1},
    ),
    "nemo": (
        ("global_step\ttimestamp\treduced_train_loss\ttrain_step_timing in s\tconsumed_samples\n"
        f"100\t{EPOCH}000\t2.5\t6.5\t12800\n"),
        {"step": 100, "loss": 2.5, "step_time_s": 6.5, "series": {"consumed_samples": 12800}},
    ),
    "logging": (
        'Time,Iter,Training Loss,Iter Time (us)\n"2026-01-01 01:00:00,000+0100",100,nan,6500000\n',
        {"step": 100, "step_time_s": 6.5, "loss": "nan"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("export", EXPORTS)
def test_exports_of_several_frameworks_are_read(tmp_path: Path, export: str) -> None:
    text, expected = EXPORTS[export]
    assert training_metrics.sniff(text) or export == "tensorboard"
    _, (row,) = rows_of(tmp_path, text)
    found = known(row)
    if "series" in found:
        found["series"] = json.loads(found["series"])
    if found.get("loss") != found.get("loss"):
        found["loss"] = "nan"
    assert found == BASE | expected


def test_no_other_reader_takes_such_a_file_for_its_own() -> None:
    for text, _ in EXPORTS.values():
        taken = [name for name, reader in known_readers().items() if reader.sniff(text)]
        assert set(taken) <= {"training-metrics"}


def test_a_job_may_be_spelled_as_in_accounting(tmp_path: Path) -> None:
    text = f"step,time,loss,JobID\n5,{EPOCH},2.5,7\n"
    assert [name for name, reader in known_readers().items() if reader.sniff(text)] == [
        "training-metrics"
    ]
    assert rows_of(tmp_path, text, job_id=None)[1][0]["job_id"] == "7"


def test_a_rank_that_no_job_has_is_rejected(tmp_path: Path) -> None:
    text = f"step,time,loss,rank\n5,{EPOCH},2.5,3000000000\n5,{EPOCH},2.5,2147483647\n"
    found = stored(tmp_path, ("training-metrics", text), job_id="7")
    assert len(found) == 1


@pytest.mark.parametrize(
    ("spelling", "event"),
    [("saved", "saved"), ("Save", "saved"), ("checkpoint_saved", "saved"), ("save-checkpoint", "saved"),
     ("loaded", "loaded"), ("restored", "loaded"), ("Checkpoint Loaded", "loaded"), ("resume", "loaded"),
     ("", None), ("none", None), ("step", None)],
)  # fmt: skip
def test_usual_spellings_of_saves_and_loads_are_known(
    tmp_path: Path, spelling: str, event: str | None
) -> None:
    text = f"step,time,checkpoint_event,checkpoint_time_ms\n5,{EPOCH},{spelling},1500\n"
    _, (row,) = rows_of(tmp_path, text)
    assert (row["checkpoint_event"], row["checkpoint_s"]) == (event, 1.5)


def test_broken_rows_are_rejected_with_line_and_reason(tmp_path: Path) -> None:
    head = "step,time,loss,step_time_s,checkpoint_event,rank,note"
    lines = {
        "1.5,2026-01-01T00:00:00Z,2,6,,0,": "step is no whole number",
        ",2026-01-01T00:00:00Z,2,6,,0,": "no step",
        "1,,2,6,,0,": "no time",
        "1,0.35,2,6,,0,": "time cannot be read",
        "1,yesterday,2,6,,0,": "time cannot be read",
        "1,2026-13-01T00:00:00Z,2,6,,0,": "time cannot be read",
        "1,2026-01-01,2,6,,0,": "time cannot be read",
        "1,2026-01-01T00:00:00Z,two,6,,0,": "loss is no number",
        "1,2026-01-01T00:00:00Z,2,-6,,0,": "step_time_s is no duration",
        "1,2026-01-01T00:00:00Z,2,inf,,0,": "step_time_s is no duration",
        "1,2026-01-01T00:00:00Z,2,6,exploded,0,": "checkpoint_event is neither saved nor loaded",
        "1,2026-01-01T00:00:00Z,2,6,,main,": "rank is no whole number",
        "1,2026-01-01T00:00:00Z,2": "fields do not fit the header",
        '1,2026-01-01T00:00:00Z,2,6,,0,"never closed': None,
    }
    good = '7,2026-01-01T00:00:00Z,2,6,,0,"a, b"'
    text = "\n".join([head, good, *lines, "", good.replace("7", "8"), head, good.replace("7", "9")])
    batch, rows = rows_of(tmp_path, text)
    assert [(row.line_no, row.reason) for row in batch.rejected] == [
        (number, reason) for number, reason in enumerate(lines.values(), 3) if reason
    ]
    assert batch.rejected[0].raw == next(iter(lines))
    assert sorted(row["step"] for row in rows) == [1, 7, 8, 9]
    assert batch.skipped_by_reason == {"header": 1}


def test_events_of_other_kinds_are_skipped_in_a_column_of_all_events(tmp_path: Path) -> None:
    text = f"step,time,event\n5,{EPOCH},eval_end\n5,{EPOCH},save\n6,{EPOCH},train\n"
    batch, rows = rows_of(tmp_path, text)
    assert batch.skipped_by_reason == {"other_event": 1}
    assert [row["checkpoint_event"] for row in rows] == ["saved", None]


def test_a_save_may_lack_its_step(tmp_path: Path) -> None:
    batch, rows = rows_of(tmp_path, f"step,time,checkpoint_event\n,{EPOCH},saved\n")
    assert (rows[0]["step"], rows[0]["checkpoint_event"]) == (None, "saved")
    assert batch.rejected == []


def test_local_times_follow_the_zone_that_is_stated(tmp_path: Path) -> None:
    text = "step,time,loss,cluster\n1,2026-07-01 12:00:00,2,a\n2,2025-10-26T02:30:00,2,b\n"
    batch, rows = rows_of(tmp_path, text, timezone="Europe/Berlin")
    assert [row["logged_at"].hour for row in rows] == [10, 0]
    assert batch.notices == ["columns taken: 'time' for logged_at"]
    batch, rows = rows_of(tmp_path, text, timezones={"a": "Europe/Berlin"})
    assert [row["logged_at"].hour for row in rows] == [10, 2]
    assert "times without a zone, read as UTC (pass --timezone)" in batch.notices
    with pytest.raises(DataError, match="time zone 'Mars/Base' is unknown"):
        rows_of(tmp_path, text, timezone="Mars/Base")


def test_seconds_to_nanoseconds_since_1970_are_told_apart(tmp_path: Path) -> None:
    lines = [f"{i},{EPOCH}{'0' * i},2" for i in (0, 3, 6, 9)]
    _, rows = rows_of(tmp_path, "\n".join(["step,timestamp,loss", *lines]))
    assert {row["logged_at"] for row in rows} == {AT}


def test_units_are_said_where_a_name_is_not_the_stores_own() -> None:
    found = known_columns(["iteration", "ts", "Step Time [ms]", "save_time", "iter_time_min"])
    assert (found["step_time"].factor, found["checkpoint"].factor) == (1e-3, 1.0)
    assert "loss" not in found


def test_a_file_without_step_time_or_job_is_refused_with_what_to_do(tmp_path: Path) -> None:
    cases = {
        "epoch,time,loss\n1,2026-01-01T00:00:00Z,2\n": "no column is step .* pass --columns",
        " \n\n": "has no header",
    }
    for text, said in cases.items():
        with pytest.raises(DataError, match=said):
            rows_of(tmp_path, text)
    with pytest.raises(DataError, match="names no job: pass --job-id"):
        rows_of(tmp_path, EXPORTS["plain"][0], job_id=None)


def test_columns_may_be_stated_for_a_file_without_header(tmp_path: Path) -> None:
    options: dict[str, Any] = {"columns": ("step", "time", "loss"), "delimiter": " "}
    _, rows = rows_of(tmp_path, f"5 {EPOCH} 2.5\n6 {EPOCH} 2.4\n", **options)
    assert [(row["step"], row["loss"]) for row in rows] == [(5, 2.5), (6, 2.4)]


def test_a_row_that_names_its_job_keeps_it_and_one_that_names_a_run_keeps_that(
    tmp_path: Path,
) -> None:
    text = f"step,time,loss,job_id,run_id\n1,{EPOCH},2,11,\n2,{EPOCH},2,,exp\n3,{EPOCH},2,12,exp\n"
    batch, rows = rows_of(tmp_path, text, job_id=None)
    assert [(row["job_id"], row["run_id"]) for row in rows] == [
        ("11", None), (None, "exp"), ("12", None)
    ]  # fmt: skip
    assert "rows with a job and a run: the run is found from the job: 1" in batch.notices


def stored(folder: Path, *inputs: tuple[str, str], **options: Any) -> list[tuple[Any, ...]]:
    """The store's training metrics after some files, each published by itself."""
    for number, (source, text) in enumerate(inputs):
        path = folder / f"{source}-{number}.txt"
        path.write_text(text, encoding="utf-8")
        _, errors = ingest_files(folder / "store", source, [str(path)], Options(**options))
        assert errors == []
    with contextlib.closing(Store.open(folder / "store")) as store:
        return store.rows(
            """SELECT training_metrics.job_id, training_metrics.run_id, step, rank, start_at, loss
               FROM training_metrics LEFT JOIN jobs USING (cluster, attempt_key)
               ORDER BY ALL"""
        )


METRICS = """\
step,time,loss,rank,job_id,run_id
1,2026-01-01T00:10:00Z,2.5,0,7,
2,2026-01-01T01:00:30Z,2.4,0,7,
2,2026-01-01T01:40:00Z,2.4,0,7,
3,2026-01-01T01:10:00Z,2.3,0,7,
4,2026-01-01T00:10:00Z,2.2,,13,
5,2026-01-01T00:10:00Z,2.1,,99,
6,2026-01-01T00:10:00Z,2.0,,,7
7,2026-01-01T00:10:00Z,1.9,,,exp-1
"""


@pytest.mark.slow
def test_rows_find_their_attempt_and_run_and_the_order_of_files_does_not_matter(
    tmp_path: Path,
) -> None:
    later = METRICS.replace(",2.4,", ",2.35,").replace("T00:10", "T00:20")
    files = [("sacct", SACCT), ("training-metrics", METRICS), ("training-metrics", later)]
    found = []
    for number, order in enumerate(itertools.permutations(files)):
        folder = tmp_path / str(number)
        folder.mkdir()
        found.append(stored(folder, *order))
    assert all(rows == found[0] for rows in found)
    first, again = (
        datetime(2026, 1, 1, hour, minute, tzinfo=UTC) for hour, minute in ((0, 0), (1, 30))
    )
    assert {row[:5] for row in found[0]} == {
        ("7", "7", 1, 0, first), ("7", "7", 2, 0, first), ("7", "7", 2, 0, again),
        ("7", None, 3, 0, None), ("13", "9_4", 4, None, first), ("99", None, 5, None, None),
        (None, "7", 6, None, first), (None, "exp-1", 7, None, None),
    }  # fmt: skip
    assert len(found[0]) == 13


def test_the_same_file_twice_changes_nothing(tmp_path: Path) -> None:
    once = stored(tmp_path, ("sacct", SACCT), ("training-metrics", METRICS))
    path = tmp_path / "again.csv"
    path.write_text(METRICS, encoding="utf-8")
    (result,), _ = ingest_files(tmp_path / "store", "auto", [str(path)], Options())
    assert result.tables == {"training_metrics": 0}
    assert result.source == "training-metrics"
    assert stored(tmp_path) == once
    assert len(once) == 8


def test_a_step_and_its_save_in_the_same_second_are_both_kept(tmp_path: Path) -> None:
    text = f"step,time,loss,event\n5,{EPOCH},2.5,\n5,{EPOCH},,saved\n"
    assert len(stored(tmp_path, ("training-metrics", text), job_id="7")) == 2


@pytest.mark.slow
def test_a_log_that_names_a_run_belongs_to_all_jobs_of_the_run(tmp_path: Path) -> None:
    jobs = """\
JobID|State|User|JobName|Submit|Start|End|NNodes|AllocTRES|NodeList
7|TIMEOUT|ann|pretrain|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T10:00:00|2|gres/gpu=16|n1
9|TIMEOUT|ann|pretrain|2026-01-01T10:30:00|2026-01-01T11:00:00|2026-01-01T20:00:00|2|gres/gpu=16|n1
"""
    text = """\
step,time,loss,job_id,run_id
1,2026-01-01T01:00:00Z,2,7,
2,2026-01-01T12:00:00Z,2,9,
3,2026-01-01T02:00:00Z,2,,7
4,2026-01-01T13:00:00Z,2,,7
5,2026-01-01T13:00:00Z,2,7,
"""
    stored(tmp_path, ("sacct", jobs), ("training-metrics", text))
    build_ledger(tmp_path / "store")
    once = stored(tmp_path)
    found = {step: (run_id, start_at and start_at.hour) for _, run_id, step, _, start_at, _ in once}
    assert found == {1: ("7", 0), 2: ("7", 11), 3: ("7", 0), 4: ("7", 11), 5: (None, None)}
    assert stored(tmp_path, ("sacct", jobs)) == once


def test_coverage_counts_training_metrics_by_day(tmp_path: Path) -> None:
    stored(tmp_path, ("sacct", SACCT), ("training-metrics", METRICS))
    with contextlib.closing(Store.open(tmp_path / "store")) as store:
        rows = store.rows("SELECT n_rows FROM coverage WHERE source = 'training_metrics'")
    assert rows == [(6,)]  # of a run that no job has the cluster is unknown


def test_checksums_are_kept_as_text_and_words_are_not(tmp_path: Path) -> None:
    text = (
        "step,time,rank,loss,param_checksum,phase\n"
        "1,2026-03-01T00:00:10Z,0,2.5,a3f09c11,train\n"
        "1,2026-03-01T00:00:10Z,1,2.5,sha256:00ff00ff,train\n"
    )
    stored(tmp_path, ("training-metrics", text), job_id="7")
    with contextlib.closing(Store.open(tmp_path / "store")) as store:
        rows = store.rows("SELECT series FROM training_metrics ORDER BY rank")
    kept = [json.loads(series) for (series,) in rows]
    assert kept == [{"param_checksum": "a3f09c11"}, {"param_checksum": "sha256:00ff00ff"}]


def test_an_evaluation_of_the_step_and_time_of_a_row_takes_nothing_from_it(tmp_path: Path) -> None:
    at = "2026-03-01T00:00:10Z"
    rows = [{"step": 1, "timestamp": at, "loss": 2.5}, {"step": 1, "timestamp": at, "eval/loss": 3}]
    text = "\n".join(map(json.dumps, rows))
    assert [row[-1] for row in stored(tmp_path, ("training-json", text), job_id="7")] == [2.5, None]
    again = stored(tmp_path, ("training-json", text), job_id="7")
    assert len(again) == 2


def test_logs_of_two_attempts_without_times_stay_apart_and_grow(tmp_path: Path) -> None:
    first = "step,loss\n" + "".join(f"{step},{step / 10}\n" for step in range(1, 151))
    second = "step,loss\n" + "".join(f"{step},{step / 20}\n" for step in range(101, 301))
    logs = [("training-metrics", text) for text in (first, second)]
    assert len(stored(tmp_path, *logs, job_id="7")) == 350
    grown = ("training-metrics", f"{first}151,15.1\n")
    assert len(stored(tmp_path, *logs, grown, job_id="7")) == 351
    with contextlib.closing(Store.open(tmp_path / "store")) as store:
        logged = training.steps(store, "cluster", "7")
    assert logged["step"].tolist() == [*range(1, 152), *range(101, 301)]
