"""What attempts without a record may change in the ledger of GPU-time."""

from data.tables.table import Table, bigint, date, integer, varchar

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
