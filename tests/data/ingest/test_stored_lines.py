"""Kernel and job logs from Loki and Elasticsearch."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
import pytest

from data.errors import SourceError
from data.ingest.formats.source import opened
from data.ingest.reader import Batch, Options
from data.ingest.readers import known_readers
from tests.data.ingest.job_reading import rejected, takers

NOON = 1_709_294_400  # 2024-03-01 12:00 UTC
XID = "NVRM: Xid (PCI:0000:3b:00): 79, pid=1, GPU has fallen off the bus."
Rows = list[tuple[Any, ...]]


def read(source: str, *records: object, **options: Any) -> tuple[Batch, Rows, Rows]:
    """The batch of JSON lines, its events of the kernel and its lines of jobs."""
    with TemporaryDirectory() as folder, duckdb.cursor() as connection:
        connection.execute("SET TimeZone='UTC'")
        path = Path(folder) / "given"
        path.write_text(
            "\n".join(one if isinstance(one, str) else json.dumps(one) for one in records)
        )
        with opened(str(path), Path(folder)) as found:
            batch = known_readers()[source].read(found, Options(**options), connection)
            events = batch.tables["health_events"]
            lines = batch.tables.get("job_logs")
            rows = sorted(lines.fetchall()) if lines is not None else []  # type: ignore[union-attr]
    told = sum(batch.skipped_by_reason.values()) + batch.rejected.total
    assert batch.rows_read == batch.rows_kept + told
    columns = ["node", "observed_at", "xid", "event_id"]
    return batch, sorted(map(tuple, events[columns].values.tolist())), rows  # type: ignore[index]


def stream(labels: dict[str, Any], *values: tuple[int, str]) -> dict[str, Any]:
    """A stream of Loki: nanoseconds behind noon, and lines."""
    return {"stream": labels, "values": [[str(NOON * 10**9 + ns), line] for ns, line in values]}


def logcli(
    labels: dict[str, Any], line: str, at: str = "2024-03-01T13:00:00+01:00"
) -> dict[str, Any]:
    """A line as `logcli -o jsonl` prints it."""
    return {"labels": labels, "line": line, "timestamp": at}


def hit(message: str = XID, **fields: Any) -> dict[str, Any]:
    """A line as Elasticsearch gives it."""
    source = {
        "@timestamp": "2024-03-01T12:00:00.000Z",
        "message": message,
        "host": {"name": "gpu1"},
    }
    return {"_index": "j", "_id": "1", "_score": 1, "_source": source | fields}


def journal(**changes: Any) -> dict[str, Any]:
    """A record of the journal."""
    return {"MESSAGE": XID, "_HOSTNAME": "gpu1", "__REALTIME_TIMESTAMP": f"{NOON}000000",
            "_TRANSPORT": "kernel"} | changes  # fmt: skip


KERNEL = stream({"hostname": "gpu1", "transport": "kernel"}, (0, XID), (1, "usb 1-1: new device"))
FORMS: list[tuple[str, tuple[object, ...]]] = [
    ("loki", ({"status": "success", "data": {"resultType": "streams", "result": [KERNEL], "stats": {}}},)),
    ("loki", (json.dumps({"data": {"resultType": "streams", "result": [KERNEL]}}, indent=2),)),
    ("loki", ({"streams": [KERNEL]},)),
    ("loki", (logcli({"instance": "gpu1:9080"}, XID), logcli({}, "usb"))),
    ("loki", (logcli({"host": "x"}, json.dumps(journal())),)),
    ("loki", (logcli({"host": "x"}, f"Mar  1 12:00:00 gpu1 kernel: [  7.1] {XID}"),)),
    ("elasticsearch", (hit(), hit("usb"))),
    ("elasticsearch", (json.dumps([hit(), hit("usb")], indent=1),)),
    ("elasticsearch", ({"took": 1, "hits": {"total": {"value": 1}, "hits": [hit()]}},)),
    ("elasticsearch", ({"@timestamp": NOON * 1000, "host.name": "gpu1", "message": XID},)),
    ("elasticsearch", ({"_index": "j", "_source": journal()},)),
]  # fmt: skip


def test_every_form_gives_the_same_event_with_the_host_and_time_beside_it() -> None:
    for source, records in FORMS:
        text = "\n".join(one if isinstance(one, str) else json.dumps(one) for one in records)
        assert takers(text[:16_384]) == [source], text
        batch, events, lines = read(source, *records)
        assert [(node, at.timestamp(), xid) for node, at, xid, _ in events] == [("gpu1", NOON, 79)]
        assert (batch.rejected.total, lines) == (0, [])


def test_lines_of_jobs_are_told_by_a_label_or_the_name_of_the_file() -> None:
    records = [
        logcli({"slurm_job_id": "77", "host": "gpu2"}, "[rank3]: boom", "2024-03-01T12:00:00.5Z"),
        logcli({"filename": "/logs/slurm-78.out"}, "ok", "2024-03-01T12:00:00.000000001Z"),
        logcli({"filename": "/logs/run-79.txt", "job": "varlogs"}, "step 1"),
    ]
    batch, _, rows = read("loki", *records)
    assert [(row[1], row[2], row[5], row[6], row[7]) for row in rows] == [
        ("77", "log store", "gpu2", 3, "[rank3]: boom"), ("78", "slurm-78.out", None, None, "ok"),
    ]  # fmt: skip
    assert batch.skipped_by_reason == {"no_fault": 1}
    _, _, rows = read("loki", *records, pattern="run-%j.txt")
    assert [row[1] for row in rows] == ["77", "79"]
    _, _, rows = read(
        "elasticsearch", hit("a", job_id=5, log={"offset": 41, "file": {"path": "/x/o.txt"}})
    )
    assert [row[1:4] for row in rows] == [("5", "o.txt", 42)]


def test_order_split_and_repetition_give_the_same_lines_and_events() -> None:
    lines = [logcli({"job_id": "5"}, f"line {n}", f"2024-03-01T12:00:0{n % 3}Z") for n in range(30)]
    lines += [logcli({"host": "gpu1"}, XID, f"2024-03-01T12:00:0{n}Z") for n in range(3)]
    _, events, rows = read("loki", *lines)
    assert len({row[:4] for row in rows}) == 30
    _, turned_events, turned = read("loki", *lines[::-1])
    assert (turned_events, turned) == (events, rows)
    parts = [read("loki", *lines[:7]), read("loki", *lines[5:])]
    assert {row for part in parts for row in part[2]} == {*rows}
    assert {event for part in parts for event in part[1]} == {*events}
    order = [row[3] for row in sorted(rows, key=lambda row: row[4])]
    assert [n // 10**9 for n in order] == sorted(n // 10**9 for n in order)


@pytest.mark.parametrize(
    ("source", "record", "told"),
    [
        ("loki", logcli({"syslog_identifier": "podman"}, XID), "not_from_kernel"),
        ("loki", logcli({}, json.dumps({"note": XID})), "not_from_kernel"),
        ("elasticsearch", {"_source": journal(_TRANSPORT="stdout")}, "not_from_kernel"),
        ("elasticsearch", {"_source": {"@timestamp": "x", "cpu": 1}}, "no message"),
        ("loki", logcli({}, XID), "no host on the line: pass --node"),
        ("loki", logcli({}, "x", "noon"), "impossible time"),
        ("loki", logcli({}, "x", "2024-13-01T12:00:00Z"), "impossible time"),
        ("loki", {"labels": {}, "timestamp": "x"}, "no line of Loki"),
        ("loki", {"stream": {}, "values": [["1"]]}, "no line of Loki"),
        ("loki", [7], "not a JSON object"),
        ("loki", '{"labels": {}, "line": "cut', "cut off before its end"),
        ("elasticsearch", {"_source": 7}, "not a JSON object"),
        ("elasticsearch", {"_source": {"message": "x", "job_id": 4}}, "line of a job without a time"),
    ],
)  # fmt: skip
def test_what_is_none_of_the_kernels_lines_is_counted_with_its_reason(
    source: str, record: object, told: str
) -> None:
    whole = logcli({"host": "gpu1"}, XID) if source == "loki" else hit()
    batch, events, _ = read(source, whole, record)
    assert len(events) == 1
    reasons = [*batch.skipped_by_reason, *(reason for _, reason in rejected(batch))]
    assert reasons == [told]


def test_a_lost_gpu_takes_its_address_from_its_own_host_and_time_alone() -> None:
    named, lost = "NVRM: The NVIDIA GPU 0000:b3:00.0", "NVRM: GPU has fallen off the bus."
    first = logcli({"host": "gpu1"}, named)
    for host, at, address in (("gpu1", 1, "0000:b3:00"), ("gpu2", 1, None), ("gpu1", -1, None)):
        second = logcli({"host": host}, lost, f"2024-03-01T{12 if at > 0 else 11}:00:30Z")
        batch, _, _ = read("loki", first, second)
        (gpu,) = batch.tables["health_events"]["gpu"].astype(object)  # type: ignore[index]
        assert (gpu if isinstance(gpu, str) else None) == address


def test_documents_without_any_line_are_refused() -> None:
    with pytest.raises(SourceError, match="none of its records holds a line of a log"):
        read("elasticsearch", {"_source": {"@timestamp": "2024-03-01", "cpu": 1}})
