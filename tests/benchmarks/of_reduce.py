"""`faultline reduce metrics` beside a bare GROUP BY of DuckDB of the same aggregates and quantiles.

`python -m tests.benchmarks.of_reduce FOLDER ROWS` generates so many samples (1,280 series a second,
three of ten of them counters; 7 GB of Parquet for 10^9), measures both as processes of their own, one
after the other, prints JSON, and removes what it made.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import duckdb

from tests.benchmarks.measured import faultline, python

SECONDS = 7_200
"""Of a file."""
NODES, GPUS, METRICS = 16, 8, 10
_ROWS = SECONDS * NODES * GPUS * METRICS
_BEGIN_S = 1_767_225_600


def generate(folder: Path, n_rows: int) -> int:
    """Writes files of samples until there are so many; how many there are."""
    folder.mkdir(parents=True)
    n_files = -(-n_rows // _ROWS)
    for number in range(n_files):
        begin = _BEGIN_S + number * SECONDS
        duckdb.execute(
            f"""COPY (
              SELECT make_timestamptz(s * 1000000) AS observed_at, 'n' || n AS node, g::VARCHAR AS gpu,
                CASE WHEN m < 3 THEN 'counter_' || m || '_total' ELSE 'gauge_' || m END AS metric,
                CASE WHEN m < 3 THEN ((s - {_BEGIN_S}) * (1 + (n + g) % 3))::DOUBLE
                  ELSE round(300 + 100 * random(), 1) END AS value
              FROM range({begin}, {begin + SECONDS}) AS t(s), range({NODES}) AS o(n),
                range({GPUS}) AS p(g), range({METRICS}) AS q(m))
            TO '{folder / f"{number:04}.parquet"}' (FORMAT parquet, COMPRESSION zstd)"""
        )
    return n_files * _ROWS


def bare(folder: Path) -> None:
    """A GROUP BY of each day by hour and by minute, into tables."""
    connection = duckdb.connect()
    connection.execute("SET preserve_insertion_order = false; SET TimeZone = 'UTC'")
    files = f"read_parquet('{folder}/*.parquet')"
    ((first, last),) = connection.execute(
        f"SELECT min(observed_at), max(observed_at) FROM {files}"
    ).fetchall()
    for day in range((last.date() - first.date()).days + 1):
        for width in ("minute", "hour"):
            connection.execute(
                f"""CREATE OR REPLACE TEMP TABLE by_{width} AS
                    SELECT node, gpu, metric, date_trunc('{width}', observed_at) AS begin_at, count(*),
                      min(value), avg(value), max(value), arg_max(value, observed_at), max(observed_at),
                      quantile_cont(value, [0.05, 0.5, 0.95, 0.99])
                    FROM {files} WHERE observed_at >= $1::TIMESTAMPTZ + to_days($2::INTEGER)
                      AND observed_at < $1::TIMESTAMPTZ + to_days($2::INTEGER + 1)
                    GROUP BY ALL""",
                [first.replace(hour=0, minute=0, second=0), day],
            )


def main(folder: Path, n_rows: int) -> None:
    """Prints both, and how many times as many processor seconds reducing takes."""
    samples, out = folder / "samples", folder / "reduced"
    try:
        n_rows = generate(samples, n_rows)
        n_bytes = sum(path.stat().st_size for path in samples.iterdir())
        by_hand = python("tests.benchmarks.of_reduce", "--bare", samples)
        by_reduce = faultline("reduce", "metrics", samples, "--out", out, "--format", "json")
    finally:
        for path in (samples, out):
            shutil.rmtree(path, ignore_errors=True)
    told = {
        name: {"processor_seconds": round(each.seconds, 1), "peak_gb": round(each.peak_gb, 2)}
        for name, each in (("reduce", by_reduce), ("bare", by_hand))
    }
    ratio = round(by_reduce.seconds / by_hand.seconds, 2)
    print(json.dumps({"rows": n_rows, "mb": round(n_bytes / 1e6), **told, "ratio": ratio}))


if __name__ == "__main__":
    if sys.argv[1] == "--bare":
        bare(Path(sys.argv[2]))
    else:
        main(Path(sys.argv[1]), int(float(sys.argv[2])))
