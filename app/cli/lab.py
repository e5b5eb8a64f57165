"""faultline lab: flips bits in a small transformer, and says which indicator sees which flip."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = "faultline lab sdc --injections 8 --bits 30,22 --steps 84 --false-alarms 0.25"
TOP_BITS = "31-16"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The experiment, and how much of it."""
    parser.add_argument(
        "experiment", choices=("sdc",), help="sdc: silent data corruption by single flipped bits"
    )
    parser.add_argument(
        "--injections",
        type=options.whole,
        default=384,
        metavar="N",
        help="spread evenly over places and bits, and a quarter more of the severest bit "
        "(default 384)",
    )
    parser.add_argument(
        "--steps", type=options.whole, default=160, metavar="N", help="of a run (default 160)"
    )
    parser.add_argument(
        "--places",
        type=_listed,
        metavar="LIST",
        help="of weights, activations, gradients, optimizer (default all)",
    )
    parser.add_argument(
        "--bits",
        type=bits,
        metavar="LIST",
        help=f"of a float32, as 30,22 or {TOP_BITS}, which are those of a bfloat16 (default 31-0)",
    )
    parser.add_argument(
        "--false-alarms",
        type=float,
        default=0.02,
        metavar="P",
        help="share of clean runs in which an indicator may alarm: the fewer, the more clean runs "
        "are trained (default 0.02)",
    )
    options.add_estimate(parser, seeded="experiment")
    options.add(parser, "format")


def _listed(text: str) -> tuple[str, ...]:
    """Words between commas."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def bits(text: str) -> tuple[int, ...]:
    """Bits and ranges of bits, the highest first.

    >>> bits("31,3-1")
    (31, 3, 2, 1)
    """
    found: set[int] = set()
    for word in _listed(text):
        ends = [options.whole(end) for end in word.split("-", 1)]
        if max(ends) > 31:
            raise _no_bit(word)
        found |= {*range(min(ends), max(ends) + 1)}
    if not found:
        raise _no_bit(text)
    return tuple(sorted(found, reverse=True))


def _no_bit(word: str) -> Exception:
    """The refusal of what is no bit."""
    from argparse import ArgumentTypeError

    return ArgumentTypeError(f"{word!r} is no bit of a float32: write 0 to 31, as 30,22 or 31-16")


def run(arguments: argparse.Namespace) -> int:
    """Runs the experiment and prints what it measured."""
    from analytics import validate
    from analytics.training.lab.experiment import Lab, experiment
    from app.answers.training import lab

    validate.conf_level(arguments.conf_level)
    given = {name: found for name in ("places", "bits") if (found := getattr(arguments, name))}
    asked = Lab(
        n_injections=arguments.injections,
        steps=arguments.steps,
        seed=arguments.seed,
        false_alarms=arguments.false_alarms,
        **given,
    )
    begun = time.process_time()
    found = experiment(asked, _tell)
    terminal.progress_done()
    taken = round(time.process_time() - begun, 1)
    answer = lab.answer(found, conf_level=arguments.conf_level, processor_seconds=taken)
    terminal.write(answer, arguments.format)
    return 0


def _tell(done: int, of: int) -> None:
    """How far the experiment is."""
    terminal.progress(f"trained {done:,} of about {of:,} runs")
