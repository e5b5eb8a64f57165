"""Which attempts failed, with what verdict on what evidence?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd

from analytics.failures.summary import FailureSummary, failure_summary, verdicts_of_labels
from app.answers.columns import columns
from app.answers.content import Answer, Part, Table
from app.answers.failures.taxonomy import taxonomy
from app.answers.reliability import sight
from app.ask import EVERYTHING
from data.queries import failures as failure_queries
from data.queries import fleet as fleet_queries
from data.queries import reliability as reliability_queries

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

_COLUMNS = columns(
    "job_id", "attempt", "failed_at", "state", "cause", "domain", "confidence", "method", "node",
    "evidence", "n_gpus", "gpu_hours", "user", "account", "name", "partition", "cluster",
    "attempt_key", wide=("evidence", "gpu_hours", "user", "account", "name", "partition"),
)  # fmt: skip
COLUMNS = tuple(
    replace(column, title="Held (GPU-h)") if column.key == "gpu_hours" else column
    for column in _COLUMNS
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
    note = f"{logged:,} {known} known without an attempt, and not listed"
    return Answer(
        "",
        blocks=(_table(listed),),
        notes=(note,) if logged else (),
        record=listed,
        sheet=listed,
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
    n = _counted(ask(summarised, selection), cause, domain, counted=counted)
    whole = Part("Failed attempts", attempts, (selection, cause, domain, counted), total=n)
    return replace(_table(listed), everything=whole)


def behind(ask: Ask, *arguments: Any, limit: int = EVERYTHING) -> Table:
    """The same behind a number or a cause of a page that lists them too."""
    return replace(attempts(ask, *arguments, limit=limit), key="verdicts")


def _counted(
    of: FailureSummary, cause: str | None, domain: str | None, *, counted: bool
) -> int | None:
    """How many there are."""
    if counted:
        return None  # the summary counts those of failure logs too, which are not listed here
    if cause is not None:
        return sum(each.n_attempts for each in of.by_cause if each.cause == cause)
    if domain is not None:
        return of.n_failed_of([domain])
    return of.n_failed_attempts


def _table(listed: pd.DataFrame) -> Table:
    """The evidence that counts as one text."""
    shown = listed.assign(evidence=listed["evidence"].map(_counting))
    return Table(
        "attempts",
        "Failed attempts",
        COLUMNS,
        shown,
        "No failed attempt is recorded in this selection.",
    )


def _counting(evidence: Sequence[Mapping[str, object]]) -> str | None:
    """The texts that speak for the verdict, the strongest first; None where none does."""
    return " | ".join(str(each["text"]) for each in evidence if each.get("role") == "cause") or None
