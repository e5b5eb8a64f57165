"""Counters of InfiniBand ports: of sysfs, perfquery and ibqueryerrors, real and made from manuals."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from app.actions import Options, ingest_files
from data.errors import SourceError
from data.ingest.reader import Source
from data.ingest.readers import known_readers
from data.ingest.readers.metrics import infiniband
from data.store import Store

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "kernel" / "gpud_infiniband"
MODIFIED = datetime(2024, 3, 1, 12, tzinfo=UTC)
BEGIN = "node_infiniband_"
PERFQUERY = """ibwarn: [21453] main: extended counters not indicated
# Port {kind}counters: Lid 1719 port 1 (CapMask: 0x5300)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............3
LinkDowned:......................255
PortXmitData:....................10
PortXmitWait:....................7
QP1Dropped:......................0
"""
"""Lines in the form of perfquery(8), counters in names of both versions."""
ERRORS = """Errors for "n1 mlx5_0"
   GUID 0x7cfe900300179b31 port 1: [VL15Dropped == 14] [PortXmitWait == 4294967295]
Errors for 0x2c903006e29b0 "MF0;ys23ib4:SX6036/U1"
   GUID 0x2c903006e29b0 port ALL: [LinkDownedCounter == 48]
   GUID 0x2c903006e29b0 port 1: [LinkDownedCounter == 8] [PortXmitDiscards == 2]
Errors for "MT4123 ConnectX6 Mellanox Technologies"
   GUID 0x1 port 1: [LinkDownedCounter == 9]
## Summary: 3 nodes checked, 3 bad nodes found
"""
"""Lines in the form of ibqueryerrors(8)."""


def read(folder: Path, text: str, **stated: Any) -> tuple[Any, list[tuple[Any, ...]]]:
    """Batch and rows: node, metric without its beginning, labels, value."""
    path = folder / "ib.txt"
    path.write_bytes(text.encode())
    batch = infiniband.read(Source(path, "ib.txt", MODIFIED), Options(**stated), duckdb.cursor())
    rows = batch.tables["node_metrics"].fetchall()
    columns = batch.tables["node_metrics"].columns
    found = [dict(zip(columns, row, strict=True)) for row in rows]
    assert batch.rows_kept == len(found)
    assert (
        batch.rows_read == len(found) + sum(batch.skipped_by_reason.values()) + batch.rejected.total
    )
    return batch, sorted(
        (row["node"], row["metric"].removeprefix(BEGIN), row["labels"], row["reading"])
        for row in found
    )


def label(port: str = "1", **others: str) -> str:
    return json.dumps(others | {"port": port}, sort_keys=True)


@pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
def test_counters_of_a_real_node_as_grep_prints_them(tmp_path: Path) -> None:
    files = sorted(path for path in REAL.rglob("*") if path.is_file() and "/ports/" in str(path))
    text = "".join(
        f"/sys/class/infiniband/{path.relative_to(REAL)}:{line}\n"
        for path in files
        for line in path.read_text().splitlines()
    )
    batch, found = read(tmp_path, text, node="h100", at=MODIFIED)
    values = {(metric, labels): value for _, metric, labels, value in found}
    assert len(values) == len(found)
    assert batch.skipped_by_reason == {"no counter": 2}  # link_layer of both
    second = label(device="mlx5_1")
    assert values["link_downed_total", second] == 255
    assert values["port_errors_received_total", second] == 14
    assert values["excessive_buffer_overrun_errors_total", second] == 15
    assert values["port_data_received_bytes_total", second] == 4 * 205128687774249
    assert values["state_id", second] == 4
    assert values["rate_bytes_per_second", second] == 50e9


def test_perfquery_by_lid_and_port_extended_counters_apart(tmp_path: Path) -> None:
    both = PERFQUERY.format(kind="") + PERFQUERY.format(kind="extended ")
    batch, found = read(tmp_path, both.replace("\n", "\r\n"), node="n1", at=MODIFIED)
    basic, extended = label(lid="1719"), label(lid="1719", counters="extended")
    assert [row for row in found if row[2] == basic] == [
        ("n1", "link_downed_total", basic, 255), ("n1", "port_data_transmitted_bytes_total", basic, 40),
        ("n1", "port_transmit_wait_total", basic, 7), ("n1", "qp1dropped_total", basic, 0),
        ("n1", "symbol_error_total", basic, 3),
    ]  # fmt: skip
    assert len([row for row in found if row[2] == extended]) == 5
    assert batch.skipped_by_reason == {"text": 2}


def test_ibqueryerrors_names_its_hosts_and_switches_are_no_nodes(tmp_path: Path) -> None:
    batch, found = read(tmp_path, ERRORS)
    there = label(device="mlx5_0")
    assert found == [
        ("n1", "port_transmit_wait_total", there, 4294967295), ("n1", "vl15_dropped_total", there, 14)
    ]  # fmt: skip
    assert batch.skipped_by_reason == {"of a switch": 3, "of a host without a name": 1, "text": 1}
    assert "modification time 2024-03-01 12:00:00 UTC (pass --at)" in batch.notices[0]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mlx5_0/ports/1/counters/link_downed:\ufffd", "no number as value"),
        ("mlx5_0/ports/1/counters/link_downed:-1", "no number as value"),
        ("LinkDowned:.......3", "no heading says of which port"),
        ("# Port counters: Lid 1 port 1\nLinkDowned:.....x", "no number as value"),
        ('Errors for "n1 mlx5_0"\n GUID 0x1 port 1: [LinkDowned == ]', None),
        ("mlx5_0/ports/1/counters/link_downed:N/A (no PMA)", None),
        ("# Port counters: Lid 1 port 255\nLinkDowned:.....4", None),
        ("# Port counters: Lid 1 all ports\nLinkDowned:.....4", None),
    ],
)
def test_what_is_no_counter_is_told(tmp_path: Path, text: str, reason: str | None) -> None:
    batch, found = read(tmp_path, f"\ufeff{text}\n", node="n1")
    assert (found, dict(batch.rejected.by_reason)) == ([], {reason: 1} if reason else {})
    assert set(batch.skipped_by_reason) <= {"not counted by the port", "sum over ports"}
    assert batch.rows_read == 1


def test_without_a_node_each_counter_is_rejected_and_text_alone_refused(tmp_path: Path) -> None:
    batch, _ = read(tmp_path, "mlx5_0/ports/1/counters/link_downed:3\n")
    assert "pass --node" in next(iter(batch.rejected.by_reason))
    with pytest.raises(SourceError, match="holds no counter"):
        read(tmp_path, "nothing\nat all\n", node="n1")


@pytest.mark.slow
def test_auto_knows_it_and_hours_rise_by_what_was_counted(tmp_path: Path) -> None:
    for number, value in enumerate((250, 255, 4)):  # it began again before the third
        path = tmp_path / f"{number}.txt"
        path.write_text(f"n1: /sys/class/infiniband/mlx5_0/ports/1/counters/link_downed:{value}\n")
        at = MODIFIED.replace(minute=10 * number)
        assert [n for n, r in known_readers().items() if r.sniff(path.read_text())] == [
            "infiniband"
        ]
        ingest_files(tmp_path / "s", "auto", [str(path)] * (1 + number % 2), Options(at=at))
    store = Store.open(tmp_path / "s")
    assert store.rows(
        "SELECT node, metric, n, last, increase, at_least FROM node_metrics_hourly"
    ) == [("n1", f"{BEGIN}link_downed_total", 3, 4, 9, True)]


@pytest.mark.parametrize(
    "text", [PERFQUERY.format(kind=""), PERFQUERY.format(kind="extended "), ERRORS]
)
def test_no_other_reader_takes_what_tools_print(text: str) -> None:
    assert [name for name, reader in known_readers().items() if reader.sniff(text)] == [
        "infiniband"
    ]
