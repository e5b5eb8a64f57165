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
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.ingest.formats import time_formats
from data.ingest.formats.header import header_of
from data.ingest.formats.json_records import Found
from data.ingest.formats.source import is_parquet
from data.ingest.formats.tabular import opened_table
from data.ingest.reader import Batch, MappingFile, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import accounting_batch
from data.ingest.readers.schedulers.sacct_fields import FIGURES
from data.ingest.readers.tables.cells import ColumnMapping, column_mapping, is_blank, text_of
from data.ingest.readers.tables.node_inventory import GENERAL

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    import duckdb


PRESETS = ("acme", "helios", "alibaba-pai")
"""Public traces whose mapping comes with the program."""
_TEXTS = {
    "user": "user", "account": "account", "partition": "partition", "qos": "qos",
    "name": "jobname", "node_list": "nodelist", "cluster": "cluster",
}  # fmt: skip
_TIMES = {"submit_at": "submit", "eligible_at": "eligible", "start_at": "start", "end_at": "end"}
_COUNTS = {"n_nodes": "nnodes", "n_cpus": "ncpus", "elapsed_s": "elapsedraw", "n_gpus": "alloctres"}
"""Our name of a column -> that of sacct."""
_OF_INSTANCE = ("n_cpus", "n_gpus")
COLUMNS = ("job_id", "task", "state", "instances", "exit_code", *_TEXTS, *_TIMES, *_COUNTS)
_OWN = {"job_id", "state", "submit_at"}
"""Columns by which a file of our own names is known."""
_LARGEST = 2**31


def sniff(head: str) -> bool:
    """Whether the first line holds the columns of a preset, or our own names."""
    header = header_of(head)
    return header >= _OWN or _preset_of(header) is not None


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
    first = "" if is_parquet(source.path) else source.first_line()[1]
    mapping = _mapping(options.mapping or _preset_of(header_of(first)))
    table = _Table(source, options, mapping, first)
    zone = mapping.general.get("timezone")
    cluster = options.cluster or mapping.general.get("cluster") or options.default_cluster
    by_mapping = zone if options.timezone is None and cluster not in options.timezones else None
    stated = replace(options, timezone=by_mapping) if by_mapping else options
    batch = accounting_batch(
        source, table, table.flat, stated, connection=connection, any_id=True, lacks=_lacking
    )
    if by_mapping:
        batch.local = frozenset()
    return replace(batch, notices=[*batch.notices, *table.notices()])


@dataclass
class _Table:
    """The records of a table, and what each is in the words of sacct."""

    source: Source
    options: Options
    mapping: ColumnMapping
    first: str
    """Line of the file."""
    told: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        general = self.mapping.general
        self._delimiter = self.options.delimiter or general.get("delimiter", ",")
        self._header = self.options.columns
        named = general.get("header")
        if named and self._header is None and not header_of(named) & header_of(self.first):
            self._header = tuple(named.split(","))
        header, _ = self._opened()
        self._columns = self.mapping.of_file(
            self.source, header, COLUMNS, needed=("job_id", "state")
        )
        self._percent = general.get("counts") == "percent"

    def _opened(self) -> tuple[list[str], Iterator[Any]]:
        return opened_table(self.source, self._delimiter, self._header, self.options.limits)

    def __iter__(self) -> Iterator[Found]:
        for record in self._opened()[1]:
            yield Found(record.line_no, record.raw.rstrip("\r\n"), record.values)

    def flat(self, values: object) -> dict[str, str] | str:
        """A record in the words of sacct, else a reason to skip it."""
        if not isinstance(values, dict):
            raise RecordError("number of fields differs from the header")
        if is_blank(values):
            return "blank"
        found = {name: values[column] for name, column in self._columns.items()}
        row = {name: text_of(found[ours]) or "" for ours, name in _TEXTS.items() if ours in found}
        row |= {name: self._time(found[ours]) for ours, name in _TIMES.items() if ours in found}
        row |= {_COUNTS[name]: count for name, count in self._counted(found).items()}
        parts = [text_of(found[name]) for name in ("job_id", "task") if name in found]
        row["jobid"] = "/".join(filter(None, parts)) if parts[0] else ""
        row["stateraw"] = text_of(found["state"]) or ""
        row["state"] = self.mapping.further.get(row["stateraw"], row["stateraw"].upper())
        if "exit_code" in found:
            code = text_of(found["exit_code"]) or ""
            row["exitcode"] = code if ":" in code or not code else f"{code}:"
        if of_file := self.mapping.general.get("cluster"):
            row["cluster"] = row.get("cluster") or of_file
        return row

    def _time(self, value: object) -> str:
        """A time as sacct's readers take it, in the format that the mapping states."""
        text = text_of(value)
        if not self.mapping.time_format or text is None or isinstance(value, date):
            return _time(value)
        return time_formats.read(text.strip(), self.mapping.time_format).isoformat()

    def _counted(self, found: Mapping[str, Any]) -> dict[str, str]:
        """Nodes, CPUs, GPUs and seconds as texts; nothing for what is unknown."""
        numbers = {name: _number(found[name], name) for name in _COUNTS if name in found}
        instances = _number(found.get("instances"), "instances") if "instances" in found else 1.0
        for name in _OF_INSTANCE:
            number = numbers.get(name)
            if number is not None:
                of_all = None if instances is None else number * instances
                numbers[name] = of_all / 100 if self._percent and of_all is not None else of_all
        rows: dict[str, str] = {}
        for name, number in numbers.items():
            if number is None or (name in _OF_INSTANCE and not number.is_integer()):
                self.told[f"{name} of a share of one, which stays unknown"] += number is not None
                rows[name] = ""
            elif name == "n_gpus":
                rows[name] = f"node=1,gres/gpu={int(number)}" if number else "node=1"
            else:
                rows[name] = str(round(number))
        return rows

    def notices(self) -> list[str]:
        """What the mapping says of its trace, and what stays unknown."""
        notices = [f"{text}: {n:,}" for text, n in sorted(self.told.items()) if n]
        note = self.mapping.general.get("note")
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


def _mapping(wanted: str | MappingFile | None) -> ColumnMapping:
    """The mapping of that name, else the one in that TOML file."""
    if isinstance(wanted, str) and wanted in PRESETS:
        wanted = str(_shipped(wanted))
    general = (*GENERAL, "header", "counts", "note")
    return column_mapping(wanted, COLUMNS, general, "states")


def fits_headerless(preset: str, fields: Sequence[str]) -> bool:
    """Whether the fields of a line are those of a preset whose files have no header."""
    mapping = _mapping(preset)
    header = mapping.general.get("header", "").split(",")
    if len(fields) != len(header) or len(header) == 1:
        return False
    of = {ours: fields[header.index(column)] for ours, column in mapping.columns.items()}
    times = [of[name] for name in _TIMES if of.get(name)]
    return of["state"] in mapping.further and all(
        text.replace(".", "", 1).isdecimal() for text in times
    )


def _shipped(name: str) -> Path:
    return Path(str(resources.files("data.ingest").joinpath("mappings", f"{name}.toml")))


@cache
def _columns_of_presets() -> dict[str, frozenset[str]]:
    """Columns that each preset needs."""
    return {name: frozenset(_mapping(name).columns.values()) for name in PRESETS}


def _preset_of(header: frozenset[str]) -> str | None:
    """The preset whose columns a header holds, the one with most of them."""
    fitting = {name: len(own) for name, own in _columns_of_presets().items() if own <= header}
    return max(fitting, key=fitting.__getitem__, default=None)


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
    fills=("jobs",),
    place=1.6,
    options=("columns", "delimiter", "mapping"),
    presets=lambda: {name: {"mapping": name} for name in PRESETS},
    sniff=sniff,
    read=read,
)
