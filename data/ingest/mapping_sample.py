"""How the beginning of a CSV file would be read by a mapping: for whoever is making one."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.ingest import (
    failure_log,
    job_table,
    masking,
    node_facts,
    node_inventory,
    readers,
    tickets,
)
from data.ingest.reader import MappingFile
from data.ingest.source import is_packed, is_parquet, opened, without_long_lines
from data.ingest.tabular import opened_table
from data.tables import records

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from data.ingest.reader import Options, Rejected

SAMPLE_BYTES = 1_000_000
"""Read of a file at most."""
SAMPLE_RECORDS = 1_000
SHOWN_ROWS = 10


class _Kind(NamedTuple):
    """What a mapping of a source names."""

    table: str
    columns: Sequence[str]
    needed: Sequence[str]
    facts: Sequence[str] = ()
    """Columns that stand in the section [facts]."""


_KINDS = {
    tickets.NAME: _Kind("tickets", tickets.COLUMNS, ("opened_at",)),
    node_facts.NAME: _Kind(
        "node_facts", (*node_facts.PLACES, *node_facts.PAIR), ("node",), node_facts.FACTS
    ),
    node_inventory.NAME: _Kind("node_inventory", node_inventory.COLUMNS, ("node",)),
    job_table.NAME: _Kind("jobs", job_table.COLUMNS, ("job_id", "state")),
    failure_log.NAME: _Kind(
        "node_failures",
        ("node", "start", "end", "repair_minutes", "cause", "subcause", "text", "cluster"),
        ("node", "start"),
    ),
}
_OF_TABLE = {"start": "start_at", "end": "end_at"}
"""Our name in a mapping -> that of the table, where they differ."""
_MEANING = {
    "task": "task within the job, where the trace counts them",
    "instances": "how often the job's CPUs and GPUs are asked for",
    "exit_code": "exit code of the job, or code:signal as Slurm writes it",
}
_ALSO = {
    "node": ("host", "hostname", "nodename", "server", "machine", "nodes"),
    "gpus": ("ngpus", "gpucount", "numgpus"),
    "ticket_id": ("ticket", "id", "number", "key", "issue", "case"),
    "opened_at": ("opened", "created", "createdat", "open", "reported"),
    "closed_at": ("closed", "resolved", "resolvedat", "close"),
    "text": ("description", "summary", "comment", "details", "message"),
    "component": ("part", "device"),
    "action": ("resolution", "fix", "repair"),
    "from_at": ("from", "since", "installed"),
    "to_at": ("to", "until", "removed"),
    "start": ("started", "startat", "starttime", "down", "failed", "failedat", "begin"),
    "end": ("ended", "endat", "endtime", "up", "repaired", "fixed"),
    "cause": ("reason", "why", "rootcause"),
    "job_id": ("job", "id"),
    "state": ("status", "outcome", "result"),
    "submit_at": ("submit", "submitted", "submittime", "queued"),
    "start_at": ("start", "started", "starttime", "begin"),
    "end_at": ("end", "ended", "endtime", "finished", "finish"),
    "n_gpus": ("gpus", "gpu", "gpunum", "gpucount"),
    "n_nodes": ("nodes", "nodenum", "nodecount"),
    "n_cpus": ("cpus", "cpu", "cpunum"),
    "user": ("username", "owner"),
    "observed_at": ("observed", "date", "time"),
    "rack": ("cabinet",),
}
"""Other names by which columns go in files."""


@dataclass(frozen=True)
class MappedField:
    """A column of ours that a mapping can name."""

    name: str
    meaning: str
    needed: bool


@dataclass(frozen=True)
class Sample:
    """The beginning of a CSV file."""

    name: str
    header: tuple[str, ...]
    content: bytes
    """Its first SAMPLE_RECORDS records, with the header."""


@dataclass(frozen=True)
class Preview:
    """What became of a sample: n_records = n_kept + n_skipped + n_rejected."""

    rows: pd.DataFrame
    """The first SHOWN_ROWS rows, columns that hold nothing left out."""
    n_records: int
    n_kept: int
    n_skipped: int
    n_rejected: int
    rejected_by_reason: dict[str, int]
    rejected: tuple[Rejected, ...]
    """The first SHOWN_ROWS of them."""
    notices: tuple[str, ...]


def mapped_sources() -> frozenset[str]:
    """Sources that read tables through a mapping of columns."""
    return frozenset(_KINDS)


def fields(source: str) -> list[MappedField]:
    """What a mapping of a source can name, with meaning and unit from the table's comments."""
    kind = _KINDS[source]
    declared = records()[kind.table].columns

    def meaning(name: str) -> str:
        column = declared.get(_OF_TABLE.get(name, name))
        return _MEANING.get(name) or (column.comment if column else "a fact")

    names = dict.fromkeys((*kind.needed, *kind.columns, *kind.facts))
    return [MappedField(name, meaning(name), name in kind.needed) for name in names]


def sample(name: str, content: bytes, options: Options) -> Sample:
    """The first records of a CSV file of which `content` is the beginning.

    Raises
    ------
    SourceError
        Where it is packed, Parquet, or no text of columns.
    """
    whole = len(content) < SAMPLE_BYTES
    kept = content if whole else content[:SAMPLE_BYTES].rpartition(b"\n")[0] + b"\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample"
        path.write_bytes(kept)
        if is_packed(path) or is_parquet(path):
            raise SourceError(f"{name}: columns are matched for plain CSV: unpack it for that")
        with opened(str(path), Path(folder), called=name, limits=options.limits) as source:
            header, found = opened_table(
                source, options.delimiter or ",", options.columns, options.limits
            )
            taken = [record.raw for record in islice(found, SAMPLE_RECORDS)]
    if not whole and 1 < len(taken) < SAMPLE_RECORDS:
        taken.pop()  # it may be cut
    text = io.StringIO()
    if options.columns is None:
        csv.writer(text, delimiter=options.delimiter or ",", lineterminator="\n").writerow(header)
    text.writelines(taken)
    names = dict.fromkeys(column for column in header if column)
    return Sample(name, tuple(names), text.getvalue().encode())


def guessed(source: str, header: Sequence[str]) -> dict[str, str]:
    """Our name -> the column that bears it, or another name by which it often goes."""
    plain = {_plain(column): column for column in reversed(header)}
    names = [field.name for field in fields(source)]
    found = {name: name for name in names if name in header}
    for known in ({name: (name,) for name in names}, _ALSO):
        for name in names:
            free = [plain[_plain(each)] for each in known.get(name, ()) if _plain(each) in plain]
            free = [column for column in free if column not in found.values()]
            if free:
                found.setdefault(name, free[0])
    return found


def _plain(name: str) -> str:
    """A name without case and punctuation."""
    return "".join(each for each in name.casefold() if each.isalnum())


def written(source: str, chosen: Mapping[str, str], delimiter: str | None = None) -> str:
    """The mapping as TOML: our name -> the file's column."""
    facts = _KINDS[source].facts
    lines = [f"delimiter = {_quoted(delimiter)}"] if delimiter else []
    for section, own in (("columns", False), ("facts", True)):
        held = {name: column for name, column in chosen.items() if (name in facts) is own}
        if held:
            lines += [f"[{section}]", *(f"{name} = {_quoted(c)}" for name, c in held.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text of TOML, whose escapes are those of JSON, but DEL stands bare in JSON alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def preview(source: str, taken: Sample, toml: str, options: Options) -> Preview:
    """What the reader of the source makes of a sample by a mapping.

    Raises
    ------
    SourceError
        Where the mapping lacks what is needed.
    """
    import duckdb  # here: only where a preview is asked for
    import pyarrow as pa

    own = MappingFile(f"{Path(taken.name).stem}.toml", toml.encode())
    stated = replace(options, mapping=own)
    with tempfile.TemporaryDirectory() as name, duckdb.connect() as connection:
        folder = Path(name)
        (folder / "sample").write_bytes(taken.content)
        with (
            opened(
                str(folder / "sample"), folder, called=taken.name, limits=options.limits
            ) as all_,
            without_long_lines(all_, options.limits, folder) as source_file,
        ):
            batch = readers()[source].read(source_file, stated, connection)
            batch.rejected.extend(source_file.too_long)
            masking.mask(batch, connection)
            rows = batch.tables[_KINDS[source].table]
            if isinstance(rows, duckdb.DuckDBPyRelation):
                rows = rows.limit(SHOWN_ROWS).df()
            elif isinstance(rows, pa.Table):
                rows = rows.slice(0, SHOWN_ROWS).to_pandas()
            first = rows.head(SHOWN_ROWS)
    n_skipped = sum(batch.skipped_by_reason.values())
    return Preview(
        first.dropna(axis="columns", how="all"),
        batch.rows_read,
        batch.rows_kept,
        n_skipped,
        batch.rejected.total,
        dict(batch.rejected.by_reason.most_common()),
        tuple(batch.rejected[:SHOWN_ROWS]),
        tuple(batch.notices),
    )
