"""What was read into the store, and what could not be read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import empty_state, rows, table, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    import pandas as pd

    from app.components.scope import Scope


COLUMNS = [
    "ingested_at",
    "source",
    "cluster",
    "path",
    "rows_read",
    "rows_kept",
    "rows_skipped",
    "rows_rejected",
    "first_at",
    "last_at",
    "skipped_by_reason",
    "notices",
    "ingest_id",
    "sha256",
]


def ingests(scope: Scope) -> None:
    """One row an ingest, newest first; picking one opens its rejected rows."""
    found = loaders.ingests()
    if found.empty:
        empty_state.nothing_ingested()
        return

    def rejected(picked: pd.Series) -> None:
        rows.rejected(scope, str(picked["ingest_id"]), int(picked["rows_rejected"]))

    table.show(found[COLUMNS], name="ingests", scope=scope, opens=rejected)


def rejected(scope: Scope) -> None:
    """How often each reason occurred, then the records themselves."""
    found = loaders.rejected_rows(None, limit=table.ROWS_SHOWN)
    if found.empty:
        st.markdown("Every record of every ingest could be read.")
        return
    total = int(loaders.ingests()["rows_rejected"].sum())
    reasons = found["reason"].value_counts()
    st.markdown(
        ", ".join(
            f"{verbatim.escaped(reason)}: {numbers.count(n)}" for reason, n in reasons.items()
        )
        + ("" if len(found) == total else f" (of the first {len(found):,})")
    )
    table.show(
        found,
        name="rejected_rows",
        scope=scope,
        total=total,
        everything=partial(loaders.rejected_rows, None, limit=rows.EVERYTHING),
    )
