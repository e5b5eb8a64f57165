"""faultline sql: run one SELECT or EXPLAIN on the store, in a sandbox."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.cli import options
from app.reports.query_files import WRITERS, Asked, columns_shown, plain
from app.show import terminal
from app.show.files import write_file
from data.errors import DataError, QueryError
from data.queries.schema import parameters, values

if TYPE_CHECKING:
    import argparse

    from data.current import Current
    from data.filters import Selection
    from data.sandbox import QueryResult

EXAMPLE = (
    "faultline sql 'SELECT cause, count(*) FROM failures WHERE failed_at >= $from_at GROUP BY ALL'"
    " --from 2025-12-08 --store ./demo-store"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The query, its parameters, and where its rows go."""
    options.add(parser, "store")
    parser.add_argument(
        "query",
        metavar="SQL",
        help="exactly one SELECT or EXPLAIN; it may name $cluster, $from_at, $to_at, $partition, "
        "$account and $min_gpus, which the filters set; - reads it from standard input",
    )
    options.add(parser, "selection")
    parser.add_argument(
        "--as",
        dest="kind",
        choices=tuple(WRITERS),
        help="write the rows to a file (--out) of this kind",
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="where --as writes to")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the rows, or writes them to a file."""
    from data.audit import noted
    from data.saved_queries import told

    if (arguments.kind is None) != (arguments.out is None):
        raise DataError("--as and --out go together: name the kind of the file and the file")
    sql = sys.stdin.read() if arguments.query == "-" else arguments.query
    selection = _selection(arguments)
    bound = values(selection)
    untold = noted(arguments.store, "query", told(arguments.store, sql)) if sql.strip() else None
    current, result = _result(arguments.store, sql, bound)
    if arguments.kind is None:
        form = terminal.chosen(arguments.format)
        columns = result.names if form == "json" else result.columns
        terminal.print_rows(columns, result.rows, form)
    else:
        asked = Asked(sql, _said(selection), bound, current.snapshot, current.synthetic)
        write_file(arguments.out, WRITERS[arguments.kind](result, asked))
        terminal.print_record({"file": str(arguments.out), "rows": len(result.rows)}, "json")
    if result.truncated:
        terminal.notice(f"only the first {len(result.rows):,} rows: aggregate, or add a LIMIT")
    if result.columns_left_out:
        shown = columns_shown(result)
        terminal.notice(f"only the first {shown}: name those that you need")
    if untold is not None:
        terminal.notice(untold)
    return 0


def _result(root: Path, sql: str, bound: dict[str, Any]) -> tuple[Current, QueryResult]:
    """The snapshot that was asked, and its rows; the next one where this one is replaced before."""
    from data.published import require_current
    from data.queries.schema import names_ledger
    from data.sandbox import run_query

    while True:
        if names_ledger(sql):
            with contextlib.closing(options.with_ledger(root)) as store:
                current = store.current
        else:
            current = require_current(root)
        try:
            return current, run_query(root / current.file, sql, parameters=bound)
        except QueryError:
            if (root / current.file).exists():
                raise


def _selection(arguments: argparse.Namespace) -> Selection:
    """The filters; names are looked up in the store, which is opened for no other reason."""
    if all(getattr(arguments, column) is None for column in options.NAMED):
        return options.as_given(arguments)
    from data.store import Store

    with contextlib.closing(Store.open(arguments.store)) as store:
        return options.selection(arguments, store)


def _said(selection: Selection) -> str:
    """The filters that are set, in words."""
    chosen = [
        f"{parameter.name} {plain(parameter.value)}"
        for parameter in parameters(selection)
        if not parameter.open
    ]
    return " · ".join(chosen) or "no filters"
