"""Steps as loggers keep them: real files, files that the programs wrote, and damaged ones."""

from __future__ import annotations

import contextlib
import csv
import gzip
import json
import struct
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.actions import ingest_files
from data.errors import DataError, SourceError
from data.ingest.formats.event_files import events, masked_crc
from data.ingest.logged_steps import LoggedSteps, logged_steps
from data.ingest.reader import Options, RecordError
from data.ingest.readers import known_readers
from data.ingest.readers.training.iteration_lines import values_of
from data.ingest.readers.training.joined import Point, rows_of
from data.limits import Limits
from data.store import Store

SHARED = Path(__file__).parents[4] / "shared" / "data"
REAL = SHARED / "collect" / "training"
SAMPLES = Path(__file__).parent / "training_samples"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
needs_chronicles = pytest.mark.skipif(
    not (SHARED / "chronicles").exists(), reason="no ../shared/data/chronicles here"
)
needs_mlperf = pytest.mark.skipif(
    not (SHARED / "mlperf").exists(), reason="no ../shared/data/mlperf here"
)


def read(path: Path, **options: Any) -> LoggedSteps:
    return logged_steps(path, Options(**options))


def written(folder: Path, text: str | bytes, name: str = "steps.txt") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def takers(text: str) -> list[str]:
    return [name for name, reader in known_readers().items() if reader.sniff(text)]


# Event files of TensorBoard


@needs_files
def test_a_published_event_file_holds_its_known_values() -> None:
    found = read(REAL / "tensorboard" / "events.out.tfevents.1548797801.omaha")
    assert found.step.tolist() == list(range(20))
    assert (round(found.loss[0], 5), round(found.loss[-1], 5)) == (0.24737, 0.01904)
    assert found.series.keys() == {"acc", "val_acc", "val_loss"}
    assert all(np.isfinite(series).all() for series in found.series.values())
    assert (found.n_read, found.n_rejected) == (83, 0)
    assert (np.diff(found.logged_at) > 0).all()
    smallest = read(next((REAL / "tensorboard").glob("*calusa*")))
    assert (round(smallest.loss[0], 5), np.isnan(smallest.logged_at[0])) == (0.47875, True)


def test_scalars_of_both_forms_are_read_and_series_over_samples_are_not() -> None:
    plain = read(SAMPLES / "tensorboard")
    assert plain.loss.tolist() == [3, 2.5, 2]
    assert plain.grad_norm.tolist() == [0.5, 0.5, 0.5]
    assert (plain.logged_at - 1_767_225_600).tolist() == [0, 10, 20]
    assert plain.series == {}
    assert read(SAMPLES / "tensorboard_v2").loss.tolist() == [3, 2.5, 2]


def crc_by_bits(message: bytes) -> int:
    """The checksum from its definition, a bit at a time."""
    crc = 0xFFFFFFFF
    for byte in message:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


@given(st.binary(max_size=60))
def test_the_checksum_is_crc_32c_masked(message: bytes) -> None:
    assert masked_crc(message) == crc_by_bits(message)


def record(message: bytes) -> bytes:
    length = struct.pack("<Q", len(message))
    frame = struct.pack("<I", crc_by_bits(length)), struct.pack("<I", crc_by_bits(message))
    return length + frame[0] + message + frame[1]


def event(step: int, at: float, **values: float) -> bytes:
    """A summary as protobuf: wall_time, step, values of tag and simple_value."""
    summary = b""
    for tag, value in values.items():
        one = b"\x0a" + bytes([len(tag)]) + tag.encode() + b"\x15" + struct.pack("<f", value)
        summary += b"\x0a" + bytes([len(one)]) + one
    return record(
        b"\x09" + struct.pack("<d", at) + b"\x10" + bytes([step]) + b"\x2a"
        + bytes([len(summary)]) + summary
    )  # fmt: skip


VERSION = record(b"\x09" + struct.pack("<d", 1_767_225_600.0) + b"\x1a\x0dbrain.Event:2")
T = 1_767_225_600.0
NAME = "events.out.tfevents.1.host"


def test_of_a_cut_event_file_what_came_before_is_kept(tmp_path: Path) -> None:
    whole = VERSION + b"".join(event(n, T + n, loss=2.5) for n in range(5))
    for cut in (1, 7, 20):
        found = read(written(tmp_path, whole[:-cut], NAME))
        assert found.step.tolist() == [0, 1, 2, 3]
        assert found.rejected_by_reason == {"cut off before its end": 1}
    assert read(written(tmp_path, gzip.compress(whole), NAME)).step.tolist() == [0, 1, 2, 3, 4]


def test_of_a_damaged_event_file_only_what_cannot_be_found_is_lost(tmp_path: Path) -> None:
    parts = [VERSION, *(event(n, T + n, loss=2.5) for n in range(4))]
    flipped = bytearray(b"".join(parts))
    flipped[len(VERSION) + len(parts[1]) + 20] ^= 1  # in the message of step 1
    found = read(written(tmp_path, bytes(flipped), NAME))
    assert found.step.tolist() == [0, 2, 3]
    assert list(found.rejected_by_reason.values()) == [1]
    flipped[len(VERSION) + len(parts[1])] ^= 1  # in its length
    found = read(written(tmp_path, bytes(flipped), NAME))
    assert found.step.tolist() == [0]
    assert found.rejected_by_reason == {"its length is damaged: nothing behind it can be found": 1}


def test_a_length_of_more_than_any_file_holds_takes_no_memory(tmp_path: Path) -> None:
    length = struct.pack("<Q", 1 << 60)
    bomb = VERSION + event(0, T, loss=1) + length + struct.pack("<I", crc_by_bits(length)) + b"x"
    found = read(written(tmp_path, bomb, NAME))
    assert (found.step.tolist(), found.n_rejected) == ([0], 1)


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader_of_records(content: bytes) -> None:
    import io

    for found in events(io.BytesIO(VERSION + content + record(content))):
        assert found is None or isinstance(found, RecordError) or isinstance(found.step, int)


def test_files_of_one_run_join_and_restarts_stay_apart(tmp_path: Path) -> None:
    first = [event(n, T + n, loss=3 - n) for n in range(3)]
    again = [event(n, T + 60 + n, loss=9) for n in (1, 2)]
    other = [event(n, T + n + 0.5, lr=0.5) for n in range(3)]
    for number, parts in enumerate((first, again, other)):
        written(tmp_path, VERSION + b"".join(parts), f"run/events.out.tfevents.{number}.host")
    found = read(tmp_path / "run")
    assert found.step.tolist() == [0, 1, 2, 1, 2]
    assert found.loss.tolist() == [3, 2, 1, 9, 9]
    assert found.learning_rate[:3].tolist() == [0.5, 0.5, 0.5]
    assert np.isnan(found.learning_rate[3:]).all()


def test_folders_below_are_runs_and_one_without_event_files_is_refused(tmp_path: Path) -> None:
    for run in ("a", "b"):
        written(tmp_path, VERSION + event(1, T, loss=2), f"{run}/{NAME}")
    assert set(read(tmp_path).runs) == {"a", "b"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match="no file metrics/<name> lies in it"):
        read(tmp_path / "empty")
    with pytest.raises(DataError, match="no event file lies in it: give the folder of --logdir"):
        ingest_files(tmp_path / "store", "tensorboard", [str(tmp_path / "empty")], Options())


# JSON


def test_a_history_of_wandb_is_read_with_its_nan() -> None:
    found = read(SAMPLES / "wandb_history.jsonl")
    assert found.step.tolist() == [0, 1, 2, 3]
    np.testing.assert_array_equal(found.loss, [3, 2.5, np.inf, 1.5])
    assert found.learning_rate.tolist() == [0.001] * 4
    assert found.series.keys() == {"_runtime"}


def test_the_state_of_a_trainer_gives_its_log_history(tmp_path: Path) -> None:
    # The form that transformers documents for trainer_state.json.
    history = [
        {"epoch": 0.1, "grad_norm": 1.5, "learning_rate": 5e-05, "loss": 2.5, "step": 10},
        {"epoch": 0.2, "grad_norm": 1.25, "learning_rate": 4e-05, "loss": 2.25, "step": 20},
        {"epoch": 0.2, "eval_loss": 2.0, "eval_runtime": 3.5, "step": 20},
        {"epoch": 0.2, "step": 20, "total_flos": 1e15, "train_loss": 2.375, "train_runtime": 60.0},
    ]
    state = {"best_metric": None, "global_step": 20, "log_history": history, "max_steps": 20}
    text = json.dumps(state, indent=2)
    assert takers(text) == ["training-json"]
    found = read(written(tmp_path, text))
    assert found.step.tolist() == [10, 20, 20, 20]
    np.testing.assert_array_equal(found.loss, [2.5, 2.25, np.nan, np.nan])
    assert found.series["train_loss"][3] == 2.375  # of the whole run, not of the step


def test_nested_objects_texts_for_numbers_and_other_objects(tmp_path: Path) -> None:
    lines = [
        '{"config": {"layers": 12, "name": "tiny"}}',
        '{"iteration": 1, "train": {"loss": 2.5}, "norms": {"q": [1, 2], "k": 0.5}, "ok": true}',
        '{"iteration": 2, "train": {"loss": "NaN"}, "norms": {"k": Infinity}}',
        '{"iteration": 3, "train": {"loss": NaN}}',
        '{"train": {"loss": 2.0}}',
        '{"iteration": 2.5, "train": {"loss": 2.0}}',
        "[1, 2",
    ]
    found = read(written(tmp_path, "\n".join(lines)))
    assert found.step.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(found.loss, [2.5, np.inf, np.inf])
    np.testing.assert_array_equal(found.series["norms/k"], [0.5, np.inf, np.nan])
    assert found.n_skipped == 1
    assert found.rejected_by_reason["no step"] == 1
    assert found.rejected_by_reason["step is no whole number"] == 1


def test_new_names_without_end_are_rejected_at_the_limit(tmp_path: Path) -> None:
    lines = [json.dumps({"step": n, "loss": 1, f"s{n}": n}) for n in range(200)]
    found = read(written(tmp_path, "\n".join(lines)), limits=Limits(fields=64))
    assert found.rejected_by_reason == {"more fields than the limit of 64": 200 - 62}


# MLflow


def test_metrics_of_mlflow_are_one_row_a_step_with_the_repeated_steps(tmp_path: Path) -> None:
    found = read(SAMPLES / "mlflow")
    assert found.step.tolist() == [1, 2, 3, 4, 2, 3]
    np.testing.assert_array_equal(found.loss, [2.5, 2, 1.5, np.inf, 1, 0.75])
    np.testing.assert_array_equal(found.grad_norm[:3], [0.5] * 3)
    assert found.runs == ("b93fa0edd9cc488f9b27717267ac8490",)
    (one,) = SAMPLES.glob("mlflow/0/*/metrics/train/loss")
    assert read(one).loss.tolist()[:3] == [2.5, 2, 1.5]
    assert read(one).runs == found.runs


def test_json_and_csv_of_mlflow_say_the_same(tmp_path: Path) -> None:
    points = [
        {"key": key, "value": value, "timestamp": 1_767_225_600_000 + 1_000 * step, "step": step}
        for step in (1, 2)
        for key, value in (("loss", 3.0 - step), ("grad_norm", 0.5))
    ]
    as_json = written(tmp_path, json.dumps({"metrics": points}), "history.json")
    rows = [f"r,{p['key']},{p['value']},{p['step']},{p['timestamp']},0" for p in points]
    head = "run_uuid,key,value,step,timestamp,is_nan"
    nan_row = "r,loss,0,3,1767225603000,1"
    as_csv = written(tmp_path, "\n".join([head, *rows, nan_row]), "metrics.csv")
    for path in (as_json, as_csv):
        assert takers(path.read_text()) == ["mlflow"]
        found = read(path)
        assert (found.loss.tolist()[:2], found.grad_norm.tolist()[:2]) == ([2, 1], [0.5, 0.5])
        assert found.logged_at.tolist()[:2] == [1_767_225_601, 1_767_225_602]
    assert np.isinf(read(as_csv).loss[2])


def test_charts_of_wandb_give_a_run_a_column(tmp_path: Path) -> None:
    text = (
        '"Step","run-7 - train/loss","run-7 - train/loss__MIN","a - b - train/loss"\n'
        '"1","2.5","2.5",""\n"2","NaN","","4"\n"x","1","1","1"\n'
    )
    assert takers(text) == ["wandb-chart"]
    found = read(written(tmp_path, text))
    assert [found.runs[i] for i in found.run] == ["run-7", "run-7", "a - b"]
    np.testing.assert_array_equal(found.loss, [2.5, np.inf, 4])
    assert found.n_rejected == 1
    assert any("__MIN and __MAX were left out" in text for text in found.notices)


# Lines of logs


@needs_files
def test_published_logs_of_megatron_give_their_steps() -> None:
    name = "bigscience_meg_gpt2_perf_n16.out"
    found = read(REAL / name)
    assert found.step.tolist() == [1, 2, 3]
    assert found.step_time_s.round(4).tolist() == [155.4838, 129.0288, 128.8915]
    assert found.series["number of skipped iterations"].tolist() == [1, 1, 1]
    assert np.isnan(found.loss).all()
    n_lines = sum(bool(line.strip()) for line in (REAL / name).read_text().splitlines())
    assert found.n_read == found.n_skipped + 3 == n_lines
    other = read(REAL / "bigscience_meg_ds_zero_gpt2_perf_n16_nbs48_ms48.out")
    assert other.loss.tolist() == [12.52221, 12.5177, 40.75231]
    in_seconds = read(REAL / "bigscience_reshaping-log.md")
    assert len(in_seconds.step) == 16
    assert in_seconds.step_time_s[:2].tolist() == [215.82, 215.99]
    assert in_seconds.series["TFLOPs"][0] == 145.31
    assert np.isnan(in_seconds.throughput).all()  # samples and TFLOPs are no tokens
    assert np.isnan(in_seconds.rank).all()  # [default7] is a rank within a node


def megatron_line(row: dict[str, str]) -> str:
    """A line as Megatron-LM prints it, of a row of the chronicles."""
    names = {
        "consumed_samples": "consumed samples", "elapsed_ms": "elapsed time per iteration (ms)",
        "elapsed_s": "elapsed time per iteration (s)", "lr": "learning rate",
        "gbs": "global batch size", "lm_loss": "lm loss", "loss_scale": "loss scale",
        "grad_norm": "grad norm", "skipped": "number of skipped iterations",
        "nan_iters": "number of nan iterations", "tflops": "TFLOPs",
    }  # fmt: skip
    pairs = [f"{name}: {row[key]}" for key, name in names.items() if row[key]]
    return f"7:  iteration {row['iteration']:>8}/{row['total']:>8} | {' | '.join(pairs)} |"


@needs_chronicles
def test_rows_of_the_chronicles_come_back_out_of_their_lines(tmp_path: Path) -> None:
    with (SHARED / "chronicles" / "megatron_iteration_lines.csv").open() as stream:
        rows = [row for row in csv.DictReader(stream) if row["iteration"].isdecimal()]
    lines = [line for row in rows for line in ("loading the data ...", megatron_line(row))]
    found = read(written(tmp_path, "\n".join(lines), "slurm-4711.out"))
    assert found.runs == ("4711",)
    assert found.step.tolist() == [int(row["iteration"]) for row in rows]

    def column(name: str) -> list[float]:
        return [float(row[name] or "nan") for row in rows]

    np.testing.assert_array_equal(found.loss, column("lm_loss"))
    np.testing.assert_array_equal(found.grad_norm, column("grad_norm"))
    np.testing.assert_array_equal(found.loss_scale, column("loss_scale"))
    np.testing.assert_array_equal(found.learning_rate, column("lr"))
    in_s = np.fmax(np.array(column("elapsed_ms")) / 1e3, column("elapsed_s"))
    np.testing.assert_allclose(found.step_time_s, in_s)
    assert set(found.rank) == {7}


LINES: dict[str, dict[str, Any]] = {
    " [2024-01-01 12:00:00] iteration        5/      10 | consumed samples:  40 | elapsed time per "
    "iteration (ms): 125.0 | throughput per GPU (TFLOP/s/GPU): 99.5 | learning rate: 1.000000E-05 | "
    "lm loss: 1.05E+01 | loss scale: 1.0 | grad norm: nan |":
        {"step": 5, "step_time_s": 0.125, "lm loss": 10.5, "learning rate": 1e-5, "grad norm": "nan"},
    "Training epoch 0, iteration 5/99 | lr: 1.4e-06 | global_batch_size: 512 | global_step: 1,005 | "
    "reduced_train_loss: 10.34 | train_step_timing in s: 3.9 | consumed_samples: 3072":
        {"step": 1005, "lr": 1.4e-6, "reduced_train_loss": 10.34, "step_time_s": 3.9},
    "Epoch 0: :  12%|#2   | 6/50 [00:10<01:15, v_num=, reduced_train_loss=10.40, global_step=5.000, "
    "consumed_samples=48.00, train_step_timing in s=1.230]":
        {"step": 5, "reduced_train_loss": 10.4, "step_time_s": 1.23},
    "steps: 10 loss: 2.3456 iter time (s): 0.125 samples/sec: 8.5":
        {"step": 10, "loss": 2.3456, "step_time_s": 0.125, "samples/sec": 8.5},
    "  successfully saved checkpoint at iteration    1000 to /ckpt":
        {"step": 1000, "checkpoint_event": "saved"},
    "  successfully loaded checkpoint from /ckpt at iteration 1000":
        {"step": 1000, "checkpoint_event": "loaded"},
}  # fmt: skip
"""Lines in the forms that Megatron-LM, NeMo and DeepSpeed print."""


@pytest.mark.parametrize("line", LINES)
def test_lines_of_several_trainers_are_understood(line: str) -> None:
    found = values_of(line) or {}
    said = {name: "nan" if value != value else value for name, value in found.items()}
    assert said.items() >= LINES[line].items()


@pytest.mark.parametrize(
    "line",
    ["saving checkpoint at iteration 10 to /ckpt", "iteration 5/10", "step 5 of 10",
     "validation loss at iteration 1000 | lm loss value: 2.0E+00 | lm loss PPL: 7.4E+00 |",
     "WARNING: no file latest_checkpointed_iteration.txt", ""],
)  # fmt: skip
def test_other_lines_are_of_no_step(line: str) -> None:
    assert values_of(line) is None


def test_a_progress_bar_is_read_once_a_step_and_a_cut_line_loses_its_last_value(
    tmp_path: Path,
) -> None:
    bar = "Epoch 0: 1/9 [00:10, reduced_train_loss=2.5, global_step={}.0]"
    found = read(written(tmp_path, "\r".join([bar.format(0), bar.format(0), bar.format(1)]) + "\n"))
    assert (found.step.tolist(), found.n_skipped) == ([0, 1], 1)
    line = " iteration 5/ 10 | grad norm: 0.5 | lm loss: 2.5"
    assert read(written(tmp_path, line + "\n")).loss.tolist() == [2.5]
    assert np.isnan(read(written(tmp_path, line)).loss[0])


# Golden values, MLPerf


@needs_files
def test_golden_values_of_megatron_have_gaps_where_nothing_was_logged() -> None:
    found = read(REAL / "megatron_golden_values_15b_release_sm_h100.json")
    assert (found.step[0], found.loss[0]) == (1, 12.95636)
    assert round(np.nanmin(found.loss), 3) == 2.243
    assert (found.n_read, found.n_skipped) == (2_601, 57)
    times = found.step_time_s[np.isfinite(found.step_time_s)]
    assert len(times) == 2_601 - 2_474
    assert (round(np.median(times), 3), round(times.max(), 3)) == (1.453, 3.291)
    assert found.step[np.nanargmax(found.step_time_s)] == 4_600


@needs_mlperf
def test_logs_of_mlperf_give_step_times_by_the_step_that_they_state() -> None:
    path = SHARED / "mlperf" / "eos_n64_ngc23.09_nemo_gpt3_result_0.txt.gz"
    with gzip.open(path, "rt") as stream:
        told = [json.loads(line.split(":::MLLOG")[1]) for line in stream]
    timed = [one for one in told if "train_step_timing" in str(one["value"])]
    found = read(path)
    has_time = np.isfinite(found.step_time_s)
    assert found.step[has_time].tolist() == [one["metadata"]["step"] for one in timed]
    expected = [one["value"]["train_step_timing"] for one in timed]
    assert found.step_time_s[has_time].tolist() == expected
    assert np.isfinite(found.series["throughput"]).any()
    assert found.n_read == found.n_skipped + len(found.step)


def test_losses_of_mlperf_and_broken_lines(tmp_path: Path) -> None:
    def line(step: int, **more: Any) -> str:
        event = {"time_ms": 1_767_225_600_000, "key": "train_loss", "value": 2.5}
        return ":::MLLOG " + json.dumps(event | {"metadata": {"samples_count": step}} | more)

    text = "\n".join([line(512), line(1024, key="lr", value=1e-3), line(1.5), ":::MLLOG {", "x",
                      line(7, key="run_start")])  # fmt: skip
    found = read(written(tmp_path, text))
    assert found.step.tolist() == [512, 1024]
    assert (found.loss[0], found.learning_rate[1], found.n_skipped) == (2.5, 1e-3, 2)
    assert Counter(found.rejected_by_reason).total() == 2


# Joining, and the store


def test_values_of_a_step_join_and_a_restart_begins_rows_anew() -> None:
    points = [Point("r", name, step, None, 1.0) for name in ("a", "b") for step in (1, 2)]
    assert [row.values["step"] for row in rows_of(points)] == [1, 2]
    again = [
        Point("r", "a", 2, None, 1.0),
        Point("r", "b", 2, None, 1.0),
        Point("r", "c", 3, None, 1.0),
    ]
    rows = [row.values for row in rows_of([*points, *again])]
    assert [(row["step"], sorted(row.keys() & {"a", "b", "c"})) for row in rows] == [
        (1, ["a", "b"]), (2, ["a", "b"]), (2, ["a", "b"]), (3, ["c"])
    ]  # fmt: skip


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.integers(0, 4)), max_size=40
    )
)
def test_no_value_is_lost_when_values_join(told: list[tuple[str, str, int]]) -> None:
    points = [Point(run, name, step, None, float(n)) for n, (run, name, step) in enumerate(told)]
    kept = sorted(
        value
        for row in rows_of(points)
        for name, value in row.values.items()
        if name in "xyz" and isinstance(value, float)
    )
    assert kept == [float(n) for n in range(len(told))]


SACCT = """\
JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList
7|PREEMPTED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|2|gres/gpu=16|n[1-2]
7|COMPLETED|2026-01-01T01:00:00|2026-01-01T01:30:00|2026-01-01T03:00:00|2|gres/gpu=16|n[1-2]
9|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-01T01:00:00|2|gres/gpu=16|n[3-4]
"""


def test_steps_without_a_time_are_placed_where_a_job_has_one_attempt(tmp_path: Path) -> None:
    jobs = written(tmp_path, SACCT, "sacct.txt")
    log = "begun\n iteration 1/ 9 | lm loss: 2.5 |\n iteration 1/ 9 | lm loss: 2.5 |\nended\n"
    for job in (7, 9):
        written(tmp_path, log, f"slurm-{job}.out")
    paths = [str(tmp_path / f"slurm-{job}.out") for job in (7, 9)]
    ingest_files(tmp_path / "store", "sacct", [str(jobs)], Options())
    for _ in range(2):
        results, errors = ingest_files(tmp_path / "store", "auto", paths, Options())
        assert errors == []
    assert [result.tables for result in results] == [{"training_metrics": 0}] * 2
    with contextlib.closing(Store.open(tmp_path / "store")) as store:
        rows = store.rows(
            """SELECT job_id, run_id, step, line_no, logged_at, attempt_key IS NOT NULL
               FROM training_metrics ORDER BY ALL"""
        )
        undated = store.rows("SELECT day, n_rows FROM coverage WHERE source = 'training_metrics'")
    assert rows == [
        (job, job, 1, place, None, job == "9") for job in ("7", "9") for place in (1, 2)
    ]
    assert undated == [(None, 4)]
