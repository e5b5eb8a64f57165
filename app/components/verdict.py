"""One sentence that answers a page's question, and says no more than the numbers support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import numbers

if TYPE_CHECKING:
    from analytics.reliability.mttf import MttfReport, SizeClass
    from app.questions import Coverage


def fleet(report: MttfReport) -> str:
    """How often does the fleet fail, and how long do its largest jobs run?"""
    rate, largest = _rate(report), report.largest_class
    return f"{rate}." if largest is None else f"{rate}; {_largest(largest)}."


def mttf(report: MttfReport) -> str:
    """How long until a job fails?"""
    if report.largest_class is None:
        return f"{_rate(report)}."
    text = _largest(report.largest_class)
    return f"{text[0].upper()}{text[1:]}."


def coverage(held: Coverage) -> str:
    """What does this rest on, and what is missing?"""
    present = sorted(set(held.sources["source"]))
    if not present:
        return "No source has a record in this selection."
    n_sources = len(present) + len(held.missing)
    verb = "has" if len(held.missing) == 1 else "have"
    text = f"{len(present)} of {numbers.counted(n_sources, 'source')} have records in this period"
    return f"{text}; {_listed(held.missing)} {verb} none." if held.missing else f"{text}."


def _rate(report: MttfReport) -> str:
    """How often the fleet fails, as far as it is known."""
    estimate, failures = report.rate.rate_per_1000_node_days, report.rate.failures
    if estimate.value is None:
        return _without_rate(report)
    if not failures:
        ran, bound = numbers.number(report.rate.exposure), numbers.number(estimate.upper)
        return f"No failure in {ran} node-days: at most {bound} per 1,000 node-days"
    value, interval = numbers.number(estimate.value), numbers.interval(estimate)
    return f"The fleet fails {value} times per 1,000 node-days ({interval}, n = {failures:,})"


def _without_rate(report: MttfReport) -> str:
    """Failures alone, where the time that nodes ran is unknown or zero."""
    failures, gap = report.rate.failures, report.mean_time_between_failures_hours
    if not failures:
        return "Nothing ran and nothing failed in this selection"
    text = numbers.counted(failures, "failure")
    if gap.value is not None:
        interval = numbers.duration_interval(gap)
        text += f", one every {numbers.duration(gap.value)} on average ({interval})"
    return f"{text}; how often a node fails is unknown"


def _largest(size: SizeClass) -> str:
    """How long the largest jobs run between failures."""
    job = f"a job of {numbers.gpus(size.gpus_from, size.gpus_to)}"
    mttf, interval = size.mttf_hours, numbers.duration_interval(size.mttf_hours)
    if mttf.value is None:
        return f"{job} runs {interval} between failures: none has failed"
    return (
        f"{job} runs {numbers.duration(mttf.value)} between failures ({interval}, n = {mttf.n:,})"
    )


def _listed(names: tuple[str, ...]) -> str:
    """Names in a sentence."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
