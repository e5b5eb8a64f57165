"""The headline numbers of ETTR, each with the runs behind it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.components import ettr_runs, glossary
from app.components.headline import Headline
from app.figures import numbers

if TYPE_CHECKING:
    from analytics.efficiency.ettr import EttrReport
    from analytics.estimate import Estimate
    from app.components.scope import Scope


def of_runs(report: EttrReport, scope: Scope) -> list[Headline]:
    """ETTR of all runs, of the median one, how many, how often ended, how long they waited."""
    opens = partial(ettr_runs.dialog, report, scope)
    gpu_hours = sum(group.gpu_hours for group in report.by_size)
    return [
        together(report, scope),
        Headline(
            glossary.ETTR_MEDIAN, _ratio(report.median.value), basis(report.median), opens,
            higher_is_better=True,
        ),
        Headline(
            glossary.RUNS, f"{report.n_runs:,}", f"{numbers.number(gpu_hours)} GPU-hours", opens
        ),
        Headline(
            glossary.FAILURES_PER_RUN,
            numbers.number(report.failures_per_run.value),
            f"{numbers.interval(report.failures_per_run)} "
            f"({numbers.level(report.failures_per_run)}), n = {report.failures_per_run.n:,}",
            opens,
        ),
        Headline(
            glossary.RUN_WAIT,
            numbers.duration(report.wait_hours.value),
            f"{numbers.duration_interval(report.wait_hours)} "
            f"({numbers.percent(report.wait_hours.conf_level)}), n = {report.wait_hours.n:,}",
            opens,
        ),
    ]  # fmt: skip


def together(report: EttrReport, scope: Scope) -> Headline:
    """ETTR of all runs together."""
    return Headline(
        glossary.ETTR,
        _ratio(report.ettr.value),
        basis(report.ettr),
        partial(ettr_runs.dialog, report, scope),
        higher_is_better=True,
    )


def basis(estimate: Estimate) -> str:
    """The interval of a ratio at its level, and n."""
    n = f"n = {estimate.n:,}"
    if estimate.lower is None or estimate.upper is None:
        return n
    level = numbers.percent(estimate.conf_level)
    return f"{_ratio(estimate.lower)} to {_ratio(estimate.upper)} ({level}), {n}"


def _ratio(value: float | None) -> str:
    """A ratio as ETTR is written."""
    return numbers.UNKNOWN if value is None else f"{value:.3f}"
