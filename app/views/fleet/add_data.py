"""How data get in: a file through the browser, or the commands that export and ingest it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import streamlit as st

from app.show import page
from app.views.fleet import upload_form
from app.widgets import export_help
from app.words import escaping, numbers

if TYPE_CHECKING:
    from app import actions
    from app.show.scope import Scope


def answer() -> None:
    """What became of the upload that has just ended; shown once."""
    for result in st.session_state.pop(upload_form.RESULTS, ()):
        _report(result)


def show(scope: Scope) -> None:
    """Upload on the left, commands on the right."""
    form, commands = st.columns([2, 3], gap="large")
    with form:
        upload_form.show(scope)
    with commands:
        st.header("Export and ingest on the command line", anchor=False)
        end = (scope.selection.to_at or datetime.now(UTC)).date()
        start = (scope.selection.from_at or datetime.now(UTC) - timedelta(days=90)).date()
        export_help.show(
            start=start,
            end=end,
            cluster=scope.selection.cluster or "NAME",
            timezone=scope.timezone,
        )


def _report(result: actions.IngestResult) -> None:
    """What became of the records."""
    st.success(
        f"{escaping.escaped(result.path)} is in the store: "
        f"{numbers.counted(result.rows_read, 'record')} read as {result.source}, "
        f"{numbers.count(result.rows_kept)} kept, {numbers.count(result.rows_skipped)} skipped, "
        f"{numbers.count(result.rows_rejected)} rejected.",
        icon=":material/check:",
    )
    if result.told_rejected is not None:
        st.warning(f"{escaping.escaped(result.told_rejected)}.", icon=":material/warning:")
    for reason, n in result.skipped_by_reason.items():
        st.caption(f"{escaping.escaped(reason)}: {numbers.count(n)}")
    page.notes(result.notices)
