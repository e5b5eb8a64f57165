"""What inventories showed of nodes, each time somebody looked."""

from data.tables.table import (
    CLUSTER_FROM,
    NODE_WRITTEN,
    Coverage,
    Records,
    bigint,
    integer,
    timestamptz,
    varchar,
)

NODE_INVENTORY = Records(
    "node_inventory",
    "What an inventory showed of a node at one time.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("host name"),
        "observed_at": timestamptz("when it was so"),
        "source": varchar("reader that read it, such as scontrol-nodes, sinfo or k8s-nodes"),
        "gpus": integer(
            "GPUs that the scheduler hands out, a MIG instance as one; 0 where the inventory says "
            "none; NULL where it does not say"
        ),
        "gpu_model": varchar("type of the GPUs as the source names it; several with +"),
        "state": varchar(
            "state and flags in Slurm's words, e.g. IDLE, DOWN+NOT_RESPONDING, IDLE+POWERED_DOWN"
        ),
        "reason": varchar("reason given for the state", people="text"),
        "reason_user": varchar("who gave it", people="user"),
        "reason_at": timestamptz("when it was given"),
        "partitions": varchar("partitions that the node is in, comma-separated"),
        "features": varchar("features, comma-separated"),
        "rack": varchar("rack"),
        "topology": varchar("switches or blocks that the node hangs on, as the source writes it"),
        "cpus": integer("CPUs as the scheduler counts them"),
        "memory_mb": bigint("memory, MB"),
        "os": varchar("operating system"),
        "driver": varchar("GPU driver"),
        "boot_at": timestamptz("booted"),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "node", "observed_at", "source"),
    time="observed_at",
    coverage=Coverage(),
    later="observed_at",
    placed_by=("node",),
)
