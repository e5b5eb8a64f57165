"""How the beginning of a table would be read by a mapping: for whoever is making one."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from data.errors import SourceError
from data.ingest import masking
from data.ingest.formats.parquet_size import unfolded
from data.ingest.formats.source import (
    PARQUET,
    broken_parquet,
    is_packed,
    opened,
    without_long_lines,
)
from data.ingest.formats.tabular import opened_table, with_instants
from data.ingest.reader import MappingFile
from data.ingest.readers import known_readers
from data.ingest.readers.tables.mapped_table import Column, text_of
from data.tables import records
from data.tables.jobs import STATES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import BinaryIO

    import pandas as pd

    from data.ingest.reader import Options, Rejected, Source
    from data.ingest.readers.tables.mapped_table import Layout

SAMPLE_BYTES = 1_000_000
"""Read of a CSV file at most."""
SAMPLE_RECORDS = 1_000
SHOWN_ROWS = 10
MOST_STATES = 20
"""Words for states that are asked about at most."""


@dataclass(frozen=True)
class Sample:
    """The beginning of a CSV or Parquet file."""

    name: str
    header: tuple[str, ...]
    content: bytes
    """Its first SAMPLE_RECORDS records, with the header; Parquet stays Parquet."""


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


def _layouts() -> dict[str, Layout]:
    """Source that reads tables through a mapping -> how they look."""
    return {name: reader.layout for name, reader in known_readers().items() if reader.layout}


def mapped_sources() -> frozenset[str]:
    """Sources that read tables through a mapping of columns."""
    return frozenset(_layouts())


def fields(source: str) -> list[Column]:
    """What a mapping of a source can name, with meaning and unit from the table's comments."""
    layout = _layouts()[source]
    declared = records()[layout.table].columns
    needed_first = sorted(layout.columns, key=lambda column: not column.needed)
    columns = [*needed_first, *map(Column, layout.facts)]
    held = [declared.get(column.of_table or column.name) for column in columns]
    return [
        column._replace(meaning=column.meaning or (own.comment if own else "a fact"))
        for column, own in zip(columns, held, strict=True)
    ]


def sample(name: str, file: BinaryIO, options: Options) -> Sample:
    """The first records of a file, which stands at its beginning before and after.

    Raises
    ------
    SourceError
        Where it is packed, broken Parquet, or no text of columns.
    """
    begin = file.read(len(PARQUET))
    file.seek(0)
    try:
        return (_of_parquet if begin == PARQUET else _of_csv)(name, file, options)
    finally:
        file.seek(0)


def _of_parquet(name: str, file: BinaryIO, options: Options) -> Sample:
    """The first records of Parquet, as such."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = pa.BufferOutputStream()
    try:
        n_rows = min(SAMPLE_RECORDS, unfolded(name, file, options.limits).batch_rows)
        whole = pq.ParquetFile(file)
        batches = islice(whole.iter_batches(batch_size=n_rows), 1)
        rows = [with_instants(batch, whole) for batch in batches]
        first = pa.Table.from_batches(rows, None if rows else whole.schema_arrow)
        pq.write_table(first, content)
    except (pa.ArrowException, OSError) as error:
        raise broken_parquet(name, error) from None
    return Sample(name, tuple(whole.schema_arrow.names), content.getvalue().to_pybytes())


def _of_csv(name: str, file: BinaryIO, options: Options) -> Sample:
    """The first records of a text."""
    content = file.read(SAMPLE_BYTES)
    whole = len(content) < SAMPLE_BYTES
    kept = content if whole else content[:SAMPLE_BYTES].rpartition(b"\n")[0] + b"\n"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample"
        path.write_bytes(kept)
        if is_packed(path):
            raise SourceError(f"{name}: columns are matched in what is not packed: unpack it")
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
    columns = fields(source)
    found = {column.name: column.name for column in columns if column.name in header}
    for bears_our_name in (True, False):
        for column in columns:
            names = map(_plain, (column.name,) if bears_our_name else column.also)
            there = (plain[name] for name in names if name in plain)
            free = next((name for name in there if name not in found.values()), None)
            if free is not None:
                found.setdefault(column.name, free)
    return found


def _plain(name: str) -> str:
    """A name without case and punctuation."""
    return "".join(each for each in name.casefold() if each.isalnum())


def takes_states(source: str) -> bool:
    """Whether a mapping of the source translates words for states."""
    return "states" in _layouts()[source].sections


def foreign_states(taken: Sample, column: str, options: Options) -> list[str]:
    """Words of a column of the sample that are no state of Slurm, the most frequent first.

    Raises
    ------
    SourceError
        Where the sample cannot be read with these options.
    """
    with _as_file(taken, options) as source:
        _, found = opened_table(source, options.delimiter or ",", options.columns, options.limits)
        words = Counter(text_of(each.values[column]) for each in found if each.values)
    foreign = [word for word, _ in words.most_common() if word and word.upper() not in STATES]
    return foreign[:MOST_STATES]


@dataclass(frozen=True)
class Chosen:
    """What somebody said of a table."""

    columns: Mapping[str, str]
    """Our name -> the file's column."""
    time_format: str | None = None
    """`epoch` or a pattern of strptime; None as the reader finds out."""
    states: Mapping[str, str] = field(default_factory=dict)
    """The file's word -> Slurm's."""


def written(
    source: str, chosen: Chosen, header: Sequence[str] = (), delimiter: str | None = None
) -> str:
    """The mapping as TOML; a column of our name that was not chosen is said to be none."""
    layout = _layouts()[source]
    top = {"time_format": chosen.time_format, "delimiter": delimiter}
    lines = [f"{name} = {_quoted(text)}" for name, text in top.items() if text]
    read_by_name = [field.name for field in fields(source)] if layout.by_name else []
    unmeant = [name for name in read_by_name if name in header and name not in chosen.columns]
    said = {name: _quoted(column) for name, column in chosen.columns.items()}
    said |= dict.fromkeys(unmeant, "false")
    sections = {
        "columns": {name: text for name, text in said.items() if name not in layout.facts},
        "facts": {name: text for name, text in said.items() if name in layout.facts},
        "states": {_quoted(word): _quoted(state) for word, state in chosen.states.items()},
    }
    for section, held in sections.items():
        if held:
            lines += [f"[{section}]", *(f"{name} = {text}" for name, text in held.items())]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """A text of TOML, whose escapes are those of JSON, but DEL stands bare in JSON alone."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


@contextmanager
def _as_file(taken: Sample, options: Options) -> Iterator[Source]:
    """The sample as readers take it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sample").write_bytes(taken.content)
        with (
            opened(
                str(folder / "sample"), folder, called=taken.name, limits=options.limits
            ) as whole,
            without_long_lines(whole, options.limits, folder) as source,
        ):
            yield source


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
    with _as_file(taken, options) as source_file, duckdb.connect() as connection:
        reader = known_readers()[source]
        batch = reader.read(source_file, stated, connection)
        batch.rejected.extend(source_file.too_long)
        batch.notices += reader.lacking(batch)
        masking.mask(batch, connection)
        rows = batch.tables[_layouts()[source].table]
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
