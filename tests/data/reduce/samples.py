"""Samples of a few nodes as an exporter leaves them, and what a store makes of them."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest

from app.actions import Options, ingest_files
from data.publish import writer
from data.reduce.manifest import load
from data.reduce.records import reduce_records
from data.reduce.running import Reduced, Request
from data.store import Store

EPOCH = datetime(2026, 1, 5, 22, tzinfo=UTC)
XIDS = "DCGM_FI_DEV_XID_ERRORS"
HOURS = """SELECT node, gpu, metric, labels, hour_at, n, minimum, mean, maximum, last, increase,
  at_least, unit FROM node_metrics_hourly ORDER BY ALL"""
EVENTS = "SELECT node, gpu, observed_at, xid, message, event_id FROM health_events ORDER BY ALL"


def samples(seed: int = 0, hours: float = 5.0, step_s: int = 20) -> pd.DataFrame:
    """Gauges, counters that begin again, one of few bits, gaps of hours, XIDs; some rows twice.

    Times jitter, so that they lie at no border; the day ends after the second hour.
    """
    chance = np.random.default_rng(seed)
    frames = []
    for node in ("n1", "n2"):
        for gpu, metric, labels in (
            ("0", "DCGM_FI_DEV_POWER_USAGE", None),
            ("0", XIDS, None),
            ("0", "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", None),
            (None, "node_infiniband_link_downed_total", '{"device": "mlx5_0"}'),
            (None, "node_infiniband_link_downed_total", '{"device": "mlx5_1"}'),
            (None, "node_hwmon_temp_celsius", None),
        ):
            n = int(hours * 3600 / step_s)
            at = np.arange(n) * step_s * 1e6 + chance.integers(0, 1e7, n)
            at = at[chance.random(n) > 0.1]
            at = at[(at < 1.2 * 3.6e9) | (at > 1.2 * 3.6e9 + chance.choice([0, 1, 3]) * 1.8e9)]
            value = 300 + 50 * chance.normal(size=at.size)
            if "total" in metric or "COUNTER" in metric:
                value = np.cumsum(chance.integers(0, 4, at.size)).astype(float)
                value = value % 400 if "COUNTER" in metric else np.minimum(value, 255)
            if metric == XIDS:
                value = chance.choice([0.0, 79.0, 13.0], size=at.size, p=[0.9, 0.05, 0.05])
            frame = pd.DataFrame({"reading": value})
            frame["observed_at"] = [EPOCH + timedelta(microseconds=int(us)) for us in at]
            frames.append(frame.assign(node=node, gpu=gpu, metric=metric, labels=labels))
    found = pd.concat(frames, ignore_index=True)
    again = found.sample(frac=0.02, random_state=seed)
    return pd.concat([found, again, again.assign(reading=again.reading - 1)], ignore_index=True)


def written(frame: pd.DataFrame, path: Path, **columns: Any) -> Path:
    """A partition, in the form that its name says."""
    frame = frame.rename(columns=columns)
    if path.suffix == ".parquet":
        frame.to_parquet(path)
    elif path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True, date_format="iso", date_unit="us")
    return path


def reduced(out: Path, *inputs: Path, **stated: Any) -> Reduced:
    """What becomes of some partitions."""
    return reduce_records(Request(tuple(map(str, inputs)), out, **stated))


def asked(root: Path, *queries: str) -> list[list[tuple[Any, ...]]]:
    """What a store answers."""
    with closing(Store.open(root)) as store:
        return [store.rows(query) for query in queries]


def stored(root: Path, frame: pd.DataFrame) -> Path:
    """A store that holds the samples themselves."""
    with writer(root) as building:
        building.merge({"node_metrics": frame.assign(cluster="a")})
        building.publish()
    return root


def fed(root: Path, out: Path) -> Path:
    """A store that holds what was reduced."""
    ingest_files(root, "reduced-metrics", [str(out)], Options(cluster="a"))
    return root


def same(found: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
    """Texts, counts, extremes exactly; means and sums to 1e-12 relative."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert [v for v in one if not isinstance(v, float)] == [
            v for v in other if not isinstance(v, float)
        ]
        assert [v for v in one if isinstance(v, float)] == pytest.approx(
            [v for v in other if isinstance(v, float)], rel=1e-12
        )


def content(out: Path, kind: str = "hours") -> list[tuple[Any, ...]]:
    """All rows of a reduction."""
    manifest = load(out)
    assert manifest is not None
    files = [str(out / name) for name in manifest.files(kind)]
    return duckdb.sql("SELECT * FROM read_parquet($files, hive_partitioning = false) ORDER BY ALL",
                      params={"files": files}).fetchall()  # fmt: skip
