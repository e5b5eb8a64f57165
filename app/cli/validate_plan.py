"""faultline validate-plan: which nodes to test next and how; results that fall short."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    from app.answers.content import Answer

EXAMPLE = "faultline validate-plan --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Results, the store, and what tests take."""
    parser.add_argument(
        "results",
        nargs="*",
        metavar="RESULTS",
        help="results-summary.jsonl of SuperBench; - is standard input",
    )
    parser.add_argument(
        "--horizon-days",
        type=float,
        default=28.0,
        metavar="D",
        help="days in which an incident counts (default 28)",
    )
    parser.add_argument(
        "--similarity",
        type=float,
        default=0.95,
        metavar="S",
        help="to the fleet's centre, below which a result is regressed (default 0.95)",
    )
    parser.add_argument(
        "--minutes",
        type=_minutes,
        action="append",
        default=[],
        metavar="TEST=M",
        help="running time of a test on your nodes; again for each of several",
    )
    options.add(parser, "store", "selection", "conf_level", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the plan; where there is no store, what the results say."""
    from app.answers.nodes import validation
    from data.current import read_current

    found = None
    if arguments.results:
        found = validation.judged(arguments.results, least_similarity=arguments.similarity)
        if read_current(arguments.store) is None:
            terminal.notice(f"{arguments.store}: no store, so results alone are told")
            terminal.write(validation.of_results(found), arguments.format)
            return 0
    store, ask = options.asking(arguments, ledger=True)
    answer: Answer = validation.answer(
        ask,
        options.selection(arguments, store),
        found,
        horizon_days=arguments.horizon_days,
        minutes=dict(arguments.minutes),
        conf_level=arguments.conf_level,
    )
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0


def _minutes(text: str) -> tuple[str, float]:
    """A test and its minutes."""
    name, _, minutes = text.rpartition("=")
    try:
        found = float(minutes)
    except ValueError:
        found = 0.0
    if not name or not found > 0:
        raise argparse.ArgumentTypeError(f"must be TEST=MINUTES, e.g. gemm-flops=4, got {text!r}")
    return name, found
