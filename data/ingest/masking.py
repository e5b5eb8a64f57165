"""Masks secrets in everything that an ingest is about to store: texts of records, rejected lines.

It lies between readers and store, so that no reader can forget it. Keys of records were made from
the text as it was read: the same record twice stays one record, two that differ in a secret two.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from data.ingest.formats.text_columns import literal
from data.ingest.reader import Rejected, Rejections
from data.ingest.secrets import SUSPECT, masked, masked_lines
from data.tables import records

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import duckdb
    import pandas as pd

    from data.ingest.reader import Batch

_FREE = ("text", "job", "nested")
"""What a table says of columns in which anybody may have written anything."""
_MASKED = "faultline_masked"
_FILE = ("cluster", "job_id", "file")


def mask(batch: Batch, connection: duckdb.DuckDBPyConnection) -> None:
    """Masks the secrets in all texts of a batch, in place."""
    import duckdb  # here: whoever reads a trace alone does without it

    for table, rows in batch.tables.items():
        texts = [
            name for name, column in records()[table].columns.items() if column.people in _FREE
        ]
        if isinstance(rows, pa.Table):
            batch.tables[table] = _masked_table(rows, texts)
        elif isinstance(rows, duckdb.DuckDBPyRelation):
            batch.tables[table] = _masked_relation(rows, texts, connection)
        else:
            _mask_frame(rows, texts)
    batch.rejected = masked_rejections(batch.rejected)


def _masked_relation(
    rows: duckdb.DuckDBPyRelation, texts: Sequence[str], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """The same rows; the few suspects among their texts pass through Python."""
    import duckdb

    with suppress(duckdb.NotImplementedException):  # this connection has it
        connection.create_function(_MASKED, masked, ["VARCHAR"], "VARCHAR")
    kinds = dict(zip(rows.columns, map(str, rows.types), strict=True))
    present = [f'"{name}"' for name in texts if kinds.get(name) == "VARCHAR"]
    values = ", ".join(
        f"CASE WHEN regexp_matches({name}, {literal(SUSPECT)}, 'i') THEN {_MASKED}({name}) "
        f"ELSE {name} END AS {name}"
        for name in present
    )
    return rows.project(f"* REPLACE ({values})") if values else rows


def _masked_table(rows: pa.Table, texts: Sequence[str]) -> pa.Table:
    """The same rows, a piece at a time: a log is one piece."""
    present = [name for name in texts if name in rows.column_names]
    pieces = [_masked_piece(piece, present) for piece in rows.to_batches()]
    return pa.Table.from_batches(pieces, rows.schema)


def _masked_piece(piece: pa.RecordBatch, texts: Sequence[str]) -> pa.RecordBatch:
    for name in texts:
        changed = _masked_texts(piece[name], _follows(piece))
        if changed is not None:
            place = piece.schema.get_field_index(name)
            piece = piece.set_column(place, piece.schema.field(name), changed)
    return piece


def _follows(piece: pa.RecordBatch) -> Callable[[int], bool]:
    """Whether the row of a place is the next line of the same file; never where no lines are."""
    if "line_no" not in piece.schema.names:
        return lambda at: False
    numbers, files = piece["line_no"], [piece[name] for name in _FILE]

    def follows(at: int) -> bool:
        return (
            0 < at < len(numbers)
            and numbers[at].as_py() == numbers[at - 1].as_py() + 1
            and all(each[at] == each[at - 1] for each in files)
        )

    return follows


def _mask_frame(rows: pd.DataFrame, texts: Sequence[str]) -> None:
    for name in texts:
        if name in rows and len(rows):
            changed = _masked_texts(pa.array(rows[name], pa.string()), lambda at: False)
            if changed is not None:
                rows[name] = changed.to_pandas().astype("string").array


def _masked_texts(texts: pa.Array, follows: Callable[[int], bool]) -> pa.Array | None:
    """The texts without secrets; None where they hold none."""
    suspects = pc.indices_nonzero(pc.match_substring_regex(texts, SUSPECT, ignore_case=True))
    if len(suspects) == 0:
        return None
    changed = masked_lines(suspects.to_pylist(), lambda at: texts[at].as_py() or "", follows)
    if not changed:
        return None
    values = texts.to_pylist()
    for place, text in changed.items():
        values[place] = text
    return pa.array(values, texts.type)


def masked_rejections(rejected: Rejections) -> Rejections:
    """The same records; a private key is found where its lines are rejected one by one."""
    if not rejected:
        return rejected
    numbers = [row.line_no for row in rejected]

    def follows(at: int) -> bool:
        return 0 < at < len(numbers) and numbers[at] == numbers[at - 1] + 1

    texts = _masked_texts(pa.array([row.raw for row in rejected], pa.string()), follows)
    if texts is None:
        return rejected
    found = Rejections()
    found.by_reason.update(rejected.by_reason)
    pairs = zip(rejected, texts.to_pylist(), strict=True)
    list.extend(found, (Rejected(row.line_no, row.reason, text) for row, text in pairs))
    return found
