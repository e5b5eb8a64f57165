"""Which trace is looked at: named in the address, or picked, the newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders

if TYPE_CHECKING:
    from app.components.scope import Scope

ID_DIGITS = 8
"""Digits of a trace's id in its label."""


def stored(scope: Scope) -> pd.DataFrame:
    """The traces of the selection, newest first; none where nothing was published yet."""
    if not loaders.n_straggler_traces():
        return pd.DataFrame()
    return loaders.straggler_traces(scope.selection)


def label(row: pd.Series) -> str:
    """A trace as it is named in the list and in the address."""
    return f"{row['name']} · {row['trace_id'][:ID_DIGITS]}"


def labelled(traces: pd.DataFrame) -> pd.DataFrame:
    """Traces with their labels as the column `trace`."""
    return traces.assign(trace=[label(row) for _, row in traces.iterrows()])


def choose(traces: pd.DataFrame) -> str:
    """Id of the trace chosen; the newest where none is."""
    named = labelled(traces).set_index("trace")["trace_id"]
    chosen = st.selectbox(
        "Trace",
        list(named.index),
        key="trace",
        bind="query-params",
        label_visibility="collapsed",
        width=420,
    )
    return str(named[chosen])
