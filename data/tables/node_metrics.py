"""Samples of metrics of nodes and GPUs."""

from data.tables.table import (
    CLUSTER_FROM,
    NODE_WRITTEN,
    Coverage,
    Records,
    double,
    timestamptz,
    varchar,
)

NODE_METRICS = Records(
    "node_metrics",
    "A sample of a metric of a node or GPU. Of two values of one time the greater stays.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("host name"),
        "gpu": varchar("GPU index, else its UUID; NULL for the node"),
        "metric": varchar("name as the exporter gives it"),
        "labels": varchar(
            "what else tells series of a metric apart, a JSON object; NULL for nothing",
            people="text",
        ),
        "observed_at": timestamptz("when"),
        "reading": double("value as the exporter states it; its unit is in node_metrics_hourly"),
        "gpu_uuid": varchar("UUID of the GPU"),
        "namespace": varchar("namespace of the pod that held the GPU", people="account"),
        "pod_name": varchar("pod that held the GPU", people="job"),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "node", "gpu", "metric", "labels", "observed_at"),
    time="observed_at",
    coverage=Coverage(),
    later="reading",
    placed_by=("node",),
)
