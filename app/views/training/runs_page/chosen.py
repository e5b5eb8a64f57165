"""Which run is looked at?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.training import runs
from app.ask.cached import ask
from app.words import escaping
from data.filters import Selection

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ChosenRun:
    """A run of the store."""

    cluster: str
    run_id: str

    @property
    def says(self) -> str:
        """What it is, in a line."""
        return f"Run {self.run_id} of cluster {self.cluster}"


def chosen_run(found: pd.DataFrame) -> ChosenRun | None:
    """The run that the address names, else the one that logged last; None without any.

    One that the address names is shown whatever the period.
    """
    names = _names(found)
    wanted = st.session_state.get("run", st.query_params.get("run"))
    if wanted and wanted not in names:
        every = _names(ask(runs.listed, Selection()))
        if wanted in every:
            names[wanted] = every[wanted]
            st.caption("This run lies outside the selection of the sidebar.")
        else:
            st.warning(
                f"No run {escaping.escaped(wanted)} logged its steps.", icon=":material/warning:"
            )
            st.session_state.pop("run", None)
            del st.query_params["run"]
    if not names:
        return None
    chosen = st.selectbox(
        "Run",
        list(names),
        key="run",
        bind="query-params",
        label_visibility="collapsed",
        width=420,
    )
    return names[chosen]


def _names(found: pd.DataFrame) -> dict[str, ChosenRun]:
    """How a run is called -> the run; with its cluster where several have one of its name."""
    twice = found["run_id"].duplicated(keep=False)
    named = found["run_id"].where(~twice, found["run_id"] + " · " + found["cluster"])
    pairs = zip(named, found["cluster"], found["run_id"], strict=True)
    return {name: ChosenRun(cluster, run_id) for name, cluster, run_id in pairs}
