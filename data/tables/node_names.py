"""Names of nodes other than their own."""

from data.tables.table import Table, bigint, varchar

NODE_NAMES = Table(
    "node_names",
    "A name under which records know a node that has another name. Set at every publish.",
    {
        "cluster": varchar("name of the cluster"),
        "written": varchar("the name as sources write it"),
        "node": varchar("the node that it means"),
        "rule": varchar(
            "why: case, domain, or alias (site.toml); ambiguous: left a node of its own, as the "
            "scheduler knows several nodes of that short name"
        ),
        "sources": varchar("tables whose records write it, comma-separated"),
        "n_records": bigint("records that write it; 0 of an alias that none does"),
    },
    key=("cluster", "written"),
)
