"""The fleet: GPUs there are, out of service, and free."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.fleet_time import (
    OUT_OF_SERVICE,
    Intervals,
    free_time,
    gpu_seconds_by_day,
    most_at_once,
    outage_bucket,
    without_overlap,
)
from analytics.efficiency.unrecorded import unrecorded_time
from data.definitions import OUT_OF_SERVICE as STATE_OUT_OF_SERVICE
from data.interrupted import ELIGIBLE_S
from data.stages.ledger.unrecorded import find_lives, jobs_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb


@dataclass(frozen=True)
class FleetRows:
    """GPU-seconds that no job held."""

    daily: pd.DataFrame
    """By cluster, day and bucket."""
    excess: int
    """Those that jobs held beyond the GPUs known."""
    unrecorded: pd.DataFrame
    """What attempts without a record may change: rows of the table `unrecorded_time`."""


def fleet_rows(
    connection: duckdb.DuckDBPyConnection,
    stated: Mapping[str, int],
    habits: Mapping[str, Any],
) -> FleetRows:
    """GPU-seconds of no job, and what attempts without a record may change in the ledger.

    A node counts as an inventory says, else from its first to its last record. Out of service it
    counts with the GPUs that no job held: a node that drains may still run jobs. What an attempt
    holds beyond the GPUs of its nodes is capacity too, so that no idle GPU elsewhere pays for it.

    Parameters
    ----------
    stated
        GPUs of a node of each cluster for which site.toml says it; they count for nodes of which
        no inventory does.
    habits
        How jobs on several nodes and on one save and start up, as `Habits.record` says.
    """
    _spells(connection, stated)
    requeued = find_lives(connection)
    frames, unrecorded, excess = [], [], 0
    for cluster, begin, end in connection.execute(
        "SELECT cluster, begin_s, end_s FROM ledger_window WHERE end_s > begin_s"
    ).fetchall():
        window = (int(begin), int(end))
        out = _out_of_service(connection, cluster)
        gpus = _fetched(connection, cluster)
        beyond = _beyond(connection, cluster)
        excess += int(((beyond.end_s - beyond.start_s) * beyond.gpus).sum())
        there = gpus["capacity"].plus(beyond)
        free = there.without(gpus["allocated"], *out.values())
        rest = free_time(window, free=free, wanted=gpus["wanted"])
        if cluster in requeued:
            jobs = jobs_of(connection, cluster, habits, all_gpus=int(gpus["capacity"].gpus.sum()))
            changes = unrecorded_time(
                window, free=free, out=out, wanted=gpus["wanted"], lives=jobs.lives
            )
            unrecorded.append(jobs.named(changes, cluster))
        excess += int(rest.pop("excess").sum())
        for bucket, held in out.items():
            rest[bucket] = gpu_seconds_by_day(held)
            excess -= int(rest[bucket].clip(upper=0).sum())  # jobs held more than the node has
            rest[bucket] = rest[bucket].clip(lower=0)
        frames.append(rest.rename_axis("day").reset_index().melt("day").assign(cluster=cluster))
    changes = pd.concat(unrecorded, ignore_index=True) if unrecorded else pd.DataFrame()
    if not frames:
        nothing = pd.DataFrame({"day": [], "bucket": [], "gpu_seconds": [], "cluster": []})
        return FleetRows(nothing, 0, changes)
    found = pd.concat(frames, ignore_index=True).fillna({"value": 0})
    found = found.rename(columns={"variable": "bucket", "value": "gpu_seconds"})
    return FleetRows(found.astype({"gpu_seconds": "int64"}), excess, changes)


def _spells(connection: duckdb.DuckDBPyConnection, stated: Mapping[str, int]) -> None:
    """Temporary table ledger_spell: when which node had how many GPUs, within the window.

    A node that is listed several times is what the row says that began last. One of which nobody
    says how many GPUs it has, has as many as jobs held there at once.
    """
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE stated_gpus AS
           SELECT unnest($1::VARCHAR[]) AS cluster, unnest($2::INTEGER[]) AS gpus""",
        [list(stated), list(stated.values())],
    )
    _shown(connection)
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ledger_spell AS
           WITH spell AS (
             SELECT cluster, node,
               CASE WHEN powered IS NOT DISTINCT FROM false THEN 0
                 ELSE coalesce(CASE WHEN source <> 'observed' THEN nodes.gpus END,
                   stated_gpus.gpus, shown_gpus.gpus, 0) END AS gpus,
               greatest(coalesce(epoch_us(first_seen_at) // 1000000, begin_s), begin_s) AS start_s,
               least(end_s, CASE WHEN NOT coalesce(busy, false)
                   THEN epoch_us(last_seen_at) // 1000000 END,
                 lead(epoch_us(first_seen_at) // 1000000) OVER (
                   PARTITION BY cluster, node ORDER BY first_seen_at NULLS FIRST, last_seen_at))
                 AS end_s
             FROM nodes JOIN ledger_window USING (cluster)
             LEFT JOIN (SELECT DISTINCT cluster, node, true AS busy FROM job_nodes
                        WHERE end_at IS NULL) USING (cluster, node)
             LEFT JOIN stated_gpus USING (cluster)
             LEFT JOIN shown_gpus USING (cluster, node)
             WHERE node IS NOT NULL AND coalesce(role, 'compute') = 'compute')
           FROM spell WHERE end_s > start_s"""
    )


def _shown(connection: duckdb.DuckDBPyConnection) -> None:
    """Temporary table shown_gpus: the most GPUs that jobs held at once on each node of which
    neither an inventory nor site.toml says how many it has.
    """
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE asked_node AS
           SELECT cluster, node, row_number() OVER (ORDER BY cluster, node) - 1 AS code
           FROM nodes JOIN ledger_window USING (cluster) ANTI JOIN stated_gpus USING (cluster)
           WHERE node IS NOT NULL GROUP BY cluster, node
           HAVING NOT bool_or(source <> 'observed' AND gpus IS NOT NULL)"""
    )
    held = connection.execute(
        """SELECT code, epoch_us(held.start_at) // 1000000 AS start_s,
             coalesce(epoch_us(held.end_at) // 1000000, ledger_window.end_s) AS end_s,
             CAST(coalesce(held.n_gpus, ceil(jobs.n_gpus / jobs.n_nodes)) AS BIGINT) AS gpus
           FROM job_nodes held JOIN asked_node USING (cluster, node)
           JOIN ledger_window USING (cluster)
           JOIN jobs ON jobs.cluster = held.cluster AND jobs.attempt_key = held.attempt_key
           WHERE held.start_at IS NOT NULL AND jobs.n_gpus > 0 AND jobs.n_nodes > 0"""
    ).fetchnumpy()
    shown = most_at_once(np.asarray(held["code"], dtype=np.int64), _intervals(held))
    connection.register("shown", shown)
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE shown_gpus AS
           SELECT cluster, node, shown.gpus FROM shown JOIN asked_node USING (code)"""
    )
    connection.unregister("shown")


def _beyond(connection: duckdb.DuckDBPyConnection, cluster: str) -> Intervals:
    """GPUs that attempts held beyond those that all their nodes have together.

    An attempt may hold all of its GPUs on some of its nodes, so its nodes count together; few
    attempts are on a node with fewer GPUs than their even share, and only these are looked at.
    """
    found = connection.execute(
        """WITH least_ AS (
             SELECT node, min(gpus) AS gpus FROM ledger_spell
             WHERE cluster = $cluster GROUP BY node),
           most AS (
             SELECT DISTINCT attempt_key FROM job_nodes held JOIN least_ USING (node)
             WHERE held.cluster = $cluster AND held.start_at IS NOT NULL
               AND held.n_gpus > least_.gpus),
           attempt AS (
             SELECT attempt_key, jobs.n_gpus,
               greatest(epoch_us(start_at) // 1000000, begin_s) AS start_s,
               coalesce(epoch_us(end_at) // 1000000, end_s) AS end_s
             FROM jobs JOIN ledger_window USING (cluster) SEMI JOIN most USING (attempt_key)
             WHERE cluster = $cluster),
           spell AS (
             SELECT attempt_key, spell.gpus, greatest(spell.start_s, attempt.start_s) AS start_s,
               least(spell.end_s, attempt.end_s) AS end_s
             FROM attempt JOIN job_nodes held USING (attempt_key)
             JOIN ledger_spell spell ON spell.cluster = held.cluster AND spell.node = held.node
             WHERE held.cluster = $cluster AND spell.start_s < attempt.end_s
               AND spell.end_s > attempt.start_s),
           cut AS (
             SELECT attempt_key, unnest([start_s, end_s]) AS start_s FROM spell
             UNION SELECT attempt_key, start_s FROM attempt),
           part AS (
             SELECT attempt_key, n_gpus, cut.start_s, coalesce(lead(cut.start_s) OVER (
                 PARTITION BY attempt_key ORDER BY cut.start_s), end_s) AS end_s
             FROM cut JOIN attempt USING (attempt_key))
           SELECT part.start_s, part.end_s,
             CAST(part.n_gpus - coalesce(sum(spell.gpus), 0) AS BIGINT) AS gpus
           FROM part LEFT JOIN spell ON spell.attempt_key = part.attempt_key
             AND spell.start_s <= part.start_s AND spell.end_s > part.start_s
           WHERE part.end_s > part.start_s
           GROUP BY part.attempt_key, part.start_s, part.end_s, part.n_gpus
           HAVING part.n_gpus > coalesce(sum(spell.gpus), 0)""",
        {"cluster": cluster},
    ).fetchnumpy()
    return _intervals(found)


def _fetched(connection: duckdb.DuckDBPyConnection, cluster: str) -> dict[str, Intervals]:
    """GPUs of a cluster: all it has, those that jobs hold, those that eligible jobs wait for.

    A job waits until its start, else the end of its waiting.
    """
    queries = {
        "capacity": "SELECT start_s, end_s, gpus FROM ledger_spell WHERE cluster = ? AND gpus > 0",
        "allocated": """SELECT epoch_us(start_at) // 1000000 AS start_s,
               greatest(coalesce(epoch_us(end_at) // 1000000, end_s), start_s) AS end_s,
               n_gpus AS gpus
             FROM jobs JOIN ledger_window USING (cluster)
             WHERE cluster = ? AND start_at IS NOT NULL AND n_gpus > 0""",
        "wanted": f"""SELECT {ELIGIBLE_S} AS start_s,
               coalesce(epoch_us(coalesce(start_at, end_at)) // 1000000, end_s) AS end_s,
               n_gpus AS gpus
             FROM jobs JOIN ledger_window USING (cluster)
             WHERE cluster = ? AND n_gpus > 0 AND end_s > start_s""",
    }
    return {
        name: _intervals(connection.execute(sql, [cluster]).fetchnumpy())
        for name, sql in queries.items()
    }


def _out_of_service(connection: duckdb.DuckDBPyConnection, cluster: str) -> dict[str, Intervals]:
    """GPUs of nodes out of service that no job held, by bucket.

    Without node events, a node that inventories show out of service was so from when its reason
    was given, which Slurm keeps as long as the state lasts, to the last of them with that reason.
    """
    events = connection.execute(
        f"""WITH event AS (
             SELECT cluster, node, start_at, end_at, state, planned FROM node_events
             UNION ALL
             SELECT cluster, node, reason_at, max(observed_at), arg_max(state, observed_at), NULL
             FROM node_inventory WHERE reason_at < observed_at AND {STATE_OUT_OF_SERVICE}
               AND cluster NOT IN (SELECT cluster FROM node_events WHERE cluster IS NOT NULL)
             GROUP BY cluster, node, reason_at)
           SELECT DISTINCT node, greatest(epoch_us(event.start_at) // 1000000, spell.start_s)
             AS start_s, least(coalesce(epoch_us(event.end_at) // 1000000, spell.end_s),
             spell.end_s) AS end_s, coalesce(state, '') AS state,
             coalesce(planned, false) AS planned, spell.start_s AS spell_s, gpus
           FROM event JOIN ledger_spell spell USING (cluster, node)
           WHERE cluster = ? AND gpus > 0 ORDER BY ALL""",
        [cluster],
    ).df()
    events = events[events["end_s"] > events["start_s"]]
    kinds = events[["state", "planned"]].drop_duplicates()
    kinds = kinds.assign(
        bucket=[outage_bucket(state, planned=planned) for state, planned in kinds.to_numpy()]
    )
    events = events.merge(kinds, on=["state", "planned"], how="left")
    of_spell = events.groupby(["node", "spell_s"])  # a node may have other GPUs in the next one
    apart = without_overlap(
        events[["start_s", "end_s", "bucket"]].astype({"start_s": "int64", "end_s": "int64"})
        .assign(node=of_spell.ngroup())
    )  # fmt: skip
    spells = of_spell["gpus"].first().reset_index().take(apart["node"].to_numpy(dtype="int64"))
    apart = apart.assign(
        gpus=spells["gpus"].to_numpy(dtype="int64"), node=spells["node"].to_numpy()
    )
    used = _used(connection, cluster, apart)
    return {
        name: _intervals(apart[apart["bucket"].eq(name)]).without(
            _intervals(used[used["bucket"].eq(name)])
        )
        for name in OUT_OF_SERVICE
    }


def _used(connection: duckdb.DuckDBPyConnection, cluster: str, apart: pd.DataFrame) -> pd.DataFrame:
    """What jobs held of nodes out of service: nodes that drain, or records that disagree."""
    connection.register("outages", apart)
    found = connection.execute(
        """SELECT bucket, greatest(out.start_s, epoch_us(held.start_at) // 1000000) AS start_s,
             least(out.end_s, coalesce(epoch_us(held.end_at) // 1000000, out.end_s)) AS end_s,
             CAST(least(coalesce(held.n_gpus, jobs.n_gpus // jobs.n_nodes), out.gpus) AS BIGINT)
               AS gpus
           FROM outages out JOIN job_nodes held ON held.node = out.node AND held.cluster = $cluster
             AND epoch_us(held.start_at) < out.end_s * 1000000
             AND (held.end_at IS NULL OR epoch_us(held.end_at) > out.start_s * 1000000)
           JOIN jobs ON jobs.cluster = held.cluster AND jobs.attempt_key = held.attempt_key
           WHERE jobs.n_gpus > 0""",
        {"cluster": cluster},
    ).df()
    connection.unregister("outages")
    return found[found["end_s"] > found["start_s"]]


def _intervals(columns: pd.DataFrame | Mapping[str, Any]) -> Intervals:
    """Intervals of a frame or of arrays."""
    return Intervals(
        *(np.asarray(columns[n], dtype=np.int64) for n in ("start_s", "end_s", "gpus"))
    )
