"""What queues of Kubernetes did with jobs, from which attempts follow."""

from data.tables.table import Records, bigint, integer, timestamptz, varchar

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
