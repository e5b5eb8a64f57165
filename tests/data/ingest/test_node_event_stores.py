"""Events of nodes in a store: recognised, the same for any order, split and repetition of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from app.actions import ingest_files
from data.ingest.reader import Options
from data.store import Store

LINES = {
    "kernel-log": [
        f"2024-03-01T12:{minute:02}:00+00:00 n1 kernel: {text}"
        for minute, text in enumerate(
            ("Out of memory: Killed process 7 (a)", "Oops: 0002 [#1] SMP", "fine", "Oops: [#2]")
        )
    ],
    "ras-log": [
        f"{label} 111853632{second} 2005.06.11 R0{second}-M0 2005-06-11-17.32.07.581048 R0 RAS KERNEL "
        f"{severity} told"
        for second, (label, severity) in enumerate(
            [("KERNDTLB", "FATAL"), ("-", "INFO"), ("-", "ERROR"), ("APPSEV", "FATAL")]
        )
    ],
    "ipmi-sel": [
        f"n{node}: {node} | 03/01/2024 | 12:00:0{node} | Fan #0x1 | Lower Critical going low | Asserted"
        for node in range(4)
    ],
    "redfish": [
        json.dumps({"@odata.type": "#LogEntry.v1_6_1.LogEntry", "MessageId": "MEM0001",
                    "Message": f"DIMM {place}", "Severity": "Critical",
                    "Created": f"2024-03-01T12:00:0{place}Z"})
        for place in range(4)
    ],
    "nvsentinel": [
        json.dumps({"checkName": "GpuXidError", "isFatal": True, "isHealthy": False,
                    "errorCode": ["79"], "nodeName": f"n{node}",
                    "generatedTimestamp": "2024-03-01T12:00:00Z"})
        for node in range(4)
    ],
}  # fmt: skip


def content(root: Path, source: str, parts: list[list[str]]) -> list[tuple[Any, ...]]:
    """Health events of a store into which each part went as a file of its own, by `auto`."""
    names = []
    for number, lines in enumerate(parts):
        path = root / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        names.append(str(path))
    results, errors = ingest_files(root / "store", "auto", names, Options(node="n9"))
    assert (errors, {result.source for result in results}) == ([], {source})
    store = Store.open(root / "store")
    try:
        return sorted(store.rows("SELECT * FROM health_events"), key=str)
    finally:
        store.close()


@pytest.mark.slow
@pytest.mark.parametrize("source", LINES)
def test_the_store_is_the_same_for_any_order_split_and_repetition(
    tmp_path: Path, source: str
) -> None:
    lines = LINES[source]
    whole = content(tmp_path / "whole", source, [lines])
    pieces = content(tmp_path / "pieces", source, [lines[2:], lines[:2], lines[::-1]])
    assert whole == pieces
    assert len(whole) >= 3
