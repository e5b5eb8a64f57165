"""What does the log of an attempt say around the lines of its first cause?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.answers.columns import columns
from app.answers.content import Excerpt, LogLine, Missing, Part, Table
from app.ask import EVERYTHING
from app.words.cells import Column
from app.words.plain import one_line, printable, shortened
from data.queries import failures as failure_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from app.ask import Ask

READ = 20_000
"""Lines of a log that are read for an excerpt."""
LONGEST = 400
"""Characters of a line."""
COLUMNS = (
    Column("file", "File"),
    Column("line_no", "Line", "count"),
    Column("logged_at", "Logged", "second", "UTC", none="the line has no time"),
    *columns("node"),
    Column("rank", "Rank", "count", none="the line names none"),
    *columns("text"),
)
NO_LOG = Missing(
    "log",
    "No log of this attempt is in the store.",
    "Logs of jobs often name the first cause:",
    ("faultline ingest job-log LOGS_DIRECTORY",),
)


def lines(ask: Ask, cluster: str, attempt_key: str) -> pd.DataFrame:
    """The log of an attempt, as far as excerpts read it."""
    return ask(failure_queries.log_lines, cluster, attempt_key, limit=READ)


def table(ask: Ask, cluster: str, attempt_key: str, *, limit: int = EVERYTHING) -> Table:
    """Every line."""
    read = ask(failure_queries.log_lines, cluster, attempt_key, limit=limit)
    total = len(lines(ask, cluster, attempt_key))
    everything = Part("Log", table, (cluster, attempt_key), total=total)
    return Table("log", "Log", COLUMNS, read, NO_LOG.finding, everything=everything)


def named(evidence: Sequence[Mapping[str, Any]]) -> set[tuple[str, int]]:
    """File and number of the lines that evidence names.

    >>> named([{"kind": "job_log", "key": "slurm-7.out:12"}, {"kind": "health_event", "key": "e"}])
    {('slurm-7.out', 12)}
    """
    keys = [str(each.get("key")) for each in evidence if each.get("kind") == "job_log"]
    parts = [key.rpartition(":") for key in keys]
    return {(file, int(number)) for file, _, number in parts if number.isdecimal()}


def excerpts(
    log: pd.DataFrame,
    evidence: Sequence[Mapping[str, Any]],
    *,
    title: str,
    around: int,
    last: int,
    most: int | None = None,
) -> tuple[Excerpt, ...]:
    """Of each file the lines that evidence names with those around them, else its last ones.

    Parameters
    ----------
    title
        What stands before the name of the file.
    around
        Lines before and after each line that is named.
    last
        Lines of the end of a log in which none is named.
    most
        Lines of a file that are kept.
    """
    counting = named(evidence)
    whole = [
        LogLine(
            int(number),
            shortened(printable(str(text or "")), LONGEST),
            (str(file), int(number)) in counting,
        )
        for file, number, text in zip(log["file"], log["line_no"], log["text"], strict=True)
    ]
    kept = places([line.counts for line in whole], around=around, last=last)
    by_file: dict[str, list[LogLine]] = {}
    for place in kept:
        by_file.setdefault(str(log["file"].iloc[place]), []).append(whole[place])
    shown = []
    for file, quoted in by_file.items():
        cut = (
            f" (first {most} of {len(quoted):,} lines)" if len(quoted[:most]) < len(quoted) else ""
        )
        shown.append(Excerpt(f"{title}{one_line(file)}{cut}", tuple(quoted[:most])))
    return tuple(shown)


def places(marked: Sequence[bool], *, around: int, last: int) -> list[int]:
    """Places of the marked lines and of so many before and after each; without any, the last.

    >>> places([False, True, False, False, True], around=1, last=2)
    [0, 1, 2, 3, 4]
    >>> places([False, False, False], around=1, last=2)
    [1, 2]
    """
    if not any(marked):
        return list(range(max(0, len(marked) - last), len(marked)))
    near = {
        at
        for place, is_marked in enumerate(marked)
        if is_marked
        for at in range(place - around, place + around + 1)
    }
    return sorted(at for at in near if 0 <= at < len(marked))
