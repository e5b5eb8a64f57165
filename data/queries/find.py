"""What in the store is called so: a job, a node, a user, an incident, a run, a straggler trace?

Each question returns at most `limit` rows, best first, with `place`: 0 where the name is the text,
1 where it begins so, 2 where it holds it, whatever the letter case; 1 more by another name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.said import ARRANGED
from data.tables.node_events import HEALTH_EVENTS

if TYPE_CHECKING:
    import pandas as pd

    from data.store import Store


def _place(name: str) -> str:
    """Where the text stands in a name; NULL where it does not."""
    lower = f"lower({name})"
    return (
        f"CASE WHEN {lower} = $text THEN 0 WHEN starts_with({lower}, $text) THEN 1 "
        f"WHEN contains({lower}, $text) THEN 2 END"
    )


def jobs(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """By id or name: columns place, job_id, state, name, user, start_at, cluster."""
    return _found(
        store,
        f"""SELECT min(least({_place("job_id")}, 1 + {_place("name")})) AS place, job_id,
              arg_max(state, attempt) AS state, arg_max(name, attempt) AS name,
              arg_max("user", attempt) AS "user", max(start_at) AS start_at, cluster
            FROM jobs WHERE contains(lower(job_id), $text) OR contains(lower(name), $text)
            GROUP BY cluster, job_id ORDER BY place, start_at DESC NULLS LAST, job_id""",
        text,
        limit,
    )


def nodes(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """By any of its names: columns place, node, rack, gpus, cluster."""
    return _found(
        store,
        f"""SELECT min({_place("written")}) AS place, node, any_value(rack) AS rack,
              any_value(gpus) AS gpus, cluster
            FROM (SELECT cluster, node, rack, gpus, node AS written FROM nodes UNION ALL
                  SELECT cluster, node, NULL, NULL, written FROM node_names UNION ALL
                  SELECT DISTINCT cluster, node, NULL, NULL, node FROM health_events
                  WHERE cluster IS NULL AND node IS NOT NULL)
            WHERE contains(lower(written), $text)
            GROUP BY cluster, node ORDER BY place, node, cluster""",
        text,
        limit,
    )


def users(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """By name: columns place, user, n_attempts, last_at."""
    return _found(
        store,
        f"""SELECT min({_place('"user"')}) AS place, "user", count(*) AS n_attempts,
              max(end_at) AS last_at
            FROM jobs WHERE contains(lower("user"), $text)
            GROUP BY "user" ORDER BY place, n_attempts DESC, 2""",
        text,
        limit,
    )


def incidents(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """By id or cause: columns place, incident_id, start_at, summary, cluster."""
    return _found(
        store,
        f"""WITH {ARRANGED}
            SELECT least({_place("incident_id")}, 1 + {_place("cause")}) AS place, incident_id,
              start_at, summary, cluster
            FROM incidents WHERE NOT retired AND place IS NOT NULL
            ORDER BY place, start_at DESC, incident_id""",
        text,
        limit,
    )


def runs(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """By id, those on several nodes: columns place, run_id, name, user, n_gpus, cluster."""
    return _found(
        store,
        f"""SELECT min({_place("run_id")}) AS place, run_id, any_value(name) AS name,
              any_value("user") AS "user", max(n_gpus) AS n_gpus, cluster
            FROM jobs WHERE n_nodes > 1 AND contains(lower(run_id), $text)
            GROUP BY cluster, run_id ORDER BY place, run_id""",
        text,
        limit,
    )


def traces(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """By id or name: columns place, trace_id, name, job_id, slowdown, cause, cluster."""
    return _found(
        store,
        f"""SELECT least({_place("trace_id")}, {_place("name")}) AS place, trace_id, name, job_id,
              slowdown, cause, cluster
            FROM straggler_traces WHERE place IS NOT NULL ORDER BY place, name, trace_id""",
        text,
        limit,
    )


def near_nodes(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """Nodes that were probably meant: the same without leading zeros, or one slip off."""
    plain = "regexp_replace(lower({}), '0+([0-9])', '\\1', 'g')"
    return _found(
        store,
        f"""SELECT DISTINCT node, rack, gpus, cluster FROM nodes
            WHERE {plain.format("node")} = {plain.format("$text")}
              OR length($text) > 3 AND damerau_levenshtein(lower(node), $text) <= 1
            ORDER BY node, cluster""",
        text,
        limit,
    )


def near_users(store: Store, text: str, *, limit: int) -> pd.DataFrame:
    """Users that were probably meant: one slip off."""
    return _found(
        store,
        """SELECT "user", count(*) AS n_attempts, max(end_at) AS last_at FROM jobs
           WHERE length($text) > 3 AND damerau_levenshtein(lower("user"), $text) <= 1
           GROUP BY 1 ORDER BY 1""",
        text,
        limit,
    )


def nodes_with(store: Store, code: str, *, limit: int) -> pd.DataFrame:
    """Nodes on which `XID 79` or the like was seen, the latest first: node, n_times, last_at."""
    kind, _, number = code.partition(" ")
    return store.frame(
        f"""SELECT node, {HEALTH_EVENTS.n_records} AS n_times, max(observed_at) AS last_at, cluster
            FROM health_events WHERE {kind.lower()} = $number AND node IS NOT NULL
            GROUP BY node, cluster ORDER BY last_at DESC, node LIMIT {int(limit)}""",
        {"number": int(number)},
    )


def incidents_with(store: Store, code: str, *, limit: int) -> pd.DataFrame:
    """Incidents in which `XID 79` or the like was seen, the latest first."""
    return store.frame(
        f"""WITH {ARRANGED}
            SELECT DISTINCT incident_id, incidents.start_at, summary, cluster
            FROM incident_members member JOIN incidents USING (incident_id)
            WHERE member.signal = $code AND NOT retired
            ORDER BY incidents.start_at DESC, incident_id LIMIT {int(limit)}""",
        {"code": code},
    )


def _found(store: Store, sql: str, text: str, limit: int) -> pd.DataFrame:
    return store.frame(f"{sql} LIMIT {int(limit)}", {"text": text.lower()})
