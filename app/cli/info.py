"""faultline info: what the store holds: tables, coverage, snapshot."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.access import told_open
from data.current import read_current
from data.site import load_site

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline info --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The store and the form of the terminal."""
    options.add(parser, "store", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints it."""
    from app.actions import third_opinion
    from app.answers.failures.third_opinion import in_all
    from app.answers.fleet import coverage

    while True:
        store, ask = options.asking(arguments)
        try:
            answer = coverage.of_store(ask, datetime.now(UTC))
            break
        except FileNotFoundError:  # removed, for two others were published meanwhile
            if read_current(store.root) == store.current:
                raise
    opened = told_open(store.root, load_site(store.root).access)
    spent = third_opinion.spent(store.root)
    asked = [f"language model, in all: {in_all(spent)}"] if spent.calls else []
    answer = replace(
        answer,
        notes=(*answer.notes, *opened, *asked),
        record={**answer.record, "open_to_others": opened, "language_model": asdict(spent)},
    )
    terminal.write(answer, arguments.format)
    return 0
