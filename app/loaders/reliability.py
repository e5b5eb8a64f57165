"""How often nodes fail, and how long jobs run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import questions
from app.loaders import cached

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from analytics.reliability.mttf import GroupRate, MttfReport
    from data.queries.reliability import Grouping
    from data.queries.selection import Selection


def mttf(selection: Selection) -> MttfReport:
    """Failure rate and MTTF."""
    return cached.answer(questions.mttf, selection)


def mttf_before(selection: Selection) -> MttfReport | None:
    """The same of the preceding period of equal length; None where it holds no data."""
    return cached.answer(questions.mttf_before, selection)


def rates_by(selection: Selection, by: Grouping) -> tuple[GroupRate, ...]:
    """Failure rate by week, partition, rack or age of the node."""
    return cached.answer(questions.rates_by, selection, by)


def failure_rows(selection: Selection, limit: int) -> pd.DataFrame:
    """The failures behind a rate."""
    return cached.rows(questions.failure_rows, selection, limit=limit)


def attempt_rows(selection: Selection, *, gpus: tuple[int, int], limit: int) -> pd.DataFrame:
    """The attempts behind the MTTF of a class of sizes (first and last number of GPUs)."""
    return cached.rows(questions.attempt_rows, selection, gpus=gpus, limit=limit)


def projection(
    rate_per_1000_node_days: float, gpus: Sequence[int], *, gpus_per_node: int = 8
) -> list[float | None]:
    """MTTF in hours that a given rate projects for jobs of these sizes; needs no store."""
    projected = questions.projection(rate_per_1000_node_days, gpus, gpus_per_node=gpus_per_node)
    return [projection.mttf_hours.value for projection in projected]
