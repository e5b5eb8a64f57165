"""Metrics of nodes and GPUs by hour."""

from data.tables.table import Table, bigint, boolean, double, timestamptz, varchar

NODE_METRICS_HOURLY = Table(
    "node_metrics_hourly",
    "A metric of a node or GPU in one hour, from the samples in `node_metrics`.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("host name"),
        "gpu": varchar("GPU index, else its UUID; NULL for the node"),
        "metric": varchar("name as the exporter gives it"),
        "labels": varchar(
            "what else tells series of a metric apart, a JSON object; NULL for nothing",
            people="text",
        ),
        "hour_at": timestamptz("begin of the hour"),
        "n": bigint("samples"),
        "minimum": double("least value"),
        "mean": double("mean of the values"),
        "maximum": double("greatest value"),
        "last": double("value of the last sample"),
        "increase": double(
            "of a counter: sum of its steps from a sample to the next, each counted where it ends; "
            "one that fell began again at 0. NULL of a gauge, and without a step of at most an hour"
        ),
        "at_least": boolean(
            "of a counter: whether it stood at the most that it can hold, so that it may have "
            "counted more. NULL of a gauge"
        ),
        "unit": varchar("unit of the values, such as C, W, MiB, percent; NULL where nobody says"),
    },
    key=("cluster", "node", "gpu", "metric", "labels", "hour_at"),
    time="hour_at",
)
