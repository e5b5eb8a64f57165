"""What jobs wrote: log lines and their verdict, steps of a training, traces of steps."""

from __future__ import annotations

from data.tables.table import (
    CLUSTER_FROM,
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

JOB_LOGS = Records(
    "job_logs",
    "A line of a job's log.",
    {
        "cluster": varchar("name of the cluster"),
        "job_id": varchar(
            "job that the file's name states; NULL where the source states the attempt", people="id"
        ),
        "attempt_key": varchar(
            "the attempt; found anew at every publish from job_id and the lines' times",
            derived=True,
        ),
        "file": varchar("name of the log file", people="text"),
        "line_no": bigint(
            "line, from 1; of lines from a log store their place in the file, else a number in the "
            "order of their time"
        ),
        "logged_at": timestamptz("time on the line"),
        "node": varchar("host that wrote it"),
        "rank": integer("rank that wrote it"),
        "text": varchar("the line", people="text"),
        "node_written": NODE_WRITTEN,
        "cluster_from": CLUSTER_FROM,
    },
    key=("cluster", "job_id", "file", "line_no"),
    time="logged_at",
    coverage=Coverage(),
    later="logged_at",
    placed_by=("job_id",),
)

LOG_VERDICTS = Table(
    "log_verdicts",
    "The first cause found in the log of a failed attempt, and the lines that say something in it "
    "and in logs of completed ones. Derived at a publish that brings new lines.",
    {
        "cluster": varchar("name of the cluster"),
        "attempt_key": varchar("the attempt"),
        "content": varchar("hash of the log's lines"),
        "rules_version": varchar("version of the rules that read it"),
        "cause": varchar("cause, by the taxonomy; unknown where the log names none"),
        "confidence": double("confidence in [0, 1]"),
        "method": varchar("log_rule, log_model or none"),
        "file": varchar("file of the line of the first cause", people="text"),
        "line_no": bigint("that line"),
        "node": varchar("host that wrote it, by the name on the line"),
        "text": varchar("its text", people="text"),
        "evidence": varchar(
            "lines the verdict rests on, a JSON array: line, text", people="nested"
        ),
        "lines": varchar("hashes of its lines that say something, a JSON array"),
        "discounts": varchar(
            "share of such a line's presence in logs of failed attempts that is not chance, a JSON "
            "object by hash; only of lines that logs of completed attempts hold too"
        ),
    },
    key=("cluster", "attempt_key"),
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
        "logged_at": timestamptz(
            "when the step, the save or the load was done; NULL where the source states no time"
        ),
        "line_no": bigint(
            "place of the row in its source, from 1, where that states no time or repeats step and "
            "time of the row before; else NULL"
        ),
        "log_id": varchar(
            "which source a row without a time is of: hash of its first bytes; else NULL"
        ),
        "loss": double("training loss"),
        "grad_norm": double("norm of the gradient"),
        "step_time_s": double("duration of the step, seconds"),
        "throughput": double("tokens per second"),
        "learning_rate": double("learning rate"),
        "loss_scale": double("factor by which the loss is scaled against underflow"),
        "checkpoint_event": varchar("saved, loaded; NULL for a plain step"),
        "checkpoint_s": double("time that the save or load stopped the run, seconds"),
        "series": varchar("further series, a JSON object"),
        "cluster_from": CLUSTER_FROM,
    },
    key=(
        *("cluster", "run_id", "job_id", "step", "rank", "logged_at", "checkpoint_event"),
        *("line_no", "log_id"),
    ),
    time="logged_at",
    coverage=Coverage(),
    derived_with=("run_id", "job_id"),
    placed_by=("job_id", "run_id"),
)

STRAGGLER_TRACES = Records(
    "straggler_traces",
    "A stored trace of operations with its what-if results.",
    {
        "trace_id": varchar("hash of the trace"),
        "cluster": varchar("name of the cluster; NULL where no job is stated"),
        "job_id": varchar("job that was traced; NULL where none is stated", people="id"),
        "run_id": varchar("the run; NULL where no job is stated", derived=True, people="id"),
        "name": varchar("name of the trial, else of the file", people="job"),
        "path": varchar("Parquet file below metrics/", people="text"),
        "traced_at": timestamptz(
            "when it was traced; NULL where the trace has only times relative to its steps"
        ),
        "n_rows": bigint("operations"),
        "n_steps": integer("steps analysed", derived=True),
        "n_dropped_steps": integer("steps left out, incomplete", derived=True),
        "n_workers": integer("workers traced: dp x pp"),
        "n_gpus": integer("GPUs of the job: dp x pp x tp x dsp; NULL where no meta file states tp"),
        "dp": integer("data-parallel size"),
        "pp": integer("pipeline-parallel size"),
        "vpp": integer("model chunks in a stage"),
        "tp": integer("tensor-parallel size"),
        "slowdown": double("S = T / T_ideal", derived=True),
        "wasted_ratio": double("share of GPU-time wasted, 1 - 1 / S", derived=True),
        "cause": varchar("strongest cause; none where the job does not straggle", derived=True),
        "results": varchar("results of the what-if, a JSON object", derived=True),
    },
    key=("trace_id",),
    time="traced_at",
    coverage=Coverage(where="cluster IS NOT NULL AND traced_at IS NOT NULL"),
    stated=("job_id", "n_gpus", "cluster"),
)
