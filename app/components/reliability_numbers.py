"""The headline numbers of failure rate and MTTF, each with the rows that it opens."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from app.components import glossary, headline, rows

if TYPE_CHECKING:
    from analytics.reliability.mttf import MttfReport
    from app.components.headline import Headline
    from app.components.scope import Scope


def failure_rate(report: MttfReport, before: MttfReport | None, scope: Scope) -> Headline:
    """Failures per 1,000 node-days."""
    return headline.of_rate(
        glossary.FAILURE_RATE,
        report.rate.rate_per_1000_node_days,
        None if before is None else before.rate.rate_per_1000_node_days,
        opens=partial(rows.failures, scope, report.rate.failures),
    )


def incident_rate(report: MttfReport, before: MttfReport | None, scope: Scope) -> Headline:
    """Incidents per 1,000 node-days."""
    return headline.of_rate(
        glossary.INCIDENT_RATE,
        report.incident_rate.rate_per_1000_node_days,
        None if before is None else before.incident_rate.rate_per_1000_node_days,
        opens=partial(rows.failures, scope, report.rate.failures),
    )


def node_mttf(report: MttfReport, before: MttfReport | None, scope: Scope) -> Headline:
    """MTTF of one node."""
    return headline.of_duration(
        glossary.NODE_MTTF,
        report.rate.mttf_hours,
        None if before is None else before.rate.mttf_hours,
        opens=partial(rows.failures, scope, report.rate.failures),
    )


def largest_jobs(report: MttfReport, before: MttfReport | None, scope: Scope) -> Headline:
    """MTTF of the largest class that ran; where there is none, the mean gap between failures."""
    largest = report.largest_class
    if largest is None:
        return between_failures(report, before, scope)
    earlier = () if before is None else before.by_size
    same = next((c.mttf_hours for c in earlier if c.gpus_to == largest.gpus_to), None)
    return headline.of_duration(
        glossary.largest_jobs(largest.gpus_from, largest.gpus_to),
        largest.mttf_hours,
        same,
        opens=partial(rows.attempts, scope, largest.gpus_from, largest.gpus_to),
    )


def of_mttf(report: MttfReport, before: MttfReport | None, scope: Scope) -> list[Headline]:
    """The four headline numbers of MTTF; where a source states repairs, theirs is one of them."""
    second = repair if report.mean_repair_hours.n else node_mttf
    shown = (largest_jobs, second, failure_rate, incident_rate)
    return [of(report, before, scope) for of in shown]


def repair(report: MttfReport, before: MttfReport | None, scope: Scope) -> Headline:
    """Mean time to repair, of which less is better."""
    shown = headline.of_duration(
        glossary.REPAIR,
        report.mean_repair_hours,
        None if before is None else before.mean_repair_hours,
        opens=partial(rows.failures, scope, report.rate.failures),
    )
    return replace(shown, higher_is_better=False)


def between_failures(report: MttfReport, before: MttfReport | None, scope: Scope) -> Headline:
    """Mean gap between failures of the whole selection."""
    return headline.of_duration(
        glossary.BETWEEN_FAILURES,
        report.mean_time_between_failures_hours,
        None if before is None else before.mean_time_between_failures_hours,
        opens=partial(rows.failures, scope, report.rate.failures),
    )
