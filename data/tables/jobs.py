"""Attempts of jobs, and the nodes of each."""

from data.tables.table import (
    NODE_WRITTEN,
    Coverage,
    Records,
    Table,
    bigint,
    double,
    integer,
    timestamptz,
    varchar,
)

STATES = frozenset(
    ("PENDING", "RUNNING", "SUSPENDED", "COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL",
     "PREEMPTED", "BOOT_FAIL", "DEADLINE", "OUT_OF_MEMORY", "LAUNCH_FAILED", "GETENV_FAILED",
     "REQUEUED", "REQUEUE_HOLD", "SPECIAL_EXIT", "RESIZING", "CONFIGURING", "COMPLETING", "STOPPED",
     "RECONFIG_FAIL", "POWER_UP_NODE", "REVOKED", "REQUEUE_FED", "RESV_DEL_HOLD", "SIGNALING",
     "STAGE_OUT", "EXPEDITING")
)  # fmt: skip
"""Job states and state flags of Slurm 26.11 (slurm.h)."""

FINAL_STATES = (
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "LAUNCH_FAILED", "GETENV_FAILED",
    "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "RECONFIG_FAIL", "REQUEUED", "REVOKED", "TIMEOUT",
)  # fmt: skip
"""States after which an attempt does not change any more."""

JOBS = Records(
    "jobs",
    "One attempt of a job; a requeue is a new attempt.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": varchar(
            "SLUID where the source has it, else a hash of cluster, job_id, submit_at, start_at"
        ),
        "job_id": varchar(
            "job id as users see it: 4711, array task 4711_3, heterogeneous component 4711+0",
            people="id",
        ),
        "job_id_raw": varchar("numeric job id of this array task (sacct JobIDRaw)"),
        "attempt": integer(
            "ordinal of the attempt within its job, from 1; set at publish, for display only",
            derived=True,
        ),
        "sluid": varchar("Slurm's lexicographically unique id of the attempt"),
        "original_sluid": varchar("SLUID of the first record of this attempt; stays over a resize"),
        "array_job_id": varchar("id of the job array"),
        "array_task_id": integer("task within the array"),
        "het_offset": integer("component of a heterogeneous job"),
        "run_id": varchar("logical run the attempt belongs to", derived=True, people="id"),
        "user": varchar("user name", people="user"),
        "account": varchar("account charged", people="account"),
        "partition": varchar("partition"),
        "qos": varchar("quality of service"),
        "name": varchar("job name", people="job"),
        "state": varchar("state in Slurm's base spelling"),
        "state_raw": varchar("state as the source wrote it"),
        "flags": varchar("state flags and job flags, comma-separated"),
        "exit_code": integer("exit code of the job script"),
        "exit_signal": integer("signal that ended the job; 0 means none"),
        "reason": varchar("scheduler's reason", people="text"),
        "failed_node": varchar("node whose failure killed the job (sacct FailedNode)"),
        "restarts": integer("times the job was requeued before this attempt"),
        "submit_at": timestamptz("submitted; reset by a requeue"),
        "eligible_at": timestamptz("became eligible to run"),
        "start_at": timestamptz("started running"),
        "end_at": timestamptz("ended; NULL while pending or running"),
        "elapsed_s": bigint("running time, seconds, as the source states it"),
        "timelimit_s": bigint("time limit, seconds; NULL where unlimited or unknown"),
        "n_nodes": integer("nodes allocated"),
        "n_gpus": integer("GPUs allocated; 0 where the source says none; NULL where unknown"),
        "node_gpus": double(
            "GPUs of one of its nodes, the mean of those with GPUs, where inventories list other "
            "than the cluster's gpus_per_node; set at publish",
            derived=True,
        ),
        "n_cpus": integer("CPUs allocated"),
        "node_list": varchar("allocated hosts, compressed as the source wrote them"),
        "submit_line": varchar("command line of the submission", people="text"),
        "excluded_nodes": varchar("hosts the submission excluded"),
        "preempted_by": varchar("job that preempted this attempt"),
        "priority": bigint("scheduling priority"),
    },
    key=("cluster", "attempt_key"),
    time="coalesce(end_at, start_at, submit_at)",
    coverage=Coverage(
        period=("coalesce(submit_at, start_at, end_at)", "coalesce(end_at, start_at, submit_at)")
    ),
    later="end_at",
)

JOB_NODES = Table(
    "job_nodes",
    "A node of an attempt.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": varchar("the attempt"),
        "node": varchar("host name"),
        "n_gpus": integer(
            "GPUs of the attempt on this node; NULL where they do not divide evenly over its nodes"
        ),
        "start_at": timestamptz("start of the attempt"),
        "end_at": timestamptz("end of the attempt; NULL while it runs"),
        "node_written": NODE_WRITTEN,
    },
    key=("cluster", "attempt_key", "node"),
)
