"""Reader of training metrics: CSV with a header, one row a logged step, save or load.

Which column is which follows from its name, in lower case with every run of other signs as one `_`:
`Wall time`, `_step`, `train/loss` and `elapsed time per iteration (ms)` are found. Whole lines are
parsed in DuckDB, lines with quoted delimiters one by one.
"""

from __future__ import annotations

import csv
import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from data.errors import SourceError
from data.ingest.formats.delimited import Scan, scan
from data.ingest.formats.text_columns import (
    BROKEN,
    Asked,
    Layout,
    first_broken,
    instant_sql,
    lines_sql,
    literal,
    one_of,
    records_table,
    summary,
)
from data.ingest.reader import (
    MAX_REJECTED,
    RAW_LIMIT,
    Batch,
    Options,
    Reader,
    Rejected,
    Rejections,
    Source,
    refuse_wide_header,
)
from data.ingest.rows import zone

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import duckdb
    import numpy as np
    from numpy.typing import NDArray

    from data.limits import Limits

NAMES: Final = {
    "step": (
        *("step", "global_step", "iteration", "iter", "iterations", "train_step"),
        *("training_step", "trainer_global_step", "update", "num_updates", "n_iter"),
    ),
    "logged_at": (
        *("logged_at", "timestamp", "time", "date", "datetime", "date_time", "wall_time"),
        *("walltime", "created_at", "observed_at", "log_time", "ts", "at"),
    ),
    "loss": (
        *("loss", "train_loss", "training_loss", "lm_loss", "total_loss", "reduced_train_loss"),
        *("train_loss_step", "loss_train"),
    ),
    "grad_norm": (
        *("grad_norm", "gradient_norm", "global_grad_norm", "train_grad_norm", "gnorm"),
        *("total_grad_norm", "gradnorm"),
    ),
    "step_time": (
        *("step_time", "iteration_time", "iter_time", "time_per_step", "time_per_iteration"),
        *("seconds_per_step", "sec_per_step", "s_per_step", "seconds_per_iteration"),
        *("step_duration", "elapsed_time_per_iteration", "train_step_timing", "train_step_time"),
        *("batch_time", "time_per_iter", "perf_step_time"),
    ),
    "throughput": (
        *("throughput", "tokens_per_second", "tokens_per_sec", "tokens_per_s", "tokens_s"),
        *("train_tokens_per_second", "tok_s", "tps", "wps"),
    ),
    "rank": ("rank", "global_rank", "process_index", "world_rank"),
    "run_id": ("run_id", "run", "run_name"),
    "job_id": ("job_id", "jobid", "slurm_job_id", "slurm_jobid"),
    "cluster": ("cluster", "cluster_name"),
    "checkpoint_event": (
        *("checkpoint_event", "ckpt_event", "checkpoint", "ckpt", "event", "event_type"),
    ),
    "checkpoint": (
        *("checkpoint_s", "checkpoint_time", "checkpoint_duration", "checkpoint_save_time"),
        *("save_time", "save_duration", "save_checkpoint_time", "ckpt_time", "ckpt_duration"),
        *("checkpoint_seconds", "checkpoint_stall", "checkpoint_write_time"),
    ),
}
"""Quantity -> names of its column, the surest first."""

DURATIONS: Final = {"step_time": "step_time_s", "checkpoint": "checkpoint_s"}
"""Quantity that is a time -> its column in the store, in seconds."""

_UNITS: Final = {
    "s": 1.0, "sec": 1.0, "secs": 1.0, "second": 1.0, "seconds": 1.0,
    "ms": 1e-3, "msec": 1e-3, "millis": 1e-3, "milliseconds": 1e-3,
    "us": 1e-6, "usec": 1e-6, "microseconds": 1e-6, "ns": 1e-9,
    "min": 60.0, "mins": 60.0, "minutes": 60.0,
}  # fmt: skip
"""Unit at the end of a name -> seconds."""

SAVED: Final = frozenset(
    ("saved", "save", "checkpoint_saved", "checkpoint_save", "save_checkpoint", "saved_checkpoint",
     "checkpoint", "ckpt", "ckpt_saved", "ckpt_save", "save_ckpt", "save_end", "save_done",
     "checkpoint_written", "written", "write", "end_save", "true", "1", "yes")
)  # fmt: skip
"""Spellings of a save that is done; `true`, `1` and `yes` of a column that asks whether."""

LOADED: Final = frozenset(
    ("loaded", "load", "checkpoint_loaded", "checkpoint_load", "load_checkpoint",
     "loaded_checkpoint", "ckpt_loaded", "ckpt_load", "load_ckpt", "load_end", "load_done",
     "restored", "restore", "checkpoint_restored", "restore_checkpoint", "resumed", "resume",
     "resumed_from_checkpoint")
)  # fmt: skip

NO_EVENT: Final = frozenset(
    ("", "none", "null", "nan", "na", "n_a", "false", "0", "no", "step", "train", "training",
     "train_step", "training_step", "log", "iteration")
)  # fmt: skip
"""Spellings of a plain step."""


class Column(NamedTuple):
    """A column of the file that holds a known quantity."""

    place: int
    """Among the columns of the file, from 0."""
    factor: float = 1.0
    """What its values are multiplied by."""
    free: bool = False
    """A column of events of every kind, of which checkpoints are some."""


def known_columns(header: Sequence[str]) -> dict[str, Column]:
    """Quantity -> the column that holds it; where several could, that of the surest name.

    Examples
    --------
    >>> found = known_columns(["Wall time", "Step", "step time (ms)", "lr"])
    >>> found["step_time"], sorted(found)
    (Column(place=2, factor=0.001, free=False), ['logged_at', 'step', 'step_time'])
    """
    plain = [plain_name(name) for name in header]
    found: dict[str, Column] = {}
    for quantity, names in NAMES.items():
        for name in names:
            column = _column(quantity, name, plain)
            if column is not None and column.place not in {c.place for c in found.values()}:
                found[quantity] = column
                break
    return found


def plain_name(name: str) -> str:
    """A name in lower case, its other signs as single `_`."""
    return re.sub(r"[^a-z0-9]+", "_", name.strip().lower()).strip("_")


def _column(quantity: str, name: str, plain: Sequence[str]) -> Column | None:
    """The first column of that name, for a duration also with a unit behind."""
    free = name in ("event", "event_type")
    for index, found in enumerate(plain):
        if found == name:
            unit = name.rpartition("_")[2] if quantity in DURATIONS else ""
            return Column(index, _UNITS.get(unit, 1.0), free)
        if quantity in DURATIONS and found.startswith(f"{name}_"):
            unit = found.removeprefix(f"{name}_").removeprefix("in_")
            if unit in _UNITS:
                return Column(index, _UNITS[unit])
    return None


_DELIMITERS = ",;\t|"
_NEEDED = {"step": "step", "logged_at": "the time"}
_COLUMNS = (
    *("cluster", "run_id", "job_id", "step", "rank", "logged_at", "loss", "grad_norm"),
    *("step_time_s", "throughput", "checkpoint_event", "checkpoint_s", "series"),
)
_ASKED = Asked(
    "training_metrics",
    ", ".join(_COLUMNS),
    first="logged_at",
    last="logged_at",
    skips=("header", "other_event"),
    noted=("has_both", "rows with a job and a run: the run is found from the job"),
)


def sniff(head: str) -> bool:
    """Whether the first line names a step, a time and something that training logs."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    known = known_columns(_fields(line, _delimiter_of(line)))
    told = {"loss", "step_time", "grad_norm", "throughput", "checkpoint_event"}
    return _NEEDED.keys() <= known.keys() and bool(told & known.keys())


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Logged steps, saves and loads as rows of `training_metrics`.

    Times without a zone are of `--timezone`; plain numbers count seconds, milliseconds, micro- or
    nanoseconds since 1970. Step times and checkpoint times are seconds unless the column's name
    ends with another unit (`_ms`, `(us)`, `_min`). A row that names no job or run is of `--job-id`
    or `--run-id`. Where a row names a job, its run is found from the job and run_id is not kept.

    Raises
    ------
    SourceError
        Where the file has no header, or it names no step, no time, or no run and none is stated.
    """
    layout, known = _layout(source, options)
    scanned = scan(source.path, layout.delimiter, len(layout.columns))
    whole = scanned.whole.copy()
    whole[: layout.first] = False
    records, lost = _quoted(scanned, layout, whole, options.limits)
    options.progress(f"{source.name}: {len(whole):,} lines")
    names = tuple(str(index) for index in range(len(layout.columns)))
    text = lines_sql(scanned, whole, layout._replace(columns=names), connection)
    connection.execute(f"CREATE OR REPLACE TEMP TABLE training_text AS {text}")
    connection.register("training_quoted", records_table(records, names))
    connection.execute("INSERT INTO training_text FROM training_quoted")
    connection.unregister("training_quoted")
    _create_typed(Fields(layout.columns, known, options), connection)
    batch, _ = summary("training_typed", _ASKED, options, connection=connection)
    lost.extend(_broken(scanned, whole, records, connection=connection))
    batch.rejected = lost.ordered()
    batch.notices += _notices(layout.columns, known)
    return batch


def _layout(source: Source, options: Options) -> tuple[Layout, dict[str, Column]]:
    """How fields are laid out, and which are known; refuses a file without what is needed."""
    index, line = source.first_line()
    if not line:
        raise SourceError(f"{source.name}: has no header: give CSV with one")
    delimiter = options.delimiter or _delimiter_of(line)
    delimiter = "\t" if delimiter == r"\t" else delimiter
    refuse_wide_header(source, line.count(delimiter) + 1, options.limits)
    header = list(options.columns) if options.columns else _fields(line, delimiter)
    known = known_columns(header)
    for quantity, told in _NEEDED.items():
        if quantity not in known:
            raise SourceError(
                f"{source.name}: no column is {told} (found {', '.join(header)[:200]}): "
                f"name it {quantity} in the header, or pass --columns"
            )
    if not known.keys() & {"job_id", "run_id"} and not (options.job_id or options.run_id):
        raise SourceError(f"{source.name}: names no job: pass --job-id (or --run-id)")
    first = index if options.columns and _fields(line, delimiter) != header else index + 1
    return Layout(tuple(header), delimiter, first), known


def _delimiter_of(line: str) -> str:
    """The delimiter that divides a header into most fields."""
    return max(_DELIMITERS, key=line.count)


def _fields(line: str, delimiter: str) -> list[str]:
    try:
        row = next(csv.reader([line], delimiter=delimiter, strict=True), [])
    except csv.Error:
        row = line.split(delimiter)
    return [field.strip() for field in row]


def _quoted(
    scanned: Scan, layout: Layout, whole: NDArray[np.bool_], limits: Limits
) -> tuple[list[tuple[int, list[str]]], Rejections]:
    """Records of lines whose delimiters do not tell, by line number, and lines that are none."""
    odd = ~whole & (scanned.lengths > 0)
    odd[: layout.first] = False
    records, lost = [], Rejections()
    for line in scanned.lines(odd):
        if line.text.count(layout.delimiter) >= limits.fields:
            lost.reject(line.number, limits.fields_reason, line.text)
            continue
        fields = _fields(line.text, layout.delimiter)
        if len(fields) == len(layout.columns):
            records.append((line.number, fields))
        elif any(fields):
            reason = "fields do not fit the header"
            lost.reject(line.number, reason, line.text)
    return records, lost


def _create_typed(fields: Fields, connection: duckdb.DuckDBPyConnection) -> None:
    """Table training_typed: columns of training_metrics, skip and broken, by place from 0."""
    connection.execute(
        f"""CREATE OR REPLACE TEMP TABLE training_typed AS
            WITH cleaned AS NOT MATERIALIZED (
              SELECT {fields.cleaned()}, rowid AS place FROM training_text),
            parsed AS NOT MATERIALIZED (SELECT *, {fields.parsed()} FROM cleaned),
            timed AS NOT MATERIALIZED (SELECT *, {fields.timed()}, {fields.event()} FROM parsed),
            judged AS NOT MATERIALIZED (
              SELECT * REPLACE (CASE WHEN job_id IS NULL THEN run_id END AS run_id),
                job_id IS NOT NULL AND run_id IS NOT NULL AS has_both,
                {fields.skip()} AS skip, {fields.reason()} AS broken FROM timed)
            SELECT {", ".join(_COLUMNS)}, place, is_local, has_both, skip, broken FROM judged"""
    )
    connection.execute("DROP TABLE training_text")


def _broken(
    scanned: Scan,
    whole: NDArray[np.bool_],
    records: list[tuple[int, list[str]]],
    *,
    connection: duckdb.DuckDBPyConnection,
) -> Rejections:
    """Records whose values cannot be read."""
    places = whole.nonzero()[0]
    chosen, reasons = whole & False, {}
    query = f"SELECT place, broken FROM training_typed WHERE {BROKEN}"
    broken = first_broken(query, MAX_REJECTED, connection)
    for place, reason in broken.first:
        index = int(places[place]) if place < len(places) else records[place - len(places)][0] - 1
        chosen[index], reasons[index + 1] = True, reason
    rejected = Rejections(
        Rejected(line.number, reasons[line.number], line.text[:RAW_LIMIT])
        for line in scanned.lines(chosen)
    )
    rejected.by_reason += broken.further
    return rejected


def _notices(header: Sequence[str], known: Mapping[str, Column]) -> list[str]:
    """Which columns were taken for what, where the names differ."""
    taken = [
        f"{header[column.place]!r} for {quantity}"
        + (f" times {column.factor:g}" if column.factor != 1.0 else "")
        for quantity, column in known.items()
        if header[column.place].strip().lower() not in (quantity, f"{quantity}_s")
    ]
    return [f"columns taken: {', '.join(taken)}"] if taken else []


NO_VALUE = ("", "none", "null", "na", "n/a", "-", "<na>")
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800
"""2000 to 2100: seconds, milliseconds, microseconds and nanoseconds of it do not overlap."""
_EPOCH_UNITS = ((1, 1e6), (1e3, 1e3), (1e6, 1.0), (1e9, 1e-3))
"""Units in a second, microseconds in a unit."""
_LARGEST_RANK = 2**31 - 1
_ZONE = "(Z|[+-][0-9]{2}(:?[0-9]{2})?)$"
_LOCAL = "[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}[ T][0-9]{1,2}:[0-9]{2}.*"
_NUMBERS = ("loss", "grad_norm", "throughput")


class Fields:
    """Expressions over the columns "0", "1", ... of the table training_text."""

    def __init__(
        self, header: Sequence[str], known: Mapping[str, Column], options: Options
    ) -> None:
        self._header, self._known, self._options = header, known, options
        for name in filter(None, (options.timezone, *options.zones.values())):
            zone(name)

    def cleaned(self) -> str:
        """The columns without blanks and quotes; a sign for no value is NULL."""
        words = ", ".join(map(literal, NO_VALUE))
        return ", ".join(
            f"""CASE WHEN lower(trim("{i}", ' "\t')) IN ({words}) THEN NULL
                ELSE trim("{i}", ' "\t') END AS "{i}\""""
            for i in range(len(self._header))
        )

    def parsed(self) -> str:
        """Columns of training_metrics under their names, NULL where the text cannot be read."""
        numbers = {name: _number(self._text(name)) for name in ("step", *_NUMBERS, "rank")}
        durations = {}
        for name, column in DURATIONS.items():
            number, factor = _number(self._text(name)), self._known.get(name, Column(-1)).factor
            durations[column] = f"CASE WHEN NOT isnan({number}) THEN {number} * {factor!r} END"
        event = self._text("checkpoint_event")
        found = {
            "cluster": self._cluster(),
            "job_id": self._stated("job_id", self._options.job_id),
            "run_id": self._stated("run_id", self._options.run_id),
            "event_text": f"trim(regexp_replace(lower({event}), '[^a-z0-9]+', '_', 'g'), '_')",
            "series": self._series(),
            **numbers,
            **durations,
        }
        return ", ".join(f'{value} AS "{name}"' for name, value in found.items())

    def timed(self) -> str:
        """Column logged_at, NULL where there is no time that can be read."""
        text = self._text("logged_at")
        epoch = " ".join(
            f"WHEN number >= {_EARLIEST_S * units} AND number < {_LATEST_S * units} "
            f"THEN make_timestamptz(CAST(round(number * {micros!r}) AS BIGINT))"
            for units, micros in _EPOCH_UNITS
        ).replace("number", f"TRY_CAST({text} AS DOUBLE)")
        plain = f"replace(regexp_replace({text}, ' ?(UTC|GMT)$', 'Z'), ',', '.')"
        plain = f"regexp_replace({plain}, '^([0-9]{{4}})/([0-9]{{1,2}})/', '\\1-\\2-')"
        zoned = f"regexp_replace({plain}, '([+-][0-9]{{2}})([0-9]{{2}})$', '\\1:\\2')"
        return f"""CASE WHEN TRY_CAST({text} AS DOUBLE) IS NOT NULL THEN CASE {epoch} END
            WHEN NOT regexp_full_match({plain}, {literal(_LOCAL)}) THEN NULL
            WHEN {_is_zoned(plain)} THEN TRY_CAST({zoned} AS TIMESTAMPTZ)
            ELSE {instant_sql(plain, self._options, "cluster")} END AS logged_at,
            TRY_CAST({text} AS DOUBLE) IS NULL AND NOT {_is_zoned(plain)} AS is_local"""

    def event(self) -> str:
        """Columns checkpoint_event and is_other, which tells an event of another kind."""
        known = sorted(SAVED | LOADED | NO_EVENT)
        return f"""CASE WHEN {one_of("event_text", sorted(SAVED))} THEN 'saved'
              WHEN {one_of("event_text", sorted(LOADED))} THEN 'loaded' END AS checkpoint_event,
            event_text IS NOT NULL AND NOT {one_of("event_text", known)} AS is_other"""

    def skip(self) -> str:
        """Why a record is not of interest, NULL where it is."""
        header = " AND ".join(
            f'"{i}" = {literal(name)}' for i, name in enumerate(self._header) if name
        )
        event = self._known.get("checkpoint_event")
        free = "is_other" if event is not None and event.free else "false"
        return f"CASE WHEN {header} THEN 'header' WHEN {free} THEN 'other_event' END"

    def reason(self) -> str:
        """Why a record cannot be read, NULL where it can."""
        tests = [
            (f"{self._text('step')} IS NULL AND checkpoint_event IS NULL", "no step"),
            (f"{self._text('step')} IS NOT NULL AND NOT {_is_whole('step')}",
             "step is no whole number"),
            (f"{self._text('logged_at')} IS NULL", "no time"),
            ("logged_at IS NULL", "time cannot be read"),
            ("job_id IS NULL AND run_id IS NULL", "no run_id or job_id"),
            (f"{self._text('rank')} IS NOT NULL AND NOT {_is_whole('rank')}",
             "rank is no whole number"),
            (f"abs(rank) > {_LARGEST_RANK}", "rank is too large"),
            ("is_other", "checkpoint_event is neither saved nor loaded"),
        ]  # fmt: skip
        tests += [
            (f"{self._text(name)} IS NOT NULL AND {name} IS NULL", f"{name} is no number")
            for name in _NUMBERS
        ]
        for name, column in DURATIONS.items():
            number = _number(self._text(name))
            bad = f"coalesce({number} < 0 OR isinf({number}), true)"
            tests.append((f"{self._text(name)} IS NOT NULL AND {bad}", f"{column} is no duration"))
        cases = " ".join(f"WHEN {test} THEN {literal(reason)}" for test, reason in tests)
        return f"CASE {cases} END"

    def _text(self, quantity: str) -> str:
        column = self._known.get(quantity)
        return "CAST(NULL AS VARCHAR)" if column is None else f'"{column.place}"'

    def _stated(self, quantity: str, said: str | None) -> str:
        """A name in the file, else what the caller said."""
        return f"coalesce({self._text(quantity)}, {'NULL' if said is None else literal(said)})"

    def _cluster(self) -> str:
        if self._options.cluster is not None:
            return literal(self._options.cluster)
        return f"coalesce({self._text('cluster')}, {literal(self._options.default_cluster)})"

    def _series(self) -> str:
        """JSON object of the further columns that hold a number."""
        taken = {column.place for column in self._known.values()}
        pairs = []
        for i, name in enumerate(self._header):
            if name and i not in taken:
                key, number = literal(f"{json.dumps(name)}: "), _number(f'"{i}"')
                pairs.append(
                    f"""CASE WHEN isfinite({number}) THEN {key} || {number}
                        WHEN {number} IS NOT NULL THEN {key} || '"' || {number} || '"' END"""
                )
        return (
            f"'{{' || nullif(concat_ws(', ', {', '.join(pairs)}), '') || '}}'" if pairs else "NULL"
        )


def _is_zoned(text: str) -> str:
    return f"regexp_matches({text}, {literal(_ZONE)})"


def _is_whole(name: str) -> str:
    return f"coalesce({name} = floor({name}) AND abs({name}) < 9e15, false)"


def _number(text: str) -> str:
    return f"TRY_CAST({text} AS DOUBLE)"


READER = Reader(
    "training-metrics",
    "training metrics",
    export="CSV of step, time, loss, step time, checkpoints (see --job-id)",
    reads=(
        "CSV of logged steps: step, time, loss, step time, checkpoints saved and loaded; "
        "`--job-id` where it names no job"
    ),
    script=(
        "# the CSV of your logger, e.g. with the columns\n"
        "step,logged_at,loss,step_time_s,checkpoint_event,checkpoint_s"
    ),
    example="metrics.csv --job-id 4711",
    advice=(
        "Start-up, checkpoint time and lost work are then measured, not assumed. Needs a "
        "step and a time; usual names of columns are known."
    ),
    fills=("training_metrics",),
    place=7,
    options=("columns", "delimiter", "job_id", "run_id"),
    cluster_by_host=True,
    sniff=sniff,
    read=read,
)
