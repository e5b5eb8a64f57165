"""Parquet written by hand, page by page, so that it can hold what no library writes."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

INT32, INT64, DOUBLE, BOOLEAN, BYTE_ARRAY = 1, 2, 5, 0, 6
PLAIN, RLE, DELTA_BINARY, DELTA_BYTE_ARRAY, RLE_DICTIONARY, SPLIT = 0, 3, 5, 7, 8, 9
REQUIRED, OPTIONAL, REPEATED = 0, 1, 2
CODECS = {"none": 0, "snappy": 1, "gzip": 2, "brotli": 4, "zstd": 6, "lz4_raw": 7}
MAGIC = b"PAR1"


class Wide(int):
    """A number of 64 bits; other whole numbers have 32."""


def varint(number: int) -> bytes:
    """A whole number of 7 bits a byte."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def zigzag(number: int) -> bytes:
    """A whole number with a sign."""
    return varint(number << 1 if number >= 0 else (-number << 1) - 1)


def thrift(fields: dict[int, Any]) -> bytes:
    """A struct of Thrift's compact protocol: number of a field -> its value."""
    out, before = b"", 0
    for number, value in sorted(fields.items()):
        kind = 2 - value if isinstance(value, bool) else _kind(value)
        near = number - before <= 15
        out += bytes([(number - before) << 4 | kind]) if near else bytes([kind]) + zigzag(number)
        out, before = out + (b"" if isinstance(value, bool) else _encoded(value)), number
    return out + b"\0"


def _kind(value: Any) -> int:
    kinds = {bool: 1, Wide: 6, int: 5, bytes: 8, str: 8, list: 9, dict: 12}
    return kinds[type(value)]


def _encoded(value: Any) -> bytes:
    if isinstance(value, dict):
        return thrift(value)
    if isinstance(value, int):
        return zigzag(value)
    if isinstance(value, list):
        kind, n = _kind(value[0]) if value else 12, len(value)
        head = bytes([n << 4 | kind]) if n < 15 else bytes([0xF0 | kind]) + varint(n)
        return head + b"".join(map(_encoded, value))
    content = value.encode() if isinstance(value, str) else value
    return varint(len(content)) + bytes(content)


def repeated(value: int, n: int, width: int = 1) -> bytes:
    """A run of equal levels or indices."""
    return varint(n << 1) + value.to_bytes((width + 7) // 8, "little")


def levels(*runs: tuple[int, int], width: int = 1) -> bytes:
    """Levels of a page by runs of (level, how many), with their length before them."""
    content = b"".join(repeated(value, n, width) for value, n in runs)
    return len(content).to_bytes(4, "little") + content


def text(*values: bytes) -> bytes:
    """Texts in plain encoding."""
    return b"".join(len(each).to_bytes(4, "little") + each for each in values)


def equal_deltas(first: int, n: int, step: int = 0) -> bytes:
    """Numbers a step apart, delta-encoded in one block."""
    block = 128 * -(-max(n - 1, 1) // 128)
    head = varint(block) + varint(1) + varint(n) + zigzag(first)
    return head + (zigzag(step) + b"\0" if n > 1 else b"")


@dataclass
class Page:
    """A page: what it holds, and what its header says where that differs."""

    content: bytes
    n: int
    encoding: int = PLAIN
    dictionary: bool = False
    packed: bytes | None = None
    """Compressed already."""
    n_unpacked: int | None = None
    """What its header says."""

    def written(self, codec: str) -> tuple[bytes, int]:
        """Header and content, and how many bytes they unfold to."""
        packed = compressed(self.content, codec) if self.packed is None else self.packed
        n_unpacked = len(self.content) if self.n_unpacked is None else self.n_unpacked
        head: dict[int, Any] = {1: 2 if self.dictionary else 0, 2: n_unpacked, 3: len(packed)}
        if self.dictionary:
            head[7] = {1: self.n, 2: self.encoding}
        else:
            head[5] = {1: self.n, 2: self.encoding, 3: RLE, 4: RLE}
        header = thrift(head)
        return header + packed, len(header) + n_unpacked


def compressed(content: bytes, codec: str) -> bytes:
    """The content of a page, packed."""
    if codec == "none":
        return content
    if codec == "gzip":
        packing = zlib.compressobj(9, wbits=31)
        return packing.compress(content) + packing.flush()
    packed: bytes = pa.Codec(codec).compress(content, asbytes=True)
    return packed


@dataclass
class Column:
    """A column chunk: its pages, its place in the schema, and what the footer says otherwise."""

    pages: list[Page]
    path: tuple[str, ...]
    kind: int = BYTE_ARRAY
    codec: str = "none"
    stated: dict[int, Any] = field(default_factory=dict)
    """Fields of its metadata that lie."""
    at: int | None = None
    """Where the footer says it begins, if elsewhere."""


@dataclass
class File:
    """A Parquet file of one row group."""

    columns: list[Column]
    schema: list[dict[int, Any]]
    """Elements below the root, in order."""
    n_top: int
    n_rows: int
    stated: dict[int, Any] = field(default_factory=dict)
    """Fields of the footer that lie."""
    group: dict[int, Any] = field(default_factory=dict)
    """Fields of the row group that lie."""

    def written(self) -> bytes:
        """The bytes of the file."""
        body, chunks, n_all = MAGIC, [], 0
        for column in self.columns:
            begin = len(body) if column.at is None else column.at
            pages = [page.written(column.codec) for page in column.pages]
            offsets: dict[int, Any] = {9: Wide(begin)}
            if column.pages[0].dictionary:
                offsets = {11: Wide(begin), 9: Wide(begin + len(pages[0][0]))}
            n_values = sum(page.n for page in column.pages if not page.dictionary)
            n_unpacked = sum(n for _, n in pages)
            body += b"".join(content for content, _ in pages)
            encodings = sorted({page.encoding for page in column.pages} | {RLE})
            facts: dict[int, Any] = {
                1: column.kind, 2: encodings, 3: list(column.path), 4: CODECS[column.codec],
                5: Wide(n_values), 6: Wide(n_unpacked), 7: Wide(sum(len(c) for c, _ in pages)),
            }  # fmt: skip
            chunks.append({2: Wide(begin), 3: facts | offsets | column.stated})
            n_all += n_unpacked
        group = {1: chunks, 2: Wide(n_all), 3: Wide(self.n_rows)} | self.group
        root = {4: "schema", 5: self.n_top}
        footer = thrift(
            {1: 2, 2: [root, *self.schema], 3: Wide(self.n_rows), 4: [group]} | self.stated
        )
        return body + footer + len(footer).to_bytes(4, "little") + MAGIC


def flat(name: str, kind: int = BYTE_ARRAY, repetition: int = OPTIONAL) -> dict[int, Any]:
    """A column of the schema that holds texts or numbers."""
    words = {6: 0} if kind == BYTE_ARRAY else {}
    return {1: kind, 3: repetition, 4: name} | words


def table(columns: list[Column], n_rows: int, **lies: Any) -> bytes:
    """A file of columns without levels below them."""
    schema = [flat(column.path[0], column.kind) for column in columns]
    return File(columns, schema, len(columns), n_rows, **lies).written()


def same(name: str, value: bytes, n: int, codec: str = "zstd", **said: Any) -> Column:
    """A column of one text, n times, by its dictionary."""
    index = levels((1, n)) + b"\x01" + repeated(0, n)
    pages = [
        Page(text(value), 1, dictionary=True),
        Page(index, n, encoding=RLE_DICTIONARY),
    ]
    return Column(pages, (name,), codec=codec, **said)
