"""Kernel logs that were composed without a look at the reader; see `unseen_kernel_lines/README.md`."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from data.errors import DataError
from data.ingest.formats.source import opened
from data.ingest.reader import Batch, Options
from data.ingest.readers.logs import kernel_log

FOLDER = Path(__file__).parent / "unseen_kernel_lines"
MOST_WRONG = {"1": 4, "2": 3, "3": 3, "4": 2, "5": 19, "6": 15}
KEY = ["node", "gpu", "observed_at", "check_name", "xid", "sxid", "message"]
WRITTEN_AT = datetime(2026, 12, 31, 9, 59, 59, tzinfo=UTC).timestamp()
"""So that a day without a year is one of 2026."""


def read(log: Path, workdir: Path, node: str | None) -> Batch:
    options = Options(node=node)
    with opened(str(log), workdir, limits=options.limits) as source:
        return kernel_log.read(source, options, duckdb.cursor())


def events(log: Path, workdir: Path) -> list[list[Any]]:
    """Check, code, host, address and second of the driver's events."""
    try:
        batch = read(log, workdir, None)
        if any("no host" in rejected.reason for rejected in batch.rejected):
            batch = read(log, workdir, "-")
    except DataError:
        return []
    frame: Any = batch.tables["health_events"]
    frame = frame[frame["check_name"].isin(["xid", "sxid", "gpu_lost"])]
    again = frame["observed_at"].notna() & frame.duplicated(KEY)  # the store keeps one of them
    frame = frame[~again].astype({"observed_at": object})
    return [
        [
            row.check_name,
            None if row.check_name == "gpu_lost" else int(getattr(row, row.check_name)),
            None if row.node == "-" else row.node,
            row.gpu if isinstance(row.gpu, str) else None,
            f"{row.observed_at:%Y-%m-%dT%H:%M:%SZ}" if row.observed_at == row.observed_at else None,
        ]
        for row in frame.itertuples()
    ]


def compared(found: list[list[Any]]) -> list[str]:
    """Events in an order, whatever the case of hosts and with or without a first function."""
    return sorted(
        str((check, code, node and node.lower(), gpu and gpu.removesuffix(".0"), at))
        for check, code, node, gpu, at in found
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", list("123456"))
def test_events_are_right_as_often_as_before(name: str, tmp_path: Path) -> None:
    cases = [json.loads(line) for line in (FOLDER / f"{name}.jsonl").read_text().splitlines()]
    assert len(cases) >= 200
    log, wrong = tmp_path / "log", []
    for number, case in enumerate(cases, 1):
        log.write_bytes(case["log"].encode("utf-8", "surrogateescape"))
        os.utime(log, (WRITTEN_AT, WRITTEN_AT))
        if compared(events(log, tmp_path)) != compared(case["events"]):
            wrong.append((number, case["why"]))
    assert len(wrong) <= MOST_WRONG[name], wrong
