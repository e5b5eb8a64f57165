"""Samples of metrics: of which node, GPU and metric they are; rows of `node_metrics` by piece."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from itertools import compress
from typing import TYPE_CHECKING, NamedTuple

from data.ingest.reader import Batch, Options, RecordError
from data.ingest.rows import LocalClock, Tally

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import duckdb

    from data.ingest.reader import Source

_PIECE = 100_000
"""Samples that are held in memory at once."""
BLANK = "not supported by the GPU"
BLANKS = tuple(
    (float(blank), float(blank + 3))
    for blank in (2_147_483_632, 140_737_488_355_328, 9_223_372_036_854_775_792)
)
"""What DCGM gives for want of a value, as 32 bits, double and 64 bits (dcgm_structs.h): from the
first, which says no more, to the third behind it; these say why."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
NO_NODE = "no Hostname, node or instance label: pass --node"
_NODES = ("Hostname", "hostname", "exported_node", "node", "nodename", "kubernetes_node", "host",
          "exported_instance", "instance")  # fmt: skip
_PORT = re.compile(r":\d+\Z")
_NOWHERE = frozenset({"", "localhost", "127.0.0.1", "::1", "0.0.0.0"})
_CHANGING = frozenset({
    *_NODES, "__name__", "cluster", "gpu", "UUID", "modelName", "pci_bus_id", "err_code", "err_msg",
    "DCGM_FI_DRIVER_VERSION", "pod", "namespace", "container", "exported_pod",
    "exported_namespace", "exported_container", "endpoint", "service", "prometheus",
    "prometheus_replica", "replica",
})  # fmt: skip
"""Labels that say whose a series is or by which way it came, or change while it goes on."""


class Sample(NamedTuple):
    """A value as it is printed."""

    metric: str
    labels: dict[str, str]
    value: float
    at_us: int | None
    """When, in microseconds since 1970; None where the line does not say."""


class Line(NamedTuple):
    """A line that is neither blank nor a comment: a sample, why it is skipped, or an error."""

    line_no: int
    raw: str
    found: Sample | str | RecordError


class MetricSamples(Tally):
    """What was read of one input so far; a record is a sample."""

    def __init__(
        self, source: Source, options: Options, connection: duckdb.DuckDBPyConnection
    ) -> None:
        super().__init__(options, LocalClock(options))
        self._source, self._connection = source, connection
        self._places: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._series: dict[Series, int] = {}
        self._of_series: list[int] = []
        self._at_us: list[int] = []
        self._values: list[float] = []
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE samples_read (series INTEGER, at_us BIGINT, value DOUBLE)"
        )

    def take(
        self, metric: str, labels: Mapping[str, str], at_us: Sequence[int], values: Sequence[float]
    ) -> None:
        """Keeps values of one series.

        Raises
        ------
        RecordError
            Where nothing says of which node they are.
        """
        key = metric, frozenset(labels.items())
        place = self._places.get(key)
        if place is None:
            series = series_of(metric, labels, self.options)
            place = self._places[key] = self._series.setdefault(series, len(self._series))
        if metric.startswith("DCGM_"):
            kept = [not any(least <= value <= most for least, most in BLANKS) for value in values]
            self.skipped[BLANK] += kept.count(False)
            at_us, values = list(compress(at_us, kept)), list(compress(values, kept))
        if not at_us:
            return
        self._of_series += [place] * len(at_us)
        self._at_us += at_us
        self._values += values
        if len(self._values) >= _PIECE:
            self._put_away()

    def take_lines(self, lines: Iterable[Line], called: str = "samples") -> None:
        """Keeps the samples of a text; one without a time is of `--at`, else of the file's change.

        `called` is what such samples are called where users are told of them.
        """
        taken_at = self.options.at or self._source.modified_at
        taken_us = (taken_at - _EPOCH) // timedelta(microseconds=1)
        n_undated = 0
        for line_no, raw, found in lines:
            try:
                if isinstance(found, RecordError):
                    raise found
                if isinstance(found, str):
                    self.skipped[found] += 1
                    continue
                at_us = taken_us if found.at_us is None else found.at_us
                self.take(found.metric, found.labels, [at_us], [found.value])
                n_undated += found.at_us is None
            except RecordError as error:
                self.rejected.reject(line_no, str(error), raw)
        if n_undated and self.options.at is None:
            self.notices.append(
                f"{n_undated:,} {called} without a time: taken as of the file's modification time "
                f"{taken_at:%Y-%m-%d %H:%M:%S} UTC (pass --at)"
            )

    @property
    def metrics(self) -> set[str]:
        """Names of what was read."""
        return {series.metric for series in self._series}

    def whole(self) -> Batch:
        """All of the input."""
        import pyarrow as pa

        self._put_away()
        names = ("cluster", "node", "gpu", "metric", "labels", "gpu_uuid", "namespace", "pod_name")
        columns = zip(*self._series, strict=True) if self._series else [()] * len(names)
        arrays = {
            name: pa.array(column, pa.string()) for name, column in zip(names, columns, strict=True)
        }
        connection = self._connection
        connection.register("series_found", pa.table(arrays | {"series": range(len(self._series))}))
        connection.execute("CREATE OR REPLACE TEMP TABLE series_read AS FROM series_found")
        connection.unregister("series_found")
        rows = connection.sql(
            """SELECT * EXCLUDE (series, at_us, value), value AS reading,
                 make_timestamptz(at_us) AS observed_at
               FROM samples_read JOIN series_read USING (series)"""
        )
        query = "SELECT min(at_us), max(at_us) FROM samples_read"
        self.first_at, self.last_at = (
            None if at_us is None else _EPOCH + timedelta(microseconds=at_us)
            for at_us in connection.execute(query).fetchall()[0]
        )
        self.clusters = {series.cluster for series in self._series}
        return self.batch("node_metrics", rows)

    def _put_away(self) -> None:
        """Moves what is held to DuckDB, which may lay it on disk."""
        import pyarrow as pa

        if not self._values:
            return
        piece = {
            "series": pa.array(self._of_series, pa.int32()),
            "at_us": pa.array(self._at_us, pa.int64()),
            "value": pa.array(self._values, pa.float64()),
        }
        self._connection.register("piece", pa.table(piece))
        self._connection.execute("INSERT INTO samples_read FROM piece")
        self._connection.unregister("piece")
        self.n_kept += len(self._values)
        self._of_series, self._at_us, self._values = [], [], []
        self.options.progress(f"{self._source.name}: {self.n_kept:,} samples")


class Series(NamedTuple):
    """What samples belong to."""

    cluster: str
    node: str
    gpu: str | None
    """Its index, else its UUID."""
    metric: str
    labels: str | None
    """What else tells series of a metric apart, a JSON object; NULL for nothing."""
    uuid: str | None
    namespace: str | None
    """Of the pod that held the GPU, where the exporter says so."""
    pod: str | None


def series_of(metric: str, labels: Mapping[str, str], options: Options) -> Series:
    """Whose samples these are.

    Raises
    ------
    RecordError
        Where no label names the node and `--node` does not either.
    """
    node = _node(labels) or options.node
    if node is None:
        raise RecordError(NO_NODE)
    rest = {name: text for name, text in labels.items() if text and name not in _CHANGING}
    if metric.startswith(("DCGM_", "node_")):
        rest.pop("job", None)
    if metric.startswith("DCGM_"):
        rest.pop("device", None)
    pod = labels.get("exported_pod") or labels.get("pod")
    namespace = labels.get("exported_namespace") or labels.get("namespace")
    if "exported_pod" not in labels and "exporter" in f"{pod} {labels.get('container')}":
        pod = namespace = None
    return Series(
        options.cluster_of(labels.get("cluster", "").strip()),
        node,
        labels.get("gpu") or labels.get("UUID") or None,
        metric,
        json.dumps(rest, sort_keys=True, ensure_ascii=False) if rest else None,
        labels.get("UUID") or None,
        namespace or None,
        pod or None,
    )


def _node(labels: Mapping[str, str]) -> str | None:
    """The host that labels name; a pod of an exporter and this very host are none."""
    for name in _NODES:
        host = labels.get(name, "").strip()
        if name.endswith("instance"):
            host = _PORT.sub("", host)
        host = host.strip("[]")
        if host.lower() not in _NOWHERE and "exporter-" not in host:
            return host
    return None
