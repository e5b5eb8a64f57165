"""faultline plan: what must be true for a target ETTR of a job, and what moves it most."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from analytics.frames import GPUS_PER_NODE
from app.cli import options

if TYPE_CHECKING:
    import argparse

    from app.answers.content import Answer
    from app.ask import Ask
    from data.filters import Selection

EXAMPLE = "faultline plan --gpus 12000 --rate-per-1000-node-days 6.5 --target-ettr 0.9"
COSTS = (
    ("restart-min", 5.0, "minutes from a start to the first step"),
    ("write-min", 5.0, "minutes that a checkpoint stops training"),
    ("interval-min", None, "minutes between checkpoints"),
    ("queue-min", 0.0, "minutes until there are other nodes"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job, its target, and what is stated in place of the store."""
    parser.add_argument(
        "--gpus", type=options.whole, metavar="N", help="of the job (default the largest run's)"
    )
    parser.add_argument(
        "--target-ettr", type=float, default=0.9, metavar="E", help="in (0, 1) (default 0.9)"
    )
    parser.add_argument(
        "--rate-per-1000-node-days",
        type=float,
        metavar="R",
        help="failures, in place of those of the store; reads no store",
    )
    parser.add_argument("--gpus-per-node", type=float, metavar="N", help="with a stated rate (8)")
    for name, default, text in COSTS:
        shown = "Daly-Young's" if default is None else f"{default:g}"
        parser.add_argument(
            f"--{name}",
            type=float,
            metavar="X",
            help=f"{text} (default as runs here; with a stated rate {shown})",
        )
    parser.add_argument(
        "--form",
        choices=("exact", "v2"),
        default="exact",
        help="of the expected ETTR: exact, or first order as published (default exact)",
    )
    parser.add_argument(
        "--drained",
        action="store_true",
        help="instead: rate, MTTF and ETTR with the 1, 2 ... 10 worst nodes of the store drained",
    )
    options.add(parser, "store", "selection", "conf_level", "redact", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what it takes."""
    from app.show import terminal

    if arguments.rate_per_1000_node_days is not None:
        terminal.write(_stated(arguments), arguments.format)
        return 0
    if arguments.gpus_per_node is not None:
        raise AnalysisError("--gpus-per-node is of a stated rate: pass --rate-per-1000-node-days")
    store, ask = options.asking(arguments, ledger=True)
    with contextlib.closing(store):
        also = terminal.synthetic(store)
        answer = _of_store(arguments, ask, options.selection(arguments, store))
    terminal.write(answer, arguments.format, **also)
    return 0


def _of_store(arguments: argparse.Namespace, ask: Ask, chosen: Selection) -> Answer:
    """Of a job like the largest run, with what is stated of it."""
    from app.answers.content import Missing
    from app.answers.efficiency import usual_job
    from app.answers.recovery import levers, target

    known = target.of_store(ask, chosen, conf_level=arguments.conf_level)
    if isinstance(known, Missing):
        return target.unknown(known)
    named = ("gpus", *(name.replace("-", "_") for name, _, _ in COSTS))
    given = {name: getattr(arguments, name) for name in named}
    job = replace(known[0], **{name: value for name, value in given.items() if value is not None})
    if arguments.drained:
        return levers.answer(levers.played(ask, chosen, job, known[1]), job)
    told = usual_job.assumptions(ask, chosen)
    return target.answer(
        job, known[1], target=arguments.target_ettr, form=arguments.form, told=told
    )


def _stated(arguments: argparse.Namespace) -> Answer:
    """Of a job whose rate is stated."""
    from analytics.efficiency.expected_ettr import EttrSettings
    from analytics.estimate import Estimate
    from app.answers.recovery import target

    if arguments.drained:
        raise AnalysisError("--drained is of the nodes of a store: leave out the stated rate")
    if arguments.gpus is None:
        raise AnalysisError("--gpus must be given with a stated rate: see --help for an example")
    rate = arguments.rate_per_1000_node_days
    per_node = GPUS_PER_NODE if arguments.gpus_per_node is None else arguments.gpus_per_node
    costs: dict[str, Any] = {name.replace("-", "_"): default for name, default, _ in COSTS}
    costs |= {name: getattr(arguments, name) for name in costs
              if getattr(arguments, name) is not None}  # fmt: skip
    settings = EttrSettings(
        gpus=float(arguments.gpus),
        rate_per_1000_node_days=rate,
        gpus_per_node=per_node,
        **costs,
    )
    return target.answer(
        settings,
        Estimate(rate, None, None, arguments.conf_level, 0),
        target=arguments.target_ettr,
        form=arguments.form,
    )
