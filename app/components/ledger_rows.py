"""The rows behind a bucket of the ledger: attempts where it is a loss, days where it is not."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import links, rows, table
from app.figures.efficiency import buckets

if TYPE_CHECKING:
    import pandas as pd

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

    def fetch(limit: int) -> pd.DataFrame:
        if not of_cause:
            return loaders.bucket_rows(scope.selection, bucket=name, limit=limit)
        found = loaders.bucket_rows(scope.selection, bucket=name, limit=rows.EVERYTHING)
        same = found["cause"].isna() if cause is None else found["cause"].eq(cause)
        return found[same].head(limit)

    table.show(
        fetch(table.ROWS_SHOWN),
        name=f"bucket_{name}",
        scope=scope,
        everything=partial(fetch, rows.EVERYTHING),
    )


def _attempts(scope: Scope, *, of_cause: bool = False, cause: str | None = None) -> None:
    """Attempts that infrastructure ended; picking one opens its job."""
    st.caption(
        "Attempts that infrastructure ended; GPU-hours by the 30-minute rule. Pick one to open "
        "its job."
    )

    def fetch(limit: int) -> pd.DataFrame:
        if not of_cause:
            return loaders.lost_attempts(scope.selection, limit)
        found = loaders.lost_attempts(scope.selection, rows.EVERYTHING)
        return found[found["cause"].fillna(UNKNOWN).eq(cause or UNKNOWN)].head(limit)

    table.show(
        fetch(table.ROWS_SHOWN),
        name="lost_attempts",
        scope=scope,
        everything=partial(fetch, rows.EVERYTHING),
        opens=links.open_job,
    )
