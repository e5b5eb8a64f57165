"""The fleet: GPUs there are, out of service, and free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.fleet_time import (
    OUT_OF_SERVICE,
    Intervals,
    free_time,
    gpu_seconds_by_day,
    outage_bucket,
    without_overlap,
)
from data.interrupted import ELIGIBLE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb


def fleet_rows(connection: duckdb.DuckDBPyConnection) -> tuple[pd.DataFrame, int]:
    """GPU-seconds of no job by cluster, day and bucket; and those held beyond the GPUs known.

    A node counts from its first to its last record, or as the inventory says. Out of service it
    counts with the GPUs that no job held: a node that drains may still run jobs.
    """
    _spells(connection)
    frames, excess = [], 0
    for cluster, begin, end in connection.execute(
        "SELECT cluster, begin_s, end_s FROM ledger_window WHERE end_s > begin_s"
    ).fetchall():
        window = (int(begin), int(end))
        out = _out_of_service(connection, cluster)
        gpus = _fetched(connection, cluster)
        free = gpus["capacity"].without(gpus["allocated"], *out.values())
        rest = free_time(window, free=free, wanted=gpus["wanted"])
        excess += int(rest.pop("excess").sum())
        for bucket, held in out.items():
            rest[bucket] = gpu_seconds_by_day(held)
            excess -= int(rest[bucket].clip(upper=0).sum())  # jobs held more than the node has
            rest[bucket] = rest[bucket].clip(lower=0)
        frames.append(rest.rename_axis("day").reset_index().melt("day").assign(cluster=cluster))
    if not frames:
        return pd.DataFrame({"day": [], "bucket": [], "gpu_seconds": [], "cluster": []}), 0
    found = pd.concat(frames, ignore_index=True).fillna({"value": 0})
    found = found.rename(columns={"variable": "bucket", "value": "gpu_seconds"})
    return found.astype({"gpu_seconds": "int64"}), excess


def _spells(connection: duckdb.DuckDBPyConnection) -> None:
    """Temporary table ledger_spell: when which node had how many GPUs, within the window.

    A node that an inventory lists several times is what the row says that began last.
    """
    connection.execute(
        """CREATE OR REPLACE TEMP TABLE ledger_spell AS
           SELECT cluster, node, coalesce(gpus, gpus_per_node) AS gpus,
             greatest(coalesce(epoch_us(first_seen_at) // 1000000, begin_s), begin_s) AS start_s,
             least(end_s, CASE WHEN NOT coalesce(busy, false)
                 THEN epoch_us(last_seen_at) // 1000000 END,
               lead(epoch_us(first_seen_at) // 1000000) OVER (
                 PARTITION BY cluster, node ORDER BY first_seen_at NULLS FIRST, last_seen_at))
               AS end_s
           FROM nodes JOIN ledger_window USING (cluster)
           LEFT JOIN (SELECT DISTINCT cluster, node, true AS busy FROM job_nodes
                      WHERE end_at IS NULL) USING (cluster, node)
           WHERE node IS NOT NULL AND coalesce(role, 'compute') = 'compute'
             AND coalesce(gpus, gpus_per_node) > 0"""
    )


def _fetched(connection: duckdb.DuckDBPyConnection, cluster: str) -> dict[str, Intervals]:
    """GPUs of a cluster: all it has, those that jobs hold, those that eligible jobs wait for.

    A job waits until its start, else the end of its waiting.
    """
    queries = {
        "capacity": """SELECT start_s, end_s, gpus FROM ledger_spell
             WHERE cluster = ? AND end_s > start_s""",
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
    """GPUs of nodes out of service that no job held, by bucket."""
    events = connection.execute(
        """SELECT DISTINCT node, greatest(epoch_us(event.start_at) // 1000000, spell.start_s)
             AS start_s, least(coalesce(epoch_us(event.end_at) // 1000000, spell.end_s),
             spell.end_s) AS end_s, coalesce(state, '') AS state,
             coalesce(planned, false) AS planned, gpus
           FROM node_events event JOIN ledger_spell spell USING (cluster, node)
           WHERE cluster = ? ORDER BY ALL""",
        [cluster],
    ).df()
    events = events[events["end_s"] > events["start_s"]]
    kinds = events[["state", "planned"]].drop_duplicates()
    kinds = kinds.assign(
        bucket=[outage_bucket(state, planned=planned) for state, planned in kinds.to_numpy()]
    )
    events = events.merge(kinds, on=["state", "planned"], how="left")
    code, names = pd.factorize(events["node"])
    apart = without_overlap(
        events[["start_s", "end_s", "bucket"]].astype({"start_s": "int64", "end_s": "int64"})
        .assign(node=code)
    )  # fmt: skip
    gpus = events.groupby(code)["gpus"].max().to_numpy(dtype="int64")
    apart = apart.assign(gpus=gpus[apart["node"].to_numpy(dtype="int64")],
                         node=names.take(apart["node"].to_numpy(dtype="int64")))  # fmt: skip
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
             CAST(coalesce(held.n_gpus, jobs.n_gpus // jobs.n_nodes) AS BIGINT) AS gpus
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
