"""Incidents as a table; picking one opens its page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urljoin

import streamlit as st

from app import loaders
from app.components import links, rows, table

if TYPE_CHECKING:
    import pandas as pd

    from app.components.scope import Scope

COLUMNS = [
    "start_at",
    "summary",
    "lost_gpu_hours",
    "n_jobs",
    "domain",
    "cause",
    "status",
    "n_failed_jobs",
    "n_preempted_jobs",
    "n_gpus",
    "n_nodes",
    "nodes",
    "n_events",
    "loop_failures",
    "loop_requeues",
    "n_unmeasured",
    "end_at",
    "note",
    "cluster",
    "incident_id",
]


@st.dialog("Incidents", width="large")
def dialog(scope: Scope, kind: dict[str, str | None], *, total: int, loops: bool = False) -> None:
    """The incidents behind a number."""
    show(scope, kind, name="incidents_dialog", total=total, loops=loops)


def show(
    scope: Scope,
    kind: dict[str, str | None],
    *,
    name: str,
    total: int,
    loops: bool = False,
) -> None:
    """The latest incidents; the download holds all, each with its address."""
    fetch = partial(_fetch, scope, kind, loops=loops)
    table.show(
        fetch(limit=table.ROWS_SHOWN),
        name=name,
        scope=scope,
        total=total,
        everything=lambda: _with_address(fetch(limit=rows.EVERYTHING)),
        opens=_open,
    )


def _fetch(scope: Scope, kind: dict[str, str | None], *, loops: bool, limit: int) -> pd.DataFrame:
    """Rows as they are shown: nodes as one text; loops are looked for in all incidents."""
    read = rows.EVERYTHING if loops else limit
    found = loaders.incident_rows(scope.selection, limit=read, **kind)
    found = found[found["loop_failures"] > 0].head(limit) if loops else found
    return found.assign(nodes=found["nodes"].map(", ".join))[COLUMNS]


def _with_address(found: pd.DataFrame) -> pd.DataFrame:
    """Rows with a link each, for those who read them elsewhere."""
    return found.assign(
        link=[
            urljoin(st.context.url or "", f"incident?{urlencode({'incident': incident_id})}")
            for incident_id in found["incident_id"]
        ]
    )


def _open(row: pd.Series) -> None:
    """The page of the incident in a row."""
    links.open_incident(str(row["incident_id"]))
