"""Which job is looked at: named in the address, typed, or picked from those that failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import failure_rows, notice, verbatim

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Job


def choose(scope: Scope) -> Job | None:
    """The job that is named; None, with the failed attempts to pick from, where there is none."""
    wanted = st.text_input(
        "Job",
        key="job",
        bind="query-params",
        placeholder="Job, e.g. 4711, array task 4711_3 or a whole array",
        icon=":material/search:",
        label_visibility="collapsed",
        width=420,
    )
    if wanted and wanted.strip():
        with notice.explained():
            return loaders.job(wanted.strip(), scope.selection.cluster)
    return None


def failed(scope: Scope) -> None:
    """The latest failed attempts of the selection."""
    st.header("Latest failed attempts", anchor=False)
    total = loaders.failures(scope.selection).n_failed_attempts
    if not total:
        st.markdown(f"Nothing failed in this selection ({verbatim.escaped(scope.filters)}).")
        return
    failure_rows.show(scope, name="latest_failed", total=total)
