"""faultline survival: how long parts live by a table of ages, or nodes in jobs."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal
from data.errors import DataError

if TYPE_CHECKING:
    import argparse

    from app.answers.content import Answer

EXAMPLE = (
    "for i in $(seq 60); do echo $((i * i % 83 + 1)),$((i % 3 > 0)),$((i % 2)); done | "
    "sed 1idays,died,batch | faultline survival - --by batch"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The table, and which of its columns say what."""
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        help="CSV or Parquet, a row a part: how old it grew and whether it died; - is standard "
        "input; without it the nodes in jobs of the store",
    )
    parser.add_argument(
        "--age",
        metavar="COLUMN",
        help="age at death, or at which it was last seen alive (default age, duration, hours, "
        "days, years or time, whichever is there first)",
    )
    parser.add_argument(
        "--died",
        metavar="COLUMN",
        help="whether it died: 1 or 0, true or false, yes or no (default died, dead, failed, "
        "event_observed, event or observed)",
    )
    parser.add_argument(
        "--since-age",
        metavar="COLUMN",
        help="age from which it was watched, where records begin later than parts did",
    )
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        help="compare groups, e.g. batch; of jobs partition, account or size",
    )
    parser.add_argument(
        "--cause",
        metavar="COLUMN[,COLUMN]",
        help="what parts died of: a column that names it, or several, a cause each, of 1 and 0",
    )
    parser.add_argument(
        "--hazard",
        metavar="FACT",
        help="of the nodes of the store: what makes them fail sooner, a fact (driver, firmware, "
        "batch, gpu_model, rack or another; none), age or incidents before",
    )
    parser.add_argument(
        "--unit", metavar="WORD", help="of the ages (default what the column's name says)"
    )
    options.add(parser, "store", "selection", "definition", "conf_level", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints how long parts live, or nodes run in jobs."""
    from app.answers.reliability import lifetimes, lives
    from data.ingest.readers.tables.lives import LifeColumns

    _refuse(arguments, STORE if arguments.file is not None else TABLE)
    if arguments.file is None:
        answer = _of_store(arguments)
    else:
        columns = LifeColumns(
            arguments.age,
            arguments.died,
            arguments.since_age,
            arguments.by,
            tuple(arguments.cause.split(",")) if arguments.cause else (),
        )
        found = lives.of_file(
            arguments.file, columns, unit=arguments.unit, conf_level=arguments.conf_level
        )
        answer = lifetimes.answer(found)
    terminal.write(answer, arguments.format)
    return 0


TABLE = ("age", "died", "since_age", "cause", "unit")
"""Options of a table of lives."""
STORE = ("cluster", "from_at", "to_at", "partition", "account", "min_gpus", "hazard")
"""Options of the jobs of a store."""


def _refuse(arguments: argparse.Namespace, others: tuple[str, ...]) -> None:
    """Refuses options of the other kind: they would change nothing."""
    given = [name for name in others if getattr(arguments, name) is not None]
    if given:
        option = given[0].removesuffix("_at").replace("_", "-")
        of, remedy = (
            ("a table of lives", "name its FILE")
            if others is TABLE
            else ("the jobs of a store", "leave out FILE, or the filter")
        )
        raise DataError(f"--{option} is of {of}: {remedy}")


def _of_store(arguments: argparse.Namespace) -> Answer:
    """How long nodes run in jobs of the store."""
    from app.answers.reliability import hazards, lifetimes, lives

    by = arguments.by or "none"
    if arguments.hazard is not None and arguments.by is not None:
        raise DataError("--by is of lives, --hazard of what shortens them: leave out one")
    if by not in lives.BY:
        raise DataError(f"--by of jobs must be one of {', '.join(lives.BY)}, got {by!r}")
    store, ask = options.asking(arguments)
    with contextlib.closing(store):
        selection = options.selection(arguments, store)
        if arguments.hazard is not None:
            return hazards.answer(ask, selection, arguments.hazard, conf_level=arguments.conf_level)
        return lifetimes.in_jobs(ask, selection, by, conf_level=arguments.conf_level)
