"""The headline numbers of a traced run, the rows that each opens, and how far to trust them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.figures.training import step_slowdown, worker_curve, worker_heat_map
from app.widgets import notice, table
from app.widgets.headline import Headline
from app.words import numbers, terms

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.estimate import Estimate
    from app.answers.training.stragglers import StragglerTrace
    from app.show.scope import Scope

LEAST_ERROR = 0.001
"""Simulation error below which its digits mean nothing."""
MOST_NAMED = 3
"""Steps left out that are named."""


def of(trace: StragglerTrace, scope: Scope) -> list[Headline]:
    """How slow, what it wastes, who does it, and how far to trust it."""
    slow, steps = trace.analysis.slowdowns, partial(_steps, trace, scope)
    n = f"n = {trace.slowdown.n:,}"
    error = slow.simulation_error
    return [
        Headline(
            terms.SLOWDOWN,
            _plain(trace.slowdown.value),
            _basis(trace.slowdown, partial(_plain, digits=3)),
            steps,
        ),
        *_wasted(trace, steps),
        Headline(
            terms.SLOWEST_WORKERS,
            _plain(slow.slowest.contribution.fixed_ratio),
            f"{numbers.counted(len(slow.slowest.workers), 'worker')} fixed, {n}",
            partial(_workers, trace, scope),
        ),
        Headline(
            terms.LAST_STAGE,
            _plain(slow.stages[-1].fixed_ratio),
            f"stage {len(slow.stages) - 1} fixed, {n}",
            partial(_recovered, trace, scope),
        ),
        Headline(
            terms.LAUNCH_SLOWDOWN,
            _plain(slow.launch_slowdown, 3),
            "simulation error "
            + (numbers.percent(error) if error >= LEAST_ERROR else "below 0.1 %"),
            steps,
        ),
    ]


def _wasted(trace: StragglerTrace, steps: Callable[[], None]) -> list[Headline]:
    """What it wastes: the share, and GPU-hours where the job's GPUs are known."""
    hours = trace.wasted_gpu_hours_per_day
    return [
        Headline(
            terms.WASTED_SHARE,
            numbers.percent(trace.wasted.value),
            _basis(trace.wasted, numbers.percent),
            steps,
        ),
        Headline(
            terms.WASTED_HOURS,
            numbers.UNKNOWN if hours is None else numbers.number(hours.value),
            "the job's GPUs are unknown" if hours is None else _basis(hours, numbers.number),
            steps,
        ),
    ]


def _plain(value: float | None, digits: int = 2) -> str:
    """A ratio near 1."""
    return numbers.UNKNOWN if value is None else f"{round(value, digits) + 0.0:.{digits}f}"


def _basis(estimate: Estimate, write: Callable[[float], str]) -> str:
    """Interval, level and n."""
    n = f"n = {estimate.n:,}"
    if estimate.lower is None or estimate.upper is None:
        return f"no interval from one step, {n}"
    level = numbers.level(estimate)
    return f"{write(estimate.lower)} to {write(estimate.upper)} ({level}), {n}"


@st.dialog("Steps behind the number", width="large")
def _steps(trace: StragglerTrace, scope: Scope) -> None:
    """S and traced time of each step."""
    frame = step_slowdown.frame(trace.analysis.slowdowns)
    table.show(frame, name="straggler_steps", scope=scope)


@st.dialog("Workers behind the number", width="large")
def _workers(trace: StragglerTrace, scope: Scope) -> None:
    """All workers, slowest first."""
    slow = trace.analysis.slowdowns
    frame = worker_heat_map.frame(slow, slow.workers, trace.nodes.node_of)
    table.show(frame, name="straggler_workers", scope=scope)


@st.dialog("What fixing workers and stages recovers", width="large")
def _recovered(trace: StragglerTrace, scope: Scope) -> None:
    """M_S of every stage and M_W by number of workers."""
    slow = trace.analysis.slowdowns
    workers = {f"{k} workers": ratio for k, ratio in slow.slowest.fixed_ratio.items()}
    stages = {f"stage {at}": each.fixed_ratio for at, each in enumerate(slow.stages)}
    frame = worker_curve.frame(workers | stages).rename(columns={"workers_fixed": "fixed"})
    table.show(frame, name="recovered", scope=scope)


def warn(trace: StragglerTrace) -> None:
    """Says where the simulation is off, or steps are missing."""
    slow = trace.analysis.slowdowns
    if slow.inaccurate:
        st.warning(
            f"The simulated step is {numbers.percent(slow.simulation_error)} off the traced one: "
            "the paper leaves out traces above 5 %. Long waits for data or launches make it so.",
            icon=":material/warning:",
        )
    dropped = slow.dropped_steps
    texts = [f"Step {each.step} left out: {each.reason}" for each in dropped[:MOST_NAMED]]
    if len(dropped) > MOST_NAMED:
        texts.append(f"{len(dropped) - MOST_NAMED:,} more steps left out.")
    notice.notes(texts)
