"""In which zone a cluster's local times were read so far, and what would contradict it.

A record read in another zone is another record: its time is part of its key. So a file that was
read in the wrong zone, and then again in the right one, would stand in the store twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.zones import same_clocks

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import duckdb

    from data.ingest.reader import Batch, Options

LEAST_SHIFTED = 3
"""Jobs from which on a constant shift is no chance."""


class Earlier(NamedTuple):
    """How local times of a cluster were read."""

    zone: str | None
    """None where nobody stated one, which is read as UTC."""
    ingest_id: str
    """The first ingest that read them so."""
    path: str


def remembered(connection: duckdb.DuckDBPyConnection) -> dict[str, Earlier]:
    """The zone of each cluster whose local times were read before, as it was last.

    An ingest of a version that kept no zones tells it where it read times as UTC.
    """
    rows = connection.execute(
        """SELECT zones, CASE WHEN zones IS NULL THEN cluster END AS unzoned,
             arg_min(ingest_id, rowid), arg_min(path, rowid)
           FROM ingests WHERE zones IS NOT NULL OR contains(notices, 'read as UTC')
           GROUP BY ALL ORDER BY max(rowid)"""
    ).fetchall()
    found: dict[str, Earlier] = {}
    for zones, unzoned, ingest_id, path in rows:
        read: dict[str, str | None] = json.loads(zones) if zones else {}
        read |= dict.fromkeys((unzoned or "").split(",") if unzoned else ())
        for cluster, zone in read.items():
            before = found.get(cluster)
            if before is None or before.zone != zone:
                found[cluster] = Earlier(zone, ingest_id, path)
    return found


def zones_read(batch: Batch, options: Options) -> dict[str, str | None]:
    """The zone of each cluster in which this input's local times were read, to be remembered."""
    if options.own_zone:
        return {}
    return {cluster: options.zone_of(cluster) for cluster in sorted(batch.local)}


def refuse_contradiction(
    name: str, batch: Batch, options: Options, earlier: Mapping[str, Earlier]
) -> None:
    """Refuses an input whose local times would be read in another zone than those before.

    Raises
    ------
    SourceError
        Naming both zones, the ingest that came first, and what can be meant.
    """
    for cluster, zone in zones_read(batch, options).items():
        before = earlier.get(cluster)
        if before is None:
            continue
        now, then = zone or "UTC", before.zone or "UTC"
        if same_clocks(now, then, batch.first_at, batch.last_at):
            continue
        if options.timezone is None:
            mend = f"write timezone = {then!r} into [cluster.{cluster}] of site.toml"
        else:
            mend = "leave --timezone out"
        raise SourceError(
            f"{name}: would be read in {now}, but local times of cluster {cluster} were read in "
            f"{then} so far{'' if before.zone else ', as nobody stated a zone'} (from ingest "
            f"{before.ingest_id}, {before.path}, on): {mend} if {then} is right; take that ingest "
            f"back by `faultline rollback {before.ingest_id}` if it is not; pass --file-timezone "
            f"{now} if this file alone is in {now}"
        )


def notices(batch: Batch, options: Options, earlier: Mapping[str, Earlier]) -> Iterator[str]:
    """Which zone was not stated but remembered, or holds for this input alone."""
    for cluster in sorted(batch.local):
        before = earlier.get(cluster)
        if options.own_zone:
            yield f"local times of {cluster} read in {options.timezone}, for this file alone"
        elif before and before.zone and not (options.timezone or cluster in options.timezones):
            yield (
                f"local times of {cluster} read in {before.zone}, as before (ingest "
                f"{before.ingest_id})"
            )


def refuse_doubled(
    name: str, connection: duckdb.DuckDBPyConnection, top: int, *, n_known: int
) -> None:
    """Refuses jobs that are in the store already, read in another zone.

    A job that was there once, and came once more with the same waiting and running time but
    submitted some quarter hours earlier or later, is the same job read in another zone. It takes
    several of them with the same shift (or two shifts an hour apart, of summer and winter), and
    more than there are records that came as they were.

    Parameters
    ----------
    connection
        With the new rows merged, inside their transaction.
    top
        Last row id of `jobs` before.
    n_known
        Records of the input that changed nothing.

    Raises
    ------
    SourceError
        Naming the shift and an ingest to take back.
    """
    shifts = connection.execute(_SHIFTS, {"top": top}).fetchall()
    if not shifts:
        return
    (shift_s, n_jobs), *others = shifts
    n_jobs += sum(n for other, n in others if abs(other - shift_s) == 3600)
    if n_jobs < LEAST_SHIFTED or n_jobs <= n_known:
        return
    hours, minutes = divmod(abs(shift_s) // 60, 60)
    raise SourceError(
        f"{name}: {n_jobs:,} of its jobs are in the store already, {hours} h {minutes:02} min "
        f"{'earlier' if shift_s > 0 else 'later'}: they were read in another zone, and would stand "
        "in it twice: pass the --timezone that they were read in; if that was wrong, `faultline "
        "ingests` lists what to take back by `faultline rollback ID`"
    )


_SHIFTS = """
WITH came AS (
  SELECT cluster, job_id, any_value(submit_at) AS submit_at, any_value(start_at) AS start_at,
    any_value(end_at) AS end_at
  FROM jobs WHERE rowid > $top AND submit_at IS NOT NULL AND end_at IS NOT NULL
  GROUP BY cluster, job_id HAVING count(*) = 1),
extent AS (
  SELECT min(submit_at) - INTERVAL 27 HOUR AS first_at,
    max(submit_at) + INTERVAL 27 HOUR AS last_at FROM came),
known AS (
  SELECT cluster, job_id, any_value(submit_at) AS submit_at, any_value(start_at) AS start_at,
    any_value(end_at) AS end_at
  FROM jobs SEMI JOIN came USING (cluster, job_id)
  WHERE rowid <= $top AND submit_at BETWEEN (SELECT first_at FROM extent)
    AND (SELECT last_at FROM extent)
  GROUP BY cluster, job_id HAVING count(*) = 1)
SELECT CAST(epoch(came.submit_at) - epoch(known.submit_at) AS BIGINT) AS shift_s, count(*) AS n
FROM came JOIN known USING (cluster, job_id)
WHERE shift_s <> 0 AND shift_s % 900 = 0 AND abs(shift_s) <= 26 * 3600
  AND came.start_at - came.submit_at IS NOT DISTINCT FROM known.start_at - known.submit_at
  AND came.end_at - came.submit_at = known.end_at - known.submit_at
GROUP BY shift_s ORDER BY n DESC, shift_s
"""
"""How far the jobs that came lie off those of the same id, and how many of them so far."""
