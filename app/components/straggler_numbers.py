"""The headline numbers of a traced run, each with the rows that it opens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.components import glossary, table
from app.components.headline import Headline
from app.figures import numbers
from app.figures.training import step_slowdown, worker_curve, worker_heat_map

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from analytics.estimate import Estimate
    from app.components.scope import Scope
    from app.questions import StragglerTrace

LEAST_ERROR = 0.001
"""Simulation error below which its digits mean nothing."""


def of(found: StragglerTrace, scope: Scope) -> list[Headline]:
    """How slow, what it wastes, who does it, and how far to trust it."""
    results, steps = found.results, partial(_steps, found, scope)
    n = f"n = {found.slowdown.n:,}"
    hours = found.wasted_gpu_hours_per_day
    error = _small(results["simulation_error_ratio"])
    return [
        Headline(
            glossary.SLOWDOWN,
            _plain(found.slowdown.value),
            _basis(found.slowdown, partial(_plain, digits=3)),
            steps,
        ),
        Headline(
            glossary.WASTED_SHARE,
            numbers.percent(found.wasted.value),
            _basis(found.wasted, numbers.percent),
            steps,
        ),
        Headline(
            glossary.WASTED_HOURS,
            numbers.UNKNOWN if hours is None else numbers.number(hours.value),
            "the job's GPUs are unknown" if hours is None else _basis(hours, numbers.number),
            steps,
        ),
        Headline(
            glossary.SLOWEST_WORKERS,
            _plain(results["M_W"]["Mw"]),
            f"{numbers.counted(_n_slowest(found), 'worker')} fixed, {n}",
            partial(_workers, found, scope),
        ),
        Headline(
            glossary.LAST_STAGE,
            _plain(results["M_S"]["Ms"]),
            f"stage {found.facts['pp'] - 1} fixed, {n}",
            partial(_curve, found, scope),
        ),
        Headline(
            glossary.LAUNCH_SLOWDOWN,
            _plain(results["launch_slowdown"], 3),
            f"simulation error {error}",
            steps,
        ),
    ]


def _n_slowest(found: StragglerTrace) -> int:
    return len(found.results["slowest_workers"])


def _small(ratio: float) -> str:
    """A percentage whose digits below a tenth mean nothing."""
    return numbers.percent(ratio) if ratio >= LEAST_ERROR else "below 0.1 %"


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
def _steps(found: StragglerTrace, scope: Scope) -> None:
    """S and traced time of each step."""
    frame = step_slowdown.frame(found.results["per_step_S"], found.results["step_t_base"])
    table.show(frame, name="straggler_steps", scope=scope)


@st.dialog("Workers behind the number", width="large")
def _workers(found: StragglerTrace, scope: Scope) -> None:
    """All workers, slowest first."""
    table.show(workers(found), name="straggler_workers", scope=scope)


@st.dialog("What fixing workers and stages recovers", width="large")
def _curve(found: StragglerTrace, scope: Scope) -> None:
    """M_S of every stage and M_W by number of workers."""
    stages = {f"stage {at}": each["rem"] for at, each in enumerate(found.results["M_stages"])}
    frame = worker_curve.frame({f"{k} workers": v for k, v in curve(found).items()} | stages)
    table.show(frame.rename(columns={"workers_fixed": "fixed"}), name="recovered", scope=scope)


def workers(found: StragglerTrace) -> pd.DataFrame:
    """All workers, slowest first."""
    results = found.results
    frame = worker_heat_map.frame(results["S_w_exact"], results["S_w"], found.nodes.node_of)
    return frame.sort_values("slowdown_exact", ascending=False, kind="stable", ignore_index=True)


def curve(found: StragglerTrace) -> dict[int, float | None]:
    """M_W by number of workers."""
    return {int(k): value for k, value in found.results["M_W_curve"].items()}
