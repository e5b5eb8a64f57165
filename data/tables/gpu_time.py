"""Where GPU-hours went, and what of them no record tells."""

from __future__ import annotations

from data.tables.table import Table, bigint, boolean, date, double, integer, timestamptz, varchar

GPU_TIME = Table(
    "gpu_time",
    "A day of a ledger bucket. Derived on demand: `faultline ledger`, `ettr` and their pages.",
    {
        "day": date("day in UTC"),
        "cluster": varchar("name of the cluster"),
        "partition": varchar("partition; NULL for time that no job held"),
        "account": varchar("account; NULL for time that no job held", people="account"),
        "size_class": varchar("class of job size in GPUs: 1, 2-8, 9-16 and so on, doubling"),
        "n_gpus": integer("GPUs of the attempts; NULL for time that no job held"),
        "bucket": varchar("bucket of the ledger"),
        "cause": varchar("cause of a loss; NULL where the bucket has none or it is unknown"),
        "gpu_seconds": bigint("GPU-seconds; of estimated buckets the central value"),
        "lower_gpu_seconds": bigint(
            "least under what is stated or assumed of checkpoints and start-up; adds up over rows"
        ),
        "upper_gpu_seconds": bigint("greatest"),
        "shared_gpu_seconds": double(
            "standard deviation by what is known of the habits of runs that nobody observed; adds "
            "up over rows"
        ),
        "habit_gpu_s2": double(
            "variance by the own habits of such runs, square GPU-seconds; adds up over rows"
        ),
        "variance_gpu_s2": double("variance by chance, square GPU-seconds; adds up over rows"),
        "n_attempts": bigint(
            "attempts whose time it is, on the day on which they end; NULL for time that no job "
            "held"
        ),
        "rule_gpu_seconds": bigint(
            "of the same attempts min(running time, 30 min) x GPUs, as the RSC paper counts; NULL "
            "for other buckets"
        ),
    },
    key=("day", "cluster", "partition", "account", "n_gpus", "bucket", "cause"),
)

LOST_TIME = Table(
    "lost_time",
    "What an attempt lost that infrastructure, preemption or a requeue ended: together what the "
    "buckets of losses hold in `gpu_time`. Without a bucket what a failure of unknown cause would "
    "have lost if infrastructure ended it. Derived with the ledger.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": varchar("the attempt"),
        "job_run": varchar("run_id of the attempt in jobs", people="id"),
        "bucket": varchar("bucket of the ledger; NULL where the cause of the failure is unknown"),
        "cause": varchar("cause of the loss; NULL where it has none or it is unknown"),
        "gpu_seconds": bigint(
            "GPU-seconds, the central value; NULL where nobody knows: no GPUs are stated, or the "
            "time is before complete records"
        ),
        "lower_gpu_seconds": bigint("least, as in `gpu_time`"),
        "upper_gpu_seconds": bigint("greatest"),
        "shared_gpu_seconds": double("standard deviation that adds up, as in `gpu_time`"),
        "habit_gpu_seconds": double(
            "standard deviation by the habit of its run: it adds up over attempts of one run, "
            "over runs its square does"
        ),
        "variance_gpu_s2": double("variance by chance, as in `gpu_time`"),
        "end_at": timestamptz("end of the attempt"),
        "partition": varchar("its partition"),
        "account": varchar("its account", people="account"),
        "n_gpus": integer("its GPUs; NULL where unknown"),
        "unexplained": boolean(
            "it failed, its node was not lost, and no record says whose fault it was"
        ),
    },
    key=("cluster", "attempt_key"),
)

UNRECORDED_TIME = Table(
    "unrecorded_time",
    "What attempts without a record may change in a bucket of the ledger on a day: those before a "
    "requeue, which sacct lists with --duplicates alone. Derived with the ledger.",
    {
        "day": date("day in UTC"),
        "cluster": varchar("name of the cluster"),
        "partition": varchar("partition; NULL in rows of the whole cluster"),
        "account": varchar("account; NULL in rows of the whole cluster", people="account"),
        "size_class": varchar("class of job size in GPUs, as in `gpu_time`"),
        "n_gpus": integer("GPUs of the jobs; NULL in rows of the whole cluster"),
        "bucket": varchar(
            "bucket of time that no job held; `held`: all that such attempts held; of jobs also "
            "`startup`, `checkpoint`, `straggler` and `lost`, whoever ended them"
        ),
        "least_gpu_seconds": bigint("greatest loss of the bucket, 0 or less"),
        "most_gpu_seconds": bigint("greatest gain, 0 or more"),
    },
    key=("day", "cluster", "partition", "account", "n_gpus", "bucket"),
)
