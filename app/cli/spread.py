"""Pieces of work of a command that know nothing of each other: on the cores here, or on Spark."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from app.cli import options
from app.show import terminal
from data.disk_full import disk_full
from data.errors import DataError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence

T = TypeVar("T")
Outcome = tuple[T | None, str | None]
"""A result, or why there is none."""
ENGINES = ("local", "spark")


@dataclass(frozen=True)
class Piece:
    """One piece of work."""

    given: tuple[Any, ...]
    """What its function is given; small, for it travels."""
    files: tuple[str, ...]
    """What it reads, as it was named: this stays where it lies."""
    name: str = ""
    """What a refusal begins with; nothing where there is one piece alone."""

    def refusal(self, reason: object) -> str:
        """Why there is no result, with the name."""
        text = str(reason)
        return text if text.startswith(self.name) else f"{self.name}: {text}"


@dataclass(frozen=True)
class Spread:
    """Where pieces of work are done."""

    engine: str = "local"
    master: str | None = None
    workers: int | None = None

    @classmethod
    def of(cls, arguments: argparse.Namespace, names: Sequence[str], none: str) -> Spread:
        """As the arguments say; `none` is what it means to name nothing.

        Raises
        ------
        DataError
            Where one belongs to another engine, or Spark cannot read what was named.
        """
        spread = cls(arguments.engine, arguments.master, arguments.workers)
        if not spread.on_spark and spread.master is not None:
            raise DataError("--master says nothing to this machine: add --engine spark")
        if spread.on_spark and spread.workers is not None:
            raise DataError("--workers counts processes of this machine: leave --engine spark out")
        if not names:
            spread.refuse_on_spark(f"{none}, which are read here")
        if "-" in names:
            spread.refuse_on_spark("- is standard input, which is read here")
        return spread

    @property
    def on_spark(self) -> bool:
        """Whether Spark does it."""
        return self.engine == "spark"

    def refuse_on_spark(self, why: str) -> None:
        """Refuses what is done on this machine alone."""
        if self.on_spark:
            raise DataError(f"{why}: leave --engine spark out")


def add_arguments(parser: argparse.ArgumentParser, pieces: str) -> None:
    """--workers, --engine and --master; `pieces` is what there are several of."""
    parser.add_argument(
        "--workers",
        type=options.whole,
        metavar="N",
        help=f"processes for several {pieces} (default one a core)",
    )
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        default=ENGINES[0],
        help=f"where {pieces} are analysed: on this machine (local, default), or each as a task of "
        "spark, which needs Java and pip install -e .[spark]",
    )
    parser.add_argument(
        "--master",
        metavar="URL",
        help="Spark's master, e.g. spark://host:7077 (default Spark in this process); files lie "
        "where all its workers reach them",
    )


def outcomes(
    function: Callable[..., T], pieces: Sequence[Piece], spread: Spread, counted: str
) -> Iterator[Outcome[T]]:
    """What a function of a module says of each piece, in their order, wherever it is done.

    A piece that is refused costs the others nothing; a full disk ends them all. `counted` is what
    progress counts.
    """
    if spread.on_spark:
        yield from _on_spark(function, pieces, spread, counted)
    else:
        yield from _on_cores(function, pieces, spread.workers, counted)


def _attempt(function: Callable[..., T], piece: Piece) -> Outcome[T]:
    """The result of a piece, or why there is none."""
    from analytics.errors import AnalysisError

    try:
        return function(*piece.given), None
    except (DataError, AnalysisError) as error:
        return None, piece.refusal(error)
    except OSError as error:
        if (full := disk_full(error)) is not None:
            raise full from None
        reason = error.strerror or error
        return None, piece.refusal(f"cannot be read ({reason}): check the path and access")


def _on_cores(
    function: Callable[..., T], pieces: Sequence[Piece], workers: int | None, counted: str
) -> Iterator[Outcome[T]]:
    """On several cores of this machine."""
    n_workers = min(workers or len(os.sched_getaffinity(0)), len(pieces))
    attempt = partial(_attempt, function)
    if n_workers == 1:
        yield from map(attempt, pieces)
        return
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    context = multiprocessing.get_context("spawn")  # libraries with threads do not survive a fork
    pool = ProcessPoolExecutor(n_workers, mp_context=context)
    # Workers inherit that they ignore Ctrl-C: one that dies of it may leave the others waiting.
    handled = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        results = pool.map(attempt, pieces)
    finally:
        signal.signal(signal.SIGINT, handled)
    n_done = 0
    try:
        for result in results:
            n_done += 1
            terminal.progress(f"{n_done} of {len(pieces)} {counted}")
            yield result
    except BrokenProcessPool:  # out of memory, most often: one at a time needs less
        terminal.notice(f"a process ended before its time: the other {counted} follow one by one")
        yield from map(attempt, pieces[n_done:])
    except KeyboardInterrupt:
        for worker in multiprocessing.active_children():
            worker.kill()
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    terminal.progress_done()


def _on_spark(
    function: Callable[..., T], pieces: Sequence[Piece], spread: Spread, counted: str
) -> Iterator[Outcome[T]]:
    """Each piece a task of Spark; what a worker says on its stderr is said here."""
    from data.reduce.spark_tasks import Task, Unreached, mapped

    tasks = [Task(piece, piece.files) for piece in pieces]
    terminal.progress(f"{len(pieces)} {counted} on Spark")
    heard = mapped(partial(_heard, function), tasks, spread.master, terminal.notice)
    terminal.progress_done()
    for piece, one in zip(pieces, heard, strict=True):
        if isinstance(one, Unreached):
            yield _unreached(function, piece, one)
            continue
        outcome, said = one
        for line in said.splitlines():
            terminal.notice(line)
        if isinstance(outcome, DataError):
            raise outcome
        yield outcome


def _heard(function: Callable[..., T], piece: Piece) -> tuple[Outcome[T] | DataError, str]:
    """The outcome of a piece on a worker, or what ends all of them, and what was said meanwhile."""
    import contextlib
    import io

    with contextlib.redirect_stderr(io.StringIO()) as said:
        try:
            outcome: Outcome[T] | DataError = _attempt(function, piece)
        except DataError as error:
            outcome = error
    return outcome, said.getvalue()


def _unreached(function: Callable[..., T], piece: Piece, of: Any) -> Outcome[T]:
    """Why a worker cannot read a file; of one that is not here either, as on this machine."""
    if os.access(of.path, os.R_OK):
        told = f"{of.path}: {of.host}, a worker of Spark, cannot read it: put it where all can"
        return None, told
    return _attempt(function, piece)
