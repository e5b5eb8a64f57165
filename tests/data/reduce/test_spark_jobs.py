"""Accounting reduced by Spark is that by DuckDB, to the letter, a worker killed among it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from data.errors import DataError
from data.reduce.inputs import Partition
from data.reduce.job_engine import DuckDBJobs
from data.reduce.job_spark import SparkJobs
from data.reduce.running import Reduced
from tests.data.reduce.accounts import Row, content, dumps, one_more, reduced, written
from tests.spark_master import running, skip_without_spark, worker_killed

TIMES = [
    "2026-03-29T02:30:00", "2026-10-25T02:30:00", "1767225600", "2026-01-05T10:00:00Z",
    "2026-01-05T10:00:00+0130", "2026-01-05T10:00:00.25", "2026-01-05 10:00:00",
    "2026/01/05 10:00:00", "2026-01-05T10:00:0", "2026-02-30T10:00:00", "12345", "None", "",
    "2026-01-05T10:00", "2026-01-05T24:00:00",
]  # fmt: skip
"""In the ways that the reader of sacct takes, and in some that it does not."""


@pytest.fixture(autouse=True)
def on_this_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark listens here alone."""
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")


def odd_times(row: Row) -> list[Row]:
    """Records whose times are written in all ways, and lie in an hour that comes twice."""
    found = []
    for number, at in enumerate(TIMES):
        late = {"Start": "2026-10-25T01:45:00", "End": "2026-10-25T02:45:00"}
        found += [
            row | late | {"JobID": f"5{number:02}", "Submit": at, "State": "RUNNING+"},
            row | late | {"JobID": f"6{number:02}", "Start": at, "ElapsedRaw": "4500"},
            row | late | {"JobID": f"7{number:02}", "End": at, "State": "CANCELLED by 5"},
            row | late | {"JobID": f"8{number:02}", "ElapsedRaw": "7200", "State": "FAILED"},
        ]
    return found


def typed(rows: list[Row], path: Path) -> Path:
    """Parquet whose ids are floating numbers and whose times are instants, or local."""
    frame = pd.DataFrame([row for row in rows if row["JobID"].isdecimal()])
    for name in ("Submit", "Eligible", "Start", "End"):
        frame[name] = pd.to_datetime(frame[name], errors="coerce")
    frame["Submit"] = frame["Submit"].astype("datetime64[us]")
    frame["Start"] = frame["Start"].dt.tz_localize("UTC").astype("datetime64[us, UTC]")
    frame["End"] = frame["End"].astype("datetime64[ns]")
    frame["JobID"] = frame["JobID"].astype(float)
    frame["NNodes"] = pd.to_numeric(frame["NNodes"], errors="coerce")
    frame.to_parquet(path)
    return path


def given(folder: Path) -> list[Path]:
    """Dumps in all forms, times in all ways, and columns of other types than texts."""
    made = dumps(3, n_jobs=20, n_dumps=3)
    paths = [
        written(rows, folder / f"{k}.{form}")
        for k, (rows, form) in enumerate(zip(made, ("txt", "parquet", "csv"), strict=True))
    ]
    paths.append(written(made[1][::-2], folder / "again+%20\u00e4 b.parquet"))
    paths.append(written(odd_times(made[0][0]), folder / "odd.parquet"))
    paths.append(typed(made[1], folder / "typed.parquet"))
    return paths


def assert_same(out: Path, found: Reduced, wanted_out: Path, wanted: Reduced) -> None:
    """The same records, to the letter, and the same counts."""
    assert found.manifest.inputs == wanted.manifest.inputs
    assert content(out) == content(wanted_out)
    assert found.counts == wanted.counts
    assert found.manifest.partitions.keys() == wanted.manifest.partitions.keys()
    for day, done in wanted.manifest.partitions.items():
        assert found.manifest.partitions[day].superseded == done.superseded


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
def test_spark_leaves_the_records_that_duckdb_leaves(tmp_path: Path) -> None:
    skip_without_spark()
    paths, out = given(tmp_path), tmp_path / "duckdb"
    by_duckdb = reduced(out, *paths)
    by_spark = reduced(tmp_path / "spark", *paths, engine="spark")
    assert_same(tmp_path / "spark", by_spark, out, by_duckdb)


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
def test_spark_tells_what_was_counted_otherwise_and_what_duckdb_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_spark()
    paths = given(tmp_path)
    with monkeypatch.context() as tampered:
        tampered.setattr(SparkJobs, "survey", one_more(SparkJobs.survey))
        with pytest.raises(DataError, match=r"records were counted and [\d,]+ were reduced"):
            reduced(tmp_path / "out", *paths, engine="spark")

    def full(engine: DuckDBJobs, partition: Partition) -> Partition:
        raise duckdb.IOException("no room")

    monkeypatch.setattr(DuckDBJobs, "as_parquet", full)
    with pytest.raises(DataError, match=r"cannot be reduced \(.*no room"):
        reduced(tmp_path / "other", *paths, engine="spark")


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
def test_spark_leaves_them_in_another_zone_and_when_a_worker_is_killed(tmp_path: Path) -> None:
    paths, out = given(tmp_path), tmp_path / "duckdb"
    stated: dict[str, Any] = {"timezone": "Europe/Berlin"}
    by_duckdb = reduced(out, *paths, **stated)
    with running(tmp_path) as master:
        stated |= {"engine": "spark", "master": master.url}
        by_spark = reduced(tmp_path / "spark", *paths, **stated)
        assert_same(tmp_path / "spark", by_spark, out, by_duckdb)
        with worker_killed(master) as begun:
            again = reduced(tmp_path / "killed", *paths, **stated, progress=begun)
        assert_same(tmp_path / "killed", again, out, by_duckdb)
