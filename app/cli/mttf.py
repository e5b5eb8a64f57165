"""faultline mttf: failure rate and mean time to failure, measured and projected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from analytics.errors import AnalysisError
from analytics.frames import GPUS_PER_NODE, RATE_GROUPS
from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

    from app.answers.content import Answer

EXAMPLE = "faultline mttf --store ./demo-store --from 2025-12-01 --to 2026-01-01"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Filters of the store, or a given rate."""
    options.add(parser, "store")
    options.add(parser, "selection", "definition")
    options.add_estimate(parser)
    parser.add_argument("--by", choices=RATE_GROUPS, help="the rate of each of these, too")
    parser.add_argument(
        "--rate-per-1000-node-days",
        type=float,
        metavar="R",
        help="project this rate; reads no store",
    )
    parser.add_argument(
        "--gpus",
        type=int,
        nargs="+",
        metavar="N",
        help="job sizes to project; of the first the answer speaks",
    )
    parser.add_argument(
        "--gpus-per-node",
        type=float,
        metavar="N",
        help=f"of a given rate's projection (default {GPUS_PER_NODE:g})",
    )
    options.add(parser, "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints the measured rate, or the projection of a given one."""
    if arguments.rate_per_1000_node_days is not None:
        terminal.write(_projection(arguments), arguments.format)
        return 0
    from app.answers.reliability import mttf

    if arguments.gpus_per_node is not None:
        raise AnalysisError(
            "--gpus-per-node goes with --rate-per-1000-node-days: a store knows its own, "
            "site.toml can state it"
        )
    store, ask = options.asking(arguments)
    selection = options.selection(arguments, store)
    chance = {"conf_level": arguments.conf_level, "seed": arguments.seed}
    also: dict[str, Any] = terminal.synthetic(store)
    sizes = {} if arguments.gpus is None else {"gpus": arguments.gpus}
    job = arguments.gpus[0] if arguments.gpus else None
    answer = mttf.answer(ask, selection, job_gpus=job, **chance, **sizes)
    if arguments.by is not None:
        from app.answers.reliability import rate_by_group  # only here: groups are frames of pandas

        groups = rate_by_group.answer(ask, selection, arguments.by, **chance)
        if terminal.chosen(arguments.format) == "csv":  # one kind of rows
            answer = replace(answer, sheet=groups.sheet)
        answer = replace(answer, blocks=(*answer.blocks, *groups.blocks))
        also = {"by": groups.record} | also
    terminal.write(answer, arguments.format, **also)
    return 0


def _projection(arguments: argparse.Namespace) -> Answer:
    """MTTF of jobs of given sizes at a given rate."""
    from app.answers.reliability import projection

    if arguments.by is not None:
        raise AnalysisError("--by tells records of a store apart: leave the given rate out")
    if not arguments.gpus:
        raise AnalysisError("--gpus must be given with --rate-per-1000-node-days: name job sizes")
    given = arguments.gpus_per_node
    return projection.answer(
        arguments.rate_per_1000_node_days,
        arguments.gpus,
        gpus_per_node=GPUS_PER_NODE if given is None else given,
    )
