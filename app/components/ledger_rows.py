"""The rows behind a bucket of the ledger: attempts where it is a loss, days where it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import links, rows, table
from app.figures.efficiency import buckets

if TYPE_CHECKING:
    from app.components.scope import Scope

UNKNOWN = "unknown"
"""A verdict's cause where there is no evidence of one; the ledger holds none then."""


@st.dialog("Rows behind the bucket", width="large")
def bucket(scope: Scope, name: str) -> None:
    """What stands behind a bucket, and of lost work the attempts too."""
    if name == "lost_work":
        by_day, attempts = st.tabs(["By day", "Attempts"], key="bucket_tab", on_change="rerun")
        if by_day.open:
            with by_day:
                _days(scope, name)
        if attempts.open:
            with attempts:
                _attempts(scope)
    else:
        _days(scope, name)


@st.dialog("Down or drained", width="large")
def out_of_service(scope: Scope) -> None:
    """The buckets of time out of service, each with its rows."""
    names = ("drained", "down_planned", "down_unplanned")
    for name, tab in zip(names, st.tabs([buckets.title(name) for name in names]), strict=True):
        with tab:
            _days(scope, name)


@st.dialog("Rows behind the loss", width="large")
def loss(scope: Scope, name: str, cause: str | None) -> None:
    """The attempts of a cause of lost work; of other losses its days, accounts and sizes."""
    if name == "lost_work":
        _attempts(scope, of_cause=True, cause=cause)
    else:
        _days(scope, name, of_cause=True, cause=cause)


def _days(scope: Scope, name: str, *, of_cause: bool = False, cause: str | None = None) -> None:
    """Days, accounts and sizes, the largest first."""
    st.caption(f"{buckets.title(name)}: GPU-hours by day, partition, account and size.")

    found = loaders.bucket_rows(scope.selection, bucket=name, limit=rows.EVERYTHING)
    if of_cause:
        found = found[found["cause"].isna() if cause is None else found["cause"].eq(cause)]
    table.show(found, name=f"bucket_{name}", scope=scope)


def _attempts(scope: Scope, *, of_cause: bool = False, cause: str | None = None) -> None:
    """Attempts that infrastructure ended; picking one opens its job."""
    st.caption(
        "Attempts that infrastructure ended; GPU-hours by the 30-minute rule. Pick one to open "
        "its job."
    )

    found = loaders.lost_attempts(scope.selection, rows.EVERYTHING)
    if of_cause:
        found = found[found["cause"].fillna(UNKNOWN).eq(cause or UNKNOWN)]
    table.show(found, name="lost_attempts", scope=scope, opens=links.open_job)
