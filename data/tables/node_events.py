"""Intervals in which nodes were out of service."""

from data.tables.table import (
    CLUSTER_FROM,
    NODE_WRITTEN,
    Coverage,
    Records,
    boolean,
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
