"""faultline annotate: say the cause, a note or the status of an attempt, an incident or a node, who
has an incident and which are one, or undo it.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline annotate node:demo/gpu0001 --status acknowledged --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What it is about and what is said."""
    options.add(parser, "store")
    parser.add_argument(
        "target",
        nargs="?",
        metavar="TARGET",
        help="attempt:CLUSTER/KEY, incident:ID or node:CLUSTER/NODE",
    )
    said = parser.add_mutually_exclusive_group(required=True)
    said.add_argument("--cause", metavar="C", help="the cause, one of the taxonomy's")
    said.add_argument("--note", metavar="TEXT", help="a note")
    said.add_argument("--status", metavar="S", help="open, acknowledged or resolved")
    said.add_argument("--owner", metavar="TEAM", help="of an incident: the team that has it")
    said.add_argument("--assignee", metavar="PERSON", help="of an incident: who works on it")
    said.add_argument("--remedy", metavar="TEXT", help="of an incident: what we do about it")
    said.add_argument(
        "--merged-into", metavar="ID", help="of an incident: it is the same as incident ID"
    )
    said.add_argument(
        "--incident", metavar="ID", help="of an attempt: it is of incident ID, or of `none`"
    )
    said.add_argument("--undo", metavar="ID", help="take an annotation back")
    said.add_argument(
        "--restore",
        action="store_true",
        help="make a lost or damaged state.sqlite anew with the annotations of the snapshot",
    )
    said.add_argument(
        "--list", action="store_true", help="all that was said (about TARGET), newest first"
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Writes it down and prints the annotation, or lists them."""
    from app import actions

    if arguments.list:
        _print_history(arguments)
        return 0
    if arguments.restore:
        n_restored = actions.restore_said(arguments.store)
        terminal.print_record({"annotations_restored": n_restored}, arguments.format)
        return 0
    if arguments.undo is not None:
        if arguments.target is not None:
            raise DataError("--undo takes the id of an annotation alone: leave TARGET out")
        made = actions.undo(arguments.store, arguments.undo)
    else:
        if arguments.target is None:
            raise DataError("name a TARGET, e.g. `faultline annotate node:CLUSTER/NODE --note ...`")
        fields_of = (*actions.FIELDS, *(name for own in actions.OF_KIND.values() for name in own))
        field = next(name for name in fields_of if getattr(arguments, name) is not None)
        value = getattr(arguments, field)
        made = actions.annotate(arguments.store, arguments.target, field, value)
    terminal.print_record(terminal.plain(made), arguments.format)
    return 0


def _print_history(arguments: argparse.Namespace) -> None:
    """All annotations, undone ones too."""
    from data.published import require_current
    from data.state import Annotation, State

    require_current(arguments.store)
    columns = [field.name for field in fields(Annotation)]
    rows = [
        [getattr(made, name) for name in columns]
        for made in State(arguments.store).history(arguments.target)
    ]
    terminal.print_rows(columns, rows, arguments.format)
