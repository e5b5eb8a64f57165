"""Failures and exposure of an accounting file, as a user of pandas would write it."""

from __future__ import annotations

import csv
import json
import sys

import pandas as pd


def sums(path: str) -> dict[str, float]:
    """How many attempts lost a node, and node-days of 8 GPUs."""
    columns = ["State", "ElapsedRaw", "AllocTRES"]
    jobs = pd.read_csv(path, sep="|", usecols=columns, quoting=csv.QUOTE_NONE)
    gpus = jobs["AllocTRES"].str.extract(r"gres/gpu=(\d+)", expand=False).astype(float)
    return {
        "failures": int((jobs["State"] == "NODE_FAIL").sum()),
        "exposure_node_days": float((gpus * jobs["ElapsedRaw"]).sum() / 8 / 86_400),
    }


if __name__ == "__main__":
    print(json.dumps(sums(sys.argv[1])))
