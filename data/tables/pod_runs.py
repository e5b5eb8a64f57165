"""Runs of Kubernetes' pods, from which attempts of jobs follow."""

from data.tables.table import Records, bigint, boolean, integer, timestamptz, varchar

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
