"""Who slows a run, and what fixing it would give."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import questions
from app.loaders import cached

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from analytics.training.straggler_fleet import StragglerFleet
    from analytics.training.stragglers.drawn import TimelineOf
    from analytics.training.stragglers.fixes import Fixed
    from data.queries.selection import Selection


def n_straggler_traces() -> int:
    """Traces stored, whatever the selection; 0 where nothing was published yet."""
    return cached.answer(questions.n_straggler_traces) if cached.snapshot() else 0


def straggler_traces(selection: Selection) -> pd.DataFrame:
    """The traces of a selection, newest first."""
    return cached.answer(questions.straggler_traces, selection)


def straggler_traces_of_job(cluster: str, job_id: str) -> pd.DataFrame:
    """The traces of a job, newest first."""
    return cached.answer(questions.straggler_traces_of_job, cluster, job_id)


def stragglers_of_fleet(selection: Selection) -> StragglerFleet:
    """Stragglers over all traces of a selection."""
    return cached.answer(questions.stragglers_of_fleet, selection)


def straggler_trace(trace_id: str) -> questions.StragglerTrace:
    """One trace with its results."""
    return cached.answer(questions.straggler_trace, trace_id)


def straggler_fix(trace_id: str, part: str) -> Fixed:
    """Step times before and after fixing a part."""
    return cached.answer(questions.straggler_fix, trace_id, part)


def straggler_timeline(
    trace_id: str, of: TimelineOf, *, part: str | None, steps: Sequence[int] | None
) -> str:
    """A timeline as JSON; large, so never cached."""
    return cached.fresh(questions.straggler_timeline, trace_id, of, part=part, steps=steps)
