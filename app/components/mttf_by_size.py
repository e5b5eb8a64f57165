"""MTTF by job size: the figure and its table, or why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import empty_state, figure_block, notice, rows, table
from app.figures import numbers
from app.figures.reliability import mttf_by_size

if TYPE_CHECKING:
    import pandas as pd

    from analytics.reliability.mttf import MttfReport
    from app.components.scope import Scope


NO_LARGE_JOBS = (
    "No job of {n} GPUs or more ran, so the failure rate and its projection are unknown: lower "
    "the smallest job in the sidebar."
)


def show(report: MttfReport, scope: Scope) -> None:
    """Measured and projected MTTF; picking a row of the table opens its attempts."""
    if not mttf_by_size.drawable(report):
        _say_why(report, scope)
        return
    if not report.rate.exposure:
        notice.notes([NO_LARGE_JOBS.format(n=numbers.count(scope.selection.min_gpus))])
    frame = mttf_by_size.frame(report)
    figure = mttf_by_size.figure(report, mode=scope.mode, note=scope.note)
    figure_block.show(figure, frame, name="mttf_by_size", scope=scope)
    measured = frame[frame["series"] == "measured"].drop(columns="series")
    if measured.empty:
        return

    def attempts(picked: pd.Series) -> None:
        rows.attempts(scope, int(picked["gpus_from"]), int(picked["gpus_to"]))

    st.header("Measured by size", anchor=False)
    table.show(measured, name="mttf_by_size_table", scope=scope, opens=attempts)


def _say_why(report: MttfReport, scope: Scope) -> None:
    """The empty state that fits: nothing ran, no jobs are known, or none says its GPUs."""
    if "node_failures" in report.basis and report.rate.failures:
        empty_state.no_jobs()
    elif "node_time" in report.basis and report.rate.exposure:
        empty_state.no_gpus()
    else:
        empty_state.nothing_ran(scope.filters)
