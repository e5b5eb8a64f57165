"""The job size that a number is told for."""

from __future__ import annotations

from app.widgets import number


def show(
    title: str = "MTTF of a job of (GPUs)", *, key: str = "job_gpus", told: str | None = None
) -> int | None:
    """Draws the input; None where the largest usual size shall do."""
    return number.show(
        title,
        number.GPUS,
        key=key,
        value=None,
        step=8,
        placeholder="largest usual size",
        width=230,
        help=told,
    )
