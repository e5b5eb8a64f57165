"""faultline info: what the store is and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options, output
from data.queries.selection import Selection

if TYPE_CHECKING:
    import argparse

HELP = "what the store holds: tables, coverage, snapshot"
EXAMPLE = "faultline info --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store and the form of the output."""
    options.add_store(parser)
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints it."""
    from app import questions
    from data.store import Store

    info = questions.info(Store.open(arguments.store), Selection())
    form = output.chosen(arguments.format)
    sources = info.coverage.sources
    if form == "json":
        output.print_json(
            {
                "schema_version": info.schema_version,
                "snapshot": info.snapshot,
                "published_at": info.published_at,
                "checksum_holds": info.checksum_holds,
                "synthetic": info.synthetic,
                "tables": info.tables,
                "coverage": {
                    "sources": sources.to_dict("records"),
                    "missing": info.coverage.missing,
                    "undated": info.coverage.undated.to_dict("records"),
                },
            }
        )
        return 0
    if not info.checksum_holds:
        output.notice("the snapshot's checksum does not hold: restore it from a backup")
    if form == "csv":
        output.print_csv(["table", "rows"], list(info.tables.items()))
        return 0
    kind = " (synthetic)" if info.synthetic else ""
    print(f"snapshot {info.snapshot}{kind}, published {info.published_at}, "
          f"schema {info.schema_version}\n")  # fmt: skip
    output.print_table(["table", "rows"], [row for row in info.tables.items() if row[1]])
    print()
    output.print_table(list(sources.columns), sources.values.tolist())
    if info.coverage.missing:
        print(f"\nno rows of: {', '.join(info.coverage.missing)}")
    return 0
