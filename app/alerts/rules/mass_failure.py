"""Many failures of one user, node or cause within minutes."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any

from analytics.failures.mass_failures import WINDOW_MINUTES
from app.alerts import figures
from app.alerts.past import reached
from app.alerts.rule import Episode, Found, Rule
from app.answers.failures.mass import found_mass_failures
from app.answers.failures.taxonomy import cause_titles
from app.answers.fleet.actions.action import target
from app.words import moments, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.alerts.rule import Watch
    from app.ask import Ask

STANDS = timedelta(hours=24)
"""How long after its last failure it is told."""
READ_BACK = timedelta(days=2)
"""Before the day in which the watch begins: what is still told began there, so that its first
failure, whose day is part of its name, is read as long as it is told."""
AROUND = timedelta(minutes=WINDOW_MINUTES)


def find(ask: Ask, watch: Watch) -> Found:
    """Mass failures that no incident holds and nobody explained, by the definition of the list of
    what to do."""
    known, end = figures.ends_at(ask, watch)
    if known is None or end is None or known.basis == "node_failures":
        return Found(blind="Mass failures cannot be judged: no job of this cluster was recorded")
    midnight = watch.from_at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    selection = replace(watch.selection, from_at=midnight - READ_BACK, to_at=watch.now)
    titles = ask(cause_titles)
    rows = ask(found_mass_failures, selection).to_dict("records")
    return Found(reached((_episode(watch, titles, row) for row in rows), watch))


def _episode(watch: Watch, titles: Mapping[str, str], row: Mapping[Any, Any]) -> Episode:
    cause = titles.get(row["cause"], row["cause"])
    who = cause if row["by"] == "cause" else f"{row['by']} {row[row['by']]}"
    first_at, last_at = (row[at].to_pydatetime() for at in ("first_at", "last_at"))
    minutes = max(1, math.ceil((last_at - first_at) / timedelta(minutes=1)))
    ended = last_at + STANDS
    return Episode(
        target("mass_failure", row["key"]),
        since_at=first_at,
        raised_at=last_at,
        ended_at=ended if ended <= watch.now else None,
        sentence=f"{row['failures']:,} failures of {who} came within "
        f"{numbers.counted(minutes, 'minute')} at {moments.minute(first_at)} UTC, "
        f"{row['of_cause']:,} by {cause}, and are in no incident",
        page="failures",
        named=figures.place(watch, first_at - AROUND, last_at + AROUND),
        owner=row["user"] if row["by"] == "user" else None,
    )


RULE = Rule(
    "mass_failure",
    "Mass failure",
    "At least 20 jobs of one user, on one node or by one cause failed within ten minutes, far more "
    "than are usual.",
    "Stop what submits them, or look at what they share: a node, a file system, an image.",
    "warning",
    find,
)
