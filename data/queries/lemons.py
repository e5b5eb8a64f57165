"""What is recorded of each node in some days: its exposure, and what speaks against it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from analytics.failures.xid import xid_entries
from data.definitions import INFRASTRUCTURE, TOLD_TWICE
from data.filters import Filter, Selection
from data.hostlist import HostListError, expand
from data.queries.efficiency import has_ledger
from data.queries.exposure import node_exposure
from data.said import VERDICTS
from data.tables.node_events import HEALTH_EVENTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from data.store import Store

_IN_CLUSTER = Filter(columns=("cluster",))
_HERE = """cluster = $cluster AND start_at < $to_at
  AND (end_at IS NULL OR end_at >= $from_at)"""
"""Attempts of the cluster that touch the window."""
_EXCLUDES = re.compile(r"(?:^|\s)(?:--exclude[=\s]+|-x\s*)([^\s-]\S*)")
LARGE_GPUS: Final = 129
"""GPUs of a large job, as papers count them; 17 nodes where GPUs are not known."""
LARGE_NODES: Final = 17


@dataclass(frozen=True)
class Window:
    """Days of one cluster."""

    cluster: str
    from_at: datetime
    to_at: datetime

    @property
    def days(self) -> float:
        """Its length."""
        return (self.to_at - self.from_at) / timedelta(days=1)

    def at(self, day: float) -> datetime:
        """The time so many days after its begin."""
        return self.from_at + timedelta(days=day)

    @property
    def before(self) -> Window:
        """As many days before it."""
        return replace(self, from_at=self.from_at - (self.to_at - self.from_at), to_at=self.from_at)

    @property
    def selection(self) -> Selection:
        """The cluster and the period."""
        return Selection(cluster=self.cluster, from_at=self.from_at, to_at=self.to_at)


def windows(store: Store, selection: Selection, days: float) -> list[Window]:
    """The last days of the selection, of each cluster up to its last record."""
    rows: list[Any] = store.rows(
        f"""WITH seen (cluster, seen_at) AS (
              SELECT cluster, max(coalesce(end_at, start_at, submit_at)) FROM jobs GROUP BY cluster
              UNION ALL SELECT cluster, max(greatest(start_at, end_at)) FROM node_events
                GROUP BY cluster
              UNION ALL SELECT cluster, max(start_at) FROM node_failures GROUP BY cluster
              UNION ALL SELECT cluster, max(opened_at) FROM tickets GROUP BY cluster
              UNION ALL SELECT cluster, max(observed_at) FROM health_events GROUP BY cluster)
            SELECT cluster, max(seen_at) + INTERVAL 1 MICROSECOND FROM seen
            WHERE cluster IS NOT NULL AND {_IN_CLUSTER.where(selection)}
            GROUP BY cluster HAVING max(seen_at) IS NOT NULL
            ORDER BY cluster""",
        selection.parameters,
    )
    found = []
    for cluster, last_at in rows:
        to_at = min(last_at, selection.to_at) if selection.to_at else last_at
        from_at = to_at - timedelta(days=days)
        from_at = max(from_at, selection.from_at) if selection.from_at else from_at
        if from_at < to_at:
            found.append(Window(cluster, from_at, to_at))
    return found


def nodes(store: Store, window: Window) -> pd.DataFrame:
    """Nodes of the window, as `analytics.nodes.records` wants them.

    A node that no inventory lists is there from its first record to the end, if the window names
    it. Hosts that only logs name are left out where other nodes are known.
    """
    found = store.frame(
        f"""WITH spell AS (
             SELECT node, max(role) AS role, max(rack) AS rack, max(pod) AS pod,
               sum(epoch(least(CASE WHEN source = 'observed' THEN $to_at
                     ELSE coalesce(last_seen_at, $to_at) END, $to_at)
                   - greatest(first_seen_at, $from_at))) / 86400 AS present_days
             FROM nodes
             WHERE cluster = $cluster AND node IS NOT NULL AND first_seen_at < $to_at
               AND (last_seen_at IS NULL OR last_seen_at >= $from_at)
             GROUP BY node),
           placed AS (
             SELECT node, lower(key) AS key, arg_max(value, from_at) AS value FROM node_facts
             WHERE cluster = $cluster AND lower(key) IN ('rack', 'pod', 'switch', 'pdu')
               AND gpu IS NULL GROUP BY ALL),
           hung AS (
             SELECT node, arg_max(topology, observed_at) AS topology FROM node_inventory
             WHERE cluster = $cluster AND observed_at < $to_at GROUP BY node),
           held AS (
             SELECT node, count(*) AS n_attempts FROM job_nodes
             WHERE {_HERE} GROUP BY node),
           ran AS (
             SELECT node FROM held
             UNION ALL
             SELECT DISTINCT node FROM job_nodes
             SEMI JOIN (FROM spell ANTI JOIN held USING (node)) USING (node)
             WHERE cluster = $cluster),
           named AS (
             SELECT node_list, count(*) AS n FROM jobs
             WHERE {_HERE} AND n_nodes = 1 GROUP BY node_list),
           alone AS (
             SELECT lower(node_list) AS written, CAST(sum(n) AS BIGINT) AS n_single
             FROM named GROUP BY written)
           SELECT spell.node, greatest(present_days, 0) AS present_days, role,
             coalesce(n_attempts, 0) AS n_attempts, coalesce(n_single, 0) AS n_single,
             ran.node IS NOT NULL AS holds_jobs,
             coalesce(any_value(rack), max(value) FILTER (key = 'rack')) AS rack,
             coalesce(any_value(pod), max(value) FILTER (key = 'pod')) AS pod,
             coalesce(max(value) FILTER (key = 'switch'), any_value(topology)) AS switch,
             max(value) FILTER (key = 'pdu') AS pdu
           FROM spell LEFT JOIN placed USING (node) LEFT JOIN hung USING (node)
           LEFT JOIN ran USING (node) LEFT JOIN held USING (node)
           LEFT JOIN alone ON written = lower(spell.node)
           GROUP BY spell.node, present_days, role, n_attempts, n_single, ran.node
           ORDER BY spell.node""",
        window.selection.parameters,
    )
    known = found["role"] != "unknown"
    found = found[known] if known.any() else found
    held = node_exposure(store, window.selection)
    days = dict(zip(held["node"], held["exposure_node_days"].tolist(), strict=True))
    found["busy_days"] = [days.get(node, 0.0) for node in found["node"]]
    found["busy_days"] = found["busy_days"].fillna(0.0).where(found["holds_jobs"], 0.0)
    return found.reset_index(drop=True)


def events(store: Store, window: Window) -> pd.DataFrame:
    """Records of nodes: node, day, until_day, signal, share, user, evident, n_nodes,
    lost_gpu_hours (0 where the ledger is not built), reason and n_records, as
    `analytics.nodes.records` says them."""
    domains = {code: entry.domain for code, entry in xid_entries().items()}
    of_domain = {
        f"of_{name}": [code for code, domain in domains.items() if domain == name]
        for name in ("user", "hardware")
    }
    lost = _LOST if has_ledger(store) else _NOT_BUILT
    sql = _EVENTS.replace("$lost_time", lost)
    found = store.frame(sql, window.selection.parameters | of_domain)
    excluded = _excluded(store, window)
    if excluded.empty:
        return found
    return pd.concat([found, excluded], ignore_index=True) if len(found) else excluded


_LOST = """SELECT attempt_key, gpu_seconds FROM lost_time
    WHERE cluster = $cluster AND bucket = 'lost_work' AND end_at >= $from_at AND end_at < $to_at"""
_NOT_BUILT = "SELECT NULL AS attempt_key, NULL AS gpu_seconds WHERE false"
_DAY = "epoch({} - $from_at) / 86400"
_EVENTS = f"""WITH {VERDICTS},
failed AS (
  SELECT attempt_key, failed_at, node, "user", n_nodes, cause,
    coalesce(critical_check, false) OR coalesce(node_lost, false) AS evident,
    coalesce(gpu_seconds, 0) / 3600.0 AS lost
  FROM (SELECT * FROM verdict WHERE {INFRASTRUCTURE} AND cluster = $cluster
          AND failed_at >= $from_at AND failed_at < $to_at) counted
  JOIN (SELECT attempt_key, "user", n_nodes FROM jobs WHERE cluster = $cluster
          AND end_at >= $from_at AND end_at < $to_at) jobs USING (attempt_key)
  LEFT JOIN ($lost_time) USING (attempt_key)),
shared AS (
  SELECT held.node, failed_at, "user", cause, lost,
    count(*) OVER (PARTITION BY attempt_key) AS n
  FROM (FROM job_nodes WHERE cluster = $cluster AND end_at >= $from_at AND end_at < $to_at) held
  JOIN failed USING (attempt_key)
  WHERE failed.node IS NULL),
out AS (
  SELECT node, start_at, end_at, coalesce(reason, state) AS code,
    coalesce(planned, false) AS planned
  FROM node_events
  WHERE cluster = $cluster AND start_at < $to_at AND (end_at IS NULL OR end_at >= $from_at)),
seen AS (
  SELECT node, severity IN ('critical', 'fatal') AS grave, min(observed_at) AS seen_at,
    {HEALTH_EVENTS.n_records} AS n,
    CASE WHEN count(coalesce(xid, sxid)) = 0 THEN 'checks' END AS only_checks,
    array_to_string(list_sort(list(DISTINCT coalesce('XID ' || xid, 'SXid ' || sxid, check_name))),
      ', ') AS code
  FROM health_events
  WHERE cluster = $cluster AND node IS NOT NULL AND source IS DISTINCT FROM 'scheduler'
    AND NOT {TOLD_TWICE}
    AND observed_at >= $from_at AND observed_at < $to_at
    AND (severity IN ('critical', 'fatal') AND coalesce(xid NOT IN (SELECT unnest($of_user)), true)
      OR severity IN ('info', 'warning') AND xid IN (SELECT unnest($of_hardware)))
  GROUP BY node, grave, date_trunc('day', observed_at))
SELECT node, {_DAY.format("failed_at")} AS day, CAST(NULL AS DOUBLE) AS until_day,
  'job_failure' AS signal, 1.0 AS share, "user", evident, coalesce(n_nodes, 1) AS n_nodes,
  lost AS lost_gpu_hours, cause AS reason, 1 AS n_records
FROM failed WHERE node IS NOT NULL
UNION ALL
SELECT node, {_DAY.format("failed_at")}, NULL, 'job_failure', 1.0 / n, "user", false, n, lost,
  cause, 1 FROM shared
UNION ALL
SELECT node, greatest({_DAY.format("start_at")}, 0), {_DAY.format("coalesce(end_at, $to_at)")},
  'out', 1.0, NULL, true, 0, 0.0, code, 1
FROM out WHERE NOT planned AND node IS NOT NULL
UNION ALL
SELECT node, {_DAY.format("start_at")}, {_DAY.format("end_at")}, 'out', 1.0, NULL, true, 0, 0.0,
  coalesce(subcause, cause), 1
FROM node_failures
WHERE cluster = $cluster AND start_at >= $from_at AND start_at < $to_at AND node IS NOT NULL
UNION ALL
SELECT node, {_DAY.format("opened_at")}, NULL, 'ticket', 1.0, NULL, true, 0, 0.0,
  coalesce(component, action), 1
FROM tickets
WHERE cluster = $cluster AND opened_at >= $from_at AND opened_at < $to_at AND node IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM out WHERE planned AND out.node = tickets.node
    AND opened_at >= out.start_at AND opened_at <= coalesce(out.end_at, $to_at))
UNION ALL
SELECT node, {_DAY.format("seen_at")}, NULL,
  CASE WHEN grave THEN 'xid' ELSE 'warning' END, 1.0, only_checks, only_checks IS NULL, 0, 0.0,
  code, n FROM seen
ORDER BY ALL"""


def _excluded(store: Store, window: Window) -> pd.DataFrame:
    """Who excluded which node in how many jobs, by the submission or its command line."""
    rows: list[Any] = store.rows(
        f"""SELECT "user", coalesce(excluded_nodes, submit_line), excluded_nodes IS NOT NULL,
              {_DAY.format("min(submit_at)")}, count(*)
            FROM jobs
            WHERE cluster = $cluster AND submit_at >= $from_at AND submit_at < $to_at
              AND (excluded_nodes IS NOT NULL OR submit_line LIKE '%--exclude%'
                OR submit_line LIKE '% -x%')
            GROUP BY ALL ORDER BY ALL""",
        window.selection.parameters,
    )
    found = []
    for user, text, stated, day, n in rows:
        match = None if stated else _EXCLUDES.search(text)
        names = text if stated else match[1] if match else ""
        try:
            hosts = expand(names)
        except HostListError:
            continue
        found += [(host, day, user, n) for host in dict.fromkeys(hosts)]
    frame = pd.DataFrame(found, columns=["node", "day", "user", "n_records"])
    return frame.assign(
        until_day=float("nan"), signal="excluded", share=1.0, evident=False, n_nodes=0,
        lost_gpu_hours=0.0, reason=None,
    )  # fmt: skip


def uses(store: Store, window: Window, nodes: Sequence[str], users: Sequence[str]) -> pd.DataFrame:
    """Use of these nodes by all users, and of all nodes by these users: node, user, node_days,
    n_attempts."""
    return store.frame(
        f"""WITH job AS MATERIALIZED (
             SELECT attempt_key, "user", "user" IN (SELECT unnest($users)) AS theirs
             FROM jobs WHERE {_HERE} AND (theirs OR attempt_key IN (
               SELECT attempt_key FROM job_nodes
               WHERE {_HERE} AND node IN (SELECT unnest($nodes))))),
           held AS NOT MATERIALIZED (
             SELECT attempt_key, node, start_at, end_at FROM job_nodes WHERE {_HERE})
           SELECT node, "user",
             sum(epoch_us(least(coalesce(end_at, as_of_at), $to_at))
               - epoch_us(greatest(start_at, $from_at))) / 86400e6 AS node_days,
             count(*) AS n_attempts
           FROM held JOIN job USING (attempt_key) JOIN clusters ON clusters.cluster = $cluster
           WHERE theirs OR node IN (SELECT unnest($nodes))
           GROUP BY ALL ORDER BY ALL""",
        window.selection.parameters | {"nodes": list(nodes), "users": list(users)},
    )


def collected(store: Store, window: Window) -> frozenset[str]:
    """Signals of which the cluster has a source in the window or in as many days before it."""
    parameters = window.selection.parameters | {"early": window.before.from_at}
    rows: list[Any] = store.rows(
        """SELECT DISTINCT split_part(source, '.', 1) FROM coverage
           WHERE cluster = $cluster AND day >= CAST($early AS DATE) AND day < $to_at""",
        parameters,
    )
    tables = {table for (table,) in rows}
    ((said,),) = store.rows(
        """SELECT count(*) > 0 FROM jobs WHERE cluster = $cluster AND submit_at >= $early
             AND submit_at < $to_at AND (excluded_nodes IS NOT NULL OR submit_line IS NOT NULL)""",
        parameters,
    )
    by_table = {
        "jobs": "job_failure", "node_events": "out", "node_failures": "out", "tickets": "ticket",
        "health_events": "xid",
    }  # fmt: skip
    found = {signal for table, signal in by_table.items() if table in tables}
    found |= {"warning"} if "xid" in found else set()
    return frozenset(found | ({"excluded"} if said else set()))


def large_hours(store: Store, window: Window) -> float:
    """Hours that large jobs ran in the window."""
    rows: list[Any] = store.rows(
        f"""SELECT coalesce(sum(epoch(least(coalesce(end_at, as_of_at), $to_at)
              - greatest(start_at, $from_at))), 0) / 3600
            FROM (SELECT * FROM jobs WHERE cluster = $cluster AND start_at < $to_at
                AND (end_at IS NULL OR end_at > $from_at)
                AND (n_gpus >= {LARGE_GPUS} OR n_gpus IS NULL AND n_nodes >= {LARGE_NODES}))
            JOIN clusters USING (cluster)""",
        window.selection.parameters,
    )
    return float(rows[0][0])


def uses_slurm(store: Store, cluster: str) -> bool:
    """Whether Slurm schedules the cluster, or nothing says what does."""
    rows: list[Any] = store.rows(
        "SELECT coalesce(scheduler, 'slurm') = 'slurm' FROM clusters WHERE cluster = $cluster",
        {"cluster": cluster},
    )
    return all(bool(slurm) for (slurm,) in rows)
