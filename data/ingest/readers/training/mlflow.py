"""Reader of MLflow's metrics: a value a record, in one of the three forms that it writes.

A file of its file store (`<run>/metrics/<name>`: milliseconds, value, step), JSON of the REST
interface (`metrics`: key, value, timestamp, step), or CSV with the columns run_id, key, value,
step, timestamp. Values of one run and step are one row.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from math import copysign, inf, nan
from pathlib import PurePath
from sys import float_info
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.formats.delimited_rows import rows_of_csv
from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.training.joined import Point, add_joined
from data.ingest.readers.training.quantities import plain_name
from data.ingest.readers.training.run_folders import RunFolder
from data.ingest.readers.training.step_records import MEASURED, OF_A_RUN, StepRecords

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    import duckdb

_STORED = re.compile(r"\s*(\d{12,14}) (\S+)(?: (-?\d+))?\s*")
_KEY = re.compile(r'"([^"\\\n]{1,200})"\s*:')
_RUN = re.compile(r"[0-9a-f]{32}")
_NAMES: Mapping[str, tuple[str, ...]] = {
    "run": ("run_id", "run_uuid", "run"),
    "name": ("key", "metric", "metric_name", "name"),
    "value": ("value", "metric_value"),
    "step": ("step",),
    "at": ("timestamp", "time", "ts"),
    "is_nan": ("is_nan",),
}
_NEEDED = frozenset(("name", "value", "step", "at"))
_MS = 1e3


def sniff(head: str) -> bool:
    """Whether it is one of the three forms."""
    head = head.lstrip("\ufeff")
    lines = [line for line in head.splitlines()[:3] if line.strip()]
    if lines and all(_STORED.fullmatch(line) for line in lines[:2]):
        return True
    if head.lstrip().startswith(("{", "[")):
        return {"key", "value", "timestamp", "step"} <= set(_KEY.findall(head))
    return bool(lines) and _columns(lines[0]).keys() >= _NEEDED


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Values of MLflow as rows of `training_metrics`, those of one run and step joined.

    Raises
    ------
    SourceError
        Where the name of a metric is unknown, or nobody stated whose run it is.
    """
    records = StepRecords(source, options, MEASURED | OF_A_RUN)
    points: list[Point] = []
    _take(source, records, points)
    add_joined(points, records)
    return records.batch(connection)


def read_folder(
    folder: Path,
    options: Options,
    connection: duckdb.DuckDBPyConnection,
    workdir: Path,
    *,
    called: str | None = None,
) -> tuple[Source, Batch]:
    """The files `metrics/<name>` of the runs below a folder of the file store, e.g. mlruns.

    Raises
    ------
    SourceError
        Where none lies below it.
    """
    found = RunFolder(folder, called or str(folder))
    records = StepRecords(found.source(), options, MEASURED | OF_A_RUN)
    points: list[Point] = []
    none = "no file metrics/<name> lies in it: give the folder mlruns"
    for relative, source in found.files(_is_metric, records, workdir, none=none):
        _take(replace(source, name=f"{folder.absolute()}/{relative}"), records, points)
    add_joined(points, records)
    return found.source(), records.batch(connection)


def _is_metric(relative: str) -> bool:
    return "metrics" in PurePath(relative).parts[:-1]


def _take(source: Source, records: StepRecords, points: list[Point]) -> None:
    """Takes all values of a file."""
    for line_no, raw, point in _found(source, records.options):
        if isinstance(point, RecordError):
            records.rejected.reject(line_no, str(point), raw)
        else:
            points.append(point)


Taken = tuple[int, str, Point | RecordError]


def _found(source: Source, options: Options) -> Iterator[Taken]:
    """Each value: its line, its text, what it says."""
    _, line = source.first_line()
    if line.lstrip("\ufeff ").startswith(("{", "[")):
        yield from _of_json(source, options)
    elif _STORED.fullmatch(line):
        yield from _of_store(source)
    else:
        yield from _of_csv(source, line)


def _of_json(source: Source, options: Options) -> Iterator[Taken]:
    for found in JsonRecords(source, frozenset(("metrics", "data", "run", "runs")), options.limits):
        value = found.value
        if isinstance(value, RecordError):
            yield found.line_no, found.raw, value
        elif not isinstance(value, dict):
            yield found.line_no, found.raw, RecordError("no object of JSON")
        else:
            named = {plain_name(str(key)): one for key, one in value.items()}
            yield found.line_no, found.raw, _point(found.line_no, _by_name(named))


def _of_csv(source: Source, header: str) -> Iterator[Taken]:
    columns = _columns(header)
    if not columns.keys() >= _NEEDED:
        raise SourceError(
            f"{source.name}: is no metrics of MLflow: give CSV with the columns run_id, key, "
            "value, step, timestamp"
        )
    rows = rows_of_csv(source, _delimiter(header))
    next(rows, None)
    for line_no, row in rows:
        raw = ",".join(row)
        if len(row) <= max(columns.values()):
            yield line_no, raw, RecordError("fields do not fit the header")
        else:
            named = {name: row[place] for name, place in columns.items()}
            yield line_no, raw, _point(line_no, named)


def _of_store(source: Source) -> Iterator[Taken]:
    """Values of a file whose path names the metric, and the run above its folder."""
    parts = PurePath(source.name).parts
    run, name = None, parts[-1]
    if "metrics" in parts[:-1]:
        at = len(parts) - 2 - parts[:-1][::-1].index("metrics")
        name = "/".join(parts[at + 1 :])
        run = parts[at - 1] if at and _RUN.fullmatch(parts[at - 1]) else None
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="\n") as lines:
        for line_no, line in enumerate(lines, 1):
            if not line.strip():
                continue
            found = _STORED.fullmatch(line)
            if found is None:
                yield line_no, line, RecordError("no time, value and step")
                continue
            at_ms, value, step = found.groups()
            named = {"run": run, "name": name, "value": value, "step": step or "0", "at": at_ms}
            yield line_no, line, _point(line_no, named)


def _point(line_no: int, named: Mapping[str, object]) -> Point | RecordError:
    """One value, of the texts or numbers that state it."""
    name, run = named.get("name"), named.get("run")
    if not isinstance(name, str) or not name:
        return RecordError("no name of a metric")
    try:
        step, at_ms = float(str(named["step"])), float(str(named["at"]))
        value = nan if str(named.get("is_nan", 0)).lower() in _TRUE else _number(named["value"])
    except (KeyError, ValueError):
        return RecordError("value, step or timestamp is no number")
    if step % 1 or not abs(step) < _LARGEST_STEP or not 0 < at_ms < _LATEST_MS:
        return RecordError("step is no whole number, or timestamp no time")
    return Point(str(run) if run else None, name, int(step), at_ms / _MS, value, line_no)


def _number(value: object) -> float:
    """A value; MLflow's databases hold the largest float where it is infinite."""
    found = float(str(value))
    return copysign(inf, found) if abs(found) >= float_info.max else found


_TRUE = frozenset(("1", "true", "t"))
_LARGEST_STEP, _LATEST_MS = 9e15, 4_102_444_800_000


def _columns(header: str) -> dict[str, int]:
    """What is needed -> the place of its column."""
    try:
        fields = next(csv.reader([header], delimiter=_delimiter(header)), [])
    except csv.Error:
        return {}
    plain = [plain_name(field) for field in fields]
    return {
        what: next(plain.index(name) for name in names if name in plain)
        for what, names in _NAMES.items()
        if set(names) & set(plain)
    }


def _by_name(record: Mapping[str, object]) -> dict[str, object]:
    return {
        what: next(record[name] for name in names if name in record)
        for what, names in _NAMES.items()
        if names and set(names) & record.keys()
    }


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)


READER = Reader(
    "mlflow",
    "metrics of MLflow",
    export="CSV of run_id, key, value, step, timestamp; JSON of get-history; the folder mlruns",
    reads=(
        "metrics of MLflow: its file store (`mlruns`, or a file `<run>/metrics/<name>`), JSON of "
        "its REST interface, or CSV with run_id, key, value, step and timestamp; values of one "
        "step are one row"
    ),
    script=(
        "# all metrics of a run, from the database of the tracking server\n"
        "sqlite3 -csv -header mlflow.db 'SELECT run_uuid AS run_id, key, value, step, timestamp "
        "FROM metrics' > metrics.csv"
    ),
    example="metrics.csv --job-id 4711",
    fills=("training_metrics",),
    place=7.2,
    options=("job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    read_folder=read_folder,
)
