"""Nodes: of an inventory, or named by records."""

from data.tables.table import NODE_WRITTEN, Records, integer, timestamptz, varchar

NODES = Records(
    "nodes",
    "A node: a spell of one identity.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("host name"),
        "first_seen_at": timestamptz("installed, or first record that names the node"),
        "last_seen_at": timestamptz("last record that names the node, or its removal"),
        "gpus": integer("GPUs in the node"),
        "rack": varchar("rack"),
        "pod": varchar("pod: group of racks behind one network tier"),
        "serial": varchar("serial number of the chassis"),
        "role": varchar(
            "compute, front end or service, as the inventory says; of an observed node compute "
            "where the scheduler or a failure log names it, unknown where only logs do"
        ),
        "source": varchar(
            "inventory: stated by a source; observed: derived at publish from records that name "
            "the node"
        ),
        "node_written": NODE_WRITTEN,
    },
    key=("cluster", "node", "first_seen_at", "source"),
    later="last_seen_at",
)
