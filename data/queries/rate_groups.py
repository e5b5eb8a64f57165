"""Failures and exposure by week, partition, rack and age of the node.

A module of its own: it needs pandas, which the rate itself does without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import pandas as pd

from data.queries.detection import unexplained
from data.queries.exposure import (
    attempts_of,
    failures_of,
    job_failures,
    node_days_of,
    node_failure_days,
    node_failures,
    node_failures_of,
    of_size,
    runs,
)
from data.queries.reliability import EXPOSURE, counted, together
from data.running_time import DAY_US, SPANS, local_day

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.frames import Columns, RateGroup
    from data.filters import Selection
    from data.store import Store

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

_PIECES = """
piece AS (
  SELECT * EXCLUDE (first_day, last_day), first_day AS day, end_us - begin_us AS run_us
  FROM span WHERE first_day = last_day
  UNION ALL
  SELECT * EXCLUDE (first_day, last_day, from_us, until_us),
    least(end_us, until_us) - greatest(begin_us, from_us)
  FROM (SELECT *, unnest(range(first_day, last_day + 1)) AS day
        FROM span WHERE first_day < last_day) JOIN calendar_day USING (cluster, day))
"""
"""Attempts split at midnight; what ran on one day goes round unnest, which costs most."""

_SPELLS = f"""
seen AS (SELECT nodes.*, {local_day("first_seen_at")} AS seen_day,
           row_number() OVER (
             PARTITION BY cluster, node ORDER BY first_seen_at NULLS FIRST) AS place
         FROM nodes JOIN clusters USING (cluster) WHERE node IS NOT NULL),
spell AS (SELECT cluster, node, rack, source,
            max(CASE WHEN source = 'inventory' THEN seen_day END) OVER (
              PARTITION BY cluster, node ORDER BY place) AS installed_day,
            CASE WHEN place = 1 THEN -1000000 ELSE seen_day END AS from_day,
            coalesce(lead(seen_day) OVER (PARTITION BY cluster, node ORDER BY place), 10000000)
              AS until_day
          FROM seen)
"""
"""Spells of nodes by day: a node's first reaches back, its last reaches on without an end."""


def groups(store: Store, selection: Selection, by: RateGroup) -> pd.DataFrame:
    """Failures and exposure by group, cluster and day.

    Columns group, cluster, day, failures, exposure_node_days, unexplained. By rack and age nothing
    tells clusters apart, nor of which node a failure is that has no cause. Clusters of unknown
    exposure are left out by week and partition where that of others is known.

    A week is named by its Monday. Days are those of each cluster's zone. Failures of no
    known node, time of no named node, nodes of no known rack and nodes whose installation is not
    known form the group `unknown`, and so does what belongs to no partition. An exposure that is
    not known is NaN.
    """
    selection = counted(store, selection)
    if by in ("rack", "node_age"):
        total = _framed(EXPOSURE[1:], of_size(runs(store, selection), selection.min_gpus))
        exposure = _exposure(store, selection, by, total)
        failures = _failures(store, selection, by)
        exposure, failures = (frame.assign(cluster="") for frame in (exposure, failures))
        open_ = failures.head(0).assign(unexplained=0)
    else:
        exposure, failures, open_ = (
            frame.assign(group=_week(frame) if by == "week" else frame["partition"])
            for frame in _ran_and_failed(store, selection, by_partition=by == "partition")
        )
    keys = ["group", "cluster", "day"]
    counts = failures.groupby(keys).size().rename("failures")
    missed = open_.groupby(keys)["unexplained"].sum()
    days = exposure.groupby(keys)["exposure_node_days"]
    known = exposure["exposure_node_days"].notna().groupby([exposure[key] for key in keys]).all()
    table = pd.concat([counts, days.sum(), missed], axis=1).fillna(0.0)
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
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Exposure and failures that count, of jobs and of nodes, and failures without a cause; nodes
    are of no known partition.
    """
    ran = of_size(runs(store, selection, by_partition=by_partition), selection.min_gpus)
    failed, open_ = (
        of_size(query(store, selection), selection.min_gpus)
        for query in (job_failures, unexplained)
    )
    days, nodes = (
        {**of_nodes, "partition": np.full(len(of_nodes["day"]), "unknown", dtype=object)}
        for of_nodes in (node_failure_days(store, selection), node_failures(store, selection))
    )
    exposure = _framed((*EXPOSURE, "partition"), ran, days)
    unknown = exposure.loc[exposure["exposure_node_days"].isna(), "cluster"].unique()
    others = ~exposure["cluster"].isin(unknown)
    left_out = unknown.tolist() if others.any() else list[str]()
    failures = _framed(("cluster", "day", "partition"), failed, nodes)
    missed = _framed(("cluster", "day", "partition", "unexplained"), open_)
    exposure, failures, missed = (
        frame[~frame["cluster"].isin(left_out)] for frame in (exposure, failures, missed)
    )
    return exposure, failures, missed


def _framed(names: Sequence[str], *tables: Columns) -> pd.DataFrame:
    """The rows of tables one below the other as a frame, days as times of UTC."""
    frame = pd.DataFrame(together(names, *tables))
    return frame.assign(day=frame["day"].dt.tz_localize("UTC"))


def _failures(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """The failures that count, one row each: columns day, group."""
    frame = store.frame(
        f"""WITH {failures_of(selection)}, {_SPELLS},
            event AS (
              SELECT cluster, node, {local_day("failed_at")} AS day FROM failure
              UNION ALL SELECT cluster, node, {local_day("start_at")}
              FROM node_failures JOIN clusters USING (cluster)
              WHERE {node_failures_of(selection)})
            SELECT day, {_GROUPS[by]} AS "group"
            FROM event LEFT JOIN spell ON event.cluster = spell.cluster
              AND event.node = spell.node AND day >= from_day AND day < until_day
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
              SELECT piece.cluster, of_node, day, {_GROUPS[by]} AS "group",
                sum(job_nodes.n_gpus * run_us) AS gpu_us, sum(run_us) AS node_us,
                sum(units * run_us / nullif(n_nodes, 0)) FILTER (job_nodes.n_gpus IS NULL)
                  AS uneven_us
              FROM piece JOIN job_nodes USING (cluster, attempt_key)
              LEFT JOIN spell ON piece.cluster = spell.cluster AND job_nodes.node = spell.node
                AND day >= from_day AND day < until_day
              GROUP BY ALL)
            SELECT day, "group", CASE WHEN basis = 'gpu_time'
              THEN (coalesce(gpu_us, 0) + coalesce(uneven_us, 0)) / of_node ELSE node_us END
              / {DAY_US} AS exposure_node_days
            FROM held JOIN clusters USING (cluster) ORDER BY cluster, "group", of_node, day""",
        selection.parameters,
    )
    return frame.assign(day=_as_day(frame["day"]))


def _of_inventory(store: Store, selection: Selection, by: NodeGrouping) -> pd.DataFrame:
    """Exposure of clusters without jobs: nodes of the inventory x period; NaN without one."""
    frame = store.frame(
        f"""WITH {node_days_of(selection)}, {_SPELLS},
            stock AS (SELECT cluster, rack, installed_day, from_day, until_day, count(*) AS n_nodes
                      FROM spell WHERE source <> 'observed' GROUP BY ALL)
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
    """Date of the Monday on or before each day."""
    days = pd.DatetimeIndex(frame["day"].unique())
    mondays = days - pd.to_timedelta(days.dayofweek, unit="D")
    named: pd.Series = frame["day"].map(dict(zip(days, mondays.strftime("%Y-%m-%d"), strict=True)))
    return named.astype(object)
