"""The tables of an incident's report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.figures import numbers
from app.reports.content import Table, one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.questions import Incident
    from data.state import Annotation

LONGEST = 300
"""Characters of a record that are printed."""
MOST_ROWS = 500
"""Rows of a table that are printed."""


def of(found: Incident, titles: Mapping[str, str]) -> tuple[Table, ...]:
    """Evidence in order of time, the failed attempts, those preempted, other causes considered."""
    tables = [_evidence(found.members), _failed(found.verdicts, found.members, titles)]
    aside = found.members[found.members["kind"] == "preemption"]
    if len(aside):
        tables.append(_preempted(aside))
    return (*tables, _alternatives(found.verdicts, titles))


def _evidence(members: pd.DataFrame) -> Table:
    """All members but the preempted attempts, which have a table of their own."""
    rows = members[members["kind"] != "preemption"]
    columns = ("Time (UTC)", "Source", "Node", "Severity", "Role", "Record")
    return Table(
        _titled("In order of time", rows),
        columns,
        tuple(
            (
                time(row["start_at"]),
                text(row["source"]).replace("_", " "),
                text(row["node"]),
                text(row["severity"]),
                text(row["role"]),
                text(row["text"]),
            )
            for row in rows.head(MOST_ROWS).to_dict("records")
        ),
        "No record.",
        len(columns),
    )


def _failed(verdicts: pd.DataFrame, members: pd.DataFrame, titles: Mapping[str, str]) -> Table:
    """Failed attempts with their verdicts."""
    gpus = dict(zip(members["key"], members["n_gpus"], strict=True))
    columns = ("Job", "Attempt", "State", "Failed at (UTC)", "Node", "Cause", "By", "Confidence",
               "GPUs")  # fmt: skip
    return Table(
        _titled("Failed attempts", verdicts),
        columns,
        tuple(
            (
                text(row["job_id"]),
                text(row["attempt"]),
                text(row["state"]),
                time(row["failed_at"]),
                text(row["node"]),
                titles.get(row["cause"], text(row["cause"])),
                text(row["method"]).replace("_", " "),
                numbers.percent(row["confidence"]),
                _count(gpus.get(row["attempt_key"])),
            )
            for row in verdicts.head(MOST_ROWS).to_dict("records")
        ),
        "No attempt failed.",
        len(columns) - 2,
    )


def _preempted(aside: pd.DataFrame) -> Table:
    """Attempts that a requeue preempted."""
    columns = ("Job", "Preempted at (UTC)", "Record", "GPUs")
    return Table(
        _titled("Preempted by the requeue", aside),
        columns,
        tuple(
            (
                text(row["job_id"]),
                time(row["start_at"]),
                text(row["text"]),
                _count(row["n_gpus"]),
            )
            for row in aside.head(MOST_ROWS).to_dict("records")
        ),
        "None.",
        len(columns) - 1,
    )


def _alternatives(verdicts: pd.DataFrame, titles: Mapping[str, str]) -> Table:
    """Causes that were considered and not chosen."""
    return Table(
        "Other causes considered",
        ("Job", "Cause", "Why not", "Confidence"),
        tuple(
            (
                text(row["job_id"]),
                titles.get(each["cause"], text(each["cause"])),
                text(each.get("reason")) or "less evidence",
                numbers.percent(each.get("confidence")),
            )
            for row in verdicts.head(MOST_ROWS).to_dict("records")
            for each in row["alternatives"]
        ),
        "No other cause was considered.",
        3,
    )


def said(history: Sequence[Annotation]) -> Table:
    """What people said of the incident, the newest first."""
    columns = ("When (UTC)", "Who", "What", "Value", "Holds")
    return Table(
        "What people said",
        columns,
        tuple(
            (
                each.made_at[:16].replace("T", " "),
                text(each.author),
                each.field,
                text(each.value),
                "until undone" if each.undone_at is None else f"undone by {text(each.undone_by)}",
            )
            for each in history
        ),
        "Nobody has said anything of it.",
        len(columns),
    )


def text(value: object) -> str:
    """What a record says, on one line; nothing where it is null."""
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return ""
    found = one_line(str(value))
    return found if len(found) <= LONGEST else f"{found[: LONGEST - 1]}…"


def time(at: pd.Timestamp) -> str:
    """A time to the second."""
    return numbers.UNKNOWN if pd.isna(at) else f"{at:%Y-%m-%d %H:%M:%S}"


def _count(n: object) -> str:
    return numbers.UNKNOWN if pd.isna(n) else f"{int(n):,}"


def _titled(title: str, rows: pd.DataFrame) -> str:
    """A title that says how many rows there are where not all are printed."""
    return title if len(rows) <= MOST_ROWS else f"{title} (first {MOST_ROWS:,} of {len(rows):,})"
