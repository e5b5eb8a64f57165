"""Metrics in a store: samples, hours and XIDs, the same for any order, split and repetition."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.actions import ingest_files
from data.collect.config import load_sources
from data.errors import DataError
from data.ingest.reader import Options
from data.ingest.readers.metrics import dcgm, prometheus_json
from data.publish.forget import forget
from data.queries import metrics
from data.store import Store

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "metrics"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")
BEGIN = datetime(2024, 3, 1, 12, tzinfo=UTC)
XID, TEMP = "DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_GPU_TEMP"
REPLAYS, DOWNED = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER", "node_infiniband_link_downed_total"
SERIES: dict[str, tuple[float, ...]] = {
    XID: (0, 79, 79, 0, 31, 48),
    TEMP: (40, 41.5, 39, 50, 47, 46),
    REPLAYS: (5, 9, 2, 3, 3, 7),
    DOWNED: (1, 255, 255, 255, 255, 255),
}
"""Values at 12:00, 12:20, 12:40, 13:00, 13:20 and, after a gap, at 15:00."""
MINUTES = (0, 20, 40, 60, 80, 180)


def at_s(minute: int) -> int:
    return int(BEGIN.timestamp()) + 60 * minute


LINES = [
    f'{metric}{{gpu="0",Hostname="n1"}} {value} {at_s(minute)}000'
    for metric, values in SERIES.items()
    for minute, value in zip(MINUTES, values, strict=True)
]


def ingested(root: Path, *parts: str, source: str = "auto", **stated: Any) -> Store:
    """A store into which each text went as a file of its own."""
    root.mkdir(exist_ok=True)
    names = [str(root / f"{number}.txt") for number in range(len(parts))]
    for name, text in zip(names, parts, strict=True):
        Path(name).write_text(text, encoding="utf-8")
    _, errors = ingest_files(root / "store", source, names, Options(**stated))
    assert errors == []
    return Store.open(root / "store")


def content(store: Store) -> list[list[tuple[Any, ...]]]:
    tables = ("node_metrics", "node_metrics_hourly", "health_events", "coverage")
    return [sorted(store.rows(f"SELECT * FROM {table}"), key=str) for table in tables]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return ingested(tmp_path_factory.mktemp("whole"), "\n".join(LINES))


def test_an_hour_has_mean_extremes_and_the_increase_of_counters(whole: Store) -> None:
    hours = whole.rows(
        """SELECT hour(hour_at), n, minimum, mean, maximum, last, increase, at_least, unit
           FROM node_metrics_hourly WHERE metric IN ($temp, $replays) ORDER BY metric, hour_at""",
        {"temp": TEMP, "replays": REPLAYS},
    )
    assert hours == [
        (12, 3, 39, 40.166666666666664, 41.5, 39, None, None, "C"),
        (13, 2, 47, 48.5, 50, 47, None, None, "C"),
        (15, 1, 46, 46, 46, 46, None, None, "C"),
        (12, 3, 2, 16 / 3, 9, 2, 6, False, "count"),  # 5 to 9, then from 0 to 2
        (13, 2, 3, 3, 3, 3, 1, False, "count"),  # 2 to 3 across the hour
        (15, 1, 7, 7, 7, 7, None, False, "count"),  # nobody looked for 100 minutes
    ]


def test_a_counter_at_the_most_that_it_holds_counted_at_least_that(whole: Store) -> None:
    rows = whole.rows(
        "SELECT increase, at_least FROM node_metrics_hourly WHERE metric = $metric ORDER BY hour_at",
        {"metric": DOWNED},
    )
    assert rows == [(254, True), (0, True), (None, True)]


def test_an_xid_is_an_event_where_the_gauge_changes_and_not_at_every_scrape(whole: Store) -> None:
    rows = whole.rows(
        """SELECT node, gpu, xid, date_diff('minute', $begin, observed_at), source, check_name,
             severity IS NOT NULL FROM health_events ORDER BY observed_at""",
        {"begin": BEGIN},
    )
    assert rows == [
        ("n1", "0", xid, minute, "dcgm", "xid", True)
        for xid, minute in ((79, 20), (31, 80), (48, 180))
    ]


SHARED = """\
JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList|ExitCode
1|FAILED|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T12:00:05|1|gres/gpu=4|n1|1:0
2|FAILED|2024-03-01T10:00:00|2024-03-01T10:00:00|2024-03-01T12:01:10|1|gres/gpu=4|n1|1:0
"""
FAULT = (
    "2024-03-01T12:00:00+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 31, pid=77, name=python, "
    "Ch 00000008, intr 00000000. MMU Fault\n"
)


@pytest.mark.slow
def test_an_xid_told_thrice_counts_once_and_outlives_its_samples(tmp_path: Path) -> None:
    def gauge(*samples: tuple[int, int]) -> str:
        lines = (f'{XID}{{gpu="0",Hostname="n1"}} {xid} {at_s(at)}000' for at, xid in samples)
        return "\n".join(lines)

    month = 31 * 24 * 60
    shown = gauge((-60, 0), (1, 31), (5, 31), (60, 43), (month, 43))
    event = {
        "time": "2024-03-01T12:00:30Z",
        "name": "error_xid",
        "message": "XID 31 (x) detected on GPU PCI:0000:3B:00",
    }
    gpud = {"component": "accelerator-nvidia-error-xid", "node": "n1", "events": [event]}
    store = ingested(tmp_path, SHARED, FAULT, shown, json.dumps([gpud]), timezone="UTC")
    told = "SELECT source, xid, observed_at FROM health_events ORDER BY observed_at, source"
    seen = store.rows(told)
    assert [row[:2] for row in seen] == [
        ("kernel", 31), ("health_check", 31), ("dcgm", 31), ("dcgm", 43),
    ]  # fmt: skip
    causes = "SELECT job_id, cause FROM failures JOIN jobs USING (cluster, attempt_key) ORDER BY 1"
    verdicts = [("1", "illegal_memory_access"), ("2", "unknown")]
    assert store.rows(causes) == verdicts  # one fault of one process, of one of both jobs
    store.close()
    forget(tmp_path / "store", {"node_metrics": 20}, BEGIN + timedelta(days=31))
    store = ingested(tmp_path, gauge((month + 1, 43), (month + 2, 79)))
    ((n_samples,),) = store.rows("SELECT count(*) FROM node_metrics")
    new = ("dcgm", 79, BEGIN + timedelta(minutes=month + 2))
    assert (n_samples, store.rows(told)) == (3, [*seen, new])
    assert store.rows(causes) == verdicts
    store.close()


def test_an_xid_of_before_the_first_sample_has_no_time(tmp_path: Path) -> None:
    store = ingested(tmp_path, "\n".join(LINES[1:3]))
    rows = store.rows("SELECT xid, observed_at, message FROM health_events")
    assert rows == [(79, None, f"{XID} 79 at 2024-03-01 12:20:00, since when is unknown")]
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "parts",
    [[LINES[::-1]], [LINES[1::2], LINES[::2], LINES], [LINES[9:], LINES[2:9], LINES[:5]]],
    ids=["reversed", "interleaved, then all again", "later files first"],
)
def test_the_store_is_the_same_for_any_order_split_and_repetition(
    tmp_path: Path, whole: Store, parts: list[list[str]]
) -> None:
    store = ingested(tmp_path, *("\n".join(lines) + "\n" for lines in parts))
    assert content(store) == content(whole)
    store.close()


def test_an_answer_of_prometheus_gives_the_samples_of_the_exporter(
    tmp_path: Path, whole: Store
) -> None:
    result = [
        {
            "metric": {"__name__": metric, "gpu": "0", "Hostname": "n1", "job": "x"},
            "values": [[at_s(minute), str(v)] for minute, v in zip(MINUTES, values, strict=True)],
        }
        for metric, values in SERIES.items()
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    store = ingested(tmp_path, json.dumps(answer))
    assert content(store) == content(whole)
    store.close()


def test_samples_of_nodes_are_found_for_a_window(whole: Store) -> None:
    window = (BEGIN + timedelta(minutes=20), BEGIN + timedelta(minutes=60))
    found = metrics.samples(whole, "cluster", ["n1", "n2"], window, [TEMP])
    assert found["time"].astype("datetime64[s]").tolist() == [
        (BEGIN + timedelta(minutes=minute)).replace(tzinfo=None) for minute in (20, 40)
    ]
    np.testing.assert_array_equal(found["value"], [41.5, 39])
    assert (set(found["node"]), set(found["metric"])) == ({"n1"}, {TEMP})
    assert len(metrics.samples(whole, "cluster", ["n1"], window)["value"]) == 2 * len(SERIES)
    assert len(metrics.samples(whole, "cluster", ["n2"], window)["value"]) == 0


BROKEN = (
    "\ufeff# TYPE DCGM_FI_DEV_GPU_TEMP gauge\r\n"
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="n1"} 41\r\n'
    'DCGM_FI_DEV_GPU_TEMP{gpu="0",Hostname="n1"} 41\n'
    'DCGM_FI_DEV_GPU_TEMP{gpu="1",Hostname="n1"} NaN\n'
    'DCGM_FI_DEV_GPU_TEMP{gpu="2",Hostname="n1"} 9223372036854775794\n'
    'DCGM_FI_DEV_GPU_TEMP{gpu="3"} 40\n'
    'DCGM_FI_DEV_GPU_TEMP{gpu="4",Hostname="n1"} 40 12\n'
    'DCGM_FI_DEV_GPU_TEMP{gpu="5",Host'
)


def test_what_cannot_be_read_is_counted_and_a_scrape_without_time_is_of_when_it_was_said(
    tmp_path: Path,
) -> None:
    store = ingested(tmp_path, BROKEN, at=BEGIN)
    ((n_read, skipped, n_rejected),) = store.rows(
        "SELECT rows_read, skipped_by_reason, rows_rejected FROM ingests"
    )
    assert (n_read, n_rejected) == (8 - 1, 3)
    assert json.loads(skipped) == {"nan": 1, "not supported by the GPU": 1}
    rows = store.rows(
        "SELECT node, gpu, observed_at = $at, reading FROM node_metrics", {"at": BEGIN}
    )
    assert rows == [("n1", "0", True, 41)]
    assert store.rows("SELECT reason FROM rejected_rows ORDER BY 1") == [
        ("broken labels",),
        ("impossible time",),
        ("no Hostname, node or instance label: pass --node",),
    ]
    store.close()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (LINES[0], "dcgm"),
        ("# HELP up x\n# TYPE up gauge\nup 1\n", "dcgm"),
        ("# HELP for this tool\nnone\n", None),
        ("node_exporter is up\n", None),
        ("2024-03-01T12:00:00 n1 kernel: node_x 3\n", None),
        ('[{"metric": {"__name__": "a"}, "values": []}]', "prometheus-json"),
        ('{"status":"success","data":{"resultType":"streams","result":[{"stream":{},"values":[]}]}}',
         None),
        ('{"metric": "loss", "value": 3}', None),
    ],
)  # fmt: skip
def test_what_begins_as_metrics_do_is_recognised(text: str, wanted: str | None) -> None:
    found = [one.READER.name for one in (dcgm, prometheus_json) if one.sniff(text)]
    assert found == ([wanted] if wanted else [])


@needs_files
def test_published_scrapes_are_kept_by_node_and_gpu(tmp_path: Path) -> None:
    names = [
        "cncf_v1.35_kops_tests_TestObservability_AcceleratorMetrics_ViaDCGM_output.md",
        "cncf_v1.35_viettel-ai-platform_accelerator_metrics.md",
        "node_exporter_e2e-output.txt",
    ]
    results, errors = ingest_files(
        tmp_path / "store", "dcgm", [str(REAL / name) for name in names], Options(node="n9")
    )
    assert errors == []
    assert [(one.rows_kept, one.rows_skipped, one.rows_rejected) for one in results] == [
        (46, 34, 0),
        (2, 48, 18),
        (3027, 0, 0),
    ]
    store = Store.open(tmp_path / "store")
    rows = store.rows(
        """SELECT node, gpu, mean, unit FROM node_metrics_hourly WHERE metric = $metric
           AND starts_with(node, 'i-')""",
        {"metric": TEMP},
    )
    assert rows == [("i-030791dc5a37cd257", "0", 31, "C")]
    links = store.rows(
        "SELECT labels, last FROM node_metrics_hourly WHERE metric = $metric AND node = 'n9'",
        {"metric": DOWNED},
    )
    assert [(json.loads(labels)["port"], last) for labels, last in sorted(links)] == [
        ("1", 0), ("2", 0),
    ]  # fmt: skip
    store.close()


def test_a_file_without_a_sample_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("some words\n")
    with pytest.raises(DataError, match="a: holds no sample: give what the exporter prints"):
        ingest_files(tmp_path / "store", "dcgm", [str(tmp_path / "a")], Options())


def test_prometheus_is_collected_by_its_own_reader(tmp_path: Path) -> None:
    path = tmp_path / "collect.toml"
    path.write_text(f'[[source]]\nkind = "prometheus"\nurl = "http://h"\nquery = ["{XID}"]\n')
    (source,) = load_sources(path)
    assert source.settings.reader == "prometheus-json"
    path.write_text('[[source]]\nkind = "url"\nurl = "http://h"\n')
    with pytest.raises(DataError, match="needs reader"):
        load_sources(path)
