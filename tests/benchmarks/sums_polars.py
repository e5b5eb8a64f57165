"""Failures and exposure of an accounting file, as a user of polars would write it."""

from __future__ import annotations

import json
import sys

import polars as pl


def sums(path: str) -> dict[str, float]:
    """How many attempts lost a node, and node-days of 8 GPUs."""
    gpus = pl.col("AllocTRES").str.extract(r"gres/gpu=(\d+)").cast(pl.Int64)
    found = (
        pl.scan_csv(path, separator="|", quote_char=None)
        .select(
            failures=(pl.col("State") == "NODE_FAIL").sum(),
            exposure_node_days=(gpus * pl.col("ElapsedRaw")).sum() / 8 / 86_400,
        )
        .collect()
    )
    return found.row(0, named=True)


if __name__ == "__main__":
    print(json.dumps(sums(sys.argv[1])))
