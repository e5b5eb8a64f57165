"""faultline sql: one query of the published snapshot, in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options, output

if TYPE_CHECKING:
    import argparse

HELP = "run one SELECT or EXPLAIN on the store, in a sandbox"
EXAMPLE = 'faultline sql "SELECT state, count(*) FROM jobs GROUP BY state" --store ./demo-store'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The query."""
    options.add_store(parser)
    parser.add_argument("query", metavar="SQL", help="exactly one SELECT or EXPLAIN")
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints the rows."""
    from data.sandbox import run_query
    from data.store import require_current

    current = require_current(arguments.store)
    result = run_query(arguments.store / current.file, arguments.query)
    output.print_rows(result.columns, result.rows, output.chosen(arguments.format))
    if result.truncated:
        output.notice(f"only the first {len(result.rows):,} rows: aggregate, or add a LIMIT")
    return 0
