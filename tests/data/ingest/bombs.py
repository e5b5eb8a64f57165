"""Files of a few kilobytes that unfold to gigabytes, or lie about what they hold.

Of Parquet each has the columns of every reader, so that all of them take it. A valid one is well
formed, and merely too large to be read; the others are broken.
"""

from __future__ import annotations

import gzip
import lzma
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import zstandard

from tests.data.ingest.parquet_by_hand import (
    BOOLEAN,
    BYTE_ARRAY,
    DELTA_BINARY,
    DELTA_BYTE_ARRAY,
    INT64,
    OPTIONAL,
    PLAIN,
    REPEATED,
    REQUIRED,
    RLE,
    RLE_DICTIONARY,
    SPLIT,
    Column,
    File,
    Page,
    Wide,
    compressed,
    equal_deltas,
    flat,
    levels,
    repeated,
    same,
    table,
    text,
    varint,
    zigzag,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COLUMNS: Final = (
    "job_id", "state", "submit_at", "ticket_id", "node", "opened_at", "from_at", "driver",
    "observed_at", "gpus", "source", "destination", "delay_us", "at", "metric", "value",
    "Date", "Hardware Identifier", "What Failed", "Description of Failure",
    "step", "dp_rank", "stage", "optype", "seq_id", "mc", "start_ts", "duration", "text",
)  # fmt: skip
"""Of a job table, tickets, facts and inventory of nodes, delays, samples, failures and a trace."""
LONG: Final = b"0" * 1_500_000
MANY: Final = 100_000_000
COPIES: Final = 3_000


@dataclass(frozen=True)
class Bomb:
    """A file that does harm where it is believed."""

    name: str
    format: str
    content: bytes
    valid: bool
    """Whether it is well formed: too large then, not broken."""
    suffix: str


def all_bombs() -> Iterator[Bomb]:
    """Every bomb, one at a time: some take a second to make."""
    for name, (kind, valid, make) in _PARQUET.items():
        yield Bomb(name, kind, make(), valid, ".parquet")
    for name, (kind, suffix, make) in _TEXTS.items():
        yield Bomb(name, kind, make(), True, suffix)


def parquet_bombs() -> Iterator[Bomb]:
    """Those of Parquet."""
    return (bomb for bomb in all_bombs() if bomb.suffix == ".parquet")


def bomb(name: str) -> Bomb:
    """The one of that name."""
    if name in _PARQUET:
        kind, valid, make = _PARQUET[name]
        return Bomb(name, kind, make(), valid, ".parquet")
    kind, suffix, make = _TEXTS[name]
    return Bomb(name, kind, make(), True, suffix)


def names() -> list[str]:
    """The names of all, without making one."""
    return [*_PARQUET, *_TEXTS]


def _short(n: int, names: tuple[str, ...] = COLUMNS) -> list[Column]:
    """Columns that hold `1` in each row."""
    return [same(name, b"1", n) for name in names]


def _dictionary() -> bytes:
    return table([*_short(COPIES, COLUMNS[:-1]), same("text", LONG, COPIES)], COPIES)


def _dictionaries() -> bytes:
    return table([same(name, LONG[:200_000], COPIES) for name in COLUMNS], COPIES)


def _many_rows() -> bytes:
    return table(_short(MANY), MANY)


def _nulls() -> bytes:
    pages = [Page(levels((0, MANY)), MANY)]
    return table([Column(pages, (name,)) for name in COLUMNS], MANY)


def _listed(column: Column, kind: int = BYTE_ARRAY) -> bytes:
    """One row, with a list in its last column."""
    schema = [
        *(flat(name) for name in COLUMNS[:-1]),
        {3: OPTIONAL, 4: "text", 5: 1, 6: 3},
        {3: REPEATED, 4: "list", 5: 1},
        flat("element", kind),
    ]
    columns = [*_short(1, COLUMNS[:-1]), replace(column, path=("text", "list", "element"))]
    return File(columns, schema, len(COLUMNS), 1).written()


def _in_one_row(n: int, defined: int) -> bytes:
    """Levels of n values of one list."""
    return levels((0, 1), (1, n - 1)) + levels((defined, n), width=2)


def _list_of_nulls() -> bytes:
    return _listed(Column([Page(_in_one_row(MANY, 2), MANY)], ()))


def _list_of_texts() -> bytes:
    index = _in_one_row(COPIES, 3) + b"\x01" + repeated(0, COPIES)
    pages = [
        Page(text(LONG), 1, dictionary=True),
        Page(index, COPIES, RLE_DICTIONARY),
    ]
    return _listed(Column(pages, (), codec="zstd"))


def _map() -> bytes:
    """One row with a map of many equal keys."""
    n = MANY // 4
    schema = [
        *(flat(name) for name in COLUMNS[:-1]),
        {3: OPTIONAL, 4: "text", 5: 1, 6: 1},
        {3: REPEATED, 4: "key_value", 5: 2},
        flat("key", repetition=REQUIRED),
        flat("value"),
    ]
    key, value = (
        Column(
            [
                Page(text(b"rack"), 1, dictionary=True),
                Page(_in_one_row(n, defined) + b"\x01" + repeated(0, n), n, RLE_DICTIONARY),
            ],
            ("text", "key_value", name),
        )
        for name, defined in (("key", 2), ("value", 3))
    )
    columns = [*_short(1, COLUMNS[:-1]), key, value]
    return File(columns, schema, len(COLUMNS), 1).written()


def _deep(n_levels: int) -> bytes:
    """Groups in groups."""
    schema = [
        *(flat(name) for name in COLUMNS[:-1]),
        *({3: OPTIONAL, 4: "text", 5: 1} for _ in range(n_levels)),
        flat("text"),
    ]
    width = (n_levels + 1).bit_length()
    deep = Column([Page(levels((0, 1), width=width), 1)], ("text",) * (n_levels + 1))
    return File([*_short(1, COLUMNS[:-1]), deep], schema, len(COLUMNS), 1).written()


def _first_longer() -> bytes:
    """Lengths of prefixes: none, then the whole, in blocks of 128."""
    blocks, rest = b"", COPIES - 1
    while rest > 0:
        first = not blocks
        step = len(LONG) if first else 0
        blocks += b"\0\x20" + step.to_bytes(4, "little") + b"\0" * (4 * 127) if first else b"\0\0"
        rest -= 128
    return blocks


def _delta_prefix() -> bytes:
    suffixes = varint(128) + varint(1) + varint(COPIES) + zigzag(len(LONG))
    blocks, rest = b"", COPIES - 1
    while rest > 0:
        if blocks:
            blocks += b"\0\0"
        else:
            least = -len(LONG)  # the first delta takes the length away, the others are none
            others = (len(LONG)).to_bytes(4, "little")
            blocks += zigzag(least) + b"\x20" + b"\0" * 4 + others * 127
        rest -= 128
    content = (
        levels((1, COPIES))
        + varint(128) + varint(1) + varint(COPIES) + b"\0" + _first_longer()
        + suffixes + blocks + LONG
    )  # fmt: skip
    prefixed = Column([Page(content, COPIES, DELTA_BYTE_ARRAY)], ("text",), codec="zstd")
    return table([*_short(COPIES, COLUMNS[:-1]), prefixed], COPIES)


def _zeros(codec: str, encoding: int = PLAIN) -> bytes:
    """Whole numbers, all nought, of which one page holds 400 MB."""
    n = 50_000_000
    content = levels((1, n)) + bytes(8 * n)
    page = Page(content, n, encoding, packed=compressed(content, codec))
    numbers = Column([page], ("value",), INT64, codec)
    others = tuple(name for name in COLUMNS if name != "value")
    return table([*_short(n, others), numbers], n)


def _numbers(kind: int, encoding: int, content: Callable[[int], bytes]) -> bytes:
    """Numbers that an encoding writes as a run."""
    page = Page(levels((1, MANY)) + content(MANY), MANY, encoding)
    return table([Column([page], (name,), kind) for name in COLUMNS], MANY)


def _flags() -> bytes:
    return _numbers(BOOLEAN, RLE, lambda n: levels((1, n)))


def _deltas() -> bytes:
    return _numbers(INT64, DELTA_BINARY, lambda n: equal_deltas(0, n, 1))


def _repeated_pages() -> bytes:
    """Many pages of many rows each."""
    columns = _short(1_000_000)
    for column in columns:
        column.pages = [column.pages[0], *column.pages[1:] * 200]
    return table(columns, 200_000_000)


def _lie(change: Callable[[Column], Any], **lies: Any) -> Callable[[], bytes]:
    """A file of 3,000 rows of which one column lies, the first that a reader of traces takes."""

    def made() -> bytes:
        columns = _short(COPIES)
        change(columns[COLUMNS.index("step")])
        return table(columns, COPIES, **lies)

    return made


def _stated(**numbers: int) -> Callable[[Column], Any]:
    """Lies of a column's metadata by the numbers of the fields: `_5` is num_values."""
    lies = {int(name[1:]): Wide(value) for name, value in numbers.items()}
    return lambda column: column.stated.update(lies)


def _page(number: int, **lies: Any) -> Callable[[Column], Any]:
    """Lies of a page's header."""

    def change(column: Column) -> None:
        column.pages[number] = replace(column.pages[number], **lies)

    return change


def _same_bytes() -> bytes:
    """1,000 columns of the same bytes."""
    columns = _short(COPIES)
    again = [replace(columns[0], path=(f"c{n}",), at=4) for n in range(1_000)]
    return table([*columns, *again], COPIES)


def _page_beyond() -> bytes:
    """A page of 400 MB that says 1,000 bytes."""
    content = bytes(400_000_000)
    return _lie(_page(1, packed=compressed(content, "zstd"), n_unpacked=1_000))()


def _hollow() -> bytes:
    """Header and footer agree on values that no level makes."""
    columns = _short(COPIES)
    for column in columns:
        column.pages[1] = replace(column.pages[1], n=MANY)
    return table(columns, MANY)


_PARQUET: Final[dict[str, tuple[str, bool, Callable[[], bytes]]]] = {
    "parquet-dictionary": ("Parquet, dictionary", True, _dictionary),
    "parquet-dictionaries": ("Parquet, dictionary", True, _dictionaries),
    "parquet-rows": ("Parquet, run-length", True, _many_rows),
    "parquet-pages": ("Parquet, run-length", True, _repeated_pages),
    "parquet-nulls": ("Parquet, run-length", True, _nulls),
    "parquet-flags": ("Parquet, run-length", True, _flags),
    "parquet-deltas": ("Parquet, run-length", True, _deltas),
    "parquet-prefixes": ("Parquet, prefixes", True, _delta_prefix),
    "parquet-list-nulls": ("Parquet, nested lists", True, _list_of_nulls),
    "parquet-list-texts": ("Parquet, nested lists", True, _list_of_texts),
    "parquet-map": ("Parquet, nested lists", True, _map),
    "parquet-deep": ("Parquet, nested lists", True, lambda: _deep(200)),
    "parquet-deeper": ("Parquet, nested lists", True, lambda: _deep(50_000)),
    "parquet-zstd": ("Parquet, pages", True, lambda: _zeros("zstd")),
    "parquet-gzip": ("Parquet, pages", True, lambda: _zeros("gzip")),
    "parquet-brotli": ("Parquet, pages", True, lambda: _zeros("brotli")),
    "parquet-snappy": ("Parquet, pages", True, lambda: _zeros("snappy")),
    "parquet-lz4": ("Parquet, pages", True, lambda: _zeros("lz4_raw")),
    "parquet-split": ("Parquet, pages", True, lambda: _zeros("zstd", SPLIT)),
    "lie-more-values": ("Parquet, lying", False, _lie(_stated(_5=MANY))),
    "lie-fewer-values": ("Parquet, lying", False, _lie(_stated(_5=10))),
    "lie-values-below-none": ("Parquet, lying", False, _lie(_stated(_5=-1))),
    "lie-size-below-none": ("Parquet, lying", False, _lie(_stated(_7=-1))),
    "lie-unpacked-size": ("Parquet, lying", False, _lie(_stated(_6=10**13))),
    "lie-offset-outside": ("Parquet, lying", False, _lie(_stated(_9=10**12, _11=10**12))),
    "lie-offset-below-none": ("Parquet, lying", False, _lie(_stated(_9=-4, _11=-40))),
    "lie-offset-of-another": ("Parquet, lying", False, _lie(_stated(_9=4, _11=4))),
    "lie-same-bytes": ("Parquet, lying", False, _same_bytes),
    "lie-rows": ("Parquet, lying", False, _lie(_page(1), stated={3: Wide(10**11)})),
    "lie-rows-of-group": ("Parquet, lying", False, _lie(_page(1), group={3: Wide(10**11)})),
    "lie-bytes-of-group": ("Parquet, lying", False, _lie(_page(1), group={2: Wide(10**13)})),
    "lie-page-values": ("Parquet, lying", False, _lie(_page(1, n=MANY))),
    "lie-page-larger": ("Parquet, lying", False, _lie(_page(1, n_unpacked=2**31 - 1))),
    "lie-page-smaller": ("Parquet, lying", False, _lie(_page(1, n_unpacked=3))),
    "lie-page-beyond": ("Parquet, lying", False, _page_beyond),
    "lie-page-below-none": ("Parquet, lying", False, _lie(_page(1, n_unpacked=-1))),
    "lie-dictionary-values": ("Parquet, lying", False, _lie(_page(0, n=MANY))),
    "lie-dictionary-larger": ("Parquet, lying", False, _lie(_page(0, n_unpacked=2**31 - 1))),
    "lie-hollow-pages": ("Parquet, lying", False, _hollow),
    "lie-encoding": ("Parquet, lying", False, _lie(_page(1, encoding=77))),
}
"""Name -> format, whether it is well formed, and what makes it."""


@cache
def _line(n_bytes: int) -> bytes:
    return b"a line of a log\n" * (n_bytes // 16)


def _labels() -> bytes:
    """A line of 300,000 labels."""
    names = ",".join(f'l{n}="v"' for n in range(300_000))
    return f'DCGM_FI_DEV_GPU_TEMP{{Hostname="n1",gpu="0",{names}}} 41 1700000000000\n'.encode()


def _header(n: int) -> bytes:
    return ",".join([*COLUMNS, *(f"c{k}" for k in range(n))]).encode() + b"\n"


def _wide() -> bytes:
    return _header(1_000_000) + b",".join([b"1"] * (1_000_000 + len(COLUMNS))) + b"\n"


def _long_field() -> bytes:
    row = b",".join([b"1"] * (len(COLUMNS) - 1) + [b'"' + b"x" * 40_000_000 + b'"'])
    return _header(0) + row + b"\n"


def _deep_json() -> bytes:
    return b'{"jobs": ' + b"[" * 2_000_000 + b"]" * 2_000_000 + b"}\n"


def _wide_json() -> bytes:
    fields = ",".join(f'"k{n}":{n}' for n in range(600_000))
    return ("{" + fields + "}\n").encode()


_TEXTS: Final[dict[str, tuple[str, str, Callable[[], bytes]]]] = {
    "gz": ("gz", ".csv.gz", lambda: gzip.compress(_line(20_000_000), 6) * 100),
    "xz": ("xz", ".csv.xz", lambda: lzma.compress(_line(20_000_000), preset=0) * 100),
    "zst": (
        "zst",
        ".csv.zst",
        lambda: zstandard.ZstdCompressor(level=1).compress(_line(20_000_000)) * 100,
    ),
    "json-deep": ("JSON depth", ".json", _deep_json),
    "json-wide": ("JSON width", ".json", _wide_json),
    "csv-wide": ("wide CSV", ".csv", _wide),
    "csv-long-field": ("wide CSV", ".csv", _long_field),
    "labels": ("labels", ".prom", _labels),
}
"""Name -> format, how its name ends, and what makes it."""
