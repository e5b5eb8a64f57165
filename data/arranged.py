"""Incidents that people merged, and attempts that they took out of one or put into another.

Laid over the derived incidents when they are read, as `data.said` does for causes: what holds is
derived anew from the records of the incidents concerned, so that one undo brings back what was.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from data.columns import columns_of, frame_of, registered
from data.said import INTO, NONE, OF

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb
    import pandas as pd

    from analytics.failures.incidents.arranged import Move
    from analytics.failures.incidents.members import Given
    from data.said import Said


@dataclass(frozen=True)
class Arranged:
    """What people said of which incidents are one, and whose attempts are."""

    incidents: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the table `incidents` that take the place of those of the same id."""
    members: list[dict[str, Any]] = field(default_factory=list)
    """All members of these."""
    same: dict[str, str] = field(default_factory=dict)
    """Incident -> the one that stands for it."""
    moves: tuple[Move, ...] = ()
    """Attempts whose incident is not the one of the records."""

    @property
    def emptied(self) -> frozenset[str]:
        """Incidents of the records that people left without a failure and a critical event."""
        gone = (row for row in self.incidents if row["retired"] and row["superseded_by"] is None)
        return frozenset(row["incident_id"] for row in gone)


def arranged(connection: duckdb.DuckDBPyConnection, root: Path, said: Said) -> Arranged:
    """What holds now; what is about an id that is none any more changes nothing."""
    pairs, placed = said.pairs("incident", INTO), said.pairs("attempt", OF)
    if not pairs and not placed:
        return Arranged()
    from analytics.failures.incidents.arranged import arranged as derived_anew
    from analytics.failures.incidents.arranged import one_of
    from data.site import load_site
    from data.stages.incidents import records

    named = {*(each for pair in pairs for each in pair), *(value for _, value in placed)}
    rows = connection.execute(_LIVING, {"incidents": sorted(named)}).fetchall()
    known = {incident: (living, cluster) for incident, living, cluster in rows}
    same = one_of(
        (known[one][0], known[other][0])
        for one, other in pairs
        if one in known and other in known and known[one][1] == known[other][1]
    )
    moves = _moves(connection, placed, known=known, same=same)
    concerned = {*same, *same.values()}
    concerned |= {each for move in moves for each in (move.from_id, move.to_id) if each is not None}
    concerned |= {one for one, other in same.items() if other in concerned}
    if not concerned:
        return Arranged()
    old = frame_of(connection, _ROWS, {"incidents": sorted(concerned)})
    held = frame_of(connection, _HELD, {"incidents": sorted(concerned)})
    held["incident_id"] = held["incident_id"].map(lambda each: same.get(each, each))
    options = records.options(load_site(root))
    found = derived_anew(_records(connection, root, held, moves), held, moves, options)
    fresh = found.incidents.assign(nodes=found.incidents.get("nodes", []))
    fresh["nodes"] = [records.listed(nodes) for nodes in fresh["nodes"]]
    gone = old[~old["incident_id"].isin(fresh["incident_id"])]
    gone = gone.assign(superseded_by=gone["incident_id"].map(same), retired=True)
    members = found.members.rename(columns={"at": "start_at"})
    return Arranged([*_plain(fresh), *_plain(gone)], _plain(members), same, moves)


_LIVING = """
SELECT one.incident_id, living.incident_id AS living, living.cluster
FROM incidents one JOIN incidents living
  ON living.incident_id = coalesce(one.superseded_by, one.incident_id) AND NOT living.retired
WHERE list_contains($incidents, one.incident_id)
"""
"""Ids that are or lead to an incident, with its id and cluster."""
_ROWS = "FROM incidents WHERE list_contains($incidents, incident_id)"
_HELD = """
SELECT cluster, member.incident_id, kind, key, member.start_at, member.end_at, member.node
FROM incident_members member JOIN incidents USING (incident_id)
WHERE list_contains($incidents, incident_id) ORDER BY kind, key
"""
_OF_ATTEMPTS = """
SELECT cluster, attempt_key, any_value(incident_id) AS incident_id
FROM (SELECT unnest($clusters) AS cluster, unnest($keys) AS attempt_key)
SEMI JOIN failures USING (cluster, attempt_key)
LEFT JOIN (
  SELECT cluster, key AS attempt_key, incident_id
  FROM incident_members JOIN incidents USING (incident_id)
  WHERE kind = 'failure' AND NOT retired) USING (cluster, attempt_key)
GROUP BY ALL
"""
"""Attempts that failed, each with the incident that holds it by the records."""

_CHOSEN = "WITH chosen AS (FROM failures SEMI JOIN chosen_failures USING (cluster, attempt_key)) "
_SEEN = """ AND EXISTS (
  SELECT 1 FROM held WHERE kind = 'health_event' AND held.cluster = health_events.cluster
    AND held.node = health_events.node AND observed_at BETWEEN held.start_at AND held.end_at)"""
_WENT_OUT = """ AND (cluster, node, start_at) IN (
  SELECT (cluster, node, start_at) FROM held WHERE kind = 'node_event')"""
_PUSHED_ASIDE = """ AND (
  (cluster, attempt_key) IN (SELECT (cluster, key) FROM held WHERE kind = 'preemption')
  OR (cluster, preempted_by) IN (
    SELECT (cluster, job_id) FROM jobs SEMI JOIN moved USING (cluster, attempt_key)))"""
_NO_PLACE = "SELECT cluster, node, rack, pod FROM nodes LIMIT 0"


def _moves(
    connection: duckdb.DuckDBPyConnection,
    placed: list[tuple[str, str]],
    *,
    known: dict[str, tuple[str, str]],
    same: dict[str, str],
) -> tuple[Move, ...]:
    """Attempts that are not of the incident that holds them by the records and by what is one."""
    from analytics.failures.incidents.arranged import Move

    wanted = {tuple(key.split("/", 1)): value for key, value in placed}
    clusters, keys = [cluster for cluster, _ in wanted], [key for _, key in wanted]
    rows = connection.execute(_OF_ATTEMPTS, {"clusters": clusters, "keys": keys}).fetchall()
    found = []
    for cluster, key, holder in sorted(rows):
        value = wanted[cluster, key]
        target, of = known.get(value, (None, None))
        if value != NONE and of != cluster:
            continue
        from_id = None if holder is None else same.get(holder, holder)
        to_id = None if target is None else same.get(target, target)
        if from_id != to_id:
            found.append(Move(cluster, key, from_id, to_id))
    return tuple(found)


def _records(
    connection: duckdb.DuckDBPyConnection, root: Path, held: pd.DataFrame, moves: tuple[Move, ...]
) -> Given:
    """The records of the incidents concerned, and of what moves into them."""
    import pandas as pd

    from analytics.failures.incidents.members import given
    from data.site import load_site
    from data.stages.incidents import records

    failed = held[held["kind"] == "failure"].rename(columns={"key": "attempt_key"})
    moved = pd.DataFrame(
        [(each.cluster, each.attempt_key) for each in moves], columns=["cluster", "attempt_key"]
    )
    attempts = pd.concat([failed[["cluster", "attempt_key"]], moved]).drop_duplicates()
    with registered(connection, held=held, moved=moved, chosen_failures=attempts):
        tables = {
            "failures": columns_of(connection.execute(_CHOSEN + records.OF_CHOSEN)),
            "attempt_nodes": columns_of(connection.execute(records.ATTEMPT_NODES)),
            "bursts": records.bursts_of(connection, records.EVENTS + _SEEN, load_site(root)),
            "node_events": columns_of(connection.execute(records.NODE_EVENTS + _WENT_OUT)),
            "nodes": columns_of(connection.execute(_NO_PLACE)),
            "preempted": columns_of(connection.execute(records.PREEMPTED + _PUSHED_ASIDE)),
        }
    return given(tables)


def _plain(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as DuckDB takes them: None where unknown."""
    unknown, known = frame.isna().to_numpy(dtype=bool), frame.to_numpy(dtype=object, copy=True)
    known[unknown] = None
    return [dict(zip(map(str, frame), row, strict=True)) for row in known.tolist()]
