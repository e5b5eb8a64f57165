"""The rows behind a number, in a dialog on top of its page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import table
from app.figures import numbers

if TYPE_CHECKING:
    import pandas as pd

    from app.components.scope import Scope

EVERYTHING = 1_000_000
"""Rows of a download at most."""


@st.dialog("Failures behind the number", width="large")
def failures(scope: Scope, total: int) -> None:
    """The failed attempts, or failures of nodes, that a rate counts."""
    fetch = partial(loaders.failure_rows, scope.selection)
    _rows(fetch, name="failures", scope=scope, total=total)


@st.dialog("Attempts behind the number", width="large")
def attempts(scope: Scope, gpus_from: int, gpus_to: int) -> None:
    """The attempts of a size class, longest first."""
    st.caption(numbers.gpus(gpus_from, gpus_to))
    fetch = partial(loaders.attempt_rows, scope.selection, gpus=(gpus_from, gpus_to))
    _rows(fetch, name="attempts", scope=scope)


@st.dialog("Nodes out of service", width="large")
def out_of_service(frame: pd.DataFrame, scope: Scope) -> None:
    """The nodes, since when, and why."""
    table.show(frame, name="out_of_service_rows", scope=scope)


@st.dialog("Coverage by source", width="large")
def coverage(frame: pd.DataFrame, scope: Scope) -> None:
    """First and last record, days covered and days missing of every source."""
    table.show(frame, name="coverage_rows", scope=scope)


@st.dialog("Rejected rows of an ingest", width="large")
def rejected(scope: Scope, ingest_id: str, total: int) -> None:
    """The records that could not be read, with file, line and reason."""
    if total == 0:
        st.markdown("Every record of this ingest could be read.")
        return
    _rows(partial(loaders.rejected_rows, ingest_id), name="rejected", scope=scope, total=total)


def _rows(
    fetch: partial[pd.DataFrame], *, name: str, scope: Scope, total: int | None = None
) -> None:
    """The first rows; the download fetches all."""
    table.show(
        fetch(limit=table.ROWS_SHOWN),
        name=name,
        scope=scope,
        total=total,
        everything=partial(fetch, limit=EVERYTHING),
    )
