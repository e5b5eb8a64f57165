"""faultline hangs: which rank holds a hung job up, by flight-recorder dumps of its ranks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

EXAMPLE = (
    "mkdir -p dumps && for rank in 0:all_reduce 1:all_reduce 2:read_batch; do "
    "printf 'Thread 0x1 (most recent call first):\\n  File \"train.py\", line 9 in %s\\n' "
    "${rank#*:} > dumps/_dump_${rank%:*}; done && faultline hangs dumps"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The dumps, or the job whose dumps are stored."""
    parser.add_argument(
        "dumps",
        nargs="*",
        metavar="DIR_OR_FILE",
        help="a folder of dumps, or each of them: pickles or JSON of the flight recorder named by "
        "rank (_dump_12), py-spy dumps, tracebacks of faulthandler",
    )
    parser.add_argument("--job", metavar="JOB_ID", help="the stored dumps of this job")
    parser.add_argument("--cluster", metavar="NAME", help="cluster of --job, where several have it")
    options.add(parser, "partial", "store", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints who holds the job up."""
    from app.answers.training import hangs

    if bool(arguments.dumps) == (arguments.job is not None):
        given = "both" if arguments.dumps else "neither"
        raise DataError(f"dumps or --job must be given, got {given}: name a folder, or a job")
    if arguments.dumps:
        judged = hangs.of_files(arguments.dumps, partial=arguments.partial)
        for text in judged.notices:
            terminal.notice(text)
    else:
        store, ask = options.asking(arguments)
        with contextlib.closing(store):
            judged = ask(hangs.of_job, arguments.job, arguments.cluster)
    terminal.write(hangs.answer(judged), arguments.format)
    return 0
