"""Which trace is looked at: named in the address, or picked, the newest first."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from app.answers.training import stragglers
from app.ask import cached
from app.ask.cached import ask
from app.words import escaping
from data.filters import Selection

ID_DIGITS = 8
"""Digits of a trace's id in its label."""


def stored(selection: Selection) -> pd.DataFrame:
    """The traces of a selection, newest first; none where nothing was published yet."""
    if not (cached.snapshot() and ask(stragglers.n_straggler_traces)):
        return pd.DataFrame()
    return ask(stragglers.straggler_traces, selection)


def label(row: pd.Series) -> str:
    """A trace as it is named in the list and in the address."""
    return f"{row['name']} · {row['trace_id'][:ID_DIGITS]}"


def labelled(traces: pd.DataFrame) -> pd.DataFrame:
    """Traces with their labels as the column `trace`."""
    return traces.assign(trace=[label(row) for _, row in traces.iterrows()])


def choose(traces: pd.DataFrame) -> str | None:
    """Id of the trace chosen, the newest of the selection where none is; None without any.

    One that the address names is shown whatever the selection.
    """
    named = _ids(traces)
    wanted = _wanted()
    if wanted and wanted not in named:
        every = _ids(stored(Selection()))
        if wanted in every:
            named |= {wanted: every[wanted]}
            st.caption("This trace lies outside the selection of the sidebar.")
        else:
            instead = ": shown is the newest of the selection" if named else ""
            st.warning(
                f"The store holds no trace {escaping.escaped(wanted)}{instead}.",
                icon=":material/warning:",
            )
    if not named:
        return None
    chosen = st.selectbox(
        "Trace",
        list(named),
        key="trace",
        bind="query-params",
        label_visibility="collapsed",
        width=420,
    )
    return named[chosen]


def _ids(traces: pd.DataFrame) -> dict[str, str]:
    """Label -> id."""
    return {label(row): str(row["trace_id"]) for _, row in traces.iterrows()}


def _wanted() -> str | None:
    """The trace that the reader or the address names."""
    wanted: str | None = st.session_state.get("trace", st.query_params.get("trace"))
    return wanted
