"""Failures and exposure of an accounting file, as a user of DuckDB would write it."""

from __future__ import annotations

import json
import sys

import duckdb


def sums(path: str) -> dict[str, float]:
    """How many attempts lost a node, and node-days of 8 GPUs."""
    found = duckdb.execute(
        f"""SELECT count(*) FILTER (State = 'NODE_FAIL') AS failures,
              sum(nullif(regexp_extract(AllocTRES, 'gres/gpu=(\\d+)', 1), '')::INTEGER * ElapsedRaw)
                / 8 / 86400 AS exposure_node_days
            FROM read_csv('{path}', delim='|', header=true, quote='')"""
    ).fetchall()
    return dict(zip(("failures", "exposure_node_days"), found[0], strict=True))


if __name__ == "__main__":
    print(json.dumps(sums(sys.argv[1])))
