"""Prometheus' text format: real scrapes, escapes, times, and lines that are broken."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from data.ingest.reader import Options, RecordError
from data.ingest.readers.metrics.dcgm import (
    BROKEN,
    IMPOSSIBLE_TIME,
    INFINITE,
    NAN,
    NO_VALUE,
    PARTS,
    PROSE,
    SHORTENED,
    samples,
)
from data.ingest.readers.metrics.metric_samples import NO_NODE, Sample, Series, series_of
from data.limits import Limits
from data.metric_kinds import MetricKind, metric_kind

REAL = Path(__file__).parents[4] / "shared" / "data" / "collect" / "metrics"
needs_files = pytest.mark.skipif(not REAL.exists(), reason="no ../shared/data/collect here")


def found(text: str) -> list[Sample | str]:
    return [
        str(line.found) if isinstance(line.found, RecordError) else line.found
        for line in samples(text.splitlines())
    ]


def counted(name: str, begin: str = "") -> Counter[str]:
    """Lines of a real file by what they are, those that begin so."""
    with (REAL / name).open(encoding="utf-8") as lines:
        kinds = [line.found for line in samples(lines) if line.raw.startswith(begin)]
    return Counter("sample" if isinstance(kind, Sample) else str(kind) for kind in kinds)


@needs_files
@pytest.mark.parametrize(
    ("name", "n_samples", "n_shortened"),
    [
        ("cncf_v1.35_kops_tests_TestObservability_AcceleratorMetrics_ViaDCGM_output.md", 46, 0),
        ("cncf_v1.35_upcloud_accelerator-metrics.md", 23, 0),
        ("cncf_v1.35_viettel-ai-platform_accelerator_metrics.md", 2, 18),
        ("cncf_v1.35_vks_accelerator_metrics.md", 11, 0),
    ],
)
def test_published_scrapes_hold_what_is_known_of_them(
    name: str, n_samples: int, n_shortened: int
) -> None:
    assert counted(name, "DCGM_FI") == Counter(sample=n_samples) + Counter({SHORTENED: n_shortened})


@needs_files
def test_the_output_of_node_exporter_has_3027_samples() -> None:
    kinds = counted("node_exporter_e2e-output.txt")
    assert kinds.total() == 3027
    assert kinds.keys() == {"sample"}
    assert counted("node_exporter_e2e-output.txt", "node_infiniband")["sample"] == 51


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a_total 1 1441205977284", Sample("a_total", {}, 1.0, 1_441_205_977_284_000)),
        ("a_total 1 1441205977.284", Sample("a_total", {}, 1.0, 1_441_205_977_284_000)),
        (r'a{b="x\"},{\\\n", c="1",} 2e3', Sample("a", {"b": 'x"},{\\\n', "c": "1"}, 2e3, None)),
        ("a{ } -1", Sample("a", {}, -1.0, None)),
        ('a{b="1"} 2 # {trace="x"} 0.6', Sample("a", {"b": "1"}, 2.0, None)),
        ('a{b="1"} NaN', NAN),
        ('a{b="1"} +Inf', INFINITE),
        ('a_bucket{le="+Inf"} 2', PARTS),
        ("# TYPE a summary\na_sum 2", PARTS),
        ('a{b="1",...} 2', SHORTENED),
        ('a{b="1"', BROKEN),
        ('a{b="1",b="2"} 2', BROKEN),
        ('a{b="1"} 1_0', NO_VALUE),
        ('a{b="1"} 2 12', IMPOSSIBLE_TIME),
        ("DCGM_FI_DEV_GPU_TEMP", NO_VALUE),
        ("# HELP a b\na x", NO_VALUE),
        ("The scrape is below:", PROSE),
        ("| `a` | 1 |", PROSE),
    ],
)
def test_a_line_is_a_sample_or_told(text: str, wanted: Sample | str) -> None:
    assert found(text) == [wanted]


LABELS = {"gpu": "0", "UUID": "GPU-1", "device": "nvidia0", "modelName": "H100", "err_code": "79"}


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"Hostname": "gpu7", "instance": "10.0.0.1:9400"}, "gpu7"),
        ({"Hostname": "nvidia-dcgm-exporter-x7", "node": "gpu7"}, "gpu7"),
        ({"instance": "gpu7.example.org:9100"}, "gpu7.example.org"),
        ({"instance": "[fe80::7]:9100"}, "fe80::7"),
        ({"instance": "localhost:9400"}, "said"),
        ({}, "said"),
    ],
)
def test_a_series_is_of_the_node_that_its_labels_name(labels: dict[str, str], node: str) -> None:
    wanted = Series("c", node, "0", "DCGM_FI_DEV_XID_ERRORS", None, "GPU-1", None, None)
    options = Options(cluster="c", node="said")
    assert series_of("DCGM_FI_DEV_XID_ERRORS", LABELS | labels, options) == wanted


def test_a_series_without_a_node_is_refused_and_ports_stay_apart() -> None:
    with pytest.raises(RecordError, match=NO_NODE):
        series_of("up", {"instance": "127.0.0.1:9100"}, Options())
    port = {"instance": "n1:9100", "job": "node", "device": "mlx5_0", "port": "1"}
    series = series_of("node_infiniband_link_downed_total", port, Options())
    assert (series.node, series.labels) == ("n1", '{"device": "mlx5_0", "port": "1"}')


def test_a_pod_is_the_one_that_held_the_gpu_not_the_exporter() -> None:
    own = {"instance": "n1:9400", "pod": "dcgm-exporter-x7", "namespace": "monitoring"}
    held = {"exported_pod": "train-0", "exported_namespace": "physics"}
    metric = "DCGM_FI_DEV_GPU_UTIL"
    assert series_of(metric, own, Options())[-2:] == (None, None)
    assert series_of(metric, own | held, Options())[-2:] == ("physics", "train-0")


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("DCGM_FI_DEV_POWER_USAGE", MetricKind(False, "W")),
        ("DCGM_FI_DEV_FB_USED", MetricKind(False, "MiB")),
        ("DCGM_FI_PROF_DRAM_ACTIVE", MetricKind(False, "ratio")),
        ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", MetricKind(True, "count")),
        ("node_infiniband_rate_bytes_per_second", MetricKind(False, "B/s")),
        ("node_infiniband_excessive_buffer_overrun_errors_total", MetricKind(True, "count", 15)),
        ("my_gauge", MetricKind(False, None)),
    ],
)
def test_a_metric_tells_its_kind_and_unit_by_its_name(name: str, wanted: MetricKind) -> None:
    assert metric_kind(name) == wanted


def of_labels(n: int) -> str:
    """A sample of so many labels."""
    return "up{" + ",".join(f'l{k}="v{k}"' for k in range(n)) + "} 1"


def test_a_line_of_more_labels_than_a_record_may_have_is_an_error() -> None:
    first, second = found(f"{of_labels(4_096)}\n{of_labels(4_097)}")
    assert isinstance(first, Sample)
    assert second == "more fields than the limit of 4,096"


@pytest.mark.slow
def test_a_line_of_300_000_labels_costs_as_much_as_its_bytes_on_ordinary_lines() -> None:
    line = of_labels(300_000)
    ordinary = [of_labels(20) for _ in range(len(line) // len(of_labels(20)))]
    allowing = Limits(fields=300_000)
    seconds: dict[str, float] = {}
    for name, lines, limits in (
        ("ordinary lines", ordinary, Limits()),
        ("one line", [line], allowing),
        ("one line, refused", [line], Limits()),
    ):
        begin = time.process_time()
        for each in samples(lines, limits):
            assert isinstance(each.found, Sample) is (name != "one line, refused")
        seconds[name] = (time.process_time() - begin) / sum(map(len, lines))
        print(f"{name}: {seconds[name] * 1e9:.0f} ns a byte")
    assert seconds["one line"] < 3 * seconds["ordinary lines"]
    assert seconds["one line, refused"] < seconds["ordinary lines"]
