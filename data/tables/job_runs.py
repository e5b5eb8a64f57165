"""Logical runs: all attempts and jobs of one task."""

from data.tables.table import Table, bigint, double, integer, timestamptz, varchar

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
