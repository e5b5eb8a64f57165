"""faultline ettr: ETTR of the store's runs; with --gpus, expected of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from analytics.frames import GPUS_PER_NODE
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

    from app.answers.content import Answer

HELP = (
    "ETTR, productive time over wall-clock: of the runs measured; with --run, of one over time; "
    "with --gpus, expected of a job"
)
EXAMPLE = (
    "faultline ettr --gpus 12000 --rate-per-1000-node-days 6.5 --restart-min 5 --write-min 5 "
    "--simulate 100000"
)
NEEDED = ("rate_per_1000_node_days", "restart_min")
"""Options without which nothing can be expected of a job."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A job, its failure rate and what failures cost."""
    options.add_store(parser)
    options.add_selection(parser)
    options.add_redact(parser)
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
    options.add_format(parser)


def run(arguments: argparse.Namespace) -> int:
    """Prints what runs got, or what is expected of a job."""
    form = terminal.chosen(arguments.format)
    if arguments.gpus is not None:
        terminal.write(_expected(arguments), form)
        return 0
    for name in (*NEEDED, "interval_min", "run_days"):
        if getattr(arguments, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise AnalysisError(f"{option} is of a job that is not there yet: pass its --gpus too")
    from app.actions import build_ledger
    from app.answers.efficiency import ettr, run
    from app.ask import of_store
    from app.reports import redaction
    from data.store import Store

    build_ledger(arguments.store, terminal.progress)
    terminal.progress_done()
    store = Store.open(arguments.store)
    names = redaction.names(store, redact=arguments.redact)
    ask, level = redaction.redacting(of_store(store), names), arguments.conf_level
    if arguments.run_id is not None:
        answer = run.answer(ask, arguments.run_id, arguments.cluster, conf_level=level)
    else:
        answer = ettr.answer(ask, options.selection(arguments, store), conf_level=level)
    terminal.write(answer, form, **terminal.synthetic(store))
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
        gpus=arguments.gpus,
        rate_per_1000_node_days=arguments.rate_per_1000_node_days,
        restart_min=arguments.restart_min,
        gpus_per_node=arguments.gpus_per_node,
        write_min=arguments.write_min,
        interval_min=arguments.interval_min,
        queue_min=arguments.queue_min,
        run_days=arguments.run_days,
    )
    return expected.answer(
        settings,
        simulations=arguments.simulate,
        seed=arguments.seed,
        conf_level=arguments.conf_level,
    )
