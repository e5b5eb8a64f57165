"""Straggler traces: the operations of some training steps on every worker, as Parquet or CSV."""

from __future__ import annotations

import hashlib
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers.operations import COMPUTES, among
from analytics.training.stragglers.trace import Trace
from data.errors import SourceError
from data.ingest.formats.header import header_of
from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.readers.training.straggler_rows import (
    COLUMNS,
    DELIMITERS,
    LABELS,
    SECONDS,
    read_rows,
)
from data.metrics_files import TRACES
from data.trace_files import write_trace

if TYPE_CHECKING:
    from collections.abc import Mapping

    import duckdb
    import pyarrow as pa

    from analytics.training.stragglers.trace import TraceRows
    from data.ingest.readers.training.straggler_rows import Array


_ID_DIGITS = 24
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100: times since a step lie outside


def sniff(head: str) -> bool:
    """Whether the first line holds the columns of a trace; Parquet names its own at its end."""
    return any(set(COLUMNS) <= header_of(head, delimiter) for delimiter in DELIMITERS)


def read(
    source: Source,
    options: Options,
    connection: duckdb.DuckDBPyConnection,  # noqa: ARG001 - the signature of every reader
) -> Batch:
    """The trace as a row of `straggler_traces`, its operations as a file; a stage analyses it.

    Raises
    ------
    SourceError
        Where the trace or the meta file is broken, or they disagree.
    """
    rows = read_rows(source.path, source.name, options.delimiter, options.limits)
    try:
        meta = trace_meta(rows, source.name, options.meta)
        Trace.of_columns(rows)  # refuses one that lacks a worker, or has no whole step
        name = meta.trial_name or Path(source.name).stem
        return trace_batch(rows, meta, name=name, options=options)
    except AnalysisError as error:
        raise SourceError(f"{source.name}: {error}") from None


def trace_meta(rows: TraceRows, name: str, meta_path: str | None) -> TraceMeta:
    """Sizes of the job: as its meta file states them, else what the trace shows.

    Raises
    ------
    SourceError
        Where the meta file is broken or of another job.
    """
    chunks = rows.mc[among(rows.optype, COMPUTES)]
    shown = TraceMeta(
        trial_name=Path(name).stem,
        run_id=None,
        dp_size=int(rows.dp_rank.max()) + 1,
        pp_size=int(rows.stage.max()) + 1,
        tp_size=None,
        dsp_size=None,
        vpp_size=int(chunks.max(initial=0)) + 1,
        world_size=None,
    )
    if meta_path is None:
        return shown
    meta = read_meta(Path(meta_path), meta_path)
    for size, column in (("dp_size", "dp_rank"), ("pp_size", "stage"), ("vpp_size", "mc")):
        stated, seen = getattr(meta, size), getattr(shown, size)
        if stated != seen:
            raise SourceError(
                f"{name}: holds {column} 0 to {seen - 1:,}, so {size} is {seen:,}, but the meta "
                f"file states {stated:,}: give the meta file of this job, and all its workers"
            )
    return meta


def trace_batch(rows: TraceRows, meta: TraceMeta, *, name: str, options: Options) -> Batch:
    """A trace as the store takes it in."""
    columns = _in_order(rows)
    trace_id = _trace_id(columns)
    path = f"{TRACES}/{trace_id}.parquet"
    traced_at = _traced_at(columns["start_ts"])
    row = {
        "trace_id": trace_id,
        "cluster": options.cluster,
        "job_id": options.job_id,
        "name": name,
        "path": path,
        "traced_at": traced_at,
        "n_rows": len(rows),
        "n_workers": meta.dp_size * meta.pp_size,
        "n_gpus": meta.world_size,
        "dp": meta.dp_size,
        "pp": meta.pp_size,
        "vpp": meta.vpp_size,
        "tp": meta.tp_size,
    }
    return Batch(
        tables={"straggler_traces": _one_row(row)},
        files={path: lambda target: write_trace(target, columns)},
        rows_kept=len(rows),
        first_at=traced_at,
        last_at=traced_at,
        clusters=() if options.cluster is None else (options.cluster,),
    )


def _one_row(row: Mapping[str, object]) -> pa.Table:
    import pyarrow as pa

    texts = ("cluster", "job_id")
    kinds = dict.fromkeys(texts, pa.string()) | {
        "traced_at": pa.timestamp("us", "UTC"), "n_gpus": pa.int32(), "tp": pa.int32()
    }  # fmt: skip
    return pa.table({name: pa.array([value], kinds.get(name)) for name, value in row.items()})


def _in_order(rows: TraceRows) -> dict[str, Array]:
    """The columns in an order that does not depend on that of the file."""
    keys = ("duration", "start_ts", "seq_id", "optype", "stage", "dp_rank", "step")
    order = np.lexsort([getattr(rows, name) for name in keys])
    columns = {name: getattr(rows, name) for name in (*COLUMNS, *LABELS)}
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


SIZES: Final = ("dp_size", "pp_size", "tp_size", "dsp_size", "vpp_size")
"""Sizes of data, pipeline, tensor, data-sequence and virtual pipeline parallelism."""
_IN_WORLD = ("dp_size", "pp_size", "tp_size", "dsp_size")
_LARGEST = 2**31 - 1
_LINE = re.compile(r"(?P<key>[A-Za-z_][\w-]*)\s*:(?:\s+(?P<value>.*))?")
_QUOTED = re.compile(r"(?P<quote>['\"])(?P<text>.*)(?P=quote)\s*(?:#.*)?")
_WHOLE = re.compile(r"\+?\d{1,10}")


@dataclass(frozen=True)
class TraceMeta:
    """What is known of the job of a trace; None where its meta file, or the trace, says nothing.

    Attributes
    ----------
    trial_name, run_id
        Names of the trial and its run, for people; a `run_id` that is a number is one.
    dp_size, pp_size, tp_size, dsp_size, vpp_size
        Sizes, each at least 1; a trace without a meta file shows only dp, pp and vpp.
    world_size
        dp x pp x tp x dsp: GPUs of the job.
    """

    trial_name: str | None
    run_id: str | int | None
    dp_size: int
    pp_size: int
    tp_size: int | None
    dsp_size: int | None
    vpp_size: int
    world_size: int | None


def read_meta(path: Path, name: str) -> TraceMeta:
    """The sizes that a meta file states.

    Read are lines `key: value` with plain or quoted values, comments, and the marks of a document;
    keys that are not known are left alone. `world_size` may be absent.

    Raises
    ------
    SourceError
        Where the file cannot be read, a line is none of these, a size is missing or no positive
        whole number, or `world_size` is not the product of the others.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise SourceError(f"{name}: no such file: check the path") from None
    except (OSError, UnicodeDecodeError) as error:
        raise SourceError(
            f"{name}: cannot be read ({error}): give the meta file of the trace"
        ) from None
    pairs = _pairs(text, name)
    sizes = {key: _size(pairs, key, name) for key in SIZES}
    world_size = math.prod(sizes[key] for key in _IN_WORLD)
    if "world_size" in pairs and (stated := _size(pairs, "world_size", name)) != world_size:
        raise SourceError(
            f"{name}: world_size must be dp_size x pp_size x tp_size x dsp_size = {world_size:,}, "
            f"got {stated:,}: correct the size that is wrong"
        )
    run_id = _text(pairs.get("run_id"))
    return TraceMeta(
        trial_name=_text(pairs.get("trial_name")),
        run_id=int(run_id) if run_id is not None and _WHOLE.fullmatch(run_id) else run_id,
        **sizes,
        world_size=world_size,
    )


def _pairs(text: str, name: str) -> dict[str, str]:
    """Keys and values of the lines."""
    pairs: dict[str, str] = {}
    for line_no, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#") or line.strip() in ("---", "..."):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise SourceError(
                f"{name}: line {line_no} must be `key: value`, got {line.strip()[:60]!r}: write "
                "one size a line"
            )
        if match["key"] in pairs:
            raise SourceError(f"{name}: line {line_no} states {match['key']} again: keep one")
        pairs[match["key"]] = _value(match["value"] or "")
    return pairs


def _value(text: str) -> str:
    """A value without quotes and comment."""
    quoted = _QUOTED.fullmatch(text.strip())
    return quoted["text"] if quoted else re.split(r"(?:^|\s)#", text)[0].strip()


def _text(value: str | None) -> str | None:
    return None if value in (None, "", "null", "~") else value


def _size(pairs: dict[str, str], key: str, name: str) -> int:
    """A size: a positive whole number."""
    value = _text(pairs.get(key))
    if value is None:
        raise SourceError(f"{name}: states no {key}: add a line `{key}: N`")
    if not _WHOLE.fullmatch(value) or not 1 <= int(value) <= _LARGEST:
        raise SourceError(
            f"{name}: {key} must be a positive whole number, got {value[:40]!r}: write e.g. "
            f"`{key}: 8`"
        )
    return int(value)


READER = Reader(
    "straggler-trace",
    "operations of training steps on every worker (NDTimeline trace, Parquet or CSV)",
    reads=(
        "operations of training steps on every worker (NDTimeline), Parquet or CSV; "
        "`--meta` its sizes, `--job-id` its job"
    ),
    script=(
        "# one row an operation of one worker in one step, as NDTimeline traces hold them:\n"
        "dp_rank,stage,rank,step,optype,start_ts,duration,seq_id,mc,mb_id,gmc"
    ),
    example="trace.parquet --meta meta.yaml --job-id 4711",
    advice=(
        "Needs step, dp_rank, stage, optype, seq_id, mc, start_ts and duration (seconds); "
        "rank, mb_id and gmc are taken where they stand."
    ),
    fills=("straggler_traces",),
    place=8,
    options=("delimiter", "job_id", "meta"),
    sniff=sniff,
    read=read,
)
