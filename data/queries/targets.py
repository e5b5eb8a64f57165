"""What people are called, and what they can say something about, by its key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

if TYPE_CHECKING:
    from data.store import Store

TargetKind = Literal["attempt", "incident", "node"]
KINDS: tuple[TargetKind, ...] = get_args(TargetKind)

_KEYS = {
    "attempt": ("jobs", "cluster || '/' || attempt_key", "job_id"),
    "incident": ("incidents", "incident_id", "incident_id"),
    "node": ("nodes", "cluster || '/' || node", "node"),
}
"""Kind -> table, key, and a name by which people call it."""
_SLIPS = 2
"""Letters wrong, left out or swapped in a key that still is taken for another."""


def known(store: Store, kind: TargetKind, key: str) -> str | None:
    """The key under which the store holds it: of a node by its own name; None where it does not."""
    table, expression, _ = _KEYS[kind]
    sql = f"SELECT {expression} FROM {table} WHERE {expression} = $key"
    if kind == "node":
        sql += """ UNION ALL SELECT cluster || '/' || node FROM node_names
                   WHERE cluster || '/' || written = $key"""
    rows = store.rows(f"{sql} LIMIT 1", {"key": key})
    return str(rows[0][0]) if rows else None


def nearest(store: Store, kind: TargetKind, key: str, limit: int = 3) -> list[str]:
    """Keys that were probably meant: of that job or node, that begin so, or nearly the same,
    whatever the case."""
    table, expression, name = _KEYS[kind]
    rows = store.rows(
        f"""WITH named AS (SELECT DISTINCT {expression} AS key, {name} AS name FROM {table}),
            ranked AS (
              SELECT key, CASE
                WHEN $last IN (name, split_part(key, '/', -1)) THEN 0
                WHEN length($last) > 3 AND contains('/' || key, '/' || $last) THEN 1
                WHEN abs(length(key) - length($key)) <= {_SLIPS}
                  AND damerau_levenshtein(lower(key), lower($key)) <= {_SLIPS}
                THEN 1 + damerau_levenshtein(lower(key), lower($key)) END AS place
              FROM named)
            SELECT key FROM ranked WHERE place = (SELECT min(place) FROM ranked)
            ORDER BY key LIMIT $limit""",
        {"key": key, "last": key.rpartition("/")[2], "limit": limit},
    )
    return [row[0] for row in rows]


@dataclass(frozen=True)
class People:
    """All names in a store."""

    users: frozenset[str]
    """Who submitted jobs, set the state of nodes or said something."""
    accounts: frozenset[str]
    jobs: frozenset[str]
    """Names of jobs."""


def people(store: Store) -> People:
    """All names of users, accounts and jobs."""
    return People(
        users=_names(
            store,
            """SELECT "user" FROM jobs UNION SELECT reason_user FROM node_events
               UNION SELECT reason_user FROM node_inventory
               UNION SELECT author FROM annotations""",
        ),
        accounts=_names(store, "SELECT account FROM jobs UNION SELECT namespace FROM pod_runs"),
        jobs=_names(
            store,
            "SELECT name FROM jobs UNION SELECT unnest([name, pod_name]) FROM pod_runs",
        ),
    )


def places(store: Store) -> frozenset[str]:
    """All names of nodes, as written too, and of clusters."""
    return _names(
        store,
        """SELECT node FROM nodes UNION SELECT written FROM node_names
           UNION SELECT cluster FROM nodes UNION SELECT cluster FROM jobs""",
    )


def _names(store: Store, sql: str) -> frozenset[str]:
    return frozenset(row[0] for row in store.rows(sql) if row[0])
