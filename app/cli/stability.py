"""faultline stability: spikes, divergence, NaN and shifts in what a training run logged."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options

if TYPE_CHECKING:
    import argparse

EXAMPLE = (
    'awk \'BEGIN {print "step,loss"; for (s = 0; s < 400; s++) '
    'print s "," 2 + exp(-s / 90) + 0.02 * rand() + (s == 300) * 3}\' | faultline stability -'
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The file, or the run of the store."""
    parser.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="metrics of training: CSV, JSON lines, TensorBoard, Megatron, MLPerf ...; without it "
        "--run of the store",
    )
    parser.add_argument(
        "--run", dest="run_id", metavar="RUN", help="run of the store, or of several in FILE"
    )
    parser.add_argument(
        "--series",
        action="append",
        default=[],
        metavar="NAME",
        help="further series to look for spikes in; again for each",
    )
    parser.add_argument("--timezone", metavar="ZONE", help="IANA zone of times of FILE without one")
    parser.add_argument("--cluster", metavar="NAME", help="of the run of the store")
    options.add(parser, "store", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints what the run shows."""
    from app.answers.training import logged, runs, stability
    from app.show import terminal
    from data.errors import DataError

    further = tuple(arguments.series)
    if arguments.file:
        log = logged.of_file(
            arguments.file, terminal.progress, arguments.run_id, timezone=arguments.timezone
        )
        terminal.progress_done()
        found = stability.judged(log, logged.known_series(log, further))
        terminal.write(stability.answer(found, stored=False), arguments.format)
        return 0
    if not arguments.run_id:
        raise DataError("stability is asked of one run: name a FILE, or --run RUN of the store")
    store, ask = options.asking(arguments)
    with contextlib.closing(store):
        cluster = ask(runs.cluster_of, arguments.run_id, arguments.cluster)
        found = ask(stability.measured, cluster, arguments.run_id, further)
        terminal.write(stability.answer(found), arguments.format, **terminal.synthetic(store))
    return 0
