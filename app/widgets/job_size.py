"""The job size that an MTTF is told for, of the pages that open with one."""

from __future__ import annotations

import streamlit as st


def show() -> int | None:
    """Draws the input; None where the largest usual size shall do."""
    return st.number_input(
        "MTTF of a job of (GPUs)",
        min_value=1,
        value=None,
        step=8,
        key="job_gpus",
        bind="query-params",
        placeholder="largest usual size",
        width=220,
    )
