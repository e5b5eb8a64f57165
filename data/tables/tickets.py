"""Repair tickets."""

from data.tables.table import CLUSTER_FROM, NODE_WRITTEN, Coverage, Records, timestamptz, varchar

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
