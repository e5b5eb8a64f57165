"""faultline alerts: what is open, acknowledged or muted; take it on, mute it, resolve it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from data.state import Annotation

EXAMPLE = "faultline alerts --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which to list, or what to say of one."""
    options.add(parser, "store")
    parser.add_argument("--cluster", metavar="NAME", help="those of one cluster")
    said = parser.add_mutually_exclusive_group()
    said.add_argument("--acknowledge", metavar="ID", help="somebody has taken this alert on")
    said.add_argument("--resolve", metavar="ID", help="nothing of this alert is left to do")
    said.add_argument(
        "--mute", metavar="ID", help="hear no more of an alert, or of a rule, for --days"
    )
    said.add_argument("--switch-on", metavar="RULE", help="a rule that is off")
    said.add_argument("--switch-off", metavar="RULE", help="a rule that is on")
    said.add_argument("--undo", metavar="ID", help="take back what was said, by its annotation_id")
    parser.add_argument(
        "--days",
        type=lambda text: options.lasting(text, 366),
        default=7.0,
        metavar="N",
        help="of the mute (default 7)",
    )
    options.add(parser, "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the list, or says something of an alert or rule (`--undo` takes that back)."""
    from datetime import UTC, datetime

    made = _said(arguments)
    if made is not None:
        terminal.print_record(terminal.plain(made), arguments.format)
        return 0

    from app.alerts import asked, listing
    from app.alerts.evaluate import clock

    store, ask = options.asking(arguments)
    options.known("cluster", arguments.cluster, ask(asked.clusters))
    wall = datetime.now(UTC)
    answer = listing.answer(ask(listing.known, clock(ask, wall)), wall, arguments.cluster)
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0


def _said(arguments: argparse.Namespace) -> Annotation | None:
    """What somebody says by an option; None where nobody says anything."""
    from app import actions

    root: Path = arguments.store
    if arguments.undo is not None:
        return actions.undo(root, arguments.undo)
    for rule, on in ((arguments.switch_on, True), (arguments.switch_off, False)):
        if rule is not None:
            return actions.switch(root, rule, on=on)
    if arguments.acknowledge is not None:
        return actions.put_off(root, _target(root, arguments.acknowledge))
    if arguments.resolve is not None:
        return actions.resolve(root, _target(root, arguments.resolve))
    if arguments.mute is not None:
        return actions.mute(root, _target(root, arguments.mute, or_rule=True), days=arguments.days)
    return None


def _target(root: Path, named: str, *, or_rule: bool = False) -> str:
    """The thing that an alert is about, by the alert's id or as it is; with `or_rule` a rule by
    its name.
    """
    from app.alerts.rules import rules
    from data.alerts import Alerts

    if ":" in named:
        return named
    if or_rule and named in {rule.name for rule in rules()}:
        return f"rule:{named}"
    for alert in Alerts(root).all():
        if alert.alert_id == named:
            return alert.target
    also = ", nor a rule" if or_rule else ""
    raise DataError(f"{named!r} is no open alert{also}: `faultline alerts` shows their ids")
