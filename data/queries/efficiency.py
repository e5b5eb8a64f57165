"""Rows of the ledger and of runs: where GPU-time went, what runs got out of theirs."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from data.errors import DataError
from data.interrupted import BY_RULE
from data.ledger_state import ledger_key
from data.said import VERDICTS
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from data.queries.selection import Selection
    from data.store import Store

LedgerGroup = Literal["day", "partition", "account", "size_class"]
"""What the ledger can be divided by."""

_COUNTS = """CAST(sum(gpu_seconds) AS BIGINT) AS gpu_seconds,
  CAST(sum(lower_gpu_seconds) AS BIGINT) AS lower_gpu_seconds,
  CAST(sum(upper_gpu_seconds) AS BIGINT) AS upper_gpu_seconds,
  coalesce(sum(variance_gpu_s2), 0.0) AS variance_gpu_s2,
  CAST(sum(n_attempts) AS BIGINT) AS n_attempts,
  CAST(sum(rule_gpu_seconds) AS BIGINT) AS rule_gpu_seconds"""
_CHOSEN = """($from_day IS NULL OR day >= $from_day) AND ($to_day IS NULL OR day < $to_day)
  AND ($cluster IS NULL OR cluster = $cluster)
  AND ($partition IS NULL OR partition = $partition)
  AND ($account IS NULL OR account = $account)
  AND ($min_gpus = 0 OR n_gpus >= $min_gpus)"""


class LedgerMissingError(DataError):
    """The ledger of the present records was not derived yet."""


def has_ledger(store: Store) -> bool:
    """Whether the ledger rests on the records, verdicts and site.toml of now."""
    ((key,),) = store.rows("SELECT ledger_key FROM store_meta")
    return bool(key == ledger_key(load_site(store.root), store.said))


def ledger_notes(store: Store) -> dict[str, Any]:
    """What the ledger takes for granted and leaves out.

    Raises
    ------
    LedgerMissingError
        Where it was not derived, or rests on older verdicts or settings.
    """
    if not has_ledger(store):
        raise LedgerMissingError(
            f"{store.root}: the ledger of these records is not built: `faultline ledger` builds it"
        )
    ((notes,),) = store.rows("SELECT ledger_notes FROM store_meta")
    return dict(json.loads(notes))


def ledger_rows(store: Store, selection: Selection, by: Sequence[LedgerGroup] = ()) -> pd.DataFrame:
    """GPU-time by cluster, bucket and cause, and by what else is asked for.

    The period counts in whole days of UTC: every day that it touches.
    """
    names = "".join(f"{name}, " for name in by)
    return store.frame(
        f"""SELECT {names}cluster, bucket, cause, {_COUNTS} FROM gpu_time WHERE {_CHOSEN}
            GROUP BY ALL ORDER BY {names}cluster, bucket, cause""",
        _parameters(selection),
    )


def bucket_rows(
    store: Store, selection: Selection, *, bucket: str, limit: int = 10_000
) -> pd.DataFrame:
    """The rows behind a bucket, the largest first."""
    return store.frame(
        f"""SELECT day, cluster, partition, account, size_class, n_gpus, cause,
              gpu_seconds / 3600 AS gpu_hours, lower_gpu_seconds / 3600 AS lower_gpu_hours,
              upper_gpu_seconds / 3600 AS upper_gpu_hours, n_attempts,
              rule_gpu_seconds / 3600 AS rule_gpu_hours
            FROM gpu_time WHERE {_CHOSEN} AND bucket = $bucket
            ORDER BY gpu_seconds DESC, day, cluster, partition, account, n_gpus, cause
            LIMIT $limit""",
        _parameters(selection) | {"bucket": bucket, "limit": limit},
    )


def lost_attempts(store: Store, selection: Selection, *, limit: int = 10_000) -> pd.DataFrame:
    """Attempts that infrastructure ended, those that lost most by the paper's rule first."""
    return store.frame(
        f"""WITH {VERDICTS}
            SELECT jobs.job_id, jobs.attempt, jobs.cluster, verdict.cause, verdict.domain,
              jobs.state, jobs.name, jobs."user", jobs.account, jobs.partition, jobs.n_gpus,
              jobs.start_at, jobs.end_at, verdict.node,
              {BY_RULE} / 3600 AS rule_gpu_hours, jobs.attempt_key
            FROM verdict JOIN jobs USING (cluster, attempt_key)
            WHERE (verdict.domain IN ('hardware', 'system_software') OR verdict.node_lost)
              AND jobs.n_gpus > 0 AND jobs.n_gpus >= $min_gpus
              AND ($from_day IS NULL OR end_at >= $from_day)
              AND ($to_day IS NULL OR end_at < $to_day)
              AND ($cluster IS NULL OR jobs.cluster = $cluster)
              AND ($partition IS NULL OR jobs.partition = $partition)
              AND ($account IS NULL OR jobs.account = $account)
            ORDER BY rule_gpu_hours DESC, end_at DESC LIMIT $limit""",
        _parameters(selection) | {"limit": limit},
    )


def run_rows(store: Store, selection: Selection, columns: Sequence[str] = ("*",)) -> pd.DataFrame:
    """Runs on several nodes that ran in the period, whole, by name; those of one node are left out.

    A run that has not ended ran until the records of its cluster end.
    """
    return store.frame(
        f"""SELECT {", ".join(columns)} FROM job_runs
           WHERE n_nodes > 1 AND scheduled_s > 0 AND n_gpus >= greatest($min_gpus, 1)
             AND ($from_at IS NULL OR $from_at <= coalesce(last_end_at, (
               SELECT as_of_at FROM clusters WHERE clusters.cluster = job_runs.cluster)))
             AND ($to_at IS NULL OR first_start_at < $to_at)
             AND ($cluster IS NULL OR cluster = $cluster)
             AND ($partition IS NULL OR partition = $partition)
             AND ($account IS NULL OR account = $account)
           ORDER BY run_id, cluster""",
        {name: getattr(selection, name) for name in
         ("from_at", "to_at", "cluster", "partition", "account", "min_gpus")},
    )  # fmt: skip


def runs_named(store: Store, runs: pd.DataFrame) -> pd.DataFrame:
    """All columns of the runs of a frame with cluster and run_id."""
    return store.frame(
        """SELECT job_runs.* FROM job_runs SEMI JOIN (
             SELECT unnest($clusters) AS cluster, unnest($runs) AS run_id)
             USING (cluster, run_id)""",
        {"clusters": runs["cluster"].tolist(), "runs": runs["run_id"].tolist()},
    )


def prices(store: Store) -> dict[str, tuple[float, str]]:
    """Price of a GPU-hour and its currency, of the clusters that state one."""
    return {
        cluster: (stated.gpu_hour_price, stated.currency or "")
        for cluster, stated in load_site(store.root).clusters.items()
        if stated.gpu_hour_price is not None
    }


def _parameters(selection: Selection) -> dict[str, Any]:
    """A selection as bound parameters: the whole days of UTC that it touches."""
    to_day = None if selection.to_at is None else _day(selection.to_at)
    if to_day is not None and selection.to_at is not None and to_day < selection.to_at:
        to_day += timedelta(days=1)
    return {
        "from_day": None if selection.from_at is None else _day(selection.from_at),
        "to_day": to_day,
        "cluster": selection.cluster,
        "partition": selection.partition,
        "account": selection.account,
        "min_gpus": selection.min_gpus,
    }


def _day(at: datetime) -> datetime:
    """Midnight in UTC before a time."""
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
