"""Who slows the run, what would fixing it give?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.training import causes, fix, fleet, trace
from app.answers.training.fleet import COMMANDS
from app.ask import cached
from app.ask.cached import ask, fresh
from app.show import command_lines, export, links, page
from app.widgets import filter_bar, inputs, notice, page_head, picked, upload
from app.words import escaping, numbers
from app.words.glossary import of_training
from data.filters import Selection

if TYPE_CHECKING:
    import pandas as pd

    from analytics.training.stragglers.timeline import TimelineOf
    from app.answers.training.trace import StragglerTrace
    from app.show.scope import Scope


def chosen_trace(traces: pd.DataFrame) -> str | None:
    """Id of the trace chosen, the newest of the selection where none is; None without any.

    One that the address names is shown whatever the selection.
    """
    return picked.picked(
        _ids(traces),
        lambda: _ids(ask(fleet.traces, Selection())),
        key="trace",
        instead="the newest of the selection",
    )


def _ids(traces: pd.DataFrame) -> dict[str, str]:
    """Label -> id."""
    return dict(zip(traces["trace"], traces["trace_id"], strict=True))


MOST_LISTED = 5
"""Causes beside the heat map."""


def heat_map(found: StragglerTrace, scope: Scope) -> None:
    """Stage by data-parallel rank; exact, or the paper's approximation."""
    way = inputs.choice(
        "Each worker alone",
        ["exact", "min"],
        default="exact",
        key="s_w",
        help=of_training.WORKER_SLOWDOWN.definition,
    )
    page.blocks([trace.workers_chart(found, way)], scope)


def gains(found: StragglerTrace, scope: Scope) -> None:
    """Causes, strongest first, and what their nodes rest on."""
    st.subheader("Fixing this alone gives back", anchor=False)
    named, node_of = found.analysis.found_causes, found.nodes.node_of
    lines = [
        f"- **{numbers.percent(each.gain_ratio)}** {causes.title(each.cause)}: "
        + escaping.escaped(causes.target(each, node_of))
        for each in named[:MOST_LISTED]
    ]
    if len(named) > MOST_LISTED:
        lines.append(f"- {len(named) - MOST_LISTED} more below")
    if found.analysis.causes is None:
        lines = [causes.NOT_STORED.format("Causes")]
    st.markdown("\n".join(lines) or "No cause gives back 1 % of the step time or more.")
    _links(found, scope)


def _links(found: StragglerTrace, scope: Scope) -> None:
    """The job and the nodes of the causes, and what the nodes rest on."""
    facts, most, parts = found.facts, causes.MOST_NAMED, []
    if facts["job_id"] is not None and facts["cluster"] is not None:
        parts.append(links.job(facts["job_id"], facts["cluster"]))
    then = links.around(facts["traced_at"], None, scope.timezone)
    slow = [worker for each in found.analysis.causes or () for worker in each.workers[:most]]
    for dp, stage in dict.fromkeys(slow):
        name = found.nodes.node_of.get((dp, stage))
        if name is not None:
            parts.append(f"{links.node(name, facts['cluster'], then)} (dp {dp}, stage {stage})")
    st.caption(" · ".join(parts[: 1 + most]))


SLOWEST, ALL = "the slowest step", "all steps"
TIMELINES: dict[str, TimelineOf] = {
    "Original": "original",
    "Ideal": "ideal",
    "With this fixed": "fixed",
    "As traced": "traced",
}


def fix_and_timelines(found: StragglerTrace, scope: Scope) -> None:
    """What is fixed, what that gives, and the timelines with and without."""
    left, right = st.columns(2, gap="large")
    with left:
        st.subheader("Fix this", anchor=False)
        part = st.selectbox(
            "What is fixed",
            fix.parts(found),
            key="fix",
            bind="query-params",
            help="worker:DP,STAGE, stage:N or type:NAME, slowest first; its operations take the "
            "ideal cost of their type, all others their own.",
        )
        page.answered(fix.answer(ask, found, part), scope)
    with right:
        st.subheader("Timelines", anchor=False)
        _timelines(found, part, scope)


def _timelines(found: StragglerTrace, part: str, scope: Scope) -> None:
    """Downloads of the operations, step by step, written once they are pressed."""
    steps = list(found.analysis.slowdowns.steps_ranked)
    chosen = st.selectbox("Steps", [SLOWEST, ALL, *map(str, steps)], key="timeline_steps")
    drawn = None if chosen == ALL else [steps[0] if chosen == SLOWEST else int(str(chosen))]
    with st.container(horizontal=True):
        for title, of in TIMELINES.items():
            name = f"{scope.file_stem(f'timeline-{of}')}.json"
            fixed = part if of == "fixed" else None
            export.button(
                title,
                name,
                partial(fresh, fix.timeline, found.facts["trace_id"], of, part=fixed, steps=drawn),
                mime="application/json",
                key=f"timeline_{of}",
                icon=":material/download:",
            )
    st.markdown(
        "Open a file at [ui.perfetto.dev](https://ui.perfetto.dev) (Open trace file): a process is "
        "a data-parallel rank, a thread a worker's computes, transfers or rest. The file is read "
        "in your browser and not sent anywhere. A transfer is drawn from when its last peer was "
        "ready; the gap before it is waiting."
    )


ADDED = "straggler_added"
"""Where the answer to an upload waits for the page to be run on the new snapshot."""


def told_added() -> None:
    """What became of the upload that has just ended; shown once."""
    for result in st.session_state.pop(ADDED, ()):
        st.success(
            f"{escaping.escaped(result.path)} is in the store: "
            f"{numbers.counted(result.rows_kept, 'operation')}.",
            icon=":material/check:",
        )


def add_trace(scope: Scope) -> None:
    """A form: the trace, its meta file, its job."""
    if scope.synthetic:
        st.markdown(
            "This store holds the synthetic demo, which never mixes with real data: store a trace "
            "in a store of your own and start the dashboard on that, or analyse a file without "
            "storing it:"
        )
        command_lines.show(
            [COMMANDS[0], f"faultline serve --store {command_lines.own_store()}", "", COMMANDS[1]]
        )
        return
    with st.form("straggler_upload", border=False):
        files, fields = st.columns(2), st.columns(2)
        with files[0]:
            trace = upload.chosen("Trace (Parquet or CSV)", key="straggler_file")
        with files[1]:
            meta = upload.chosen("Meta file (YAML), if there is one", key="straggler_meta")
        job_id = fields[0].text_input("Job", placeholder="e.g. 4711", key="straggler_job")
        cluster = fields[1].text_input("Cluster", placeholder="the job's", key="straggler_cluster")
        sent = st.form_submit_button("Analyse and store", type="primary")
    if sent and trace is None:
        st.warning("Choose a trace first.", icon=":material/warning:")
    elif sent and trace is not None:
        with notice.explained():
            options = actions.Options(
                cluster=cluster.strip() or None, job_id=job_id.strip() or None
            )
            sent_files = actions.Upload(trace.name, trace, meta=meta)
            st.session_state[ADDED] = upload.ingest(
                "straggler-trace", sent_files, options, key="straggler"
            )
            st.rerun()


scope = filter_bar.show()
told_added()
head = st.container()
n_stored = ask(fleet.n_traces) if cached.snapshot() else 0
chosen = chosen_trace(ask(fleet.traces, scope.selection)) if n_stored else None
if chosen is None:
    nothing = fleet.nothing(n_stored, scope.filters)
    page_head.of_one(nothing.sentence, nothing.about, scope)
    page.blocks(nothing.blocks, scope)
    if not n_stored:
        st.header("Upload a trace", anchor=False)
        add_trace(scope)
    st.stop()
found = ask(trace.measured, chosen)
answer = trace.answer(found)
with head:
    page_head.of_one(
        answer.sentence,
        answer.about,
        scope,
        notes=(*answer.notes, trace.basis_of_nodes(found)),
        terms=[number.term for number in answer.numbers],
    )
if doubt := trace.doubt(found):
    st.warning(doubt, icon=":material/warning:")
page.headlines(answer.numbers, scope)
left, right = st.columns([3, 2], gap="large")
with left:
    heat_map(found, scope)
with right:
    gains(found, scope)
of_parts, of_steps, of_fixes, of_fleet, of_upload = st.tabs(
    ["Causes and parts", "Steps and workers", "Fix and timelines", "All traces", "Add a trace"],
    key="stragglers_tab",
    on_change="rerun",
    bind="query-params",
)
if of_parts.open:
    with of_parts:
        page.blocks([answer.table("straggler_causes")], scope, titled=False)
        by_part = [answer.chart(f"slowdown_by_{part}") for part in ("type", "stage", "dp_rank")]
        page.beside(by_part, [4, 3, 3], scope)
        page.notes([trace.PARTS_NOTE])
if of_steps.open:
    with of_steps:
        for term, text in causes.patterns(found).items():
            st.markdown(f"**{term.label}:** {escaping.escaped(text)}", help=term.definition)
        page.beside([answer.chart("step_slowdown"), answer.chart("worker_curve")], [1, 1], scope)
if of_fixes.open:
    with of_fixes:
        fix_and_timelines(found, scope)
if of_fleet.open:
    with of_fleet:
        of_all = fleet.answer(ask, scope.selection)
        left, right = st.columns([4, 3], gap="large")
        with left:
            st.markdown(f"**{escaping.escaped(of_all.sentence)}**")
            tables = ("straggler_published", "straggler_causes_of_fleet")
            page.blocks([of_all.table(name) for name in tables], scope)
            page.notes(of_all.notes)
        with right:
            page.blocks([of_all.chart("fleet_waste")], scope)
        page.blocks([of_all.table("straggler_traces")], scope)
if of_upload.open:
    with of_upload:
        add_trace(scope)
