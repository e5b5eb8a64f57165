"""Columns of straggler traces from files of every kind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from analytics.training.stragglers.operations import OPTYPES
from data.errors import SourceError
from data.ingest.readers.training.straggler_rows import COLUMNS, LABELS, read_rows
from data.synthetic.trace_schedule import TraceCosts, TraceShape, trace_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.training.stragglers.trace import TraceRows

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data" / "straggler"
SHAPE = TraceShape(dp=2, pp=2, micro_batches=3, steps=(7, 9), tp=2)


@pytest.fixture(scope="module")
def trace() -> pa.Table:
    """A small trace as the samples hold theirs."""
    columns = trace_columns(SHAPE, TraceCosts(forward=0.25, backward=0.5))
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    at = table.column_names.index("optype")
    return table.set_column(at, "optype", table.column("optype").dictionary_encode())


def written(folder: Path, table: pa.Table, **options: Any) -> Path:
    path = folder / "trace.parquet"
    pq.write_table(table, path, **options)
    return path


def read(path: Path, **options: Any) -> TraceRows:
    return read_rows(path, path.name, **options)


def cast(table: pa.Table, name: str, kind: pa.DataType) -> pa.Table:
    column = table.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.cast(pa.string())
    return table.set_column(table.column_names.index(name), name, column.cast(kind))


def changed(table: pa.Table, name: str, row: int, value: Any) -> pa.Table:
    """The table with another value in a row, counted from 0."""
    values = table.column(name).to_pylist()
    values[row] = value
    kind = table.column(name).type
    kind = pa.string() if pa.types.is_dictionary(kind) else kind
    return table.set_column(table.column_names.index(name), name, pa.array(values, kind))


def assert_same(found: TraceRows, table: pa.Table) -> None:
    for name in (*COLUMNS, *LABELS):
        wanted = table.column(name).to_pylist()
        if name == "optype":
            wanted = [OPTYPES.index(text) for text in wanted]
        assert getattr(found, name).tolist() == pytest.approx(wanted), name


def test_a_trace_is_read_as_it_stands(tmp_path: Path, trace: pa.Table) -> None:
    found = read(written(tmp_path, trace))
    assert_same(found, trace)
    assert found.start_ts.dtype == found.duration.dtype == np.float32
    assert found.row is not None
    assert list(found.row) == list(range(1, len(trace) + 1))


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint32", "float64"])
def test_whole_numbers_may_have_any_width(tmp_path: Path, trace: pa.Table, kind: str) -> None:
    table = trace
    for name in ("step", "dp_rank", "stage", "rank", "seq_id"):
        table = cast(table, name, pa.type_for_alias(kind))
    if not kind.startswith("u"):
        for name in ("mc", "mb_id", "gmc"):
            table = cast(table, name, pa.type_for_alias(kind))
    assert_same(read(written(tmp_path, table)), trace)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_operation_types_may_be_plain_text(
    tmp_path: Path, trace: pa.Table, kind: pa.DataType
) -> None:
    assert_same(read(written(tmp_path, cast(trace, "optype", kind))), trace)


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_operation_types_may_be_encoded_in_any_way(
    tmp_path: Path, trace: pa.Table, encoding: str
) -> None:
    plain = cast(trace, "optype", pa.string())
    path = written(tmp_path, plain, use_dictionary=False, column_encoding={"optype": encoding})
    assert_same(read(path), trace)


@pytest.mark.parametrize("kind", ["list", "struct"])
def test_nested_operation_types_are_refused(tmp_path: Path, trace: pa.Table, kind: str) -> None:
    texts = trace.column("optype").to_pylist()
    nested = [[text] if kind == "list" else {"name": text} for text in texts]
    at = trace.column_names.index("optype")
    path = written(tmp_path, trace.set_column(at, "optype", pa.array(nested)))
    with pytest.raises(SourceError, match="column optype must hold text, got"):
        read(path)


def test_a_delimiter_is_one_character(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("step;;dp_rank\n")
    with pytest.raises(SourceError, match="--delimiter must be one character, got ';;'"):
        read(path, delimiter=";;")


def test_types_that_the_dictionary_names_and_no_row_has_do_not_matter(
    tmp_path: Path, trace: pa.Table
) -> None:
    texts = ["first-op", *OPTYPES]
    codes = pa.array([texts.index(text) for text in trace.column("optype").to_pylist()], pa.int8())
    column = pa.DictionaryArray.from_arrays(codes, pa.array(texts))
    table = trace.set_column(trace.column_names.index("optype"), "optype", column)
    assert_same(read(written(tmp_path, table)), trace)


def test_seconds_may_be_of_either_width(tmp_path: Path, trace: pa.Table) -> None:
    table = cast(cast(trace, "start_ts", pa.float64()), "duration", pa.float64())
    found = read(written(tmp_path, table))
    assert_same(found, trace)
    assert found.start_ts.dtype == np.float64


def test_a_file_may_have_many_row_groups_and_further_columns(
    tmp_path: Path, trace: pa.Table
) -> None:
    table = trace.append_column("host", pa.array(["n1"] * len(trace)))
    assert_same(read(written(tmp_path, table, row_group_size=7)), trace)


def test_labels_may_be_absent(tmp_path: Path, trace: pa.Table) -> None:
    found = read(written(tmp_path, trace.drop_columns(list(LABELS))))
    assert (found.rank, found.gmc, found.mb_id) == (None, None, None)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_gives_the_same(tmp_path: Path, trace: pa.Table, delimiter: str) -> None:
    path = tmp_path / "trace.csv"
    options = pyarrow.csv.WriteOptions(delimiter=delimiter)
    pyarrow.csv.write_csv(cast(trace, "optype", pa.string()), path, options)
    found = read(path)
    assert_same(found, trace)
    assert found.row is not None
    assert list(found.row[:2]) == [2, 3]


def test_a_row_of_csv_is_named_by_its_line(tmp_path: Path, trace: pa.Table) -> None:
    path = tmp_path / "trace.csv"
    pyarrow.csv.write_csv(cast(trace, "optype", pa.string()), path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["\ufeff" + lines[0], "", *lines[1:]]) + "\n\n", encoding="utf-8")
    found = read(path)
    assert_same(found, trace)
    assert found.row is not None
    assert list(found.row[:2]) == [3, 4]
    header = lines[0].replace('"', "").split(",")
    fields = lines[4].split(",")
    fields[header.index("seq_id")] = "many"
    path.write_text("\n".join([*lines[:4], ",".join(fields), *lines[5:]]), encoding="utf-8")
    with pytest.raises(SourceError, match=r"trace\.csv: seq_id of row 5 .* got 'many'"):
        read(path)


@pytest.mark.parametrize("name", COLUMNS)
def test_a_missing_column_is_named(tmp_path: Path, trace: pa.Table, name: str) -> None:
    with pytest.raises(SourceError, match=rf"trace\.parquet: lacks the column {name}: a trace has"):
        read(written(tmp_path, trace.drop_columns([name])))


def test_a_missing_column_of_csv_is_named(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("step,stage,optype\n1,2,gc\n")
    with pytest.raises(SourceError, match="lacks the column dp_rank, seq_id, mc, start_ts, dura"):
        read(path)


@pytest.mark.parametrize("name", [*COLUMNS, *LABELS])
@pytest.mark.parametrize("groups", [5, 1_000])
def test_an_empty_value_is_named_by_its_row(
    tmp_path: Path, trace: pa.Table, name: str, groups: int
) -> None:
    path = written(tmp_path, changed(trace, name, 11, None), row_group_size=groups)
    with pytest.raises(SourceError, match=rf"{name} of row 12 is empty: fill it"):
        read(path)


@pytest.mark.parametrize("name", ["step", "mc", "start_ts", "duration"])
def test_a_column_of_another_type_is_named(tmp_path: Path, trace: pa.Table, name: str) -> None:
    with pytest.raises(SourceError, match=rf"column {name} must hold numbers, got string"):
        read(written(tmp_path, cast(trace, name, pa.string())))


def test_operation_types_that_are_no_text_are_refused(tmp_path: Path, trace: pa.Table) -> None:
    numbers = pa.array(np.zeros(len(trace), dtype=np.int8))
    table = trace.set_column(trace.column_names.index("optype"), "optype", numbers)
    with pytest.raises(SourceError, match="column optype must hold text, got int8"):
        read(written(tmp_path, table))


def test_an_unknown_operation_type_is_named_by_its_row(tmp_path: Path, trace: pa.Table) -> None:
    with pytest.raises(SourceError, match=r"optype of row 3 must be one of .* got 'warp-drive'"):
        read(written(tmp_path, changed(trace, "optype", 2, "warp-drive")))


def test_a_fraction_where_a_whole_number_belongs_is_named(tmp_path: Path, trace: pa.Table) -> None:
    table = changed(cast(trace, "dp_rank", pa.float64()), "dp_rank", 8, 0.5)
    with pytest.raises(SourceError, match=r"dp_rank of row 9 must be a whole number, got 0\.5"):
        read(written(tmp_path, table))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-200])


def spoiled(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[10:400] = b"\xff" * 390
    path.write_bytes(bytes(content))


@pytest.mark.parametrize("harm", [cut, spoiled])
def test_broken_parquet_is_refused(
    tmp_path: Path, trace: pa.Table, harm: Callable[[Path], None]
) -> None:
    path = written(tmp_path, trace)
    harm(path)
    with pytest.raises(SourceError, match=r"trace\.parquet: is broken Parquet"):
        read(path)


def test_csv_with_a_torn_row_is_refused_by_its_row(tmp_path: Path, trace: pa.Table) -> None:
    path = tmp_path / "trace.csv"
    pyarrow.csv.write_csv(cast(trace, "optype", pa.string()), path)
    path.write_text(path.read_text()[:-30])
    with pytest.raises(SourceError, match=r"broken CSV .*Row #"):
        read(path)


def test_a_trace_without_operations_is_refused(tmp_path: Path, trace: pa.Table) -> None:
    with pytest.raises(SourceError, match="holds no operation"):
        read(written(tmp_path, trace.slice(0, 0)))


def test_reading_imports_neither_pandas_nor_a_dataset(tmp_path: Path, trace: pa.Table) -> None:
    path = written(tmp_path, cast(trace, "optype", pa.string()), row_group_size=50)
    code = (
        "import sys; from pathlib import Path; "
        "from data.ingest.readers.training.straggler_rows import read_rows; "
        f"read_rows(Path({str(path)!r}), 'trace'); "
        "print({'pandas', 'pyarrow.dataset', 'duckdb'} & set(sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "set()"


@pytest.mark.skipif(not SHARED.is_dir(), reason=f"real traces are not at {SHARED}")
@pytest.mark.parametrize(("name", "n_rows"), [("AR", 117_216), ("SE", 107_328), ("ST", 6_784)])
def test_the_published_traces_are_read(name: str, n_rows: int) -> None:
    found = read(SHARED / f"trace-{name}.parquet")
    assert len(found) == n_rows
    assert found.start_ts.dtype == np.float32
