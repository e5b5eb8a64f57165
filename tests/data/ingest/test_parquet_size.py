"""A Parquet file is refused for what it unfolds to, and an honest one is read whatever it packs."""

from __future__ import annotations

import io
import time
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from data.errors import SourceError
from data.ingest.formats.parquet_size import A_RECORD, unfolded
from data.ingest.readers.metrics.delays import read_delays
from data.limits import Limits
from tests.data.ingest import bombs
from tests.data.ingest.parquet_by_hand import same, table

if TYPE_CHECKING:
    from pathlib import Path


PACKED = tuple(f"parquet-{codec}" for codec in ("zstd", "gzip", "brotli", "snappy", "lz4", "split"))
"""Bombs that hold hundreds of megabytes before they are packed: some seconds each."""
CHEAP = [
    name
    for name in bombs.names()
    if name.startswith(("parquet", "lie")) and name not in PACKED and name != "parquet-deeper"
]


def written(columns: dict[str, Any], **options: Any) -> io.BytesIO:
    out = io.BytesIO()
    pq.write_table(pa.table(columns), out, **options)
    return out


def size(content: bytes | io.BytesIO, *, held: bool = True) -> int:
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    return unfolded("f", file, Limits(), held=held).n_bytes


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in CHEAP
        if name.startswith("parquet") and name not in ("parquet-deep", "parquet-pages")
    ],
)
def test_a_bomb_is_well_formed_where_it_is_small(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bombs, "MANY", 4_000)
    monkeypatch.setattr(bombs, "LONG", b"0" * 1_000)
    monkeypatch.setattr(bombs, "COPIES", 300)
    made = bombs.bomb(name).content
    found = pq.read_table(io.BytesIO(made))
    assert found.num_columns == len(bombs.COLUMNS)
    assert found.num_rows in (1, 300, 4_000)
    assert size(made) >= found.nbytes / 2


@pytest.mark.parametrize("name", CHEAP)
def test_a_bomb_of_parquet_is_too_large_and_a_lying_one_broken(name: str) -> None:
    refused(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*PACKED, "parquet-deeper"])
def test_a_bomb_that_is_dear_to_make_is_too_large(name: str) -> None:
    refused(name)


def refused(name: str) -> None:
    """What is said of a bomb: while its headers are read, else when its pages are."""
    bomb = bombs.bomb(name)
    begin = time.process_time()
    with pytest.raises((SourceError, OSError, pa.ArrowException)) as told:
        unfolded("f", io.BytesIO(bomb.content), Limits())
        pq.ParquetFile(io.BytesIO(bomb.content)).read()  # a page that is larger than it says
    assert time.process_time() - begin < 5
    if isinstance(told.value, SourceError):
        assert ("too large" if bomb.valid else "is broken Parquet") in str(told.value)
    else:
        assert not bomb.valid


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "zstd", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_what_a_file_unfolds_to_is_no_less_than_what_it_holds(codec: str, version: str) -> None:
    rng = np.random.default_rng(1)
    n = 5_000
    columns = {
        "number": rng.integers(0, 9, n),
        "name": [f"node-{k % 7}" for k in range(n)],
        "text": [rng.bytes(20).hex() for _ in range(n)],
        "absent": pa.array([None, "x"] * (n // 2)),
        "list": [["a"] * (k % 3) for k in range(n)],
        "map": pa.array([{"k": "v"}] * n, pa.map_(pa.string(), pa.string())),
        "flag": [True] * n,
    }
    for encoding in ({}, {"text": "DELTA_BYTE_ARRAY"}, {"text": "DELTA_LENGTH_BYTE_ARRAY"}):
        dictionary = [name for name in columns if name not in encoding]
        made = written(
            columns,
            compression=codec,
            data_page_version=version,
            use_dictionary=dictionary,
            column_encoding=encoding or None,
            data_page_size=4_000,
            row_group_size=1_700,
        )
        assert pa.table(columns).nbytes < size(made) < 12 * pa.table(columns).nbytes


def test_lengths_of_texts_without_their_common_beginnings_are_read_exactly() -> None:
    texts = [f"/scratch/project/{'x' * (k % 50)}/run-{k:06}" for k in range(20_000)]
    made = written(
        {"text": texts}, use_dictionary=False, column_encoding={"text": "DELTA_BYTE_ARRAY"}
    )
    assert size(made) == sum(map(len, texts)) + 8 * len(texts)


@pytest.mark.parametrize(
    ("row_group", "writer"), [(1 << 20, "pyarrow"), (10_000, "pyarrow"), (122_880, "duckdb")]
)
def test_a_million_equal_names_are_read(tmp_path: Path, row_group: int, writer: str) -> None:
    n, path = 1_000_000, tmp_path / "f.parquet"
    if writer == "duckdb":
        duckdb.sql(f"COPY (SELECT 'cluster-name' AS c FROM range({n})) TO '{path}'")
    else:
        names = pa.DictionaryArray.from_arrays(np.zeros(n, np.int8), ["cluster-name"])
        pq.write_table(pa.table({"c": names}), path, row_group_size=row_group)
    n_packed = path.stat().st_size
    found = size(path.read_bytes(), held=False)
    assert found == pytest.approx((12 + A_RECORD) * n, rel=0.02)
    assert found > 200 * n_packed


def test_one_long_text_among_many_short_ones_does_not_count_for_all_of_them() -> None:
    which = np.zeros(200_000, np.int32)
    which[7] = 1
    texts = pa.DictionaryArray.from_arrays(which, ["short", "z" * 100_000])
    assert size(written({"a": texts})) < 5_000_000
    with pytest.raises(SourceError, match="unfolds to 20 GB"):
        size(written({"a": pa.DictionaryArray.from_arrays(1 - which, texts.dictionary)}))


def test_a_file_without_rows_or_with_the_pages_of_another_program_is_no_lie(tmp_path: Path) -> None:
    assert size(written({"a": pa.array([], pa.string())})) == 0
    path = tmp_path / "f.parquet"
    duckdb.sql(
        "COPY (SELECT range AS a, 'n' || range % 9 AS b, [range, 1] AS c, range % 2 = 0 AS d,"
        f" {{'x': range, 'y': [b]}} AS e FROM range(50_000)) TO '{path}' (PARQUET_VERSION V2)"
    )
    assert size(path.read_bytes()) > 50_000 * 6 * 8


def test_the_longest_text_bounds_the_rows_that_are_read_at_once() -> None:
    made = table([same("a", b"x" * 100_000, 1_000)], 1_000)
    assert unfolded("f", io.BytesIO(made), Limits()).batch_rows == 320


@pytest.mark.slow
def test_the_headers_of_a_large_file_cost_little_beside_reading_it() -> None:
    rng = np.random.default_rng(1)
    n = 4_000_000
    names = pa.array([f"node-{k:05}" for k in range(5_000)])
    columns = {
        "node": names.take(pa.array(rng.integers(0, 5_000, n))),
        **{f"v{k}": rng.random(n) for k in range(6)},
    }
    made = written(columns)
    begin = time.process_time()
    size(made)
    looked_at = time.process_time() - begin
    begin = time.process_time()
    pq.read_table(made)
    whole = time.process_time() - begin
    print(f"\n{len(made.getvalue()) / 1e6:.0f} MB: {looked_at:.3f} s beside {whole:.2f} s")
    assert looked_at < whole / 4


def test_a_row_longer_than_a_line_may_be_is_rejected_and_the_others_are_read(
    tmp_path: Path,
) -> None:
    path, n = tmp_path / "f.parquet", 300
    delays = {
        "source": ["a", "b"] * (n // 2),
        "destination": ["b", "a"] * (n // 2),
        "delay_us": np.arange(1.0, n + 1),
        "note": ["z" * (11_000_000 if k == 7 else 1) for k in range(n)],
        "hops": [[None] * (200_000 if k == 9 else 1) for k in range(n)],
    }
    pq.write_table(pa.table(delays), path, compression="none")
    found = read_delays(str(path))
    assert len(found.samples.delay_us) == n - 2
    assert (found.n_rejected, found.rejected_at) == (2, 8)
    assert sorted({*range(1, n + 1)} - {*found.samples.delay_us.tolist()}) == [8, 10]


def test_lists_of_a_stated_length_count_where_they_are_absent() -> None:
    def absent(length: int) -> io.BytesIO:
        return written({"a": pa.nulls(20, pa.list_(pa.int8(), length))})

    assert size(absent(3)) < 50_000
    made = absent(1_000_000)
    assert len(made.getvalue()) < 1_000
    with pytest.raises(SourceError, match="is too large: unfolds to more than 200 times"):
        size(made, held=False)
