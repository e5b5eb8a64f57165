"""Nodes: of an inventory, or named by records."""

from data.tables.table import NODE_WRITTEN, Records, boolean, integer, timestamptz, varchar

NODES = Records(
    "nodes",
    "A node: a spell of one identity.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("host name"),
        "first_seen_at": timestamptz(
            "installed, or first record that names the node; of a listed one that no inventory "
            "shows to be new, the first record of the cluster"
        ),
        "last_seen_at": timestamptz(
            "last record that names the node, or its removal; NULL where nothing says that a "
            "listed node went"
        ),
        "listed_at": timestamptz(
            "of a listed node when an inventory first showed it so; what first_seen_at lies before "
            "that is assumed"
        ),
        "gpus": integer(
            "GPUs in the node; of an observed one the most that an attempt held there, so at least "
            "so many; NULL where nobody says it"
        ),
        "powered": boolean(
            "false while an inventory shows the node powered down, on its way up or down, or "
            "planned: no capacity but what jobs hold"
        ),
        "rack": varchar("rack"),
        "pod": varchar("pod: group of racks behind one network tier"),
        "serial": varchar("serial number of the chassis"),
        "role": varchar(
            "compute, front end or service, as the inventory says; of an observed node compute "
            "where the scheduler or a failure log names it, unknown where only logs do"
        ),
        "source": varchar(
            "inventory: a spell that a source states; derived at publish: listed from "
            "node_inventory, observed from records that name the node"
        ),
        "node_written": NODE_WRITTEN,
    },
    key=("cluster", "node", "first_seen_at", "source"),
    later="last_seen_at",
)
