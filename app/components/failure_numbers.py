"""The headline numbers of failures, each with the attempts that it opens."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.components import failure_rows, glossary, headline
from app.components.headline import Headline
from app.figures import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from analytics.failures.summary import FailureSummary
    from app.components.scope import Scope


def of(summary: FailureSummary, scope: Scope) -> list[Headline]:
    """How many failed, how many for an unknown reason, by hardware, and what they took."""
    return [
        _failed(summary, scope),
        _unknown(summary, scope),
        _counted(summary, scope),
        _gpu_hours(summary, scope),
    ]


def _failed(summary: FailureSummary, scope: Scope) -> Headline:
    """Attempts with a verdict, of all that ended."""
    failed = summary.n_failed_attempts
    ratio = failed / summary.n_ended if summary.n_ended else None
    logged = f"; {summary.n_logged:,} more failures of nodes" if summary.n_logged else ""
    return headline.of_count(
        glossary.FAILED_ATTEMPTS,
        failed,
        of=summary.n_ended,
        basis=f"{numbers.percent(ratio)} of attempts that ended{logged}",
        opens=partial(failure_rows.dialog, scope, total=failed),
    )


def _unknown(summary: FailureSummary, scope: Scope) -> Headline:
    """Share without a known cause."""
    share = summary.unknown_ratio
    total = next((d.n_attempts for d in summary.by_domain if d.domain == "unknown"), 0)
    basis = f"{numbers.percent_interval(share)} ({numbers.level(share)}), n = {share.n:,}"
    return Headline(
        glossary.UNKNOWN_CAUSE,
        numbers.percent(share.value),
        basis if share.value is not None else "nothing failed",
        partial(failure_rows.dialog, scope, domain="unknown", total=total),
    )


def _counted(summary: FailureSummary, scope: Scope) -> Headline:
    """What the failure rate counts, and the two counts that it is made of."""
    return Headline(
        glossary.COUNTED_FAILURES,
        numbers.count(summary.n_counted),
        f"{summary.n_hardware:,} by hardware, {summary.n_node_lost:,} with a lost node",
        partial(failure_rows.dialog, scope, counted=True, total=summary.n_counted),
    )


def _gpu_hours(summary: FailureSummary, scope: Scope) -> Headline:
    """Running time of failed attempts, beside that of all that ended."""
    failed = _known(domain.gpu_hours for domain in summary.by_domain if domain.n_attempts)
    ended = _known(state.gpu_hours for state in summary.by_state)
    return Headline(
        glossary.FAILED_GPU_HOURS,
        numbers.count(failed),
        f"{numbers.percent(failed / ended if ended and failed is not None else None)} of all "
        "GPU-time",
        partial(failure_rows.dialog, scope, total=summary.n_failed_attempts),
    )


def _known(hours: Iterable[float | None]) -> float | None:
    """Sum of what is known; None where nothing is."""
    known = [each for each in hours if each is not None]
    return sum(known) if known else None
