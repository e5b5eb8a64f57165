"""The tables of an incident's report."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import pandas as pd

from app.reports.cells import Column
from app.reports.content import Table, one_line, shortened

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
    return Table(
        "evidence",
        _titled("In order of time", rows),
        (
            Column("at", "Time (UTC)", "second"),
            Column("source", "Source"),
            Column("node", "Node"),
            Column("severity", "Severity"),
            Column("role", "Role"),
            Column("record", "Record"),
        ),
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
    )


def _failed(verdicts: pd.DataFrame, members: pd.DataFrame, titles: Mapping[str, str]) -> Table:
    """Failed attempts with their verdicts."""
    gpus = dict(zip(members["key"], members["n_gpus"], strict=True))
    return Table(
        "failed_attempts",
        _titled("Failed attempts", verdicts),
        (
            Column("job_id", "Job"),
            Column("attempt", "Attempt"),
            Column("state", "State"),
            Column("failed_at", "Failed at (UTC)", "second"),
            Column("node", "Node"),
            Column("cause", "Cause"),
            Column("method", "By"),
            Column("confidence", "Confidence", "ratio"),
            Column("gpus", "GPUs", "count"),
        ),
        tuple(
            (
                text(row["job_id"]),
                text(row["attempt"]),
                text(row["state"]),
                time(row["failed_at"]),
                text(row["node"]),
                titles.get(row["cause"], text(row["cause"])),
                text(row["method"]).replace("_", " "),
                known(row["confidence"]),
                known(gpus.get(row["attempt_key"])),
            )
            for row in verdicts.head(MOST_ROWS).to_dict("records")
        ),
        "No attempt failed.",
    )


def _preempted(aside: pd.DataFrame) -> Table:
    """Attempts that a requeue preempted."""
    return Table(
        "preempted",
        _titled("Preempted by the requeue", aside),
        (
            Column("job_id", "Job"),
            Column("preempted_at", "Preempted at (UTC)", "second"),
            Column("record", "Record"),
            Column("gpus", "GPUs", "count"),
        ),
        tuple(
            (
                text(row["job_id"]),
                time(row["start_at"]),
                text(row["text"]),
                known(row["n_gpus"]),
            )
            for row in aside.head(MOST_ROWS).to_dict("records")
        ),
        "None.",
    )


def _alternatives(verdicts: pd.DataFrame, titles: Mapping[str, str]) -> Table:
    """Causes that were considered and not chosen."""
    return Table(
        "other_causes",
        "Other causes considered",
        (
            Column("job_id", "Job"),
            Column("cause", "Cause"),
            Column("why_not", "Why not"),
            Column("confidence", "Confidence", "ratio"),
        ),
        tuple(
            (
                text(row["job_id"]),
                titles.get(each["cause"], text(each["cause"])),
                text(each.get("reason")) or "less evidence",
                each.get("confidence"),
            )
            for row in verdicts.head(MOST_ROWS).to_dict("records")
            for each in row["alternatives"]
        ),
        "No other cause was considered.",
    )


def said(history: Sequence[Annotation]) -> Table:
    """What people said of the incident, the newest first."""
    return Table(
        "said",
        "What people said",
        (
            Column("made_at", "When (UTC)", "time"),
            Column("author", "Who"),
            Column("field", "What"),
            Column("value", "Value"),
            Column("holds", "Holds"),
        ),
        tuple(
            (
                datetime.fromisoformat(each.made_at),
                text(each.author),
                each.field,
                text(each.value),
                "until undone" if each.undone_at is None else f"undone by {text(each.undone_by)}",
            )
            for each in history
        ),
        "Nobody has said anything of it.",
    )


def text(value: object) -> str:
    """What a record says, on one line; nothing where it is null."""
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return ""
    return shortened(one_line(str(value)), LONGEST)


def time(at: pd.Timestamp) -> pd.Timestamp | None:
    """A time; None where it is not known."""
    return None if pd.isna(at) else at


def known(value: object) -> float | None:
    """A number; None where it is not known."""
    return None if pd.isna(value) else float(value)


def _titled(title: str, rows: pd.DataFrame) -> str:
    """A title that says how many rows there are where not all are printed."""
    return title if len(rows) <= MOST_ROWS else f"{title} (first {MOST_ROWS:,} of {len(rows):,})"
