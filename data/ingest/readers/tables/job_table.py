"""Jobs of any scheduler as a table: CSV or Parquet, one row an attempt, by a mapping of columns.

Mappings of public traces come with the program. A site's own::

    timezone = "Europe/Berlin"           # of times without an offset
    cluster = "hal"

    [columns]
    job_id = "id"
    state = "outcome"
    start_at = "begun"

    [states]                             # the file's word -> Slurm's
    ok = "COMPLETED"
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from data.ingest.formats import time_formats
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import accounting_batch
from data.ingest.readers.schedulers.sacct_fields import FIGURES
from data.ingest.readers.tables.mapped_table import Column, Layout, Table, is_blank, text_of
from data.toml import filled

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import duckdb


_TEXTS = {
    "user": "user", "account": "account", "partition": "partition", "qos": "qos",
    "name": "jobname", "node_list": "nodelist", "cluster": "cluster",
}  # fmt: skip
_TIMES = {"submit_at": "submit", "eligible_at": "eligible", "start_at": "start", "end_at": "end"}
_COUNTS = {"n_nodes": "nnodes", "n_cpus": "ncpus", "elapsed_s": "elapsedraw", "n_gpus": "alloctres"}
"""Our name of a column -> that of sacct."""
_OF_INSTANCE = ("n_cpus", "n_gpus")
LAYOUT = Layout(
    "jobs",
    (
        Column("job_id", needed=True, also=("job", "id")),
        Column("task", meaning="task within the job, where the trace counts them"),
        Column("state", needed=True, also=("status", "outcome", "result")),
        Column("instances", meaning="how often the job's CPUs and GPUs are asked for"),
        Column("exit_code", meaning="exit code of the job, or code:signal as Slurm writes it"),
        Column("user", also=("username", "owner")),
        Column("account"),
        Column("partition"),
        Column("qos"),
        Column("name"),
        Column("node_list"),
        Column("cluster"),
        Column("submit_at", also=("submit", "submitted", "submittime", "queued")),
        Column("eligible_at"),
        Column("start_at", also=("start", "started", "starttime", "begin")),
        Column("end_at", also=("end", "ended", "endtime", "finished", "finish")),
        Column("n_nodes", also=("nodes", "nodenum", "nodecount")),
        Column("n_cpus", also=("cpus", "cpu", "cpunum")),
        Column("elapsed_s"),
        Column("n_gpus", also=("gpus", "gpu", "gpunum", "gpucount")),
    ),
    known_by=frozenset({"job_id", "state", "submit_at"}),
    presets=("acme", "helios", "alibaba-pai"),
    top={"header": filled, "counts": filled, "note": filled},
    sections={"states": None},
)
"""At the top of a mapping, `header` names the columns of a file without one, `counts = "percent"`
says that counts are percents of one, and `note` what must be known of the trace."""
_LARGEST = 2**31


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs.

    Times are ISO, or seconds since 1970, where the mapping states no `time_format`. GPUs are those
    of all nodes of a job. A state that the mapping does not translate stands in Slurm's words, in
    letters of any case.

    Raises
    ------
    SourceError
        Where the file has no header, or lacks a column, or the mapping holds a mistake.
    """
    table = Table(source, options, LAYOUT)
    jobs = _Jobs(table)
    cluster = options.cluster or table.mapping.top.get("cluster") or options.default_cluster
    by_mapping = (
        table.zone if options.timezone is None and cluster not in options.timezones else None
    )
    stated = replace(options, timezone=by_mapping) if by_mapping else options
    batch = accounting_batch(
        source, table, jobs.flat, stated, connection=connection, any_id=True, lacks=_lacking
    )
    if by_mapping:
        batch.local = frozenset()
    return replace(batch, notices=[*batch.notices, *jobs.notices()])


class _Jobs:
    """What each record of a table is in the words of sacct."""

    def __init__(self, table: Table) -> None:
        self._table, self._top = table, table.mapping.top
        self._states = table.mapping.sections.get("states", {})
        self._told: Counter[str] = Counter()

    def flat(self, values: Any) -> dict[str, str] | str:
        """A record in the words of sacct, else a reason to skip it."""
        if is_blank(values):
            return "blank"
        found = self._table.raw(values)
        row = {name: text_of(found[ours]) or "" for ours, name in _TEXTS.items() if ours in found}
        row |= {name: self._time(found[ours]) for ours, name in _TIMES.items() if ours in found}
        row |= {_COUNTS[name]: count for name, count in self._counted(found).items()}
        parts = [text_of(found[name]) for name in ("job_id", "task") if name in found]
        row["jobid"] = "/".join(filter(None, parts)) if parts[0] else ""
        row["stateraw"] = text_of(found["state"]) or ""
        row["state"] = self._states.get(row["stateraw"], row["stateraw"].upper())
        if "exit_code" in found:
            code = text_of(found["exit_code"]) or ""
            row["exitcode"] = code if ":" in code or not code else f"{code}:"
        if of_file := self._top.get("cluster"):
            row["cluster"] = row.get("cluster") or of_file
        return row

    def _time(self, value: object) -> str:
        """A time as sacct's readers take it, in the format that the mapping states."""
        formats, text = self._table.mapping.time_format, text_of(value)
        if not formats or text is None or isinstance(value, date):
            return _time(value)
        return time_formats.read(text, formats).isoformat()

    def _counted(self, found: Mapping[str, Any]) -> dict[str, str]:
        """Nodes, CPUs, GPUs and seconds as texts; nothing for what is unknown."""
        numbers = {name: _number(found[name], name) for name in _COUNTS if name in found}
        is_percent = self._top.get("counts") == "percent"
        instances = _number(found.get("instances"), "instances") if "instances" in found else 1.0
        for name in _OF_INSTANCE:
            number = numbers.get(name)
            if number is not None:
                of_all = None if instances is None else number * instances
                numbers[name] = of_all / 100 if is_percent and of_all is not None else of_all
        rows: dict[str, str] = {}
        for name, number in numbers.items():
            if number is None or (name in _OF_INSTANCE and not number.is_integer()):
                self._told[f"{name} of a share of one, which stays unknown"] += number is not None
                rows[name] = ""
            elif name == "n_gpus":
                rows[name] = f"node=1,gres/gpu={int(number)}" if number else "node=1"
            else:
                rows[name] = str(round(number))
        return rows

    def notices(self) -> list[str]:
        """What the mapping says of its trace, and what stays unknown."""
        notices = [f"{text}: {n:,}" for text, n in sorted(self._told.items()) if n]
        note = self._top.get("note")
        return [note, *notices] if note else notices


def _lacking(columns: Collection[str]) -> list[str]:
    """What a table with these columns of sacct lacks, by our names: a sentence a column."""
    own = {name: ours for ours, name in (_TEXTS | _TIMES | _COUNTS).items()}
    return [
        f"no {own[name.lower()]}: {figures}"
        for name, figures in FIGURES.items()
        if name.lower() in own and name.lower() not in columns
    ]


def _number(value: object, name: str) -> float | None:
    """A number that is not negative; None where the cell is empty."""
    if text_of(value) is None:
        return None
    try:
        number = float(str(value))
    except ValueError:
        raise RecordError(f"{name} is no number") from None
    if not 0 <= number < _LARGEST:
        raise RecordError(f"{name} is no number")
    return number


def _time(value: object) -> str:
    """A time as sacct's readers take it, nothing where the cell is empty."""
    if isinstance(value, datetime):
        return value.isoformat()
    text = text_of(value)
    if text is None:
        return ""
    if text.replace(".", "", 1).isdecimal():
        try:
            return datetime.fromtimestamp(float(text), UTC).isoformat()
        except (ValueError, OverflowError, OSError):
            raise RecordError("impossible time") from None
    try:
        return datetime.fromisoformat(text).isoformat()
    except ValueError:  # what sacct says of a time that is none, or no time at all
        return text


def fits_headerless(preset: str, fields: Sequence[str]) -> bool:
    """Whether the fields of a line are those of a preset whose files have no header."""
    mapping = LAYOUT.shipped[preset]
    header = mapping.top.get("header", "").split(",")
    if len(fields) != len(header) or len(header) == 1:
        return False
    of = {ours: fields[header.index(names[0])] for ours, names in mapping.columns.items()}
    times = [of[name] for name in _TIMES if of.get(name)]
    return of["state"] in mapping.sections["states"] and all(
        text.replace(".", "", 1).isdecimal() for text in times
    )


READER = Reader(
    "job-table",
    "jobs of any scheduler as CSV or Parquet, columns by --preset acme, helios or alibaba-pai, "
    "or by --mapping TOML",
    export="job_id, state, submit_at, start_at, end_at, n_nodes, n_gpus, ...",
    reads=(
        "jobs of any scheduler as CSV or Parquet, by `--mapping TOML` or the names "
        "`job_id`, `state`, `submit_at`, `start_at`, `end_at`, `n_nodes`, `n_gpus`, ...; "
        "public traces by `--preset acme`, `helios`, `alibaba-pai` (its "
        "`pai_task_table.csv`)"
    ),
    script="# e.g. data/job_trace/trace_seren.csv of AcmeTrace",
    example="trace_seren.csv --preset acme",
    fills=("jobs",),
    place=1.6,
    options=("columns", "delimiter", "mapping"),
    presets=LAYOUT.preset_options,
    layout=LAYOUT,
    sniff=LAYOUT.sniff,
    read=read,
)
