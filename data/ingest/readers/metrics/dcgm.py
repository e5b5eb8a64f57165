"""Metrics in Prometheus' text format: what DCGM exporter and node_exporter print."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.metrics.exposition import Sample, samples
from data.ingest.readers.metrics.metric_samples import MetricSamples

if TYPE_CHECKING:
    import duckdb


_ANNOUNCED = re.compile(r"# (?:HELP [A-Za-z_:][\w:]* |TYPE [A-Za-z_:][\w:]* [a-z]+\s*$)")
_TYPE = re.compile(
    r"^# TYPE [A-Za-z_:][\w:]* (?:gauge|counter|histogram|summary|untyped)\s*$", re.M
)
_OF_NODES = ("DCGM_", "node_")
_XIDS = "DCGM_FI_DEV_XID_ERRORS"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def sniff(head: str) -> bool:
    """Whether it begins with metrics: with a HELP or TYPE, or a sample of a node with labels."""
    line = next((line for line in head.splitlines() if line.strip()), "").lstrip("\ufeff")
    if _ANNOUNCED.match(line):
        return _TYPE.search(head) is not None
    found = next((one.found for one in samples([line])), None)
    return isinstance(found, Sample) and bool(found.labels) and found.metric.startswith(_OF_NODES)


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Samples as rows of `node_metrics`; prose around them is skipped.

    A sample without a time is of `--at`, else of the file's modification time. XIDs in
    `health_events` follow from DCGM_FI_DEV_XID_ERRORS when the samples are merged.

    Raises
    ------
    SourceError
        Where no line is a sample.
    """
    log = MetricSamples(source, options, connection)
    scraped_at = options.at or source.modified_at
    scraped_us = (scraped_at - _EPOCH) // timedelta(microseconds=1)
    n_undated = 0
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        for line_no, raw, found in samples(lines, options.limits):
            if isinstance(found, RecordError):
                log.rejected.reject(line_no, str(found), raw)
            elif isinstance(found, str):
                log.skipped[found] += 1
            else:
                at_us = scraped_us if found.at_us is None else found.at_us
                try:
                    log.take(found.metric, found.labels, [at_us], [found.value])
                except RecordError as error:
                    log.rejected.reject(line_no, str(error), raw)
                else:
                    n_undated += found.at_us is None
    if n_undated and options.at is None:
        log.notices.append(
            f"{n_undated:,} samples without a time: taken as of the file's modification time "
            f"{scraped_at:%Y-%m-%d %H:%M:%S} UTC (pass --at)"
        )
    of_gpus = {metric for metric in log.metrics if metric.startswith("DCGM_")}
    if of_gpus and _XIDS not in of_gpus:
        log.notices.append(f"no {_XIDS}: XIDs that the exporter saw stay unknown")
    batch = log.batch()
    if not batch.rows_kept and not batch.rejected:
        raise SourceError(f"{source.name}: holds no sample: give what the exporter prints")
    return batch


READER = Reader(
    "dcgm",
    "metrics of DCGM exporter or node_exporter",
    export="curl -s http://NODE:9400/metrics (9100), with --node where they do not name it",
    reads=(
        "metrics of DCGM exporter and node_exporter, as `curl -s "
        "http://NODE:9400/metrics` (9100) prints them; `--node` where they do not name "
        "it, `--at` when it was"
    ),
    fills=("node_metrics",),
    place=6.91,
    options=("node", "at"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
