"""The command `faultline`: stdout carries data only, notices go to stderr.

Exit codes: 0 done, 2 the input or request is at fault (one line), 1 a bug.
"""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

from analytics.errors import AnalysisError
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = (
    "demo",
    "ingest",
    "info",
    "config",
    "mttf",
    "ettr",
    "ledger",
    "failures",
    "incidents",
    "incident",
    "annotate",
    "classify",
    "xid",
    "stragglers",
    "sql",
    "report",
    "serve",
)


class _Parser(argparse.ArgumentParser):
    """A parser whose refusal is one line."""

    def error(self, message: str) -> NoReturn:
        """Says what is wrong and where help is; exit 2."""
        self.exit(2, f"{_one_line(f'{self.prog}: {message}')}: see {self.prog} --help\n")


def parser(names: Sequence[str] = COMMANDS) -> argparse.ArgumentParser:
    """The parser of these commands; each costs the import of its module."""
    root = _Parser(
        prog="faultline",
        description="Reliability of GPU training clusters, from the logs they already have.",
    )
    commands = root.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in names:
        module = import_module(f"app.cli.{name}")
        command = commands.add_parser(
            name,
            help=module.HELP,
            description=module.HELP,
            epilog=f"example:\n  {module.EXAMPLE}",
            formatter_class=argparse.RawDescriptionHelpFormatter,  # an example is never wrapped
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return root


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; the process's exit code."""
    given = sys.argv[1:] if arguments is None else arguments
    asked = [name for name in given[:1] if name in COMMANDS]
    wrong = next((text for text in given if not _is_text(text)), None)
    if wrong is not None:
        print(f"faultline: {os.fsencode(wrong)!r} is not UTF-8: rename the file", file=sys.stderr)
        return 2
    try:
        parsed = parser(asked or COMMANDS).parse_args(given)
    except OSError as error:  # a folder that may not be looked into
        print(_one_line(f"faultline: {_reason(error)}"), file=sys.stderr)
        return 2
    try:
        return int(parsed.run(parsed) or 0)
    except (DataError, AnalysisError) as error:
        print(_one_line(f"faultline {parsed.command}: {error}"), file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(_one_line(f"faultline {parsed.command}: {_reason(error)}"), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"faultline {parsed.command}: stopped", file=sys.stderr)
        return 130


def _is_text(argument: str) -> bool:
    """Whether an argument is UTF-8, as all names in a store are."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        return False
    return True


def _reason(error: OSError) -> str:
    """What the system refused, of which file."""
    name = "" if error.filename is None else f"{error.filename}: "
    return f"{name}{error.strerror or error}: check the path, access to it and room on the disk"


def _one_line(text: str) -> str:
    """What a file or argument says may hold line ends; a refusal does not."""
    return " ".join(text.splitlines())
