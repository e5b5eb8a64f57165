"""A calculator: the ETTR to expect of a job, by every formula, and what would change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.efficiency.expected_ettr import EttrSettings
from app.answers.efficiency import ettr, expected
from app.ask.cached import ask, kept
from app.show import page
from app.widgets import notice, number
from app.words import escaping, numbers

if TYPE_CHECKING:
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


def show(scope: Scope) -> None:
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
    minutes = number.Within(0.0, number.MOST_MINUTES)
    given = (
        ("GPUs", "gpus", usual.gpus, number.Within(1.0, float(number.MOST_GPUS))),
        (
            "Failure rate",
            "rate",
            usual.rate_per_1000_node_days,
            number.Within(0.0, number.MOST_RATE),
        ),
        ("Restart (min)", "restart", usual.restart_min, minutes),
        ("Write (min)", "write", usual.write_min, minutes),
        ("Interval (min)", "interval", usual.checkpoint_min, minutes),
        ("Queue (min)", "queue", usual.queue_min, minutes),
    )
    stated: dict[str, float | None] = {}
    for column, (label, key, value, within) in zip(st.columns(len(given)), given, strict=True):
        stated[key] = number.show(
            label,
            within,
            key=key,
            value=None if key == "interval" else numbers.rounded(value),
            at=column,
            placeholder=numbers.number(value) if key == "interval" else None,
            format="%g",
            help=HELP[key],
        )
    inputs = {key: value for key, value in stated.items() if value is not None}
    return EttrSettings(
        gpus=inputs["gpus"],
        rate_per_1000_node_days=inputs["rate"],
        restart_min=inputs["restart"],
        write_min=inputs["write"],
        interval_min=inputs.get("interval", usual.checkpoint_min),
        queue_min=inputs["queue"],
        gpus_per_node=usual.gpus_per_node,
    )
