"""What the logs of failed attempts say around the lines that count."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app import questions
from app.reports.content import Excerpt, LogLine, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from app.reports.redaction import Names
    from data.store import Store

ATTEMPTS = 3
"""Failed attempts whose logs are quoted, the first ones."""
READ = 20_000
"""Lines of a log that are read."""
AROUND = 4
"""Lines quoted before and after a line that counts."""
LAST = 12
"""Lines quoted of the end of a log in which none does."""
MOST = 60
"""Lines quoted of a log."""
LONGEST = 400
"""Characters of a line."""


def excerpts(store: Store, verdicts: pd.DataFrame, names: Names) -> tuple[Excerpt, ...]:
    """Excerpts of the logs of the first failed attempts that have one."""
    found: list[Excerpt] = []
    for verdict in verdicts.head(ATTEMPTS).to_dict("records"):
        log = names.frame(
            questions.log_lines(store, verdict["cluster"], verdict["attempt_key"], limit=READ)
        )
        for file, lines in log.groupby("file", sort=True):
            quoted = _quoted(lines, _named(verdict["evidence"], str(file)))
            found.append(Excerpt(f"Log of job {verdict['job_id']}: {one_line(str(file))}", quoted))
    return tuple(found)


def _quoted(lines: pd.DataFrame, named: set[int]) -> tuple[LogLine, ...]:
    """Lines around those named; the last ones where none is."""
    numbers, texts = lines["line_no"].astype(int).tolist(), lines["text"].tolist()
    marked = [place for place, number in enumerate(numbers) if number in named]
    if not marked:
        kept = range(max(0, len(numbers) - LAST), len(numbers))
    else:
        near = {at for place in marked for at in range(place - AROUND, place + AROUND + 1)}
        kept = sorted(at for at in near if 0 <= at < len(numbers))[:MOST]
    return tuple(
        LogLine(
            numbers[place], printable(str(texts[place] or ""))[:LONGEST], numbers[place] in named
        )
        for place in kept
    )


def _named(evidence: Sequence[Mapping[str, Any]], file: str) -> set[int]:
    """Numbers of the lines of a file that evidence names, as `file:number`."""
    keys = [str(each.get("key")) for each in evidence if each.get("kind") == "job_log"]
    parts = [key.rpartition(":") for key in keys]
    return {int(number) for name, _, number in parts if name == file and number.isdecimal()}
