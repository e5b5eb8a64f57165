"""faultline ettr: ETTR, productive time over wall-clock: of the runs measured; with --run, of one
over time; with --gpus, expected of a job.
"""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from analytics.frames import GPUS_PER_NODE
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

    from app.answers.content import Answer

EXAMPLE = (
    "faultline ettr --gpus 12000 --rate-per-1000-node-days 6.5 --restart-min 5 --write-min 5 "
    "--simulate 100000"
)
NEEDED = ("rate_per_1000_node_days", "restart_min")
"""Options without which nothing can be expected of a job."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A job, its failure rate and what failures cost."""
    options.add(parser, "store", "selection", "redact")
    parser.add_argument(
        "--gpus", type=int, metavar="N", help="of a job: what is expected of it; reads no store"
    )
    parser.add_argument(
        "--run",
        dest="run_id",
        metavar="ID",
        help="one run: its attempts, and its ETTR as it went on",
    )
    numbers = (
        ("--rate-per-1000-node-days", "R", None, "failures per 1,000 node-days"),
        ("--restart-min", "U", None, "minutes from a start to the first step (u0)"),
        ("--gpus-per-node", "N", GPUS_PER_NODE, f"GPUs of a node (default {GPUS_PER_NODE:g})"),
        ("--write-min", "W", 0.0, "minutes that a checkpoint stops training (default 0)"),
        ("--interval-min", "D", None, "minutes between checkpoints (default Daly-Young's)"),
        ("--queue-min", "Q", 0.0, "minutes queued at first and after a failure (default 0)"),
        ("--run-days", "R", None, "days of training that the run needs (default a long run)"),
    )
    for name, metavar, default, text in numbers:
        parser.add_argument(name, type=float, metavar=metavar, default=default, help=text)
    parser.add_argument(
        "--simulate",
        type=options.whole,
        metavar="N",
        default=0,
        help="also by Monte Carlo: N interruptions, with --run-days N runs (default 0)",
    )
    options.add_estimate(parser, seeded="simulation")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what runs got, or what is expected of a job."""
    if arguments.gpus is not None:
        terminal.write(_expected(arguments), arguments.format)
        return 0
    for name in (*NEEDED, "interval_min", "run_days"):
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise AnalysisError(f"{option} is of a job that is not there yet: pass its --gpus too")
    from app.answers.efficiency import ettr, run

    store, ask = options.asking(arguments, ledger=True)
    level = arguments.conf_level
    if arguments.run_id is not None:
        answer = run.answer(ask, arguments.run_id, arguments.cluster, conf_level=level)
    else:
        answer = ettr.answer(ask, options.selection(arguments, store), conf_level=level)
    terminal.write(answer, arguments.format, **terminal.synthetic(store))
    return 0


def _expected(arguments: argparse.Namespace) -> Answer:
    """What is expected of a job; reads no store."""
    for name in NEEDED:
        if getattr(arguments, name) is None:
            option = f"--{name.replace('_', '-')}"
            raise AnalysisError(f"{option} must be given with --gpus: see --help for an example")
    from analytics.efficiency.expected_ettr import EttrSettings
    from app.answers.efficiency import expected

    settings = EttrSettings(
        **{field.name: getattr(arguments, field.name) for field in fields(EttrSettings)}
    )
    level, seed = arguments.conf_level, arguments.seed
    return expected.answer(settings, simulations=arguments.simulate, seed=seed, conf_level=level)
