"""Straggler traces: the operations of some training steps on every worker, as Parquet or CSV."""

from __future__ import annotations

import csv
import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers.operations import COMPUTES, OPTYPES, among
from analytics.training.stragglers.rows import check
from data.errors import SourceError
from data.ingest.reader import Batch, Options, Source
from data.ingest.straggler_meta import TraceMeta, read_meta
from data.ingest.straggler_rows import COLUMNS, DELIMITERS, LABELS, SECONDS, read_rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import pyarrow as pa

    from analytics.training.stragglers.rows import TraceRows
    from data.ingest.straggler_rows import Array

NAME = "straggler-trace"
HELP = "operations of training steps on every worker (NDTimeline trace, Parquet or CSV)"

FOLDER: Final = "straggler_traces"
"""Folder of the stored traces below metrics/."""
_ID_DIGITS = 24
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100: times since a step lie outside


@dataclass(frozen=True)
class TraceSizes:
    """Sizes that a trace shows: one more than the largest index."""

    dp: int
    pp: int
    vpp: int

    @property
    def n_workers(self) -> int:
        """Workers traced, one for each data-parallel rank and stage."""
        return self.dp * self.pp


def sniff(head: str) -> bool:
    """Whether the first line holds the columns of a trace; Parquet names its own at its end."""
    first = head.split("\n", 1)[0]
    return any(
        set(COLUMNS) <= {field.strip() for row in rows for field in row}
        for rows in (csv.reader([first], delimiter=delimiter) for delimiter in DELIMITERS)
    )


def read(
    source: Source,
    options: Options,
    connection: duckdb.DuckDBPyConnection,  # noqa: ARG001 - the signature of every reader
) -> Batch:
    """The trace with its results as a row of `straggler_traces`, its operations as a file.

    Raises
    ------
    SourceError
        Where the trace or the meta file is broken, they disagree, or the trace cannot be analysed.
    """
    found = read_rows(source.path, source.name, options.delimiter)
    try:
        check(found)
        meta = None
        if options.meta is not None:
            meta = read_meta(Path(options.meta), options.meta)
            refuse_other_sizes(found, meta, source.name)
        named = meta.trial_name if meta is not None else None
        return trace_batch(found, meta, name=named or Path(source.name).stem, options=options)
    except AnalysisError as error:
        raise SourceError(f"{source.name}: {error}") from None


def trace_sizes(found: TraceRows) -> TraceSizes:
    """The sizes that a trace shows."""
    chunks = found.mc[among(found.optype, COMPUTES)]
    dp, pp = (int(column.max()) + 1 for column in (found.dp_rank, found.stage))
    return TraceSizes(dp, pp, int(chunks.max(initial=0)) + 1)


def refuse_other_sizes(found: TraceRows, meta: TraceMeta, name: str) -> None:
    """Refuses a meta file that is of another job."""
    sizes = trace_sizes(found)
    for size, stated, shown, column in (
        ("dp_size", meta.dp_size, sizes.dp, "dp_rank"),
        ("pp_size", meta.pp_size, sizes.pp, "stage"),
        ("vpp_size", meta.vpp_size, sizes.vpp, "mc"),
    ):
        if stated != shown:
            raise SourceError(
                f"{name}: holds {column} 0 to {shown - 1:,}, so {size} is {shown:,}, but the meta "
                f"file states {stated:,}: give the meta file of this job, and all its workers"
            )


def trace_batch(found: TraceRows, meta: TraceMeta | None, *, name: str, options: Options) -> Batch:
    """A trace as the store takes it in, with its results.

    Raises
    ------
    AnalysisError
        Where it cannot be analysed.
    """
    columns = _in_order(found)
    trace_id = _trace_id(columns)
    sizes = trace_sizes(found)
    path = f"{FOLDER}/{trace_id}.parquet"
    traced_at = _traced_at(columns["start_ts"])
    row = {
        "trace_id": trace_id,
        "cluster": options.cluster,
        "job_id": options.job_id,
        "name": name,
        "path": path,
        "traced_at": traced_at,
        "n_rows": len(found),
        "n_workers": sizes.n_workers,
        "n_gpus": meta.world_size if meta is not None else None,
        "dp": sizes.dp,
        "pp": sizes.pp,
        "vpp": sizes.vpp,
        "tp": meta.tp_size if meta is not None else None,
        **_results(found, 1 if meta is None else meta.dsp_size),
    }
    return Batch(
        tables={"straggler_traces": _one_row(row)},
        files={path: lambda target: write_trace(target, columns)},
        rows_read=len(found),
        rows_kept=len(found),
        first_at=traced_at,
        last_at=traced_at,
        clusters=() if options.cluster is None else (options.cluster,),
    )


def _results(found: TraceRows, dsp_size: int) -> dict[str, object]:
    """What the what-if says of a trace, as columns of its row."""
    from analytics.training.stragglers.findings_record import findings_record
    from analytics.training.stragglers.record import analysis_record
    from analytics.training.stragglers.slowdown import analyse
    from analytics.training.stragglers.trace import Trace

    analysis = analyse(Trace.of_columns(found, dsp_size=dsp_size))
    record = analysis_record(analysis) | findings_record(analysis)
    return {
        "n_steps": len(record["per_step_S"]),
        "n_dropped_steps": len(record["dropped_steps"]),
        "slowdown": record["S"],
        "wasted_ratio": record["gpu_hours_wasted_ratio"],
        "cause": record["causes"][0]["cause"],
        "results": json.dumps(record),
    }


def write_trace(path: Path, columns: Mapping[str, Array]) -> None:
    """Writes the columns of a trace as Parquet."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = pa.array(OPTYPES, pa.string())
    arrays = {name: pa.array(values) for name, values in columns.items()}
    arrays["optype"] = pa.DictionaryArray.from_arrays(pa.array(columns["optype"]), names)
    pq.write_table(pa.table(arrays), path, compression="zstd")


def _one_row(row: Mapping[str, object]) -> pa.Table:
    import pyarrow as pa

    texts = ("cluster", "job_id")
    kinds = dict.fromkeys(texts, pa.string()) | {
        "traced_at": pa.timestamp("us", "UTC"), "n_gpus": pa.int32(), "tp": pa.int32()
    }  # fmt: skip
    return pa.table({name: pa.array([value], kinds.get(name)) for name, value in row.items()})


def _in_order(found: TraceRows) -> dict[str, Array]:
    """The columns in an order that does not depend on that of the file."""
    keys = ("duration", "start_ts", "seq_id", "optype", "stage", "dp_rank", "step")
    order = np.lexsort([getattr(found, name) for name in keys])
    columns = {name: getattr(found, name) for name in (*COLUMNS, *LABELS)}
    return {name: values[order] for name, values in columns.items() if values is not None}


def _trace_id(columns: Mapping[str, Array]) -> str:
    """Hash of a trace: the same for all types of columns and orders of rows.

    Seconds count as 32-bit numbers, starts from the first: text holds no more digits of those.
    """
    digest = hashlib.sha256()
    for name, values in columns.items():
        if name == "start_ts":
            values = values - values.min()
        kind = np.float32 if name in SECONDS else np.int64
        digest.update(np.ascontiguousarray(values, dtype=kind).data)
    return digest.hexdigest()[:_ID_DIGITS]


def _traced_at(start_s: Array) -> datetime | None:
    """When the first operation began; None where times count from the begin of their step."""
    first_s = float(start_s.min())
    return datetime.fromtimestamp(first_s, UTC) if _EARLIEST_S <= first_s < _LATEST_S else None
