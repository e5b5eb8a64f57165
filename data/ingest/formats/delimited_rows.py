"""Rows of CSV one by one, each with its line; what is no CSV is a row of one field."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.ingest.reader import Source

NO_CSV = "no CSV"


def rows_of_csv(source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line and fields of each row that is not blank."""
    with source.path.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        rows = csv.reader(stream, delimiter=delimiter)
        while True:
            try:
                row = next(rows)
            except StopIteration:
                return
            except csv.Error:  # a field longer than any number or name
                row = [NO_CSV]
            if row:
                yield rows.line_num, row
