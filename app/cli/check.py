"""faultline check: ask the rules of alerts, keep what changed, and tell who should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

    from app.alerts.evaluate import Evaluation
    from data.store import Store

EXAMPLE = "faultline check --store ./demo-store"
FAILED = 3
"""Exit code where --fail-on finds what it names; no other command has it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What fails, or a rule to be asked of the past."""
    options.add(parser, "store")
    parser.add_argument("--cluster", metavar="NAME", help="with --backtest: of one cluster")
    parser.add_argument(
        "--fail-on",
        choices=("critical", "warning"),
        help="exit 3 where an alert of this severity or a graver one is open",
    )
    parser.add_argument(
        "--backtest",
        metavar="RULE",
        help="what a rule would have told in the past 90 days; nothing is kept or sent",
    )
    options.add(parser, "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Evaluates once; or prints what a rule would have told."""
    from datetime import UTC, datetime

    now = datetime.now(UTC)
    if arguments.backtest is not None:
        from app.alerts import asked

        store, ask = options.asking(arguments)
        options.known("cluster", arguments.cluster, ask(asked.clusters))
        rule = asked.rule_of(arguments.backtest)
        answer = asked.of_past(ask(asked.past_of, rule, now, arguments.cluster))
        terminal.write(answer, arguments.format, **terminal.synthetic(store))
        return 0

    from app.alerts import evaluate, listing
    from data.published import require_current

    require_current(arguments.store)
    done = evaluate.evaluate(arguments.store, now=now)
    store, ask = options.asking(arguments)
    answer = listing.of_evaluation(ask(_same, done), ask(listing.known, done.at))
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    grave = {"critical": ("critical",), "warning": ("critical", "warning")}
    failing = grave.get(arguments.fail_on, ())
    open_now = (a for a in done.alerts if done.states[a.alert_id] == "open")
    return FAILED if any(alert.severity in failing for alert in open_now) else 0


def _same(_: Store, done: Evaluation) -> Evaluation:
    """What was found; asked, its names are replaced where --redact says so."""
    return done
