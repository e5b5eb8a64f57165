"""In which zone a cluster's local times were read so far, and what would contradict it.

A record read in another zone is another record: its time is part of its key. So a file that was
read in the wrong zone, and then again in the right one, would stand in the store twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.tables.table import UNNAMED
from data.zones import same_clocks

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from data.ingest.reader import Batch, Options

LEAST_SHIFTED = 3
"""Jobs from which on a constant shift is no chance."""


class Earlier(NamedTuple):
    """How local times were read."""

    zone: str | None
    """None where nobody stated one, which is read as UTC."""
    ingest_id: str
    """The first ingest that read them so."""
    path: str
    own: bool
    """Whether it was stated for the file alone."""


@dataclass(frozen=True)
class Memory:
    """Zones in which local times were read before the ingest of one source."""

    of_source: dict[str, Earlier]
    """Cluster -> how this source's were read last."""
    of_cluster: dict[str, Earlier]
    """Cluster -> how those of any source were read last for which the cluster's zone was stated."""

    @property
    def zones(self) -> dict[str, str]:
        """Cluster -> zone in which this source is read where nobody states one."""
        held = {**self.of_cluster, **self.of_source}
        return {cluster: earlier.zone for cluster, earlier in held.items() if earlier.zone}

    def contradicted(self, cluster: str, options: Options) -> Earlier | None:
        """What a zone must not contradict; None where it is free."""
        if cluster in self.of_source or options.timezone is None:
            return self.of_source.get(cluster)
        return self.of_cluster.get(cluster)


def remembered(connection: duckdb.DuckDBPyConnection, source: str) -> Memory:
    """What is known of zones before an ingest of a source.

    An ingest of a version that kept no zones tells it where it read times as UTC.
    """
    rows = connection.execute(
        """SELECT zones, CASE WHEN zones IS NULL THEN cluster END AS unzoned, source = $source,
             coalesce(own_zone, false) AS own, arg_min(ingest_id, rowid), arg_min(path, rowid)
           FROM ingests WHERE zones IS NOT NULL OR contains(notices, 'read as UTC')
           GROUP BY ALL ORDER BY own DESC, max(rowid)""",  # what is the cluster's comes over it
        {"source": source},
    ).fetchall()
    of_source: dict[str, Earlier] = {}
    of_cluster: dict[str, Earlier] = {}
    for zones, unzoned, is_same, own, ingest_id, path in rows:
        read: dict[str, str | None] = json.loads(zones) if zones else {}
        read |= dict.fromkeys(unzoned.split(",") if unzoned else ())
        for cluster, zone in read.items():
            earlier = Earlier(zone, ingest_id, path, own)
            if is_same:
                of_source[cluster] = earlier
            if zone and not own:
                of_cluster[cluster] = earlier
    return Memory(of_source, of_cluster)


def zones_read(batch: Batch, options: Options) -> dict[str, str | None]:
    """The zone of each cluster in which this input's local times were read."""
    return {cluster: options.zone_of(cluster) for cluster in sorted(batch.local)}


def is_own(batch: Batch, options: Options, memory: Memory) -> bool:
    """Whether the zone of this input says nothing of its cluster's: it was stated for this file, or
    is the one that was stated for a file of the same source.
    """
    held = ((memory.of_source.get(c), zone) for c, zone in zones_read(batch, options).items())
    return options.own_zone or any(e is not None and e.own and e.zone == zone for e, zone in held)


def refuse_contradiction(name: str, batch: Batch, options: Options, memory: Memory) -> None:
    """Refuses an input whose local times would be read in another zone than those before.

    A source is read as it was read before; a new one in the zone of its cluster, where that was
    stated. What is stated for one file alone contradicts nothing.

    Raises
    ------
    SourceError
        Naming both zones, the ingest that came first, and what can be meant.
    """
    if options.own_zone:
        return
    for cluster, zone in zones_read(batch, options).items():
        before = memory.contradicted(cluster, options)
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


def notices(batch: Batch, options: Options, memory: Memory) -> Iterator[str]:
    """Which zone was not stated but remembered, or holds for this input alone."""
    for cluster in sorted(batch.local - {UNNAMED} or batch.local):
        own, of_cluster = memory.of_source.get(cluster), memory.of_cluster.get(cluster)
        before = own or of_cluster
        if options.own_zone:
            yield f"local times of {cluster} read in {options.timezone}, as stated for this file"
        elif before and before.zone and not (options.timezone or cluster in options.timezones):
            told = "as before" if own else "the cluster's as another source stated it"
            yield (
                f"local times of {cluster} read in {before.zone}, {told} (ingest "
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
