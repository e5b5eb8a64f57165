"""Attempts of jobs, the nodes of each, what became of them in a queue, and their runs."""

from __future__ import annotations

from data.tables.table import (
    NODE_WRITTEN,
    Coverage,
    Records,
    Table,
    bigint,
    boolean,
    date,
    double,
    integer,
    timestamptz,
    unlike,
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
        "attempt_key": unlike(
            "SLUID where the source has it, else a hash of cluster, job_id, submit_at, start_at"
        ),
        "job_id": unlike(
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
        "run_id": unlike("logical run the attempt belongs to", derived=True, people="id"),
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

QUEUE_CHANGES = Records(
    "queue_changes",
    "What a queue of Kubernetes did with a job and when. Attempts in `jobs` follow from these and "
    "from `pod_runs` when they are merged.",
    {
        "cluster": varchar("name of the cluster"),
        "job_id": varchar("namespace/name of the job, as pod_runs has it", people="id"),
        "object_uid": varchar("uid of the Workload, Volcano job or PodGroup", people="id"),
        "change": varchar("submitted, started (admitted), evicted or finished"),
        "changed_at": timestamptz("when"),
        "state": varchar(
            "state of the attempt from then on, in Slurm's words; NULL of a PodGroup that runs, "
            "for nothing says since when"
        ),
        "reason": varchar("reason and message", people="text"),
        "namespace": varchar("namespace", people="account"),
        "name": varchar("name of the job", people="job"),
        "queue": varchar("queue of Kueue or Volcano"),
        "priority_class": varchar("priority class"),
        "n_gpus": integer("GPUs of all its pods, as reserved, else as asked for; NULL unknown"),
        "timelimit_s": bigint("maximumExecutionTimeSeconds"),
        "version": bigint("resourceVersion of the object, else its latest time"),
    },
    key=("cluster", "job_id", "object_uid", "change", "changed_at"),
    later="version",
)

POD_RUNS = Records(
    "pod_runs",
    "A run of a pod; a pod restarted in place begins another. Attempts in `jobs` follow from them "
    "when they are merged.",
    {
        "cluster": varchar("name of the cluster"),
        "job_id": varchar(
            "namespace/name of the job, else of the pod's owner or the pod itself", people="id"
        ),
        "pod_uid": varchar("uid of the pod, else namespace/name and creation", people="id"),
        "run": integer("restarts of its main container before this run"),
        "namespace": varchar("namespace", people="account"),
        "name": varchar("name of the job", people="job"),
        "pod_name": varchar("name of the pod", people="job"),
        "slot": varchar(
            "its place among the pods of one attempt, such as worker/3; NULL where pods of the job "
            "are attempts of their own"
        ),
        "stated_attempt": integer("restart of the job that the pod belongs to, as labels say"),
        "decides": boolean("whether the job ends as this pod does: a master or launcher"),
        "queue": varchar("queue of Kueue or Volcano"),
        "priority_class": varchar("priority class"),
        "host": varchar("node as Kubernetes names it; NULL while the pod waits for one"),
        "n_gpus": integer("GPUs of the pod, a MIG instance as one; NULL where unknown"),
        "created_at": timestamptz("pod created"),
        "start_at": timestamptz("of a first run the pod got its node; else the container started"),
        "end_at": timestamptz("ended; NULL while it lasts"),
        "is_over": boolean("whether it has ended, even where nobody says when"),
        "state": varchar("state in Slurm's words"),
        "state_raw": varchar("phase of the pod and reason"),
        "reason": varchar("reason and message", people="text"),
        "exit_code": integer("exit code of the container"),
        "exit_signal": integer("signal that ended it: exit code less 128"),
        "timelimit_s": bigint("activeDeadlineSeconds"),
        "version": bigint(
            "resourceVersion of the pod, else its latest time, doubled; one more of a deleted pod"
        ),
    },
    key=("cluster", "job_id", "pod_uid", "run"),
    later="version",
)

JOB_RUNS = Table(
    "job_runs",
    "One logical run on several nodes: all attempts and jobs of one task. Derived with the ledger.",
    {
        "cluster": varchar("name of the cluster"),
        "run_id": varchar(
            "the run: job id of its first job, with #2 and so on where that id came again",
            people="id",
        ),
        "joined_by": varchar(
            "why its attempts are one run: single, requeue, lineage, array, name; the weakest "
            "rule that joined any"
        ),
        "name": varchar("job name", people="job"),
        "user": varchar("owner", people="user"),
        "account": varchar("account", people="account"),
        "partition": varchar("partition of its last attempt"),
        "first_submit_at": timestamptz("first submission"),
        "first_start_at": timestamptz("first start; NULL where none started"),
        "last_end_at": timestamptz("last end; NULL while an attempt is pending or running"),
        "n_jobs": integer("jobs"),
        "n_attempts": integer("attempts"),
        "n_gpus": integer("largest number of GPUs of an attempt"),
        "n_nodes": integer("largest number of nodes of an attempt"),
        "unrecorded_s": bigint(
            "longest time for which attempts before a requeue that no record shows may have waited "
            "and run, seconds"
        ),
        "n_interruptions": integer("attempts ended by infrastructure, preemption or requeue"),
        "n_failures": integer("of these, attempts ended by infrastructure"),
        "queued_s": bigint(
            "eligible and waiting, sum over attempts, seconds; NULL where one started and nothing "
            "says since when it waited"
        ),
        "scheduled_s": bigint("running, sum over attempts, seconds"),
        "startup_s": bigint("of scheduled_s: from start to the first step"),
        "checkpoint_s": bigint("of scheduled_s: stopped to write checkpoints"),
        "lost_s": bigint("of scheduled_s: worked since the last checkpoint before an interruption"),
        "productive_s": bigint("the rest of scheduled_s"),
        "lower_productive_s": bigint(
            "least productive_s under what is stated or assumed of checkpoints and start-up"
        ),
        "upper_productive_s": bigint("greatest"),
        "shared_productive_s": double(
            "standard deviation of productive_s by what is known of the habits of runs that nobody "
            "observed; adds up over runs"
        ),
        "variance_productive_s2": double(
            "variance of productive_s by the habit of this run and by chance: when in its interval "
            "an interruption struck; square seconds; adds up over runs"
        ),
        "basis": varchar(
            "what startup_s, checkpoint_s and lost_s rest on: training_metrics, observed_runs, "
            "configured, assumed"
        ),
        "checkpoint_interval_s": double(
            "mean working time between checkpoints that training metrics show; NULL where none do"
        ),
        "checkpoint_write_s": double("mean time a checkpoint stops the run, as they show"),
        "restart_s": double("mean time from start to the first step, as they show"),
    },
    key=("cluster", "run_id"),
)

RUN_LINKS = Table(
    "run_links",
    "A logical run of more than one job. Derived with the ledger.",
    {
        "cluster": varchar("name of the cluster"),
        "run_id": varchar("the run", people="id"),
        "joined_by": varchar(
            "weakest rule that joined any of its jobs: lineage, requeue, array, name"
        ),
    },
    key=("cluster", "run_id"),
)

RUNNING_TIME = Table(
    "running_time",
    "Running time of ended attempts alike on a day: what rates divide failures by.",
    {
        "cluster": varchar("name of the cluster"),
        "partition": varchar("partition"),
        "n_gpus": integer("GPUs of each attempt"),
        "n_nodes": integer("nodes of each attempt"),
        "node_gpus": double("GPUs of their nodes, as in jobs"),
        "day": date("day where the cluster stands"),
        "running_us": bigint("microseconds that they ran on that day"),
    },
    key=("cluster", "partition", "n_gpus", "n_nodes", "node_gpus", "day"),
)

NODE_TOTALS = Table(
    "node_totals",
    "Time of each node in attempts that ended, of all time. Kept of many attempts alone.",
    {
        "cluster": varchar("name of the cluster"),
        "node": varchar("the node"),
        "gpu_us": bigint("GPUs of the attempts on it x microseconds, where their GPUs are known"),
        "node_us": bigint("microseconds of attempts, at once or one after the other"),
    },
    key=("cluster", "node"),
)

STATE_TOTALS = Table(
    "state_totals",
    "Attempts that ended in one state, of all time. Kept of many attempts alone.",
    {
        "cluster": varchar("name of the cluster"),
        "partition": varchar("partition of the attempts"),
        "state": varchar("state of the attempts"),
        "n_attempts": bigint("attempts"),
        "n_started": bigint("of them, those that ran"),
        "n_sized": bigint("of these, those whose GPUs are known"),
        "gpu_seconds": bigint("running time x GPUs of these, of each in whole seconds"),
    },
    key=("cluster", "partition", "state"),
)
