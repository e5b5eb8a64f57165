"""A calculator: the ETTR to expect of a job, by every formula, and what would change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from analytics.efficiency.ettr_settings import EttrSettings
from app import loaders
from app.components import figure_block, notice
from app.figures import numbers
from app.figures.efficiency import sensitivity_bars

if TYPE_CHECKING:
    from analytics.efficiency.ettr import EttrReport
    from analytics.efficiency.expected_ettr import ExpectedEttr
    from analytics.reliability.mttf import MttfReport
    from app.components.scope import Scope

PUBLISHED_RATE = 6.50
"""Failures per 1,000 node-days where the store's own are unknown: RSC-1's."""
GPUS = 16_384
"""Size where no run is known."""
LEFT_OUT = {
    "exact": "nothing of these; a long run",
    "full": "second and further failures within one interval",
    "v2": "as full, and queue and length of the run",
    "v1": "as full, and what writing a checkpoint takes",
}
"""What each form leaves out."""


def show(report: EttrReport, failures: MttfReport, scope: Scope) -> None:
    """Inputs with the store's values, the forms side by side, what moves them."""
    st.header("What would change it", anchor=False)
    with notice.explained():
        settings = _settings(report, failures)
        found = loaders.expected_ettr(settings)
        forms, slopes = st.columns(2, gap="large")
        with forms:
            _forms(found)
        with slopes:
            _sensitivities(found, scope)
        notice.notes(found.notes)


def _settings(report: EttrReport, failures: MttfReport) -> EttrSettings:
    """What the reader asks of; the store's own values until they say otherwise."""
    habit = loaders.habits().central
    rate = failures.rate.rate_per_1000_node_days.value
    largest = report.gpus[1] or GPUS
    wait = report.wait_hours.value or 0.0
    given = (
        ("GPUs", "gpus", float(largest), 1.0),
        ("Failure rate", "rate", PUBLISHED_RATE if rate is None else rate, 0.0),
        ("Restart (min)", "restart", habit.restart_s / 60, 0.0),
        ("Write (min)", "write", habit.write_s / 60, 0.0),
        ("Interval (min)", "interval", habit.interval_s / 60, 0.0),
        ("Queue (min)", "queue", wait * 60, 0.0),
    )
    inputs = {}
    for column, (label, key, value, least) in zip(st.columns(len(given)), given, strict=True):
        inputs[key] = column.number_input(
            label,
            min_value=least,
            value=None if key == "interval" else round(value, 3),
            placeholder=numbers.number(value) if key == "interval" else None,
            format="%g",
            key=key,
            bind="query-params",
            help=_HELP.get(key),
        )
    return EttrSettings(
        gpus=inputs["gpus"],
        rate_per_1000_node_days=inputs["rate"],
        restart_min=inputs["restart"],
        write_min=inputs["write"],
        interval_min=habit.interval_s / 60 if inputs["interval"] is None else inputs["interval"],
        queue_min=inputs["queue"],
        gpus_per_node=failures.gpus_per_node or 8.0,
    )


_HELP = {
    "gpus": "Size of the job: that of the largest run here.",
    "rate": "Failures per 1,000 node-days: as measured here where it is known, else RSC-1's 6.5.",
    "restart": "From a start to the first step, each time.",
    "write": "How long training stands still for one checkpoint.",
    "interval": "Training between two checkpoints. Empty: as runs here do, or are taken to.",
    "queue": "Mean wait after submission and after each interruption.",
}


def _forms(found: ExpectedEttr) -> None:
    """The four forms, and the best intervals."""
    frame = pd.DataFrame(
        [
            {"form": form, "ETTR": f"{getattr(found, form):.3f}", "leaves out": left_out}
            for form, left_out in LEFT_OUT.items()
        ]
    )
    st.dataframe(frame, hide_index=True, key="forms")
    best = found.optimal_interval_min
    if best is None or found.exact_at_optimum is None:
        return
    st.markdown(
        f"**Best interval: {numbers.number(best)} min** gives {found.exact_at_optimum:.3f} (exact "
        f"form); Daly-Young's rule says {numbers.number(found.daly_young_interval_min)} min. "
        f"Mean time to failure of the job: {numbers.duration(found.mttf_hours)}."
    )


def _sensitivities(found: ExpectedEttr, scope: Scope) -> None:
    """Which of the inputs moves the ETTR most."""
    if not found.sensitivities:
        return
    figure = sensitivity_bars.figure(found.sensitivities, mode=scope.mode)
    frame = sensitivity_bars.frame(found.sensitivities)
    figure_block.show(figure, frame, name="sensitivities", scope=scope)
