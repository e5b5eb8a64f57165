"""Failures and exposure: single failures, by day and size, by week, partition and node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from analytics.frames import FailureCounts, sums_by_group
from data.filters import Filter, equal
from data.queries.exposure import (
    DAY_US,
    SPANS,
    attempts_of,
    chosen,
    failures_of,
    job_failures,
    node_days_of,
    node_failure_days,
    node_failures,
    node_failures_of,
    of_size,
    repair_minutes,
    runs,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.frames import Columns, RateGroup
    from data.filters import Selection
    from data.store import Store

_RAN_WITHIN = Filter(of="jobs", overlaps=("start_at", "end_at - INTERVAL 1 MICROSECOND"))
"""Attempts that ran in the period; one that ended as it began did not."""
_SINGLE = ("cluster", "node", "failed_at", "day", "key", "incident_id")
_SIZE_AND_DAY = [("n_gpus", "i8"), ("day", "M8[us]")]
_EXPOSURE = ("day", "exposure_node_days")


def failure_counts(store: Store, selection: Selection) -> FailureCounts:
    """Failures and exposure of a selection by day and by size, and single failures."""
    ran, failed = runs(store, selection), job_failures(store, selection)
    counted = of_size(failed, selection.min_gpus)
    singles = _together(_SINGLE, counted, node_failures(store, selection))
    exposure = _together(
        _EXPOSURE, of_size(ran, selection.min_gpus), node_failure_days(store, selection)
    )
    has_attempts = len(counted["key"]) > 0
    return FailureCounts(
        by_day=_by_day(singles, exposure),
        by_size=_by_size(ran, failed, selection.by_size_min_gpus),
        starts_hours=_hours(singles["failed_at"]),
        repair_minutes=repair_minutes(store, selection),
        by_hardware=int(counted["by_hardware"].sum()) if has_attempts else None,
        by_lost_node=int(counted["by_lost_node"].sum()) if has_attempts else None,
        exposure_known=not np.isnan(exposure["exposure_node_days"]).any(),
        **_about(store, selection),
    )


def failure_rows(store: Store, selection: Selection, limit: int) -> pd.DataFrame:
    """The failures that a rate counts, newest first."""
    return store.frame(
        f"""WITH {failures_of(selection)}
            SELECT failure.cluster, failed_at, job_id, attempt, jobs.state, n_gpus, n_nodes,
              jobs.partition, "user", account, verdict.node, cause, domain, confidence, method,
              evidence, failure.attempt_key
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


def _together(names: Sequence[str], *tables: Columns) -> Columns:
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


ROUNDING = 1e-9
"""Share of a day's exposure that two orders of addition may differ by."""
NodeGrouping = Literal["rack", "node_age"]
_AGES_BELOW = {
    30: "under 1 month",
    91: "1 to 3 months",
    183: "3 to 6 months",
    365: "6 to 12 months",
    730: "1 to 2 years",
}
"""Days since a node was installed, and the group of those below."""
AGES = (*_AGES_BELOW.values(), "over 2 years", "unknown")

_GROUPS = {
    "rack": "coalesce(rack, 'unknown')",
    "node_age": "CASE WHEN installed_day IS NULL OR day < installed_day THEN 'unknown' "
    + " ".join(f"WHEN day - installed_day < {n} THEN '{age}'" for n, age in _AGES_BELOW.items())
    + " ELSE 'over 2 years' END",
}

_PIECES = f"""
piece AS (
  SELECT * EXCLUDE (first_day, last_day), first_day AS day, end_us - begin_us AS run_us
  FROM span WHERE first_day = last_day
  UNION ALL
  SELECT * EXCLUDE (first_day, last_day),
    least(end_us, (day + 1) * {DAY_US}) - greatest(begin_us, day * {DAY_US})
  FROM (SELECT *, unnest(range(first_day, last_day + 1)) AS day
        FROM span WHERE first_day < last_day))
"""
"""Attempts split at midnight UTC; what ran on one day goes round unnest, which costs most."""

_SPELLS = f"""
seen AS (SELECT *, epoch_us(first_seen_at) // {DAY_US} AS seen_day,
           row_number() OVER (
             PARTITION BY cluster, node ORDER BY first_seen_at NULLS FIRST) AS place
         FROM nodes),
spell AS (SELECT cluster, node, rack, source,
            CASE WHEN source = 'inventory' THEN seen_day END AS installed_day,
            CASE WHEN place = 1 THEN -1000000 ELSE seen_day END AS from_day,
            coalesce(lead(seen_day) OVER (PARTITION BY cluster, node ORDER BY place), 10000000)
              AS until_day
          FROM seen)
"""
"""Spells of nodes by day: a node's first reaches back, its last reaches on without an end."""


def groups(store: Store, selection: Selection, by: RateGroup) -> pd.DataFrame:
    """Failures and exposure by group and day: columns group, day, failures, exposure_node_days.

    A week is named by its Monday (UTC). Failures of no known node, time of no named node, nodes
    of no known rack and nodes whose installation is not known form the group `unknown`, and so
    does what belongs to no partition. An exposure that is not known is NaN.
    """
    if by in ("rack", "node_age"):
        total = _framed(_EXPOSURE, of_size(runs(store, selection), selection.min_gpus))
        exposure = _exposure(store, selection, by, total)
        failures = _failures(store, selection, by)
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
    order = {name: place for place, name in enumerate(AGES)} if by == "node_age" else {}
    return (
        table.reset_index()
        .sort_values(keys, key=lambda column: column.map(lambda value: order.get(value, value)))
        .reset_index(drop=True)
    )


def _ran_and_failed(
    store: Store, selection: Selection, *, by_partition: bool
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Exposure and failures that count, of jobs and of nodes; nodes are of no known partition."""
    ran = of_size(runs(store, selection, by_partition=by_partition), selection.min_gpus)
    failed = of_size(job_failures(store, selection), selection.min_gpus)
    days, nodes = (
        {**of_nodes, "partition": np.full(len(of_nodes["day"]), "unknown", dtype=object)}
        for of_nodes in (node_failure_days(store, selection), node_failures(store, selection))
    )
    return (
        _framed((*_EXPOSURE, "partition"), ran, days),
        _framed(("day", "partition"), failed, nodes),
    )


def _framed(names: Sequence[str], *tables: Columns) -> pd.DataFrame:
    """The rows of tables one below the other as a frame, days as times of UTC."""
    frame = pd.DataFrame(_together(names, *tables))
    return frame.assign(day=frame["day"].dt.tz_localize("UTC"))


def _failures(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """The failures that count, one row each: columns day, group."""
    frame = store.frame(
        f"""WITH {failures_of(selection)}, {_SPELLS},
            event AS (
              SELECT cluster, node, failed_at FROM failure
              UNION ALL SELECT cluster, node, start_at FROM node_failures
              WHERE {node_failures_of(selection)}),
            dated AS (SELECT *, CAST(failed_at AS DATE) - DATE '1970-01-01' AS day FROM event)
            SELECT day, {_GROUPS[by]} AS "group"
            FROM dated LEFT JOIN spell ON dated.cluster = spell.cluster
              AND dated.node = spell.node AND day >= from_day AND day < until_day
            ORDER BY ALL""",
        selection.parameters,
    )
    return frame.assign(day=_as_day(frame["day"]))


def _exposure(
    store: Store, selection: Selection, by: NodeGrouping, total: pd.DataFrame
) -> pd.DataFrame:
    """Exposure by group and day.

    What `total`, the attempts' exposure (columns day, exposure_node_days), holds beyond the time
    of named nodes is of the group `unknown`.
    """
    named = _of_attempts(store, selection, by)
    days = total.groupby("day")["exposure_node_days"].sum()
    missing = days.sub(named.groupby("day")["exposure_node_days"].sum(), fill_value=0.0)
    rest = missing[missing > ROUNDING * days].reset_index().assign(group="unknown")
    return _stacked([named, rest, _of_inventory(store, selection, by)])


def _of_attempts(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """Exposure of the nodes that attempts name; an attempt's GPUs are shared evenly by them.

    Attempts are split into days before their nodes are joined, and nodes are never grouped by
    name: either way round costs twice as much on nine million nodes of attempts.
    """
    frame = store.frame(
        f"""WITH {attempts_of(selection)}, {SPANS}, {_PIECES}, {_SPELLS},
            held AS (
              SELECT piece.cluster, day, {_GROUPS[by]} AS "group",
                sum(job_nodes.n_gpus * run_us) AS gpu_us, sum(run_us) AS node_us,
                sum(units * run_us / nullif(n_nodes, 0)) FILTER (job_nodes.n_gpus IS NULL)
                  AS uneven_us
              FROM piece JOIN job_nodes USING (cluster, attempt_key)
              LEFT JOIN spell ON piece.cluster = spell.cluster AND job_nodes.node = spell.node
                AND day >= from_day AND day < until_day
              GROUP BY ALL)
            SELECT day, "group", CASE WHEN basis = 'gpu_time'
              THEN (coalesce(gpu_us, 0) + coalesce(uneven_us, 0)) / gpus_per_node ELSE node_us END
              / {DAY_US} AS exposure_node_days
            FROM held JOIN clusters USING (cluster) ORDER BY cluster, "group", day""",
        selection.parameters,
    )
    return frame.assign(day=_as_day(frame["day"]))


def _of_inventory(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """Exposure of clusters without jobs: nodes of the inventory x period; NaN without one."""
    frame = store.frame(
        f"""WITH {node_days_of(selection)}, {_SPELLS},
            stock AS (SELECT cluster, rack, installed_day, from_day, until_day, count(*) AS n_nodes
                      FROM spell WHERE source = 'inventory' GROUP BY ALL)
            SELECT day, {_GROUPS[by]} AS "group", sum(n_nodes * days) AS exposure_node_days
            FROM logged_day LEFT JOIN stock ON logged_day.cluster = stock.cluster
              AND day >= from_day AND day < until_day
            GROUP BY logged_day.cluster, day, "group" ORDER BY ALL""",
        selection.parameters,
    )
    return frame.assign(day=_as_day(frame["day"]))


def _stacked(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Frames one above the other; empty ones are left out, since pandas warns of them."""
    filled = [frame for frame in frames if not frame.empty]
    return pd.concat(filled, ignore_index=True) if filled else frames[0]


def _as_day(days: pd.Series) -> pd.Series:
    """Days since the epoch as UTC times; of any year, which pandas' own conversion is not."""
    times = days.to_numpy(dtype=np.int64).astype("datetime64[D]").astype("datetime64[us]")
    return pd.Series(times, index=days.index).dt.tz_localize("UTC")


def _week(frame: pd.DataFrame) -> pd.Series:
    """Date of the Monday (UTC) on or before each day."""
    day = frame["day"]
    monday: pd.Series = day - pd.to_timedelta(day.dt.dayofweek, unit="D")
    name: pd.Series = monday.dt.strftime("%Y-%m-%d")
    return name
