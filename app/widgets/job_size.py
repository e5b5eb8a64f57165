"""The job size that a number is told for."""

from __future__ import annotations

import streamlit as st


def show(
    title: str = "MTTF of a job of (GPUs)", *, key: str = "job_gpus", told: str | None = None
) -> int | None:
    """Draws the input; None where the largest usual size shall do."""
    return st.number_input(
        title,
        min_value=1,
        value=None,
        step=8,
        key=key,
        bind="query-params",
        placeholder="largest usual size",
        width=230,
        help=told,
    )
