"""Samples of metrics, gathered by piece into rows of `node_metrics`, of whatever format."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import compress
from typing import TYPE_CHECKING

from data.ingest.reader import Batch, Options, Rejections
from data.ingest.readers.metrics.metric_series import Series, series_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb

    from data.ingest.reader import Source

_PIECE = 100_000
"""Samples that are held in memory at once."""
BLANK = "not supported by the GPU"
_BLANKS = (2_147_483_632, 140_737_488_355_328, 9_223_372_036_854_775_792)
"""What DCGM gives for want of a value, as 32 bits, double and 64 bits (dcgm_structs.h); the next
three say why."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MetricSamples:
    """What was read of one input so far; a record is a sample."""

    def __init__(
        self, source: Source, options: Options, connection: duckdb.DuckDBPyConnection
    ) -> None:
        self._source, self._options, self._connection = source, options, connection
        self._places: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
        self._series: dict[Series, int] = {}
        self._of_series: list[int] = []
        self._at_us: list[int] = []
        self._values: list[float] = []
        self._first_us: int | None = None
        self._last_us: int | None = None
        self._n_kept = 0
        self.skipped: Counter[str] = Counter()
        self.rejected = Rejections()
        self.notices: list[str] = []
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
            series = series_of(metric, labels, self._options)
            place = self._places[key] = self._series.setdefault(series, len(self._series))
        if metric.startswith("DCGM_"):
            kept = [not _is_blank(value) for value in values]
            self.skipped[BLANK] += kept.count(False)
            at_us, values = list(compress(at_us, kept)), list(compress(values, kept))
        if not at_us:
            return
        self._of_series += [place] * len(at_us)
        self._at_us += at_us
        self._values += values
        first, last = min(at_us), max(at_us)
        self._first_us = first if self._first_us is None else min(first, self._first_us)
        self._last_us = last if self._last_us is None else max(last, self._last_us)
        if len(self._values) >= _PIECE:
            self._put_away()

    @property
    def metrics(self) -> set[str]:
        """Names of what was read."""
        return {series.metric for series in self._series}

    def batch(self) -> Batch:
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
        return Batch(
            {"node_metrics": rows},
            rows_kept=self._n_kept,
            skipped_by_reason={reason: n for reason, n in self.skipped.items() if n},
            rejected=self.rejected,
            first_at=_time(self._first_us),
            last_at=_time(self._last_us),
            clusters=tuple(sorted({series.cluster for series in self._series})),
            notices=self.notices,
        )

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
        self._n_kept += len(self._values)
        self._of_series, self._at_us, self._values = [], [], []
        self._options.progress(f"{self._source.name}: {self._n_kept:,} samples")


def _is_blank(value: float) -> bool:
    """Whether it stands for no value."""
    return any(float(blank) <= value <= float(blank + 3) for blank in _BLANKS)


def _time(at_us: int | None) -> datetime | None:
    return None if at_us is None else _EPOCH + timedelta(microseconds=at_us)
