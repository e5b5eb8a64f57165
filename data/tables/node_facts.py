"""Facts about nodes and GPUs while they hold."""

from data.tables.table import CLUSTER_FROM, NODE_WRITTEN, Records, timestamptz, varchar

NODE_FACTS = Records(
    "node_facts",
    "A fact about a node or GPU while it holds.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("host name"),
        "gpu": varchar("GPU index, UUID or PCI address; NULL for a fact about the node"),
        "key": varchar("driver, firmware, batch, temperature class, ..."),
        "from_at": timestamptz("the fact holds from here"),
        "to_at": timestamptz("the fact holds until here; NULL while it still holds"),
        "value": varchar("the fact", people="text"),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "node", "gpu", "key", "from_at"),
    later="to_at",
    placed_by=("node",),
)
