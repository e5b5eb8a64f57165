"""Metrics that are reduced are what a store makes of their samples, in whatever pieces they came."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import DataError, SourceError
from data.queries.metrics import last_samples
from data.reduce.manifest import load
from data.store import Store
from tests.data.reduce.samples import (
    EVENTS,
    HOURS,
    asked,
    content,
    fed,
    reduced,
    same,
    samples,
    stored,
    written,
)

MIDNIGHT = pd.Timestamp("2026-01-06", tz="UTC")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return samples()


@pytest.fixture(scope="module")
def by_store(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Hours and events as the store derives them from the samples."""
    return asked(stored(tmp_path_factory.mktemp("raw") / "store", frame), HOURS, EVENTS)


def test_the_steps_of_a_counter_are_counted_over_borders_as_worked_out_by_hand(
    tmp_path: Path,
) -> None:
    lines = [
        "at,node,metric,value",
        "2026-01-05T22:59:50Z,n1,a_total,10",
        "2026-01-05T23:00:10Z,n1,a_total,14",
        "2026-01-05T23:59:59Z,n1,a_total,20",
        "2026-01-06T00:00:01Z,n1,a_total,3",
        "2026-01-06T01:00:02Z,n1,a_total,9",
        "2026-01-06T01:30:00Z,n1,a_total,9.5",
    ]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    reduced(tmp_path / "out", tmp_path / "a.csv")
    rows = [(row[5] // 3_600_000_000 % 24, row[6], row[12]) for row in content(tmp_path / "out")]
    # 4 + 6 up to midnight, where it began again at 3; 3,601 s later is no step
    assert rows == [(22, 1, None), (23, 2, 10.0), (0, 1, 3.0), (1, 2, 0.5)]


def test_quantiles_are_exact(tmp_path: Path, frame: pd.DataFrame) -> None:
    power = frame[(frame.metric == "node_hwmon_temp_celsius") & (frame.node == "n1")]
    reduced(tmp_path / "out", written(power, tmp_path / "a.parquet"))
    once = power.groupby("observed_at").reading.max()
    for row in content(tmp_path / "out"):
        hour = once[once.index.floor("h") == datetime.fromtimestamp(row[5] / 1e6, UTC)]
        wanted = hour.quantile([0.05, 0.5, 0.95, 0.99]).tolist()
        assert [*row[-4:]] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize(
    "form",
    [
        "parquet",
        pytest.param("csv", marks=pytest.mark.slow),
        pytest.param("jsonl", marks=pytest.mark.slow),
    ],
)
def test_a_store_fed_by_a_reduction_answers_as_one_fed_by_the_samples(
    tmp_path: Path, frame: pd.DataFrame, by_store: list[Any], form: str
) -> None:
    path = written(frame, tmp_path / f"a.{form}", reading="value", observed_at="Timestamp")
    result = reduced(tmp_path / "out", path)
    assert result.counts["rows_read"] == result.counts["rows_kept"] == len(frame)
    assert result.notices == []
    hours, events = asked(fed(tmp_path / "store", tmp_path / "out"), HOURS, EVENTS)
    same(hours, by_store[0])
    assert events == by_store[1]
    refused = pytest.raises(
        DataError, match=r"samples of nodes of a from .* were reduced and not kept"
    )
    with closing(Store.open(tmp_path / "store")) as store, refused:
        last_samples(store)  # codes that were kept are no readings


@pytest.mark.slow
def test_pieces_in_any_order_and_size_give_the_same(
    tmp_path: Path, frame: pd.DataFrame, by_store: list[Any]
) -> None:
    pieces = [
        written(frame.iloc[k::3], tmp_path / f"{k}.parquet") for k in range(3)
    ]  # fmt: skip
    out = tmp_path / "out"
    reduced(out, pieces[1])
    result = reduced(out, *pieces, most_rows=1_500)
    assert "came when the day was done" in "".join(result.notices)
    same(asked(fed(tmp_path / "store", out), HOURS)[0], by_store[0])


@pytest.mark.slow
def test_days_that_come_one_by_one_count_on_from_the_day_before(
    tmp_path: Path, frame: pd.DataFrame, by_store: list[Any]
) -> None:
    first = written(frame[frame.observed_at < MIDNIGHT], tmp_path / "1.parquet")
    second = written(frame[frame.observed_at >= MIDNIGHT], tmp_path / "2.parquet")
    for out, days in ((tmp_path / "a", (first, second)), (tmp_path / "b", (second, first))):
        reduced(out, days[0])
        later = reduced(out, *days[1:], *(days[:1] if out.name == "b" else ()))
        assert later.days_done == (
            ["2026-01-06"] if out.name == "a" else ["2026-01-05", "2026-01-06"]
        )
        same(asked(fed(tmp_path / f"store-{out.name}", out), HOURS)[0], by_store[0])


def test_a_second_run_reads_and_writes_nothing(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = written(frame, tmp_path / "a.parquet")
    reduced(tmp_path / "out", path)
    before = {each: each.stat().st_mtime_ns for each in (tmp_path / "out").rglob("*.parquet")}
    assert reduced(tmp_path / "out", path).days_done == []
    assert before == {each: each.stat().st_mtime_ns for each in before}


def test_late_records_of_a_day_whose_inputs_are_gone_are_refused(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    first = written(frame.iloc[::2], tmp_path / "1.parquet")
    late = written(frame.iloc[1::2], tmp_path / "2.parquet")
    reduced(tmp_path / "out", first)
    held = content(tmp_path / "out")
    with pytest.raises(SourceError, match=r"2026-01-05 is done and .* give .*1\.parquet, too"):
        reduced(tmp_path / "out", late)
    assert content(tmp_path / "out") == held


def test_int96_within_another_column_is_no_time_of_a_sample(tmp_path: Path) -> None:
    at = pa.array([datetime(2026, 1, 5, 8, tzinfo=UTC)], pa.timestamp("us"))
    within = pa.StructArray.from_arrays([at], names=["at"])
    texts = {"at": ["2026-01-05T08:00:00Z"], "node": ["n1"], "metric": ["m"], "value": [1.0]}
    pq.write_table(
        pa.table({"told": within, **texts}),
        tmp_path / "a.parquet",
        use_deprecated_int96_timestamps=True,
    )
    result = reduced(tmp_path / "out", tmp_path / "a.parquet", timezone="Asia/Tokyo")
    assert result.counts["rows_kept"] == 1
    ((*_, at_us),) = [row[:6] for row in content(tmp_path / "out", "minutes")]
    assert at_us == 1_767_600_000_000_000


@pytest.mark.slow
def test_half_of_all_rows_on_one_node_go_in_parts(tmp_path: Path, frame: pd.DataFrame) -> None:
    skewed = pd.concat([frame, frame[frame.node == "n1"].assign(gpu="7")])
    path = written(skewed, tmp_path / "a.parquet")
    reduced(tmp_path / "one", path)
    reduced(tmp_path / "parts", path, most_rows=900)
    for kind in ("minutes", "hours"):
        same(content(tmp_path / "parts", kind), content(tmp_path / "one", kind))


WRONG = """at,node,metric,value
1767650400,n1,DCGM_FI_DEV_GPU_TEMP,41
1767650401000,n1,DCGM_FI_DEV_GPU_TEMP,2147483632
1767650402000000,n1,DCGM_FI_DEV_GPU_TEMP,nan
1767650403000000000,n1,x,inf
yesterday,n1,x,1
1767650404,,x,1
1767650405,n1,,1
1767650406,n1,x,
1767650407,n1,x
2026-01-05 23:00:08,n1,x,1
"""


def test_every_row_is_kept_skipped_or_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(WRONG)
    result = reduced(tmp_path / "out", tmp_path / "a.csv", timezone="Europe/Berlin")
    counts = result.counts
    assert (counts["rows_read"], counts["rows_kept"]) == (10, 2)
    assert result.manifest.total("skipped") == {
        "not supported by the GPU": 1, "nan": 1, "infinite": 1,
    }  # fmt: skip
    assert result.manifest.total("rejected") == {
        "its time is none": 1, "no node": 1, "no metric": 1, "its value is no number": 2,
    }  # fmt: skip
    hours = {row[5] // 1_000_000 for row in content(tmp_path / "out")}
    assert hours == {1767650400}  # 22:00 UTC, whichever zone, unit or form


def test_times_without_a_zone_are_told_as_read_in_utc(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"at": [pd.Timestamp("2026-01-05")], "node": "n", "metric": "x", "value": 1.0}
    )
    result = reduced(tmp_path / "out", written(frame, tmp_path / "a.parquet"))
    assert result.notices == ["times without a zone, read as UTC (pass --timezone): 1"]


def test_a_partition_that_cannot_be_read_is_told_and_the_others_are_done(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    good = written(frame, tmp_path / "good.parquet")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "cut.parquet").write_bytes(good.read_bytes()[:5_000])
    (tmp_path / "other.csv").write_text("host,when,what\nn1,2026-01-05,x\n")
    result = reduced(tmp_path / "out", tmp_path)
    told = {Path(path).name: why for path, why in result.manifest.refused.items()}
    assert "is empty" in told["empty.csv"]
    assert "is damaged" in told["cut.parquet"]
    assert "no column of metric" in told["other.csv"]
    assert result.counts["rows_kept"] == len(frame)
    (tmp_path / "empty.csv").write_text(WRONG)
    for name in ("cut.parquet", "other.csv"):
        (tmp_path / name).unlink()
    repaired = reduced(tmp_path / "out", tmp_path)
    assert (repaired.manifest.refused, repaired.days_done[0]) == ({}, "2026-01-05")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "is no file, folder or pattern of files"),
        ("", "is empty"),
        ("at,node\n", "no column of metric"),
    ],
)
def test_inputs_of_which_none_can_be_read_are_refused(
    tmp_path: Path, text: str | None, reason: str
) -> None:
    if text is not None:
        (tmp_path / "a.csv").write_text(text)
    with pytest.raises(SourceError, match=reason):
        reduced(tmp_path / "out", tmp_path / "a.csv")


def test_another_folder_and_another_zone_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(WRONG)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").touch()
    with pytest.raises(SourceError, match="lies in the folder of the reduction"):
        reduced(tmp_path, tmp_path / "a.csv")
    with pytest.raises(DataError, match="holds files and no manifest"):
        reduced(tmp_path / "other", tmp_path / "a.csv")
    reduced(tmp_path / "out", tmp_path / "a.csv")
    with pytest.raises(DataError, match="say the same, or name another folder"):
        reduced(tmp_path / "out", tmp_path / "a.csv", timezone="Asia/Tokyo")
    (tmp_path / "out" / "manifest.json").write_text("{}")
    with pytest.raises(SourceError, match="is no manifest of `faultline reduce`"):
        reduced(tmp_path / "out", tmp_path / "a.csv")


def test_an_input_that_changed_counts_as_it_is_now(tmp_path: Path, frame: pd.DataFrame) -> None:
    path = written(frame, tmp_path / "a.parquet")
    reduced(tmp_path / "out", path)
    written(frame[frame.observed_at < MIDNIGHT], path)
    result = reduced(tmp_path / "out", path)
    assert result.days_done == ["2026-01-05", "2026-01-06"]
    assert [*result.manifest.partitions] == ["2026-01-05"]
    assert not [*(tmp_path / "out").glob("*/day=2026-01-06/*")]


def test_a_reduction_whose_files_are_gone_is_refused_by_the_store(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(WRONG)
    reduced(tmp_path / "out", tmp_path / "a.csv")
    next((tmp_path / "out" / "hours").rglob("*.parquet")).unlink()
    with pytest.raises(DataError, match=r"is absent, and manifest\.json names it"):
        fed(tmp_path / "store", tmp_path / "out")


def test_a_manifest_that_names_files_elsewhere_is_refused_by_the_store(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(WRONG)
    reduced(tmp_path / "out", tmp_path / "a.csv")
    path = tmp_path / "out" / "manifest.json"
    for elsewhere in ("/", "../"):
        path.write_text(path.read_text().replace('"hours/', f'"{elsewhere}hours/'))
        with pytest.raises(DataError, match="which is not in its folder"):
            fed(tmp_path / "store", tmp_path / "out")


@pytest.mark.slow
def test_of_an_hour_known_both_ways_the_one_of_more_samples_counts(
    tmp_path: Path, frame: pd.DataFrame, by_store: list[Any]
) -> None:
    store = stored(tmp_path / "store", frame[frame.observed_at.dt.minute < 10])
    reduced(tmp_path / "out", written(frame, tmp_path / "a.parquet"))
    same(asked(fed(store, tmp_path / "out"), HOURS)[0], by_store[0])


def test_damage_that_counting_does_not_see_is_told_and_leaves_no_part(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    path = written(frame, tmp_path / "a.parquet")
    group = pq.read_metadata(path).row_group(0)
    of_gpu = next(
        group.column(k) for k in range(group.num_columns)
        if group.column(k).path_in_schema == "gpu"
    )  # fmt: skip
    with path.open("r+b") as stream:
        stream.seek(of_gpu.dictionary_page_offset)
        stream.write(b"\xff" * of_gpu.total_compressed_size)
    with pytest.raises(DataError, match=r"a\.parquet: cannot be reduced"):
        reduced(tmp_path / "out", path)
    manifest = load(tmp_path / "out")
    assert manifest is not None
    assert manifest.partitions == {}
    assert not [*(tmp_path / "out").rglob("*.parquet")]


def test_a_day_that_only_an_absent_input_still_holds_stays_or_is_refused(tmp_path: Path) -> None:
    day = "at,node,metric,value\n2026-01-05T01:00:00Z,n1,x,1\n"
    first, second = tmp_path / "1.csv", tmp_path / "2.csv"
    for path in (first, second):
        path.write_text(day)
    reduced(tmp_path / "out", first, second)
    held = content(tmp_path / "out")
    assert held[0][6] == 1  # both are of one time
    assert reduced(tmp_path / "out", second).days_done == []
    second.write_text(day.replace("01-05", "01-07"))
    with pytest.raises(SourceError, match=r"2026-01-05 is done and .* give .*1\.csv, too"):
        reduced(tmp_path / "out", second)
    assert content(tmp_path / "out") == held
