"""What stragglers cost each stored trace, by the present analysis.

A trace is analysed when it comes, and every trace again when the analysis has changed: the
fingerprint of the stage holds its code.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from analytics.errors import AnalysisError
from data.errors import StoreError
from data.metrics_files import METRICS
from data.trace_files import read_trace

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

    from data.stages import Context

RESULTS = ("n_steps", "n_dropped_steps", "slowdown", "wasted_ratio", "cause", "results")
READS = ("straggler_traces",)
WRITES = tuple(f"straggler_traces.{column}" for column in RESULTS)
INPUTS = ("analytics.training.stragglers", "data.trace_files")
NEEDS = ("straggler_traces",)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Sets the results of traces that have none, or of all where more than records changed.

    A trace that cannot be analysed has the reason in its results. One whose file is gone or
    damaged keeps what was found before.
    """
    only_new = context.changed is not None
    traces = connection.execute(
        f"""SELECT trace_id, name, path, n_gpus / (dp * pp * tp) AS dsp FROM straggler_traces
            {"WHERE results IS NULL" if only_new else ""} ORDER BY trace_id"""
    ).fetchall()
    for place, (trace_id, name, path, dsp) in enumerate(traces, 1):
        context.progress(f"analysing trace {place:,} of {len(traces):,}: {name}")
        try:
            values = results(context.root / METRICS / path, dsp_size=int(dsp or 1))
        except StoreError:
            continue
        connection.execute(
            f"UPDATE straggler_traces SET {', '.join(f'{name} = ?' for name in RESULTS)} "
            "WHERE trace_id = ?",
            [*(values.get(name) for name in RESULTS), trace_id],
        )


def results(path: Path, *, dsp_size: int) -> dict[str, object]:
    """What the what-if says of the trace in a file, by column."""
    from analytics.training.stragglers.analysis import analyse_trace, analysis_record
    from analytics.training.stragglers.step_model import StepModel

    try:
        analysis = analyse_trace(StepModel.of_rows(read_trace(path), dsp_size=dsp_size))
    except AnalysisError as error:
        return {"results": json.dumps({"error": str(error)})}
    slow = analysis.slowdowns
    return {
        "n_steps": len(slow.steps),
        "n_dropped_steps": len(slow.dropped_steps),
        "slowdown": slow.slowdown,
        "wasted_ratio": slow.wasted_ratio,
        "cause": None if analysis.strongest is None else analysis.strongest.cause,
        "results": json.dumps(analysis_record(analysis)),
    }
