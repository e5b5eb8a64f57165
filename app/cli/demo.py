"""faultline demo: build the synthetic demo cluster's store, or take it out again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from app.show.files import write_file
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline demo --jobs 20000 --store ./demo-store"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Size, seed and where the truth goes."""
    options.add_store(parser, default="./demo-store")
    parser.add_argument("--jobs", type=int, metavar="N", help="attempts (default 200,000)")
    parser.add_argument("--nodes", type=int, metavar="N", help="nodes of 8 GPUs (default 256)")
    parser.add_argument(
        "--days",
        type=float,
        metavar="N",
        help="length (default 90; with --jobs alone what keeps utilisation near 83 %%)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default 0")
    parser.add_argument(
        "--truth", type=Path, metavar="FILE", help="write planted rates, lemons and causes as JSON"
    )
    parser.add_argument(
        "--remove", action="store_true", help="take the demo out of the store again"
    )
    options.add(parser, "format")


def _refuse_ignored(arguments: argparse.Namespace) -> None:
    """Refuses what says how to build a demo beside what removes it."""
    built_by = {
        "--jobs": arguments.jobs,
        "--nodes": arguments.nodes,
        "--days": arguments.days,
        "--seed": arguments.seed or None,
        "--truth": arguments.truth,
    }
    for option, given in built_by.items():
        if given is not None:
            raise DataError(f"{option} says how a demo is built: leave it out beside --remove")


def run(arguments: argparse.Namespace) -> int:
    """Builds it and prints jobs, nodes and seconds; or removes it."""
    from app.actions import build_demo, remove_demo, tell_alerts
    from data.synthetic import DemoSpec

    if arguments.remove:
        _refuse_ignored(arguments)
        remove_demo(arguments.store)
        terminal.print_record({"store": str(arguments.store), "removed": True}, arguments.format)
        return 0

    truth = arguments.truth
    if truth is not None and (truth.is_dir() or not truth.parent.is_dir()):
        raise DataError(f"--truth {truth}: is no file in a folder that exists: name one")
    spec = DemoSpec.of(arguments.jobs, arguments.nodes, arguments.days, arguments.seed)
    built = build_demo(arguments.store, spec, terminal.progress)
    terminal.progress_done()
    for text in tell_alerts(arguments.store):
        terminal.notice(f"faultline demo: {text}")
    if truth is not None:
        write_file(truth, json.dumps(built.truth.as_dict()).encode())
    result = {
        "jobs": built.jobs,
        "nodes": built.nodes,
        "days": built.days,
        "seconds": round(built.seconds, 3),
        "store": str(arguments.store),
        "synthetic": True,
    }
    terminal.print_record(result, arguments.format)
    return 0
