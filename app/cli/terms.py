"""faultline terms: what the words of the dashboard mean: every number, column, bucket and cause, or
those that hold a word.
"""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

EXAMPLE = "faultline terms mttf"
WIDTH = 96


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to look for."""
    parser.add_argument(
        "word", nargs="*", metavar="WORD", help="what the entries hold, or the key of one"
    )
    options.add(parser, "store", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the entries; the store's site.toml may name causes of its own."""
    from app.answers.explore import glossary

    answer = glossary.answer(glossary.found(arguments.store, " ".join(arguments.word)))
    terminal.write(answer, arguments.format)
    if terminal.chosen(arguments.format) == "table":
        for entry in answer.record["terms"]:
            print(f"\n{entry['label']} ({entry['group']}: {entry['key']})")
            for line in _lines(entry):
                print(textwrap.fill(line, WIDTH, initial_indent="  ", subsequent_indent="  ",
                                    break_on_hyphens=False))  # fmt: skip
    return 0


def _lines(entry: Mapping[str, Any]) -> list[str]:
    """What is said of an entry, a line each."""
    named = [f"{name}: {entry[name.lower()]}" for name in ("Unit", "Equation", "Source")
             if entry[name.lower()]]  # fmt: skip
    return [entry["definition"], *named]
