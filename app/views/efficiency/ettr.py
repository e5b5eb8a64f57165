"""What did the big runs get out of their time?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.efficiency.expected_ettr import EttrSettings
from app.answers.efficiency import ettr, expected, run
from app.ask.cached import ask, kept
from app.show import page
from app.widgets import filter_bar, inputs, ledger_build, notice, page_head
from app.words import escaping, numbers
from data.filters import MTTF_MIN_GPUS

if TYPE_CHECKING:
    from app.show.scope import Scope


def run_box() -> None:
    """Where a run is typed."""
    inputs.searched("Run", key="run", placeholder="Open a run, e.g. 4711", width=240)


def back_to_all() -> None:
    """The box beside the way back to all runs."""
    with st.container(horizontal=True, vertical_alignment="center"):
        run_box()
        st.button("All runs", icon=":material/arrow_back:", type="tertiary", on_click=_leave)


def _leave() -> None:
    """Back to all runs."""
    st.session_state["run"] = ""


HELP = {
    "gpus": "Size of the job: that of the largest run here.",
    "rate": "Failures per 1,000 node-days: as measured here; its upper bound where none was "
    "seen, RSC-1's 6.5 where it is unknown.",
    "restart": "From a start to the first step, each time.",
    "write": "How long training stands still for one checkpoint.",
    "interval": "Training between two checkpoints. Empty: as runs here do, or are taken to.",
    "queue": "Mean wait after submission and after each interruption.",
}


def calculator(scope: Scope) -> None:
    """Inputs with the store's values, the forms side by side, what moves them."""
    st.header("What would change it", anchor=False)
    with notice.explained():
        usual = ettr.job_like_runs(ask, scope.selection)
        asked = _settings(usual)
        rate = asked.rate_per_1000_node_days
        of_store = numbers.rounded(usual.rate_per_1000_node_days) == rate
        answer = kept(
            expected.answer,
            asked,
            rate_per_1000_node_days=ettr.failure_rate(ask, scope.selection) if of_store else None,
        )
        forms, slopes = st.columns(2, gap="large")
        with forms:
            page.blocks([answer.table("ettr_by_form")], scope, titled=False)
            st.markdown(escaping.escaped(answer.sentence))
        with slopes:
            page.blocks([answer.chart("sensitivities")], scope)
        page.notes(answer.notes)


def _settings(usual: EttrSettings) -> EttrSettings:
    """What the reader asks of; the store's own values until they say otherwise."""
    minutes = inputs.Within(0.0, inputs.MOST_MINUTES)
    given = (
        ("GPUs", "gpus", usual.gpus, inputs.Within(1.0, float(inputs.MOST_GPUS))),
        (
            "Failure rate",
            "rate",
            usual.rate_per_1000_node_days,
            inputs.Within(0.0, inputs.MOST_RATE),
        ),
        ("Restart (min)", "restart", usual.restart_min, minutes),
        ("Write (min)", "write", usual.write_min, minutes),
        ("Interval (min)", "interval", usual.checkpoint_min, minutes),
        ("Queue (min)", "queue", usual.queue_min, minutes),
    )
    stated: dict[str, float | None] = {}
    for column, (label, key, value, within) in zip(st.columns(len(given)), given, strict=True):
        stated[key] = inputs.number(
            label,
            within,
            key=key,
            value=None if key == "interval" else numbers.rounded(value),
            at=column,
            placeholder=numbers.number(value) if key == "interval" else None,
            format="%g",
            help=HELP[key],
        )
    known = {key: value for key, value in stated.items() if value is not None}
    return EttrSettings(
        gpus=known["gpus"],
        rate_per_1000_node_days=known["rate"],
        restart_min=known["restart"],
        write_min=known["write"],
        interval_min=known.get("interval", usual.checkpoint_min),
        queue_min=known["queue"],
        gpus_per_node=usual.gpus_per_node,
    )


run_id = inputs.named("run")
scope = filter_bar.of_store(
    min_gpus=MTTF_MIN_GPUS, uses=("cluster",) if run_id else filter_bar.USES
)
ledger_build.ensure()
if run_id:
    head = st.container()
    back_to_all()
    of_run = None
    with notice.explained():
        of_run = run.answer(ask, run_id, scope.selection.cluster)
    with head:
        if of_run is None:
            page_head.of_one(f"Run {run_id} has no ETTR.", scope.filters, scope)
            st.stop()
        page_head.of_one(of_run.sentence, of_run.about, scope)
    page.blocks([of_run.chart("run_timeline")], scope)
    page.notes(of_run.notes)
    page.blocks([of_run.table("interruptions"), of_run.table("run_attempts")], scope)
    st.stop()
answer = ettr.answer_beside_expected(ask, scope.selection)
page_head.show(answer.sentence, scope)
if answer.numbers:
    page.headlines(answer.numbers, scope)
page.blocks([answer.chart("ettr_runs")], scope)
page.notes(answer.notes)
if answer.numbers:
    page.blocks([answer.chart("ettr_sizes")], scope)
    page.blocks([answer.table("ettr_by_gpus"), answer.table("ettr_by_week")], scope)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header("Runs", anchor=False, width="content")
        run_box()
    page.blocks([answer.table("runs")], scope, titled=False)
calculator(scope)
figures = expected.published()
with st.expander("Published figures and ours", icon=":material/function:", type="compact"):
    st.markdown(figures.sentence)
    page.blocks(figures.blocks, scope, titled=False)
    st.markdown("\n".join(f"- {escaping.escaped(note)}" for note in figures.notes))
