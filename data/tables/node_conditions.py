"""Since when Kubernetes' nodes were in or out of service, from which node_events follow."""

from data.tables.table import Records, boolean, timestamptz, varchar

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
