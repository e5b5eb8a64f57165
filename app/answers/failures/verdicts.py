"""Which attempts failed, with what verdict on what evidence?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.summary import FailureSummary, failure_summary, verdicts_of_labels
from app.answers.columns import KNOWN, columns
from app.answers.content import Answer, Part, Table
from app.answers.failures.taxonomy import named, taxonomy
from app.answers.reliability import sight
from app.ask import EVERYTHING
from data.queries import failures as failure_queries
from data.queries import fleet as fleet_queries
from data.queries import reliability as reliability_queries

if TYPE_CHECKING:
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

_OF_JOBS = ("user", "account", "name", "partition")
COLUMNS = (
    *columns("job_id", "attempt", "failed_at", "state", "cause", "domain", "confidence", "method"),
    *columns("node", "evidence", "n_gpus", wide=("evidence",)),
    replace(KNOWN["gpu_hours"], title="Held (GPU-h)", wide=True),
    *columns(*_OF_JOBS, wide=_OF_JOBS),
    *columns("cluster", "attempt_key"),
)


def summarised(store: Store, selection: Selection, *, conf_level: float = 0.90) -> FailureSummary:
    """Counts, shares and rates of failures by state, cause and domain."""
    counts = reliability_queries.failure_counts(store, selection)
    exposure = pd.DataFrame(counts.by_day)[["day", "exposure_node_days"]]
    if not counts.exposure_known:
        exposure = exposure.assign(exposure_node_days=float("nan"))
    known = taxonomy(store)
    logged = verdicts_of_labels(failure_queries.logged_by_cause(store, selection), known)
    by_cause = failure_queries.by_cause(store, selection)
    summary = failure_summary(
        failure_queries.by_state(store, selection),
        pd.concat([by_cause, logged], ignore_index=True) if len(logged) else by_cause,
        exposure,
        counted=counts.counted,
        running_gpu_seconds=failure_queries.running_gpu_seconds(store, selection),
        causes=known.causes,
        conf_level=conf_level,
    )
    return replace(
        summary,
        timezone=fleet_queries.zone(store, selection.cluster),
        sight=sight.sight(store, selection),
    )


def answer(
    ask: Ask,
    selection: Selection,
    *,
    cause: str | None = None,
    domain: str | None = None,
    limit: int = EVERYTHING,
) -> Answer:
    """One verdict an attempt, the latest first."""
    listed = ask(failure_queries.verdict_rows, selection, cause=cause, domain=domain, limit=limit)
    logged = ask(summarised, selection).n_logged
    known = "failure is" if logged == 1 else "failures are"
    notes = (f"{logged:,} {known} known without an attempt, and not listed",) if logged else ()
    return Answer(
        "", blocks=(_table(named(ask, listed)),), notes=notes, record=listed, sheet=listed
    )


def attempts(
    ask: Ask,
    selection: Selection,
    cause: str | None = None,
    domain: str | None = None,
    counted: bool = False,
    *,
    limit: int = EVERYTHING,
) -> Table:
    """The latest failed attempts, of one cause or domain or of those that the rate counts."""
    listed = ask(
        failure_queries.verdict_rows,
        selection,
        cause=cause,
        domain=domain,
        counted=counted,
        limit=limit,
    )
    summary = ask(summarised, selection)
    n: int | None = summary.n_failed_attempts
    if counted:
        n = None  # the summary counts those of failure logs too, which are not listed here
    elif cause is not None:
        n = sum(count.n_attempts for count in summary.by_cause if count.cause == cause)
    elif domain is not None:
        n = summary.n_failed_of([domain])
    whole = Part("Failed attempts", attempts, (selection, cause, domain, counted), total=n)
    return replace(_table(named(ask, listed)), everything=whole)


def behind(ask: Ask, *arguments: Any, limit: int = EVERYTHING) -> Table:
    """The same behind a number or a cause of a page that lists them too."""
    return replace(attempts(ask, *arguments, limit=limit), key="verdicts")


def _table(listed: pd.DataFrame) -> Table:
    """The texts that speak for a verdict as one, the strongest first."""
    evidence = [
        " | ".join(str(piece["text"]) for piece in pieces if piece.get("role") == "cause") or None
        for pieces in listed["evidence"]
    ]
    empty = "No failed attempt is recorded in this selection."
    shown = listed.assign(evidence=pd.Series(evidence, listed.index, dtype=object))
    return Table("attempts", "Failed attempts", COLUMNS, shown, empty)
