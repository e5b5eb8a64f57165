"""What an attempt or a node is part of, as links: incidents, the run, straggler traces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.failures import incidents
from app.answers.failures import node as node_answer
from app.answers.training import fleet
from app.ask.cached import ask
from app.show import links
from app.widgets import copy_button
from app.words import escaping, numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = 5
"""Incidents of a node that are named."""


def attempt(row: Mapping[Any, Any]) -> None:
    """The incident of an attempt, its run and its traces; nothing where it has none."""
    cluster = str(row["cluster"])
    for incident_id, summary in incidents.of_attempt(ask, cluster, str(row["attempt_key"])):
        st.markdown(
            f"Part of incident {links.to('incident', incident_id)}: {escaping.escaped(summary)}."
        )
    run = row["run_id"]
    if isinstance(run, str) and row["n_nodes"] > 1:
        link = links.to("run", run, cluster, said=f"Run {run}")
        st.markdown(f"{link}: where its time went, and its ETTR.")
    traces = ask(fleet.traces_of_job, cluster, str(row["job_id"]))
    for _, trace in traces.iterrows():
        link = links.to("trace", trace["trace"], said=f"Straggler trace {trace['trace']}")
        slowdown = numbers.number(trace["slowdown"])
        cause = escaping.escaped(str(trace["strongest_cause"]))
        st.markdown(f"{link}: slowdown {slowdown}, {cause}.")


def user(row: Mapping[Any, Any], timezone: str) -> None:
    """The page that tells the owner of an attempt about all that ran around it, to open or send."""
    name, cluster = row["user"], str(row["cluster"])
    if not isinstance(name, str) or not name:
        return
    then = links.around(row["start_at"], row["end_at"], timezone)
    with st.container(horizontal=True, vertical_alignment="center"):
        said = f"Runs and jobs of {name}"
        st.markdown(links.to("user", name, cluster, said=said, during=then), width="content")
        copy_button.page("Copy link for its user", links.address("user", name, cluster, then))


def node(cluster: str | None, name: str, timezone: str) -> None:
    """The latest incidents in which a node is named, whatever the period."""
    named = ask(node_answer.named_in, cluster, name)
    if named.empty:
        st.caption(node_answer.in_no_incident(ask, cluster))
        return
    st.markdown(
        f"Named in {numbers.counted(len(named), 'incident')}"
        + (f", the latest {SHOWN}:" if len(named) > SHOWN else ":")
    )
    lines = (
        f"- {numbers.moment(row['start_at'], timezone)} "
        f"{links.to('incident', row['incident_id'])}: {escaping.escaped(row['summary'])}"
        for _, row in named.head(SHOWN).iterrows()
    )
    st.markdown("\n".join(lines))
