"""Stored traces of training steps with their what-if results."""

from data.tables.table import Coverage, Records, bigint, double, integer, timestamptz, varchar

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
