"""Reader of golden values of Megatron-LM: JSON of metrics, each with its value by step."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.readers.training.step_records import MEASURED, StepRecords, Value, number

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

_LARGEST_BYTES = 200_000_000
"""Held as a whole: the published ones have 0.4 MB."""
_HEAD = re.compile(r'\s*\{\s*"[^"]+"\s*:\s*\{\s*"(?:start_step|end_step|step_interval|values)"\s*:')
_STEP = re.compile(r"\d{1,15}")


def sniff(head: str) -> bool:
    """Whether a metric comes first, with its steps and values."""
    return _HEAD.match(head.lstrip("\ufeff")) is not None


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Values of a step as a row of `training_metrics`; "nan" is a step that was not logged.

    Raises
    ------
    SourceError
        Where it is no such JSON, or nobody stated whose run it is.
    """
    records = StepRecords(source, options, MEASURED)
    steps: dict[int, dict[str, Value]] = {}
    for name, key, value in _values(source):
        is_gap = isinstance(value, str) and value.lower() == "nan"
        if _STEP.fullmatch(key) is None or not (is_gap or isinstance(value, int | float)):
            records.rejected.reject(1, "no step with a number", f"{name}: {key}: {value}")
            continue
        of_step = steps.setdefault(int(key), {"step": int(key)})
        if not is_gap:
            of_step[name] = number(value)  # type: ignore[arg-type]  # a gap aside it is a number
    for n_read, step in enumerate(sorted(steps), 1):
        if len(steps[step]) > 1:
            records.add(n_read, steps[step])
        else:
            records.skipped["no_value"] += 1
    return records.batch(connection)


def _values(source: Source) -> Iterator[tuple[str, str, object]]:
    """Metric, step and value of all."""
    if source.n_bytes > _LARGEST_BYTES:
        raise SourceError(f"{source.name}: has more than {_LARGEST_BYTES:,} bytes: give less of it")
    try:
        document = json.loads(source.path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        raise SourceError(f"{source.name}: is broken JSON: copy it again") from None
    if not isinstance(document, dict):
        raise SourceError(f"{source.name}: is no object of metrics: give golden values")
    for name, metric in document.items():
        values = metric.get("values") if isinstance(metric, dict) else None
        for key, value in values.items() if isinstance(values, dict) else ():
            yield name, key, value


READER = Reader(
    "megatron-golden",
    "golden values of Megatron-LM",
    export="JSON of metrics by step, as Megatron-LM's functional tests keep them",
    reads="golden values of Megatron-LM: metrics by step; `nan` is a step that was not logged",
    script="# golden_values_*.json of a functional test of Megatron-LM",
    example="golden_values.json --run-id reference",
    fills=("training_metrics",),
    place=7.4,
    options=("job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
