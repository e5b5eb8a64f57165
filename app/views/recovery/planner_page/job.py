"""What may a job of this size expect, and what would change it?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.efficiency.expected_ettr import EttrSettings
from app.answers.efficiency import ettr, expected
from app.ask.cached import ask, kept
from app.show import page
from app.widgets import inputs, notice, page_head
from app.words import escaping, numbers

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

    from app.show.scope import Scope

HELP = {
    "gpus": "Size of the job: that of the largest run here.",
    "rate": "Failures per 1,000 node-days: as measured here; its upper bound where none was "
    "seen, RSC-1's 6.5 where it is unknown.",
    "restart": "From a start to the first step, each time.",
    "write": "How long training stands still for one checkpoint.",
    "interval": "Training between two checkpoints. Empty: as runs here do, or are taken to.",
    "queue": "Mean wait after submission and after each interruption.",
}


def show(head: DeltaGenerator, scope: Scope) -> None:
    """Inputs with the store's values, the forms side by side, what moves them."""
    with notice.explained():
        usual = ettr.job_like_runs(ask, scope.selection)
        asked = settings(usual)
        of_store = usual.rate_per_1000_node_days == asked.rate_per_1000_node_days
        answer = kept(
            expected.answer,
            asked,
            rate_per_1000_node_days=ettr.failure_rate(ask, scope.selection) if of_store else None,
        )
        with head:
            said = answer.sentence or expected.NOTHING_FAILS
            page_head.show(said, scope, notes=answer.notes)
        forms, slopes = st.columns(2, gap="large")
        with forms:
            page.blocks([answer.table("ettr_by_form")], scope)
        with slopes:
            page.blocks([answer.chart("sensitivities")], scope)
    figures = expected.published()
    with st.expander("Published figures and ours", icon=":material/function:", type="compact"):
        st.markdown(figures.sentence)
        page.blocks(figures.blocks, scope, titled=False)
        st.markdown("\n".join(f"- {escaping.escaped(note)}" for note in figures.notes))


def settings(usual: EttrSettings) -> EttrSettings:
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
    exact = {key: value for _, key, value, _ in given}
    known = {
        key: exact[key] if value == numbers.rounded(exact[key]) else value
        for key, value in stated.items()
        if value is not None
    }  # the store's own value to the last digit, where the reader left it
    return EttrSettings(
        gpus=known["gpus"],
        rate_per_1000_node_days=known["rate"],
        restart_min=known["restart"],
        write_min=known["write"],
        interval_min=known.get("interval", usual.checkpoint_min),
        queue_min=known["queue"],
        gpus_per_node=usual.gpus_per_node,
    )
