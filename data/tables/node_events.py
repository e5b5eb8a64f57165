"""What befell nodes: states, conditions, health events, outages, tickets."""

from __future__ import annotations

from data.tables.table import (
    CLUSTER_FROM,
    NODE_WRITTEN,
    Coverage,
    Records,
    bigint,
    boolean,
    double,
    integer,
    timestamptz,
    varchar,
)

CONDITIONS = "conditions"
"""Source of rows that follow from `node_conditions`."""

NODE_EVENTS = Records(
    "node_events",
    "An interval out of service.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("host name"),
        "start_at": timestamptz("out of service from here"),
        "end_at": timestamptz("back in service; NULL while it lasts"),
        "state": varchar("node state as the source wrote it, e.g. DOWN, DRAIN, DOWN+DRAIN"),
        "reason": varchar("reason given", people="text"),
        "reason_user": varchar("who gave it", people="user"),
        "planned": boolean("maintenance announced before; NULL where unknown"),
        "source": varchar(
            "conditions: follows from node_conditions; NULL: as its source states it"
        ),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "node", "start_at"),
    time="start_at",
    coverage=Coverage(period=("start_at", "coalesce(end_at, start_at)")),
    later="end_at",
    placed_by=("node",),
)

NODE_CONDITIONS = Records(
    "node_conditions",
    "A condition of a node since a time. Intervals in `node_events` follow from them when they are "
    "merged.",
    {
        "cluster": varchar("name of the cluster"),
        "host": varchar("node as Kubernetes names it"),
        "condition": varchar("Ready, Schedulable or NetworkAvailable"),
        "since_at": timestamptz("holds from here"),
        "holds": boolean("whether it holds; false: out of service"),
        "reason": varchar("reason and message", people="text"),
    },
    key=("cluster", "host", "condition", "since_at"),
    time="since_at",
)

NODE_FAILURES = Records(
    "node_failures",
    "A failure known without a job, of a node or of what many nodes share.",
    {
        "cluster": varchar("name of the cluster"),
        "failure_key": varchar(
            "hash of the row and its occurrence number within the file: true duplicates are kept"
        ),
        "node": varchar("host name or node number; NULL where the failure names none"),
        "hit": varchar(
            "what it hit where it names no node (rack r12, file system scratch, site); NULL of a "
            "node, or where the source does not say"
        ),
        "start_at": timestamptz("failed"),
        "end_at": timestamptz("repaired"),
        "repair_minutes": double("minutes down as the source states them, else end_at - start_at"),
        "cause": varchar("cause as the source classes it"),
        "subcause": varchar("finer cause as the source states it"),
        "text": varchar("description", people="text"),
        "source": varchar("name of the column mapping that read it"),
        "node_written": NODE_WRITTEN,
    },
    key=("cluster", "failure_key"),
    time="start_at",
    coverage=Coverage(period=("start_at", "start_at")),
    later="end_at",
)

HEALTH_EVENTS = Records(
    "health_events",
    "An observation on a node or GPU.",
    {
        "cluster": varchar("name of the cluster"),
        "event_id": varchar("hash of the observation and its occurrence number within the file"),
        "node": varchar("host name"),
        "gpu": varchar("GPU index or PCI address"),
        "observed_at": timestamptz("when; NULL where the source gives no absolute time"),
        "source": varchar("kernel, health_check, ras, bmc, dcgm or scheduler"),
        "check_name": varchar(
            "name of the check: xid, sxid, gpu_lost, another kind of line, or the source's own"
        ),
        "severity": varchar(
            "info, warning, critical, fatal; NULL unknown. Of XIDs set anew at every publish",
            derived=True,
        ),
        "xid": integer("NVIDIA XID"),
        "sxid": integer("NVSwitch SXid"),
        "message": varchar("the line or message", people="text"),
        "job_id": varchar("job the observer names", people="id"),
        "n_records": bigint(
            "records told alike within one minute that this one stands for, itself among them; "
            "NULL: for itself, as it was not reduced before it came"
        ),
        "burst": varchar("hash of what the records of a minute have in common; NULL of one alone"),
        "burst_version": varchar(
            "number and hash of the records of the burst: of two versions the greater stays"
        ),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "event_id"),
    time="observed_at",
    coverage=Coverage(
        by="source",
        period=("observed_at", "observed_at"),
        sources=("kernel", "health_check"),
    ),
    later="observed_at",
    placed_by=("node",),
    weight="n_records",
)

TICKETS = Records(
    "tickets",
    "A repair ticket.",
    {
        "cluster": varchar("name of the cluster"),
        "ticket_id": varchar("ticket number"),
        "node": varchar("host name"),
        "opened_at": timestamptz("opened"),
        "closed_at": timestamptz("closed; NULL while open"),
        "component": varchar("component repaired"),
        "action": varchar("what was done"),
        "vendor": varchar("who made the part or repaired it"),
        "serial": varchar("serial number of the part"),
        "text": varchar("description", people="text"),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "ticket_id"),
    time="opened_at",
    coverage=Coverage(),
    later="closed_at",
    placed_by=("node",),
)
