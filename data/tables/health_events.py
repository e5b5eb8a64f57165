"""Observations on nodes and GPUs."""

from data.tables.table import (
    CLUSTER_FROM,
    NODE_WRITTEN,
    Coverage,
    Records,
    integer,
    timestamptz,
    varchar,
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
)
