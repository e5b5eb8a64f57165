"""The sentence and tables of a node's report."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from app.components import verdict
from app.figures import numbers
from app.reports.cells import Column
from app.reports.content import Table
from app.reports.incident_tables import known, text, time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from app.questions import Node

MOST_ROWS = 100
"""Rows of a table that are printed."""
READ = 5000
"""Records of one kind that are read, the latest."""


def answer(node: Node) -> str:
    """What happened on it?"""
    return verdict.node(
        node,
        {
            "outages": len(node.outages),
            "critical": len(node.urgent),
            "failed_here": len(node.failed_here),
        },
    )


def limits(node: Node) -> tuple[str, ...]:
    """That older records may exist."""
    cut = [name for name, rows in (("records", node.history), ("attempts", node.attempts))
           if len(rows) >= READ]  # fmt: skip
    return tuple(
        f"Only the latest {READ:,} {name} are counted: choose a shorter period." for name in cut
    )


def incidents(rows: pd.DataFrame) -> Table:
    """Incidents in which the node is named, the latest first."""
    return Table(
        "incidents",
        "Incidents that name this node",
        (
            Column("incident_id", "Incident"),
            Column("start_at", "Began (UTC)", "time"),
            Column("summary", "What happened"),
            Column("lost_gpu_hours", "GPU-hours lost", "number"),
            Column("status", "Status"),
        ),
        tuple(
            (row["incident_id"], time(row["start_at"]), text(row["summary"]),
             known(row["lost_gpu_hours"]), row["status"])
            for row in rows.head(MOST_ROWS).to_dict("records")
        ),
        "No incident of the period names it.",
        _shown(rows),
    )  # fmt: skip


def failed(node: Node, titles: Mapping[str, str]) -> Table:
    """Attempts that failed while they ran here: those that this node ended, then the others."""
    here = node.failed_here
    rows = pd.concat([here, node.failed.drop(here.index)])
    return Table(
        "failed_attempts",
        "Attempts that failed while they ran here",
        (
            Column("job_id", "Job"),
            Column("end_at", "Ended (UTC)", "time"),
            Column("state", "State"),
            Column("cause", "Cause"),
            Column("by_this_node", "By this node"),
            Column("gpus", "GPUs", "count"),
            Column("user", "User"),
            Column("account", "Account"),
            Column("name", "Job name"),
        ),
        tuple(
            (text(row["job_id"]), time(row["end_at"]), text(row["state"]),
             titles.get(row["cause"], text(row["cause"])),
             "yes" if index in here.index else "no", known(row["n_gpus"]), text(row["user"]),
             text(row["account"]), text(row["name"]))
            for index, row in zip(rows.index, rows.head(MOST_ROWS).to_dict("records"),
                                  strict=False)
        ),
        "None.",
        _shown(rows),
    )  # fmt: skip


def outages(node: Node) -> Table:
    """Times out of service, the latest first."""
    return Table(
        "outages",
        "Out of service",
        (
            Column("start_at", "From (UTC)", "time"),
            Column("end_at", "To (UTC)", "time", none="lasts"),
            Column("state", "State"),
            Column("reason", "Reason"),
        ),
        tuple(
            (time(row["start_at"]), time(row["end_at"]), text(row["what"]), text(row["text"]))
            for row in node.outages.head(MOST_ROWS).to_dict("records")
        ),
        "No record of it in the period.",
        _shown(node.outages),
    )


def events(node: Node) -> Table:
    """Health events, the critical and fatal ones alone where there are any."""
    rows = node.urgent if len(node.urgent) else node.events
    what = "Critical and fatal events" if len(node.urgent) else "Health events"
    aside = len(node.events) - len(rows)
    others = f"{numbers.counted(aside, 'other event')} in the period." if aside else ""
    return Table(
        "events",
        what,
        (
            Column("at", "Time (UTC)", "second"),
            Column("what", "Check or code"),
            Column("severity", "Severity"),
            Column("message", "Message"),
        ),
        tuple(
            (time(row["start_at"]), text(row["what"]), text(row["severity"]), text(row["text"]))
            for row in rows.head(MOST_ROWS).to_dict("records")
        ),
        "No record of one in the period.",
        " ".join(said for said in (_shown(rows), others) if said),
    )


def tickets(node: Node) -> Table:
    """Repair tickets, the latest first."""
    return Table(
        "tickets",
        "Repair tickets",
        (
            Column("ticket", "Ticket"),
            Column("opened_at", "Opened (UTC)", "time"),
            Column("closed_at", "Closed (UTC)", "time", none="open"),
            Column("component", "Component"),
            Column("text", "What was done"),
        ),
        tuple(
            (text(row["key"]), time(row["start_at"]), time(row["end_at"]), text(row["what"]),
             text(row["text"]))
            for row in node.tickets.head(MOST_ROWS).to_dict("records")
        ),
        "No record of one in the period.",
        _shown(node.tickets),
    )  # fmt: skip


def facts(node: Node) -> Table:
    """What is known of the node, and for which time."""
    return Table(
        "facts",
        "Facts",
        (
            Column("fact", "Fact"),
            Column("value", "Value"),
            Column("from_at", "From (UTC)", "time"),
            Column("to_at", "To (UTC)", "time", none="holds"),
        ),
        tuple(
            (text(row["key"]), text(row["value"]), time(row["from_at"]), time(row["to_at"]))
            for row in node.facts.head(MOST_ROWS).to_dict("records")
        ),
        "Nothing is known of it.",
        _shown(node.facts),
    )


def _shown(rows: pd.DataFrame) -> str:
    """How many rows there are where not all are printed."""
    if len(rows) <= MOST_ROWS:
        return ""
    return f"The first {MOST_ROWS:,} of {numbers.counted(len(rows), 'row')}."
