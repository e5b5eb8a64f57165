"""What became of the attempts of one owner: how many ended how, whose fault, at what loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.failures.taxonomy import DOMAINS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

PREEMPTED = "preempted"
"""Stands for a cause where an attempt ended for another job, which is no failure."""


@dataclass(frozen=True)
class OwnJobs:
    """Attempts of one owner in a period; plain counts and sums, nothing is estimated."""

    n_attempts: int
    n_open: int
    """Of them, not ended yet."""
    n_failed: int
    """Of them, with a verdict."""
    n_preempted: int
    """Of them, ended for another job."""
    by_domain: Mapping[str, int]
    """Failed attempts by the domain at fault, each of the four."""
    n_interrupted: int
    """Attempts that infrastructure, preemption or a requeue ended: those that lose by the rule."""
    lost_gpu_hours: float | None
    """Sum of `lost_gpu_hours` over the interrupted; None where that of none is known."""
    n_lost_unknown: int
    """Interrupted attempts whose loss is not known, so that the sum is a lower bound."""
    own_gpu_hours: float | None
    """GPU-hours held by attempts that the program of the owner ended; None where unknown."""
    n_own_unknown: int
    """Of these attempts, those whose GPU-hours are not known."""
    by_cause: pd.DataFrame
    """One row a cause, that which held most GPU-hours first: cause, domain, n_attempts,
    gpu_hours and lost_gpu_hours (NaN where unknown), and of the latest attempt last_at, cluster,
    job_id, attempt, evidence."""


def own_jobs(attempts: pd.DataFrame) -> OwnJobs:
    """Counts and sums over attempts.

    Parameters
    ----------
    attempts : DataFrame
        One row an attempt, the latest first: cluster, job_id, attempt, end_at, cause, domain,
        evidence (null without a verdict), bucket (null where nothing interrupted it), gpu_hours,
        lost_gpu_hours (null where unknown).

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"cluster": "c", "job_id": ["2", "1"], "attempt": 1,
    ...     "end_at": pd.Timestamp("2026-01-05", tz="UTC"),
    ...     "cause": ["value_error", None], "domain": ["user", None], "evidence": None,
    ...     "bucket": None, "gpu_hours": [8.0, 16.0], "lost_gpu_hours": [None, None]})
    >>> found = own_jobs(rows)
    >>> found.n_failed, found.by_domain["user"], found.own_gpu_hours, found.lost_gpu_hours
    (1, 1, 8.0, 0.0)
    """
    failed, interrupted = (how_ended(attempts, how) for how in ("failed", "interrupted"))
    own = how_ended(attempts, "own")
    preempted = attempts["cause"].isna() & attempts["bucket"].notna()
    counts = attempts["domain"].value_counts()
    return OwnJobs(
        n_attempts=len(attempts),
        n_open=int(attempts["end_at"].isna().sum()),
        n_failed=len(failed),
        n_preempted=int(preempted.sum()),
        by_domain={domain: int(counts.get(domain, 0)) for domain in DOMAINS},
        n_interrupted=len(interrupted),
        lost_gpu_hours=_sum(interrupted["lost_gpu_hours"]),
        n_lost_unknown=int(interrupted["lost_gpu_hours"].isna().sum()),
        own_gpu_hours=_sum(own["gpu_hours"]),
        n_own_unknown=int(own["gpu_hours"].isna().sum()),
        by_cause=_by_cause(attempts[attempts["cause"].notna() | preempted]),
    )


def how_ended(attempts: pd.DataFrame, how: str) -> pd.DataFrame:
    """Attempts that ended so.

    Parameters
    ----------
    attempts
        As of `own_jobs`.
    how
        ``failed``; ``infrastructure`` or ``own`` by the domain of the verdict; ``interrupted`` by
        infrastructure, preemption or a requeue; else the name of a cause, or ``preempted``.
    """
    cause, domain, interrupted = attempts["cause"], attempts["domain"], attempts["bucket"].notna()
    ends = {
        "failed": cause.notna(),
        "infrastructure": domain.isin(["hardware", "system_software"]),
        "own": domain.eq("user"),
        "interrupted": interrupted,
        PREEMPTED: interrupted & cause.isna(),
    }
    return attempts[ends[how] if how in ends else cause.eq(how)]


def strongest(evidence: Sequence[Mapping[str, object]] | None) -> str | None:
    """The text of the evidence that speaks most for its verdict; None where none does.

    >>> strongest([{"role": "other", "text": "slow"}, {"role": "cause", "text": "Xid 79"}])
    'Xid 79'
    >>> strongest(None) is None
    True
    """
    if not isinstance(evidence, list | tuple):
        return None
    texts = (str(e["text"]) for e in evidence if e.get("role") == "cause" and e.get("text"))
    return next(texts, None)


def _by_cause(ended: pd.DataFrame) -> pd.DataFrame:
    """Attempts that ended early by cause, with the latest of each."""
    named = ended.assign(cause=ended["cause"].fillna(PREEMPTED))
    grouped = named.groupby("cause", sort=True)
    sums = grouped[["gpu_hours", "lost_gpu_hours"]].sum(min_count=1)
    latest = named.drop_duplicates("cause").set_index("cause")
    told = latest[["domain", "end_at", "cluster", "job_id", "attempt", "evidence"]]
    rows = sums.join(told.rename(columns={"end_at": "last_at"}))
    rows.insert(0, "n_attempts", grouped.size())
    rows = rows.sort_values(["gpu_hours", "n_attempts"], ascending=False, kind="stable")
    return rows.reset_index()


def _sum(hours: pd.Series) -> float | None:
    """Their sum, 0 of none; None where there are some and none is known."""
    if len(hours) and hours.isna().all():
        return None
    return float(hours.sum())
