"""Is the run stable?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.training import runs, stability
from app.ask.cached import ask
from app.show import links, page
from app.widgets import page_head

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.answers.training.stability import RunStability
    from app.show.scope import Scope
    from app.views.training.runs_page.chosen import ChosenRun

MOST_SERIES = 6
MOST_TRACES, MOST_JOBS = 2, 4
"""Links to each kind of page."""


def further_chosen(plain: RunStability) -> tuple[str, ...]:
    """Further series in which spikes are looked for."""
    if not plain.further:
        return ()
    named = st.multiselect(
        "Look for spikes in",
        plain.further,
        key="series",
        bind="query-params",
        max_selections=MOST_SERIES,
        placeholder="further series that the run logs",
        width=640,
    )
    return tuple(named)


def show(head: DeltaGenerator, run: ChosenRun, scope: Scope) -> None:
    """Episodes, what stands beside them, and what could be judged."""
    plain = ask(stability.measured, run.cluster, run.run_id)
    further = further_chosen(plain)
    found = ask(stability.measured, run.cluster, run.run_id, further) if further else plain
    answer = stability.answer(found)
    with head:
        page_head.of_one(answer.sentence, answer.about, scope, terms=answer.terms)
    _elsewhere(found, run)
    page.headlines(answer.numbers, scope)
    page.notes(answer.notes)
    page.blocks(answer.blocks, scope)


def _elsewhere(found: RunStability, run: ChosenRun) -> None:
    """Links to what other pages say of the run: its ETTR, traces, jobs and incidents."""
    parts = [links.to("run", run.run_id, run.cluster, said="ETTR of this run")]
    parts += [
        links.to("trace", trace, said=f"Stragglers, {trace}")
        for trace in ask(runs.traces_of, run.cluster, run.run_id)[:MOST_TRACES]
    ]
    if found.beside is not None:
        attempts = found.beside.attempts
        jobs = attempts["job_id"].dropna().unique()[:MOST_JOBS]
        parts += [links.job(str(job), run.cluster) for job in jobs]
        known = attempts["incident_id"].dropna().unique()[:MOST_JOBS]
        parts += [links.to("incident", str(each), said=f"Incident {each}") for each in known]
    st.caption(" · ".join(parts))
