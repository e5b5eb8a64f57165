"""Logged steps of training runs."""

from data.tables.table import (
    CLUSTER_FROM,
    Coverage,
    Records,
    bigint,
    double,
    integer,
    timestamptz,
    varchar,
)

TRAINING_METRICS = Records(
    "training_metrics",
    "A logged step of a run; a step comes again after a restart.",
    {
        "cluster": varchar("name of the cluster"),
        "run_id": varchar(
            "the run as the source names it; of a source that names a job only, found at every "
            "publish",
            people="id",
        ),
        "job_id": varchar("job that the source states; NULL where it states none", people="id"),
        "attempt_key": varchar(
            "the attempt; found anew at every publish from job_id, run_id and the time",
            derived=True,
        ),
        "step": bigint("training step"),
        "rank": integer("rank; NULL where the source states none"),
        "logged_at": timestamptz("when the step, the save or the load was done"),
        "loss": double("training loss"),
        "grad_norm": double("norm of the gradient"),
        "step_time_s": double("duration of the step, seconds"),
        "throughput": double("tokens per second"),
        "checkpoint_event": varchar("saved, loaded; NULL for a plain step"),
        "checkpoint_s": double("time that the save or load stopped the run, seconds"),
        "series": varchar("further series, a JSON object"),
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "run_id", "job_id", "step", "rank", "logged_at", "checkpoint_event"),
    time="logged_at",
    coverage=Coverage(),
    derived_with=("run_id", "job_id"),
    placed_by=("job_id", "run_id"),
)
