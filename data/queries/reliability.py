"""What failure rates are computed from: single failures, and exposure by day."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pandas as pd

from analytics.frames import FailureCounts
from data.queries import node_groups
from data.queries.exposure import (
    ATTEMPTS,
    FAILURES,
    LOGGED,
    job_failures,
    node_failure_days,
    node_failures,
    of_size,
    parameters,
    repair_minutes,
    runs,
    stacked,
)

if TYPE_CHECKING:
    from data.queries.selection import Selection
    from data.store import Store

Grouping = Literal["week", "partition", "rack", "node_age"]
GROUPINGS: tuple[Grouping, ...] = ("week", "partition", "rack", "node_age")

_SINGLE = ["cluster", "node", "failed_at", "key", "incident_id"]
_EXPOSURE = ["day", "exposure_node_days"]


def failure_counts(store: Store, selection: Selection) -> FailureCounts:
    """Failures and exposure of a selection by day and by size, and single failures."""
    ran, failed = runs(store, selection), job_failures(store, selection)
    counted = of_size(failed, selection.min_gpus)
    singles = stacked([counted[_SINGLE], node_failures(store, selection)[_SINGLE]])
    exposure = stacked(
        [
            of_size(ran, selection.min_gpus)[_EXPOSURE],
            node_failure_days(store, selection)[_EXPOSURE],
        ]
    )
    origin = singles["failed_at"].min()
    return FailureCounts(
        by_day=_by_day(singles, exposure),
        by_size=_by_size(ran, failed, selection.by_size_min_gpus),
        starts_hours=(singles["failed_at"] - origin).dt.total_seconds() / 3600.0,
        repair_minutes=repair_minutes(store, selection),
        by_hardware=int(counted["by_hardware"].sum()) if len(counted) else None,
        by_lost_node=int(counted["by_lost_node"].sum()) if len(counted) else None,
        exposure_known=bool(exposure["exposure_node_days"].notna().all()),
        **_about(store, selection),
    )


def groups(store: Store, selection: Selection, by: Grouping) -> pd.DataFrame:
    """Failures and exposure by group and day: columns group, day, failures, exposure_node_days.

    A week is named by its Monday (UTC). Failures of no known node, time of no named node, nodes
    of no known rack and nodes whose installation is not known form the group `unknown`, and so
    does what belongs to no partition. An exposure that is not known is NaN.
    """
    if by in ("rack", "node_age"):
        total = of_size(runs(store, selection), selection.min_gpus)
        exposure = node_groups.exposure(store, selection, by, total)
        failures = node_groups.failures(store, selection, by)
    else:
        exposure, failures = (
            frame.assign(group=_week(frame) if by == "week" else frame["partition"])
            for frame in _ran_and_failed(store, selection, by_partition=by == "partition")
        )
    keys = ["group", "day"]
    counts = failures.groupby(keys).size().rename("failures")
    days = exposure.groupby(keys)["exposure_node_days"]
    known = exposure["exposure_node_days"].notna().groupby([exposure[key] for key in keys]).all()
    table = pd.concat([counts, days.sum()], axis=1).fillna(0.0)
    table["exposure_node_days"] = table["exposure_node_days"].where(
        known.reindex(table.index, fill_value=True)
    )
    order = {name: place for place, name in enumerate(node_groups.AGES)} if by == "node_age" else {}
    return (
        table.reset_index()
        .sort_values(keys, key=lambda column: column.map(lambda value: order.get(value, value)))
        .reset_index(drop=True)
    )


def failure_rows(store: Store, selection: Selection, limit: int) -> pd.DataFrame:
    """The failures that a rate counts, newest first."""
    return store.frame(
        f"""WITH {FAILURES}
            SELECT failure.cluster, failed_at, job_id, attempt, jobs.state, n_gpus, n_nodes,
              jobs.partition, "user", account, verdict.node, cause, domain, confidence, method,
              evidence, failure.attempt_key
            FROM failure JOIN jobs USING (cluster, attempt_key)
            JOIN verdict USING (cluster, attempt_key, failed_at)
            UNION ALL BY NAME
            SELECT cluster, start_at AS failed_at, node, cause, subcause, repair_minutes, text,
              'node_failures' AS method, failure_key AS attempt_key
            FROM node_failures WHERE {LOGGED}
            ORDER BY failed_at DESC, attempt_key LIMIT {int(limit)}""",
        parameters(selection),
    )


def attempt_rows(
    store: Store, selection: Selection, *, gpus: tuple[int, int], limit: int
) -> pd.DataFrame:
    """Attempts of a size class (first and last number of GPUs, inclusive), longest first.

    They ran in the period or failed in it; `running_hours` and `failed` say what counts.
    """
    return store.frame(
        f"""WITH {ATTEMPTS}, {FAILURES},
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
        parameters(selection, min_gpus=selection.by_size_min_gpus)
        | {"first": gpus[0], "last": gpus[1]},
    )


def _ran_and_failed(
    store: Store, selection: Selection, *, by_partition: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Exposure and failures that count, of jobs and of nodes; nodes are of no known partition."""
    size = selection.min_gpus
    return (
        stacked(
            [
                of_size(runs(store, selection, by_partition=by_partition), size),
                node_failure_days(store, selection).assign(partition="unknown"),
            ]
        ),
        stacked(
            [
                of_size(job_failures(store, selection), size),
                node_failures(store, selection).assign(partition="unknown"),
            ]
        ),
    )


def _about(store: Store, selection: Selection) -> dict[str, Any]:
    """Basis, GPUs of a node (None where clusters differ), period, attempts without GPUs."""
    clusters = store.rows(
        """SELECT basis, CASE WHEN basis = 'gpu_time' THEN gpus_per_node END FROM clusters
           WHERE basis IS NOT NULL AND ($cluster IS NULL OR cluster = $cluster)""",
        {"cluster": selection.cluster},
    )
    sizes = {size for _, size in clusters} or {None}
    ((first, last, without),) = store.rows(
        f"""SELECT min(first_at), max(last_at), CAST(sum(without) AS BIGINT) FROM (
              SELECT min(start_at) AS first_at, max(coalesce(end_at, as_of_at)) AS last_at,
                count(*) FILTER (basis = 'gpu_time' AND coalesce(n_gpus, 0) = 0) AS without
              FROM jobs JOIN clusters USING (cluster)
              WHERE start_at IS NOT NULL AND ($to_at IS NULL OR start_at < $to_at)
                AND ($from_at IS NULL OR end_at IS NULL OR end_at > $from_at)
                AND ($cluster IS NULL OR jobs.cluster = $cluster)
                AND ($partition IS NULL OR partition = $partition)
                AND ($account IS NULL OR account = $account)
              UNION ALL
              SELECT min(start_at), max(start_at), 0 FROM node_failures WHERE {LOGGED})""",
        parameters(selection),
    )
    return {
        "basis": "+".join(sorted({basis for basis, _ in clusters})) or "nothing",
        "gpus_per_node": None if None in sizes or len(sizes) > 1 else float(sizes.pop()),
        "from_at": selection.from_at or first,
        "to_at": selection.to_at or last,
        "attempts_without_gpus": without or 0,
    }


def _by_day(failures: pd.DataFrame, exposure: pd.DataFrame) -> pd.DataFrame:
    """Failures, incidents (by their first failure here) and exposure of each day.

    Where no incident is known, failures of one node within one hour are one.
    """
    alone = failures["node"].fillna(failures["key"]) + failures["failed_at"].dt.strftime(" %F %H")
    firsts = (
        failures.assign(item=failures["incident_id"].fillna(alone))
        .sort_values("failed_at", kind="stable")
        .drop_duplicates(["cluster", "item"])
    )
    counts = [
        failures["failed_at"].dt.floor("D").value_counts().rename("failures"),
        firsts["failed_at"].dt.floor("D").value_counts().rename("incidents"),
        exposure.groupby("day")["exposure_node_days"].sum(),
    ]
    table: pd.DataFrame = pd.concat(counts, axis=1).fillna(0.0)
    return table.rename_axis("day").sort_index().reset_index()


def _by_size(ran: pd.DataFrame, failed: pd.DataFrame, min_gpus: int) -> pd.DataFrame:
    """Failures and running days of attempts by number of GPUs and day."""
    keys = ["n_gpus", "day"]
    ran, failed = (
        frame[~frame["node_time"] & frame["n_gpus"].ge(min_gpus)] for frame in (ran, failed)
    )
    counts = failed.astype({"n_gpus": "int64"}).groupby(keys).size().rename("failures")
    days = ran.astype({"n_gpus": "int64"}).groupby(keys)["running_days"].sum()
    return pd.concat([counts, days], axis=1).fillna(0.0).sort_index().reset_index()


def _week(frame: pd.DataFrame) -> pd.Series:
    """Date of the Monday (UTC) on or before each day."""
    day = frame["day"]
    monday: pd.Series = day - pd.to_timedelta(day.dt.dayofweek, unit="D")
    name: pd.Series = monday.dt.strftime("%Y-%m-%d")
    return name
