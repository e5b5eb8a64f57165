"""Metrics in answers of Prometheus' API, and in what `promtool query -o json` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.formats.json_text import is_json
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.metrics.dcgm import INFINITE, NAN
from data.ingest.readers.metrics.metric_samples import MetricSamples

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from data.limits import Limits

NO_SERIES, NO_METRIC = "no series with its labels and values", "no metric name: ask for it bare"
NO_SAMPLE, IMPOSSIBLE_TIME = "no time with its value", "impossible time"
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100


class AnsweredSeries(NamedTuple):
    """A series of an answer."""

    metric: str
    labels: dict[str, str]
    at_us: list[int]
    """Of each value, microseconds since 1970."""
    values: list[float]
    n_nan: int
    n_infinite: int
    n_broken: int
    """Values without a number or a possible time."""


def sniff(head: str) -> bool:
    """Whether JSON holds series with labels and values."""
    is_answer = '"resultType"' in head and '"stream"' not in head
    is_series = '"metric"' in head and ('"values"' in head or '"value"' in head)
    return is_json(head) and is_series and (is_answer or '"__name__"' in head)


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Samples as rows of `node_metrics`; a record is a value, of a broken series the series.

    XIDs in `health_events` follow from DCGM_FI_DEV_XID_ERRORS when the samples are merged.

    Raises
    ------
    SourceError
        Where Prometheus says that it has no answer, or there is no series.
    """
    log = MetricSamples(source, options, connection)
    n_series = 0
    for line_no, raw, series in answered(source, options.limits):
        n_series += 1
        if isinstance(series, RecordError):
            log.rejected.reject(line_no, str(series), raw)
            continue
        try:
            log.take(series.metric, series.labels, series.at_us, series.values)
        except RecordError as error:
            for _ in range(max(1, len(series.values))):
                log.rejected.reject(line_no, str(error), raw)
        log.skipped[NAN] += series.n_nan
        log.skipped[INFINITE] += series.n_infinite
        for _ in range(series.n_broken):
            log.rejected.reject(line_no, NO_SAMPLE, raw)
    if not n_series:
        raise SourceError(f"{source.name}: holds no series: ask for a metric and a time it has")
    return log.whole()


def answered(
    source: Source, limits: Limits
) -> Iterator[tuple[int, str, AnsweredSeries | RecordError]]:
    """Line, text and content of each series, whether it has one value or many.

    Raises
    ------
    SourceError
        Where Prometheus says that it has no answer.
    """
    records = JsonRecords(source, ("data", "result"), limits)
    for line_no, raw, value in records:
        if isinstance(value, dict) and value.get("status") == "error":
            raise SourceError(f"{source.name}: Prometheus says {value.get('error')}: ask again")
        yield line_no, raw, value if isinstance(value, RecordError) else _series(value, limits)


def _series(value: object, limits: Limits) -> AnsweredSeries | RecordError:
    """A series as JSON holds it."""
    labels = value.get("metric") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(labels, dict):
        return RecordError(NO_SERIES)
    points = value.get("values", [value["value"]] if "value" in value else None)
    if not isinstance(points, list) or not all(isinstance(text, str) for text in labels.values()):
        return RecordError(NO_SERIES)
    if len(labels) > limits.fields:
        return RecordError(limits.fields_reason)
    metric = labels.get("__name__")
    if not metric:
        return RecordError(NO_METRIC)
    at_us: list[int] = []
    numbers: list[float] = []
    n_nan = n_infinite = n_broken = 0
    for point in points:
        try:
            at, number = _point(point)
        except (TypeError, ValueError, OverflowError):
            n_broken += 1
            continue
        if math.isnan(number):
            n_nan += 1
        elif math.isinf(number):
            n_infinite += 1
        else:
            at_us.append(at)
            numbers.append(number)
    return AnsweredSeries(metric, labels, at_us, numbers, n_nan, n_infinite, n_broken)


def _point(point: object) -> tuple[int, float]:
    """Time and value of a point, which Prometheus writes as a number and a text."""
    if not isinstance(point, list) or len(point) != 2 or isinstance(point[0], bool):
        raise TypeError(NO_SAMPLE)
    at, text = point
    if not isinstance(at, int | float) or not isinstance(text, str) or "_" in text:
        raise TypeError(NO_SAMPLE)
    if not _EARLIEST_S <= at < _LATEST_S:
        raise ValueError(IMPOSSIBLE_TIME)
    return round(at * 1_000_000), float(text)


READER = Reader(
    "prometheus-json",
    "metrics of nodes from Prometheus",
    export=("curl -sG http://HOST:9090/api/v1/query_range, also /query and promtool query -o json"),
    reads=(
        "the same metrics from Prometheus: `curl -sG http://HOST:9090/api/v1/query_range "
        "-d query=DCGM_FI_DEV_XID_ERRORS -d start=... -d end=... -d step=60`, `/query`, "
        "`promtool query range -o json`"
    ),
    script=(
        "curl -sG http://localhost:9090/api/v1/query_range \\\n"
        "  -d query=DCGM_FI_DEV_XID_ERRORS -d step=60 \\\n"
        "  -d start={start}T00:00:00Z -d end={end}T00:00:00Z > xids.json"
    ),
    example="xids.json",
    advice=(
        "Ask for metrics by their bare names, not for functions of them; a collector's "
        "source of kind `prometheus` does so by itself."
    ),
    fills=("node_metrics",),
    place=6.92,
    options=("node",),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
