"""Failures and exposure: single failures, by day and size, by week, partition and node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.frames import FailureCounts, sums_by_group
from data.filters import Filter, equal
from data.queries.exposure import (
    attempts_of,
    chosen,
    failures_of,
    job_failures,
    node_exposure,
    node_failure_days,
    node_failures,
    node_failures_of,
    of_size,
    repair_minutes,
    runs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    from numpy.typing import NDArray

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

_RAN_WITHIN = Filter(of="jobs", overlaps=("start_at", "end_at - INTERVAL 1 MICROSECOND"))
"""Attempts that ran in the period; one that ended as it began did not."""
_SINGLE = ("cluster", "node", "failed_at", "day", "key", "incident_id")
_SIZE_AND_DAY = [("n_gpus", "i8"), ("day", "M8[us]")]
EXPOSURE = ("day", "exposure_node_days")


def failure_counts(store: Store, selection: Selection, *, by_node: bool = False) -> FailureCounts:
    """Failures and exposure of a selection by day and size, single failures; by node if asked."""
    ran, failed = runs(store, selection), job_failures(store, selection)
    counted = of_size(failed, selection.min_gpus)
    singles = together(_SINGLE, counted, node_failures(store, selection))
    exposure = together(
        EXPOSURE, of_size(ran, selection.min_gpus), node_failure_days(store, selection)
    )
    has_attempts = len(counted["key"]) > 0
    return FailureCounts(
        by_day=_by_day(singles, exposure),
        by_size=_by_size(ran, failed, selection.by_size_min_gpus),
        by_node=_by_node(store, selection, failed) if by_node else None,
        starts_hours=_hours(singles["failed_at"]),
        repair_minutes=repair_minutes(store, selection),
        definition=selection.definition,
        by_hardware=int(counted["by_hardware"].sum()) if has_attempts else None,
        by_system_software=int(counted["by_system_software"].sum()) if has_attempts else None,
        by_lost_node=int(counted["by_lost_node"].sum()) if has_attempts else None,
        exposure_known=not np.isnan(exposure["exposure_node_days"]).any(),
        **_about(store, selection),
    )


def failure_rows(store: Store, selection: Selection, limit: int) -> pd.DataFrame:
    """The failures that a rate counts, newest first."""
    return store.frame(
        f"""WITH {failures_of(selection)}
            SELECT failure.cluster, failed_at, job_id, attempt, jobs.state, n_gpus, n_nodes,
              jobs.partition, "user", account, verdict.node, cause, verdict.domain, confidence,
              method, evidence, failure.attempt_key
            FROM failure JOIN jobs USING (cluster, attempt_key)
            JOIN verdict USING (cluster, attempt_key, failed_at)
            UNION ALL BY NAME
            SELECT cluster, start_at AS failed_at, node, cause, subcause, repair_minutes, text,
              'node_failures' AS method, failure_key AS attempt_key
            FROM node_failures WHERE {node_failures_of(selection)}
            ORDER BY failed_at DESC, attempt_key LIMIT {int(limit)}""",
        selection.parameters,
    )


def attempt_rows(
    store: Store, selection: Selection, *, gpus: tuple[int, int], limit: int
) -> pd.DataFrame:
    """Attempts of a size class (first and last number of GPUs, inclusive), longest first.

    They ran in the period or failed in it; `running_hours` and `failed` say what counts.
    """
    return store.frame(
        f"""WITH {attempts_of(selection)}, {failures_of(selection)},
            counted AS (
              SELECT *, greatest(0, end_us - begin_us) / 3.6e9 AS running_hours,
                (cluster, attempt_key) IN (SELECT cluster, attempt_key FROM failure) AS failed
              FROM attempt WHERE units BETWEEN $first AND $last
                AND cluster IN (SELECT cluster FROM clusters WHERE basis = 'gpu_time')),
            longest AS (
              SELECT id, running_hours, failed FROM counted WHERE running_hours > 0 OR failed
              ORDER BY running_hours DESC, cluster, attempt_key LIMIT {int(limit)})
            SELECT jobs.cluster, job_id, attempt, state, n_gpus, n_nodes, start_at, end_at,
              running_hours, partition, "user", account, failed, attempt_key
            FROM longest JOIN jobs ON jobs.rowid = longest.id
            ORDER BY running_hours DESC, cluster, attempt_key""",
        selection.by_size.parameters | {"first": gpus[0], "last": gpus[1]},
    )


def _about(store: Store, selection: Selection) -> dict[str, Any]:
    """Basis, GPUs of a node (None where clusters differ), period, attempts without GPUs."""
    clusters = store.rows(
        f"""SELECT basis, CASE WHEN basis = 'gpu_time' THEN gpus_per_node END FROM clusters
            WHERE basis IS NOT NULL AND {equal(cluster=selection.cluster)}""",
        selection.parameters,
    )
    sizes = {size for _, size in clusters} or {None}
    ((first, last, without),) = store.rows(
        f"""SELECT min(first_at), max(last_at), CAST(sum(without) AS BIGINT) FROM (
              SELECT min(start_at) AS first_at, max(coalesce(end_at, as_of_at)) AS last_at,
                count(*) FILTER (basis = 'gpu_time' AND coalesce(n_gpus, 0) = 0) AS without
              FROM jobs JOIN clusters USING (cluster)
              WHERE start_at IS NOT NULL AND {_RAN_WITHIN.where(selection)}
              UNION ALL
              SELECT min(start_at), max(start_at), 0 FROM node_failures
              WHERE {node_failures_of(selection)})""",
        selection.parameters,
    )
    return {
        "basis": "+".join(sorted({basis for basis, _ in clusters})) or "nothing",
        "gpus_per_node": None if None in sizes or len(sizes) > 1 else float(sizes.pop()),
        "from_at": selection.from_at or first,
        "to_at": selection.to_at or last,
        "attempts_without_gpus": without or 0,
    }


def together(names: Sequence[str], *tables: Columns) -> Columns:
    """The rows of tables one below the other."""
    return {name: np.concatenate([table[name] for table in tables]) for name in names}


def _hours(times: NDArray[np.datetime64]) -> NDArray[np.float64]:
    """Hours since the first of the times."""
    passed = (times - times.min() if len(times) else times).astype(np.int64)
    hours: NDArray[np.float64] = passed / 1_000_000 / 3600.0
    return hours


def _by_day(failures: Columns, exposure: Columns) -> Columns:
    """Failures, incidents (by their first failure here) and exposure of each day."""
    days = np.unique(np.concatenate([failures["day"], exposure["day"]]))
    n_days = len(days)
    exposed = np.searchsorted(days, exposure["day"])
    return {
        "day": days,
        "failures": np.bincount(np.searchsorted(days, failures["day"]), minlength=n_days),
        "incidents": np.bincount(
            np.searchsorted(days, _days_of_incidents(failures)), minlength=n_days
        ),
        "exposure_node_days": np.array(
            sums_by_group(exposed, exposure["exposure_node_days"], n_days)
        ),
    }


def _days_of_incidents(failures: Columns) -> NDArray[np.datetime64]:
    """The day on which each incident had its first failure.

    Where no incident is known, failures of one node within one hour are one.
    """
    hours = failures["failed_at"].astype("datetime64[h]").astype(np.int64)
    names = ("cluster", "incident_id", "node", "key")
    days: dict[tuple[str, Any], int] = {}
    for cluster, incident, node, key, hour in zip(
        *(failures[name].tolist() for name in names), hours.tolist(), strict=True
    ):
        item = incident or (node or key, hour)
        days[cluster, item] = min(hour // 24, days.get((cluster, item), hour // 24))
    return np.array(list(days.values()), np.int64).astype("datetime64[D]").astype("datetime64[us]")


def _by_node(store: Store, selection: Selection, failed: Columns) -> Columns:
    """Failures of all sizes and exposure of each node that has any."""
    held = node_exposure(store, selection)
    singles = together(("cluster", "node"), failed, node_failures(store, selection))
    place = {node: at for at, node in enumerate(zip(held["cluster"], held["node"], strict=True))}
    failures = np.zeros(len(place), dtype=np.int64)
    for node in zip(singles["cluster"], singles["node"], strict=True):
        if node in place:
            failures[place[node]] += 1
    return {"failures": failures, "exposure_node_days": held["exposure_node_days"]}


def _by_size(ran: Columns, failed: Columns, min_gpus: int) -> Columns:
    """Failures and running days of attempts by number of GPUs and day."""
    ran, failed = (
        chosen(rows, ~rows["node_time"] & (rows["n_gpus"] >= min_gpus)) for rows in (ran, failed)
    )
    ran_on, failed_on = (
        np.rec.fromarrays([rows["n_gpus"], rows["day"]], dtype=_SIZE_AND_DAY)
        for rows in (ran, failed)
    )
    keys = np.unique(np.concatenate([ran_on, failed_on]))
    return {
        "n_gpus": keys["n_gpus"],
        "day": keys["day"],
        "failures": np.bincount(np.searchsorted(keys, failed_on), minlength=len(keys)),
        "running_days": np.array(
            sums_by_group(np.searchsorted(keys, ran_on), ran["running_days"], len(keys))
        ),
    }
