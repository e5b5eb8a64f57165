"""Accounting reduced by Spark is that reduced by DuckDB, to the letter."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

from tests.data.reduce.accounts import Row, content, dumps, reduced, written

TIMES = [
    "2026-03-29T02:30:00", "2026-10-25T02:30:00", "1767225600", "2026-01-05T10:00:00Z",
    "2026-01-05T10:00:00+0130", "2026-01-05T10:00:00.25", "2026-01-05 10:00:00",
    "2026/01/05 10:00:00", "2026-01-05T10:00:0", "2026-02-30T10:00:00", "12345", "None", "",
    "2026-01-05T10:00", "2026-01-05T24:00:00",
]  # fmt: skip
"""In the ways that the reader of sacct takes, and in some that it does not."""


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


@pytest.mark.service
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_spark_leaves_the_records_that_duckdb_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    if find_spec("pyspark") is None:
        pytest.skip("no Spark: pip install -e .[spark]")
    if shutil.which("java") is None:
        pytest.skip("no Java, which Spark runs on")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    made = dumps(3, n_jobs=20, n_dumps=3)
    paths = [
        written(rows, tmp_path / f"{k}.{form}")
        for k, (rows, form) in enumerate(zip(made, ("txt", "parquet", "csv"), strict=True))
    ]
    paths.append(written(odd_times(made[0][0]), tmp_path / "odd.parquet"))
    paths.append(typed(made[1], tmp_path / "typed.parquet"))
    by_duckdb = reduced(tmp_path / "duckdb", *paths, timezone=zone)
    by_spark = reduced(tmp_path / "spark", *paths, timezone=zone, engine="spark")
    assert by_spark.manifest.inputs == by_duckdb.manifest.inputs
    assert content(tmp_path / "spark") == content(tmp_path / "duckdb")
    assert by_spark.counts == by_duckdb.counts
    for day, done in by_duckdb.manifest.partitions.items():
        assert by_spark.manifest.partitions[day].superseded == done.superseded
