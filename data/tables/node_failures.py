"""Failures known without jobs, of nodes or of what many nodes share."""

from data.tables.table import NODE_WRITTEN, Coverage, Records, double, timestamptz, varchar

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
