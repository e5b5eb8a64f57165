"""Reader of logged steps as JSON: one object a line, a list of them, or a trainer's state.

Objects inside of an object are flattened by `/`. A history of Weights & Biases (`_step`,
`_timestamp`, `train/loss`) and the `log_history` of trainer_state.json are of this form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.training.quantities import known_columns
from data.ingest.readers.training.step_records import StepRecords, Value, flat
from data.ingest.rows import PROGRESS_RECORDS

if TYPE_CHECKING:
    import duckdb

_KEYS = frozenset(("log_history", "history"))
_TOLD = frozenset(("loss", "step_time", "grad_norm", "throughput", "learning_rate"))
_KEY = re.compile(r'"([^"\\\n]{1,200})"\s*:')


def sniff(head: str) -> bool:
    """Whether keys of the first objects name a step and the loss or another of its quantities."""
    if not head.lstrip("\ufeff \r\n\t").startswith(("{", "[")):
        return False
    known = known_columns(list(dict.fromkeys(_KEY.findall(head)))).keys()
    return "step" in known and bool(known & _TOLD)


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Objects with a step as rows of `training_metrics`.

    Units and times are those of `training_metrics.read`. An object without a step is skipped where
    it holds no quantity of one either: a configuration, a summary.

    Raises
    ------
    SourceError
        Where no object holds a step, or none names a run and nobody stated one.
    """
    records = StepRecords(source, options)
    found = JsonRecords(source, _KEYS, options.limits)
    kinds: dict[tuple[str, ...], bool] = {}
    for n_read, record in enumerate(found, 1):
        values = _values(record.value)
        if isinstance(values, RecordError):
            records.rejected.reject(record.line_no, str(values), record.raw)
            continue
        names = tuple(values)
        if names not in kinds and len(kinds) < _MOST_KINDS:
            kinds[names] = _is_step(names)
        if kinds[names] if names in kinds else _is_step(names):
            records.add(record.line_no, values)
        else:
            records.skipped["no_step"] += 1
        if n_read % PROGRESS_RECORDS == 0:
            options.progress(f"{source.name}: {n_read:,} records")
    records.notices += found.notices()
    return records.batch(connection)


_MOST_KINDS = 1_000


def _values(value: object) -> dict[str, Value] | RecordError:
    """Names and values of an object."""
    if isinstance(value, RecordError):
        return value
    return flat(value) if isinstance(value, dict) else RecordError("no object of JSON")


def _is_step(names: tuple[str, ...]) -> bool:
    """Whether an object of these names is of a step, or should name one."""
    known = known_columns(names).keys()
    return bool(known & (_TOLD | {"step", "checkpoint_event"}))


READER = Reader(
    "training-json",
    "logged steps as JSON",
    export="JSON lines of a logger, a history of W&B, trainer_state.json",
    reads=(
        "JSON lines, or a list, of logged steps: names as in CSV, objects inside flattened by `/`; "
        "histories of W&B, `trainer_state.json`; `--job-id` where they name no job"
    ),
    script="# the JSON lines of your logger, or trainer_state.json of the last checkpoint",
    example="steps.jsonl --job-id 4711",
    advice="Objects without a step, such as configurations, are skipped and counted.",
    fills=("training_metrics",),
    place=7.1,
    options=("job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
