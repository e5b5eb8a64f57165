"""One sentence that answers a page's question, and says no more than the numbers support."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.efficiency.ettr import EttrReport
    from analytics.estimate import Estimate
    from analytics.failures.summary import FailureSummary
    from analytics.reliability.mttf import MttfReport, SizeClass
    from app.questions import Coverage, Job, Node, RunEttr

LEAST_WIDTH = 0.0005
"""Of an interval that is said."""
_SPENT = {
    "queued": "waiting in the queue",
    "startup": "starting up",
    "checkpoint": "writing checkpoints",
    "lost": "work lost at interruptions",
}


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


def ettr(report: EttrReport, min_gpus: int) -> str:
    """What did the runs get out of their time?"""
    of = f" of {min_gpus:,} GPUs and more" if min_gpus > 1 else ""
    found = report.ettr
    if found.value is None:
        return f"No run{of} on several nodes ran in this selection."
    bounds = f" ({numbers.percent_interval(found)})" if _apart(found) else ""
    runs = f"{numbers.counted(report.n_runs, 'run')}{of}"
    whose = "its" if report.n_runs == 1 else "their"
    text = f"{runs} trained {numbers.percent(found.value)} of {whose} time{bounds}"
    part, share = max(report.shares.items(), key=lambda each: each[1])
    return f"{text}; {_SPENT[part]} took {numbers.percent(share)}." if share > 0 else f"{text}."


def run(found: RunEttr) -> str:
    """What did one run get out of its time?"""
    if found.ettr.value is None:
        return f"Run {found.run_id}: its ETTR is unknown."
    bounds = f" ({numbers.percent_interval(found.ettr)})" if _apart(found.ettr) else ""
    ended = numbers.counted(found.ettr.n, "interruption")
    return (
        f"Run {found.run_id} trained {numbers.percent(found.ettr.value)} of its time{bounds}, "
        f"with {ended} in {numbers.counted(len(found.attempts), 'attempt')}."
    )


def run_basis(found: RunEttr) -> str:
    """What a run was: name, user, size, cluster."""
    last = found.attempts.iloc[-1]
    measured = sorted({str(basis) for basis in found.attempts["basis"]})
    parts = [
        f"cluster {found.cluster}",
        *(str(last[c]) for c in ("name", "user", "account", "partition") if _is_text(last[c])),
        numbers.counted(found.n_gpus, "GPU"),
        f"parts from {', '.join(measured).replace('_', ' ')}",
        "all attempts, whatever the period",
    ]
    return " · ".join(parts)


def coverage(held: Coverage) -> str:
    """What does this rest on, and what is missing?"""
    present = sorted(set(held.sources["source"]))
    if not present:
        return "No source has a record in this selection."
    n_sources = len(present) + len(held.missing)
    verb = "has" if len(held.missing) == 1 else "have"
    text = f"{len(present)} of {numbers.counted(n_sources, 'source')} have records in this period"
    return f"{text}; {_listed(held.missing)} {verb} none." if held.missing else f"{text}."


def failures(summary: FailureSummary) -> str:
    """What fails, and whose fault is it?"""
    if not summary.n_ended and not summary.n_failed:
        return "No attempt ended in this selection."
    if not summary.n_failed:
        return f"None of {numbers.counted(summary.n_ended, 'attempt')} failed."
    n = {domain.domain: domain.n_attempts for domain in summary.by_domain}
    failed = [
        f"{summary.n_failed_attempts:,} of {numbers.counted(summary.n_ended, 'attempt')} failed"
        if summary.n_ended
        else "",
        f"{numbers.counted(summary.n_logged, 'failure')} of nodes known without jobs"
        if summary.n_logged
        else "",
    ]
    return (
        f"{' and '.join(part for part in failed if part)}: "
        f"{n['user']:,} by the user's program, {n['system_software']:,} by system software, "
        f"{n['hardware']:,} by hardware, {n['unknown']:,} without evidence of a cause."
    )


def job(found: Job | None, titles: Mapping[str, str]) -> str:
    """What became of a job, and why did it fail?"""
    if found is None:
        return "Which job?"
    attempts = found.attempts
    last, judged = attempts.iloc[-1], attempts[attempts["cause"].notna()]
    name, state = f"Job {found.job_id}", _text(last["state"])
    if judged.empty:
        count = (
            "" if len(attempts) == 1 else f" after {len(attempts):,} attempts, none of them failed"
        )
        return f"{name} {state}{count}."
    failed = judged.iloc[-1]
    where = f" on {failed['node']}" if _is_text(failed["node"]) else ""
    named = failed["cause"] != "unknown"
    cause = titles.get(failed["cause"], failed["cause"]) if named else "no evidence of a cause"
    why = f"{_text(failed['state'])}: {cause}{where if named else ''}"
    if len(attempts) == 1:
        return f"{name} {why}."
    of = f"{len(judged):,} of {len(attempts):,} attempts failed"
    if len(judged) == 1:
        return f"{name}: {of} ({why}); the last one {state}."
    return f"{name}: {of}, the latest {why}; the last attempt {state}."


def job_basis(found: Job | None) -> str:
    """What a job was: name, user, size, cluster."""
    if found is None:
        return "Type its number, follow a link, or pick a failed attempt."
    last = found.attempts.iloc[-1]
    gpus = last["n_gpus"]
    parts = [
        f"cluster {', '.join(found.attempts['cluster'].unique())}",
        *(str(last[c]) for c in ("name", "user", "account", "partition") if _is_text(last[c])),
        f"{numbers.counted(int(gpus), 'GPU')}" if gpus == gpus and gpus is not None else "",
        "all attempts, whatever the period",
    ]
    return " · ".join(part for part in parts if part)


def node(found: Node, numbers_of: Mapping[str, int]) -> str:
    """What happened on a node?"""
    return (
        f"{found.node} was out of service {numbers.counted(numbers_of['outages'], 'time')}, had "
        f"{numbers.counted(numbers_of['critical'], 'critical or fatal event')} and ended "
        f"{numbers.counted(numbers_of['failed_here'], 'attempt')} in this period."
    )


def _apart(estimate: Estimate) -> bool:
    """Whether an interval has a width that shows."""
    low, high = estimate.lower, estimate.upper
    return low is not None and high is not None and high - low >= LEAST_WIDTH


def _text(value: object) -> str:
    """What a record says, or that it does not."""
    return str(value) if _is_text(value) else numbers.UNKNOWN


def _is_text(value: object) -> bool:
    """Whether a record says something."""
    return isinstance(value, str) and bool(value)


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
