"""Until when was each source collected, and what keeps it from being collected further?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.answers.content import Missing, Table
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_fleet
from data.queries import collected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    import pandas as pd

    from app.ask import Ask
    from data.filters import Selection

STALE_HOURS = 24.0
"""Age from which it is told that nothing new came."""
COLUMNS = (
    Column("source", "Source"),
    Column("cluster", "Cluster"),
    Column("collected_until", "Collected until", "time", none="nothing was had of it"),
    Column("age_hours", "Age", "hours", "h", help=of_fleet.AGE.definition),
    Column("asked_at", "Last asked", "time"),
    Column("n_answers", "Answers", "count", help=of_fleet.ANSWERS.definition),
    Column("n_quiet", "Without a record", "count", help=of_fleet.QUIET_ANSWERS.definition),
    Column("error", "Last error", none="none", help=of_fleet.LAST_ERROR.definition),
)
NOTHING_COLLECTED = Missing(
    "collected",
    "No source is collected by itself.",
    "On a host of the cluster, once an hour by cron or systemd (README.md):",
    ("faultline collect --wait 600",),
)


def block(ask: Ask, selection: Selection, now: datetime) -> Table | Missing:
    """Until when each source was collected."""
    rows = ask(collected.until, selection)
    return NOTHING_COLLECTED if rows.empty else table(rows, now)


def table(rows: pd.DataFrame, now: datetime) -> Table:
    """A row a source and cluster, with the age of what it brought last."""
    keys = [column.key for column in COLUMNS]
    return Table("collected", "Collected until", COLUMNS, _aged(rows, now)[keys])


def notes(rows: pd.DataFrame, now: datetime) -> Iterator[str]:
    """Sources of which nothing new comes, and why."""
    for row in _aged(rows, now).to_dict("records"):
        cluster = row["cluster"] if isinstance(row["cluster"], str) else "cluster unknown"
        name = f"{row['source']} ({cluster})"
        ago = numbers.duration(row["age_hours"])
        until = f"collected until {ago} ago" if row["age_hours"] >= 0 else "never collected"
        if isinstance(row["error"], str):
            yield f"{name}: {until}; the last attempt failed: {row['error']}"
        elif row["age_hours"] >= STALE_HOURS:
            yield f"{name}: {until}: does `faultline collect` still run?"


def record(rows: pd.DataFrame) -> dict[str, Any]:
    """Keys of the JSON."""
    until = rows.groupby("source")["collected_until"].max()
    return {"collected_until": until.to_dict(), "collected": rows}


def _aged(rows: pd.DataFrame, now: datetime) -> pd.DataFrame:
    """The rows with the hours from the end of what was collected to now."""
    age = now - rows["collected_until"]
    return rows.assign(age_hours=age.dt.total_seconds() / 3600.0)
