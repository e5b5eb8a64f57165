"""faultline survival: how long parts live, from a table of ages, with groups beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.cli import options
from app.show import terminal

if TYPE_CHECKING:
    import argparse

EXAMPLE = (
    "for i in $(seq 60); do echo $((i * i % 83 + 1)),$((i % 3 > 0)),$((i % 2)); done | "
    "sed 1idays,died,batch | faultline survival - --by batch"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The table, and which of its columns say what."""
    parser.add_argument(
        "file",
        metavar="FILE",
        help="CSV or Parquet, a row a part: how old it grew and whether it died; - is standard "
        "input",
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
    parser.add_argument("--by", metavar="COLUMN", help="compare groups, e.g. batch")
    parser.add_argument(
        "--unit", metavar="WORD", help="of the ages (default what the column's name says)"
    )
    options.add(parser, "conf_level", "format")


def run(arguments: argparse.Namespace) -> int:
    """Prints how long parts live."""
    from app.answers.reliability import lifetimes

    found = lifetimes.examined(
        arguments.file,
        age=arguments.age,
        died=arguments.died,
        since=arguments.since_age,
        by=arguments.by,
        unit=arguments.unit,
        conf_level=arguments.conf_level,
    )
    terminal.write(lifetimes.answer(found), arguments.format)
    return 0
