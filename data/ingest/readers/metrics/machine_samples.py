"""Samples of machines' metrics, from files to one array a metric: (samples, machines).

Parquet and CSV, long (a row a sample) or wide (a column a metric, or a column a machine), and
answers of Prometheus. Several series of a machine and metric, one a GPU, say, are
averaged; counters become rates.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from analytics.nodes.machines.samples import Samples
from data.errors import SourceError
from data.ingest.formats.json_text import is_json, json_value
from data.ingest.formats.parquet_size import unfolded
from data.ingest.formats.source import broken_csv, broken_parquet, is_parquet, opened
from data.ingest.reader import RecordError
from data.ingest.readers.metrics.metric_samples import BLANKS
from data.limits import DEFAULTS, Limits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pyarrow as pa

    from data.ingest.reader import Source

    Array = np.ndarray[Any, np.dtype[Any]]

TIMES = ("at", "observed_at", "timestamp", "time", "ts", "datetime")
NODES = ("node", "machine", "hostname", "host", "instance")
LABELS = ("node", "Hostname", "hostname", "nodename", "kubernetes_node", "instance", "host")
"""Labels of Prometheus that name a machine, the surest first; of an instance without its port."""
METRICS = ("metric", "metric_name", "__name__", "name")
VALUES = ("value", "val")
GPUS = ("gpu", "uuid", "device", "cluster", "job", "job_id", "namespace", "pod", "modelname")
"""Columns that tell series of a machine apart, and are no metric."""
MOST_CELLS = 150_000_000
"""Samples, missing ones included: 1.2 GB; 1,500 machines, 7 metrics and 4 hours at 1 s."""
SLOWEST_STEP = 30.0
"""A metric that is sampled less often is left out where others are sampled more often."""
COUNTER = re.compile(r"_total$|TOTAL_ENERGY_CONSUMPTION$|REPLAY_COUNTER$")
NO_READING = re.compile(r"XID|_info$")
"""Metrics whose values are codes, which last, or names."""
_EPOCH_UNITS = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3))
_SHAPES = (
    "give node, metric, at and value in each row; or at, node and one column a metric; or at, "
    "metric and one column a machine"
)


class Series(NamedTuple):
    """Samples of one metric, in any order."""

    metric: str
    machines: Sequence[str]
    machine: Array
    """Which of the machines each sample is of."""
    at: Array
    """Seconds since 1970."""
    value: Array


def read_samples(names: Sequence[str], limits: Limits = DEFAULTS) -> Samples:
    """The samples of some files, on one clock.

    Raises
    ------
    SourceError
        Where a file cannot be read, lacks a column, or all hold more than fits.
    """
    found: list[Series] = []
    for name in names:
        with TemporaryDirectory() as folder, opened(name, Path(folder), limits=limits) as source:
            found += _series(source, limits)
    kept = [each for each in found if each.at.size]
    if not kept:
        raise SourceError(f"{names[0]}: holds no sample: {_SHAPES}")
    return gridded(kept)


def gridded(series: Sequence[Series]) -> Samples:
    """Series on one clock: the slowest metric's step, the mean of what falls into one.

    Raises
    ------
    SourceError
        Where the samples would not fit into memory.
    """
    series = [each for each in series if not NO_READING.search(each.metric)] or series
    step = _common_step(series)
    machines = sorted({name for each in series for name in each.machines})
    place = {name: k for k, name in enumerate(machines)}
    start = min(float(each.at.min()) for each in series)
    n = round((max(float(each.at.max()) for each in series) - start) / step) + 1
    metrics = list(dict.fromkeys(each.metric for each in series))
    if n * len(machines) * len(metrics) > MOST_CELLS:
        raise SourceError(
            f"{n:,} samples of {len(machines):,} machines and {len(metrics)} metrics are more than "
            f"{MOST_CELLS:,}: give a shorter time"
        )
    values = {}
    for metric in metrics:
        total, count = np.zeros(n * len(machines)), np.zeros(n * len(machines))
        for each in series:
            if each.metric != metric:
                continue
            known = np.isfinite(each.value)
            for least, most in BLANKS:
                known &= ~((each.value >= least) & (each.value <= most))
            places = np.array([place[name] for name in each.machines])
            at = np.rint((each.at[known] - start) / step).astype(np.int64)
            cell = at * len(machines) + places[each.machine[known]]
            total += np.bincount(cell, each.value[known], n * len(machines))
            count += np.bincount(cell, minlength=n * len(machines))
        total[count == 0] = np.nan
        of_metric = (total / np.maximum(count, 1.0)).reshape(n, len(machines))
        values[metric] = _rate(of_metric, step) if COUNTER.search(metric) else of_metric
    return Samples(tuple(machines), start, step, values)


def _rate(counts: Array, step: float) -> Array:
    """The increase of counters a second; unknown at the first sample and where one was reset."""
    rate = np.full_like(counts, np.nan)
    rate[1:] = np.diff(counts, axis=0) / step
    rate[rate < 0] = np.nan
    return rate


def _common_step(series: Sequence[Series]) -> float:
    """Seconds between samples of the slowest metric that is not left out."""
    steps: dict[str, float] = {}
    for each in series:
        some = np.sort(np.unique(each.at[each.machine == each.machine[0]]))
        if some.size > 1:
            steps[each.metric] = max(steps.get(each.metric, 0.0), float(np.median(np.diff(some))))
    if not steps:
        raise SourceError("each series has one sample: give a longer time")
    allowed = max(SLOWEST_STEP, min(steps.values()))
    step = max(step for step in steps.values() if step <= allowed)
    return float(round(step)) if step > 0.5 and abs(step - round(step)) < 0.1 * step else step


def _series(source: Source, limits: Limits) -> Iterable[Series]:
    """Series of a file."""
    if not is_parquet(source.path):
        with source.path.open(encoding="utf-8-sig") as stream:
            head = stream.read(200)
        if is_json(head):
            return _of_prometheus(source, limits)
    table = _table(source, limits)
    column = {name.strip().lower(): name for name in reversed(table.column_names)}
    named = {
        what: next((column[name] for name in names if name in column), None)
        for what, names in {"at": TIMES, "node": NODES, "metric": METRICS, "value": VALUES}.items()
    }
    if named["at"] is None:
        raise SourceError(f"{source.name}: has no column of times ({', '.join(TIMES)}): {_SHAPES}")
    at = _seconds(source.name, table.column(named["at"]))
    rest = [name for key, name in column.items() if name not in named.values() and key not in GPUS]
    if named["value"] is not None and named["node"] is not None and named["metric"] is not None:
        return _long(source.name, table, named, at)
    if named["node"] is not None:
        machines, machine = _codes(table.column(named["node"]))
        return [Series(m, machines, machine, at, _numbers(source.name, table, m)) for m in rest]
    return _machine_columns(source, table, named["metric"], at, rest)


def _of_prometheus(source: Source, limits: Limits) -> Iterator[Series]:
    """Series of an answer of Prometheus; one that a function left without a name has the file's."""
    try:
        answer: Any = json_value(source.path.read_text(encoding="utf-8-sig"), limits)
        if isinstance(answer, dict):
            answer = answer.get("data", answer)
        for series in answer["result"] if isinstance(answer, dict) else answer:
            labels = series["metric"]
            metric = labels.get("__name__") or _name_of(source)
            pairs = np.array(series.get("values") or [series["value"]], dtype=object)
            at, value = pairs[:, 0].astype(float), pairs[:, 1].astype(float)
            machine = np.zeros(at.size, dtype=np.int64)
            yield Series(metric, [_machine(source, labels)], machine, at, value)
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecordError) as error:
        raise SourceError(
            f"{source.name}: is no answer of Prometheus ({type(error).__name__}: {error}): give "
            "the JSON of /api/v1/query_range"
        ) from None


def _name_of(source: Source) -> str:
    """Metric by which a file is named."""
    return Path(source.name).name.partition(".")[0]


def _machine(source: Source, labels: dict[str, str]) -> str:
    """The machine that labels name."""
    label = next((label for label in LABELS if labels.get(label)), None)
    if label is None:
        raise SourceError(
            f"{source.name}: a series names no machine ({', '.join(LABELS)}): keep one of these "
            "labels, e.g. avg by (instance)"
        )
    name = labels[label]
    return name.rpartition(":")[0] or name if label == "instance" else name


def _long(name: str, table: pa.Table, named: dict[str, str | None], at: Array) -> list[Series]:
    """A row a sample."""
    machines, machine = _codes(table.column(named["node"]))
    metrics, metric = _codes(table.column(named["metric"]))
    value = _numbers(name, table, str(named["value"]))
    found = []
    for k, of_metric in enumerate(metrics):
        rows = np.flatnonzero(metric == k)
        found.append(Series(of_metric, machines, machine[rows], at[rows], value[rows]))
    return found


def _machine_columns(
    source: Source, table: pa.Table, metric: str | None, at: Array, machines: list[str]
) -> list[Series]:
    """A column a machine; of one metric, named by its file, where no column tells it."""
    metrics, code = (
        ([_name_of(source)], np.zeros(at.size, int))
        if metric is None
        else _codes(table.column(metric))
    )
    found = []
    for machine in machines:
        value = _numbers(source.name, table, machine)
        found += [
            Series(of_metric, [machine], np.zeros(rows.size, int), at[rows], value[rows])
            for m, of_metric in enumerate(metrics)
            for rows in [np.flatnonzero(code == m)]
        ]
    return found


def _table(source: Source, limits: Limits) -> pa.Table:
    """The columns of a Parquet or CSV file."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyarrow import csv

    try:
        if is_parquet(source.path):
            with source.path.open("rb") as whole:
                unfolded(source.name, whole, limits, held=True)
            with pq.ParquetFile(source.path) as file:
                kinds = {f.name: f.type for f in file.schema_arrow}
            encoded = [name for name, kind in kinds.items() if pa.types.is_string(kind)]
            with pq.ParquetFile(source.path, read_dictionary=encoded, pre_buffer=False) as file:
                return file.read()
        with source.path.open(encoding="utf-8-sig") as stream:
            head = stream.readline(limits.line_bytes)
        if head.count(",") >= limits.fields:
            raise SourceError(
                f"{source.name}: its first line has {limits.fields_reason}: {_SHAPES}"
            )
        return csv.read_csv(
            source.path,
            parse_options=csv.ParseOptions(delimiter=max(",;\t|", key=head.count)),
            convert_options=csv.ConvertOptions(
                auto_dict_encode=True, auto_dict_max_cardinality=10**6
            ),
        )
    except (pa.ArrowException, OSError) as error:
        if is_parquet(source.path):
            raise broken_parquet(source.name, error) from None
        if isinstance(error, OSError):
            raise
        raise broken_csv(source.name, error) from None


def _codes(column: pa.ChunkedArray) -> tuple[list[str], Array]:
    """Names, and which of them each row holds."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        column = column.cast(pa.string()).dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    names = ["unknown" if name is None else str(name) for name in whole.dictionary.to_pylist()]
    codes = whole.indices.fill_null(len(names)).to_numpy(zero_copy_only=False)
    return [*names, "unknown"] if whole.null_count else names, codes


def _numbers(name: str, table: pa.Table, column: str) -> Array:
    """A column of numbers; null is unknown."""
    import pyarrow as pa

    held = table.column(column)
    try:
        numbers: Array = held.cast(pa.float64()).to_numpy()
    except pa.ArrowException:
        raise SourceError(
            f"{name}: column {column} must hold numbers, got {held.type}: {_SHAPES}"
        ) from None
    return numbers


def _seconds(name: str, column: pa.ChunkedArray) -> Array:
    """Times as seconds since 1970: of timestamps, of whole seconds to nanoseconds, or of text."""
    import pandas as pd
    import pyarrow as pa

    kind = column.type
    if pa.types.is_timestamp(kind):
        microseconds = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        known: Array = microseconds.to_numpy() / 1e6
        return known
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        seconds: Array = column.cast(pa.float64(), safe=False).to_numpy()
        size = float(np.nanmedian(np.abs(seconds))) if seconds.size else 0.0
        return seconds / next((unit for least, unit in _EPOCH_UNITS if size > least), 1.0)
    times = pd.to_datetime(pd.Series(column.to_pandas().astype(object)), utc=True, errors="coerce")
    if times.isna().any():
        bad = int(times.isna().to_numpy().argmax())
        raise SourceError(
            f"{name}: the time of row {bad + 1} is {column[bad].as_py()!r}: write ISO 8601 or "
            "seconds since 1970"
        )
    text: Array = times.to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
    return text
