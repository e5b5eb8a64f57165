"""faultline policies: recovery policies of the literature, ranked on a job."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from app.cli import options

if TYPE_CHECKING:
    import argparse

    from app.answers.recovery.sites import Plan

EXAMPLE = "faultline policies --gpus 16384 --rate-per-1000-node-days 6.5 --queue-min 10"
MOST_DAYS = 3_660
GPUS = 1024
"""Of a job of which only the rate is stated."""
COSTS = (
    ("restart-min", "minutes from a start to the first step (default as runs here, else 5)"),
    ("write-min", "minutes that a checkpoint stops training (default as runs here, else 5)"),
    ("interval-min", "minutes between checkpoints (default Daly-Young's, each policy its own)"),
    ("queue-min", "minutes until there are other nodes (default as runs here, else 0)"),
    ("detect-min", "minutes that a failed job stands unnoticed (default 0: in the restart)"),
    ("isolate-min", "minutes until the failed node is known (default 0: in the restart)"),
    ("load-min", "minutes to load a checkpoint, beside the restart (default 0: in it)"),
    ("repair-hours", "mean hours until a lost node is back (default as measured, else 24)"),
)
WHOLE = (
    ("rack-nodes", "nodes of the job that the failure of a rack takes"),
    ("pipeline-nodes", "nodes that hold one copy of the model (default 16)"),
    ("microbatches", "of a pipeline in each step (default 64)"),
)
RATIOS = (
    ("process", "of programs, that take no node"),
    ("rack", "of racks, that take several nodes"),
    ("preemption", "in which a node is taken away"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The job, the site, and which policies."""
    parser.add_argument(
        "--gpus", type=options.whole, metavar="N", help="of the job (default the largest run's)"
    )
    parser.add_argument(
        "--days",
        type=partial(options.lasting, most=MOST_DAYS),
        metavar="D",
        help="that each run computes (default 30, or as many as hold 3,000 failures)",
    )
    parser.add_argument(
        "--rate-per-1000-node-days",
        type=float,
        metavar="R",
        help="failures, in place of those of the store; reads no store",
    )
    parser.add_argument("--gpus-per-node", type=float, metavar="N", help="with a stated rate (8)")
    for name, text in COSTS:
        parser.add_argument(f"--{name}", type=float, metavar="X", help=text)
    for name, text in WHOLE:
        parser.add_argument(f"--{name}", type=options.whole, metavar="N", help=text)
    for name, text in RATIOS:
        parser.add_argument(
            f"--{name}-ratio", type=float, metavar="P", help=f"part of the stated rate: {text}"
        )
    parser.add_argument(
        "--no-other-nodes",
        dest="cluster_gives",
        action="store_false",
        help="beyond standby nodes there is none: a lost node is waited for until repaired",
    )
    parser.add_argument(
        "--policy", action="append", default=[], metavar="KEY", help="only this; again for several"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY.NAME=X",
        help="a parameter of a policy, e.g. gemini.copies=3; again for several",
    )
    memory = parser.add_argument_group("a state in memory")
    memory.add_argument(
        "--recover-from-memory",
        action="store_true",
        help="the chance that it outlives the loss of --lost of --nodes machines at once",
    )
    memory.add_argument("--nodes", type=options.whole, metavar="N")
    memory.add_argument("--copies", type=options.whole, metavar="M")
    memory.add_argument("--lost", type=options.whole, metavar="K")
    options.add(parser, "store", "selection")
    options.add_estimate(parser, seeded="simulation")
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints policies, ranked where a rate is known."""
    from app.answers.recovery import policies
    from app.show import terminal

    if arguments.recover_from_memory:
        asked = (arguments.nodes, arguments.copies, arguments.lost)
        if None in asked:
            raise AnalysisError("--recover-from-memory needs --nodes, --copies and --lost")
        terminal.write(policies.recovered(*asked), arguments.format)
        return 0
    answer = policies.answer(
        _plan(arguments),
        keys=arguments.policy,
        changed=policies.changes(arguments.set),
        days=arguments.days,
        told=_told,
        **options.chance(arguments),
    )
    terminal.progress_done()
    terminal.write(answer, arguments.format)
    return 0


def _told(done: int, of: int) -> None:
    """Progress on standard error."""
    from app.show import terminal

    terminal.progress(f"simulated {done} of {of} policies")


def _plan(arguments: argparse.Namespace) -> Plan | str | None:
    """The job: stated, else that of a store, if there is one."""
    from app.answers.recovery import sites
    from app.show import terminal
    from data.current import read_current

    named = (*COSTS, *WHOLE)
    costs: dict[str, Any] = {
        name.replace("-", "_"): getattr(arguments, name.replace("-", "_")) for name, _ in named
    } | {"cluster_gives": arguments.cluster_gives}
    ratios = {kind: getattr(arguments, f"{kind}_ratio") for kind, _ in RATIOS}
    if arguments.rate_per_1000_node_days is not None:
        return sites.stated(
            gpus=arguments.gpus or GPUS,
            rate=arguments.rate_per_1000_node_days,
            gpus_per_node=8.0 if arguments.gpus_per_node is None else arguments.gpus_per_node,
            ratios={kind: part for kind, part in ratios.items() if part is not None},
            **costs,
        )
    for name, value in {**ratios, "gpus_per_node": arguments.gpus_per_node}.items():
        if value is not None:
            raise AnalysisError(
                f"{name} is of a stated rate: pass --rate-per-1000-node-days, or leave it out"
            )
    if read_current(arguments.store) is None:
        asked = {**costs, "cluster_gives": None, "gpus": arguments.gpus}
        if any(value is not None for value in asked.values()) or not arguments.cluster_gives:
            raise AnalysisError(
                f"{arguments.store} holds no store: pass one, or --rate-per-1000-node-days"
            )
        return None
    store, ask = options.asking(arguments, ledger=True)
    with contextlib.closing(store):
        terminal.synthetic(store)
        chosen = options.selection(arguments, store)
        return sites.of_store(ask, chosen, gpus=arguments.gpus, **costs)
