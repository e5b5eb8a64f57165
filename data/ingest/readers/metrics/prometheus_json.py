"""Metrics in answers of Prometheus' API, and in what `promtool query -o json` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.metrics.exposition import INFINITE, NAN
from data.ingest.readers.metrics.metric_samples import MetricSamples
from data.ingest.readers.metrics.prometheus_answer import NO_SAMPLE, answered

if TYPE_CHECKING:
    import duckdb


def sniff(head: str) -> bool:
    """Whether JSON holds series with labels and values."""
    if head.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return False
    is_answer = '"resultType"' in head and '"stream"' not in head
    is_series = '"metric"' in head and ('"values"' in head or '"value"' in head)
    return is_series and (is_answer or '"__name__"' in head)


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
    return log.batch()


READER = Reader(
    "prometheus-json",
    "metrics of nodes from Prometheus",
    export=("curl -sG http://HOST:9090/api/v1/query_range, also /query and promtool query -o json"),
    reads=(
        "the same metrics from Prometheus: `curl -sG http://HOST:9090/api/v1/query_range "
        "-d query=DCGM_FI_DEV_XID_ERRORS -d start=... -d end=... -d step=60`, `/query`, "
        "`promtool query range -o json`"
    ),
    fills=("node_metrics",),
    place=6.92,
    options=("node",),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
