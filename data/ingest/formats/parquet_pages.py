"""What is in single pages of Parquet, so far as their size hangs on it; never a value itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, BinaryIO, Final

import numpy as np

from data.ingest.formats.parquet_layout import CODECS, BrokenParquetError, Chunk, Page

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Lengths = NDArray[np.int64]

LOOKED_INTO: Final = 64_000_000
"""Bytes of a page that is unpacked to look into it; dictionaries have 1 MB mostly."""
_STEP = 1 << 20
_SNAPPY, _LZ4, _LZ4_MOST = "snappy", "lz4_raw", 255
_WIDEST = 32


def unpacked(file: BinaryIO, chunk: Chunk, page: Page) -> bytes | None:
    """The content of a page; None where it is too large to look into, or of old LZ4.

    Raises
    ------
    BrokenParquetError
        Where it unfolds to another size than its header says.
    """
    import pyarrow as pa

    codec = CODECS[chunk.codec] if page.packed else None
    if page.n_unpacked > LOOKED_INTO or (page.packed and codec is None):
        return None
    file.seek(page.at)
    content = file.read(page.n_packed)
    if codec is None or not page.n_unpacked:
        return content
    n_levels = page.n_levels or 0
    try:
        held = pa.Codec(codec).decompress(content[n_levels:], page.n_unpacked - n_levels)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise _other_size(chunk, page) from error
    return content[:n_levels] + bytes(held)


def _other_size(chunk: Chunk, page: Page) -> BrokenParquetError:
    told = f"unfolds to other than the {page.n_unpacked:,} bytes that it says"
    return BrokenParquetError(f"a page of column {chunk.leaf.name} {told}")


def refuse_untrue_size(file: BinaryIO, chunk: Chunk, page: Page) -> None:
    """Refuses a page that does not unfold to what its header says, keeping none of it.

    Raises
    ------
    BrokenParquetError
        Where it does not.
    """
    import pyarrow as pa

    codec = CODECS[chunk.codec] if page.packed else None
    if codec is None:
        return
    n_levels = page.n_levels or 0
    file.seek(page.at + n_levels)
    content = file.read(page.n_packed - n_levels)
    stated, found = page.n_unpacked - n_levels, 0
    try:
        if codec == _SNAPPY:  # states its size itself
            found, _ = _number(content, 0)
        elif codec == _LZ4:
            found = min(stated, _LZ4_MOST * len(content))
        else:
            with pa.CompressedInputStream(pa.BufferReader(content), codec) as stream:
                while found <= stated and (block := stream.read(_STEP)):
                    found += len(block)
    except (pa.ArrowException, OSError, IndexError) as error:
        raise _other_size(chunk, page) from error
    if found != stated:
        raise _other_size(chunk, page)


def refuse_hollow(chunk: Chunk, page: Page, content: bytes) -> None:
    """Refuses a page whose levels or indices make fewer values than its header says.

    Raises
    ------
    BrokenParquetError
        Where they do.
    """
    at, n = 0, page.n
    if page.n_levels is not None:  # their lengths stand in the header, and readers check them
        return
    try:
        for most in (chunk.leaf.n_repeated, chunk.leaf.n_defined):
            if most:
                end = at + 4 + int.from_bytes(content[at : at + 4], "little")
                made, n = _in_runs(content[at + 4 : end], most.bit_length(), most)
                at, short = end, made < page.n
                if short:
                    raise ValueError(made)
        if page.encoding == "dictionary" and _in_runs(content[at + 1 :], content[at], -1)[0] < n:
            raise ValueError(n)
    except (IndexError, ValueError) as error:
        told = f"makes fewer than the {page.n:,} values that it says"
        raise BrokenParquetError(f"a page of column {chunk.leaf.name} {told}") from error


def _in_runs(content: bytes, width: int, of: int) -> tuple[int, int]:
    """How many values runs make, and how many of one value, at least."""
    at = made = n_of = 0
    size = (width + 7) // 8
    while at < len(content):
        head, at = _number(content, at)
        if head & 1:
            made, at = made + 8 * (head >> 1), at + (head >> 1) * width
            continue
        made += head >> 1
        n_of += (head >> 1) * (int.from_bytes(content[at : at + size], "little") == of)
        at += size
    return made, n_of


def longest_entry(chunk: Chunk, page: Page, content: bytes) -> int:
    """The length of the longest text of a dictionary.

    Raises
    ------
    BrokenParquetError
        Where it holds fewer than it says.
    """
    at = longest = 0
    for _ in range(page.n):
        length = int.from_bytes(content[at : at + 4], "little")
        at += 4 + length
        if at > len(content):
            told = f"fewer than the {page.n:,} entries that it says"
            raise BrokenParquetError(f"the dictionary of column {chunk.leaf.name} holds {told}")
        longest = max(longest, length)
    return longest


def prefixed_lengths(chunk: Chunk, page: Page, content: bytes) -> Lengths:
    """The length of each text of a page that leaves out what it shares with the one before.

    Raises
    ------
    BrokenParquetError
        Where they cannot be read.
    """
    at = page.n_levels or 0
    if page.n_levels is None:
        for present in (chunk.leaf.n_repeated, chunk.leaf.n_defined):
            at += 4 + int.from_bytes(content[at : at + 4], "little") if present else 0
    try:
        prefixes, at = _deltas(content, at, page.n)
        suffixes, _ = _deltas(content, at, page.n)
        found: Lengths = prefixes + suffixes
    except (IndexError, ValueError) as error:
        told = f"a page of column {chunk.leaf.name} holds no lengths"
        raise BrokenParquetError(told) from error
    if found.size and (min(prefixes.min(), suffixes.min()) < 0 or found.max() > 2**31):
        raise BrokenParquetError(f"a text of column {chunk.leaf.name} has an impossible length")
    return found


def _number(content: bytes, at: int) -> tuple[int, int]:
    """A whole number of 7 bits a byte, and where it ends."""
    found = shift = 0
    while content[at] > 127 and shift < 63:
        found |= (content[at] & 127) << shift
        at, shift = at + 1, shift + 7
    return found | content[at] << shift, at + 1


def _deltas(content: bytes, at: int, most: int) -> tuple[Lengths, int]:
    """Numbers written as differences, and where they end (Parquet's DELTA_BINARY_PACKED)."""
    block, at = _number(content, at)
    n_parts, at = _number(content, at)
    n, at = _number(content, at)
    first, at = _number(content, at)
    if n > most or not n_parts or block % n_parts or not block:
        raise ValueError(n)
    steps = np.zeros(max(n, 1), dtype=np.int64)
    steps[0] = _signed(first)
    of_part, done = block // n_parts, 1
    while done < n:
        least, at = _number(content, at)
        widths, at = content[at : at + n_parts], at + n_parts
        for width in widths:
            if done >= n:
                break
            size = of_part * width // 8
            held = _of_width(content[at : at + size], width, min(of_part, n - done))
            steps[done : done + of_part] = held + _signed(least)
            at, done = at + size, done + of_part
        if not widths:
            raise ValueError(at)
    return np.cumsum(steps)[:n], at


def _signed(number: int) -> int:
    return number >> 1 if not number & 1 else -(number >> 1) - 1


def _of_width(packed: bytes, width: int, n: int) -> Any:
    """Numbers of some bits each; lengths have 32 at most."""
    if width == 0:
        return 0
    if width > _WIDEST:
        raise ValueError(width)
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=n * width, bitorder="little")
    if bits.size < n * width:
        raise ValueError(width)
    return bits.reshape(n, width).astype(np.int64) @ (1 << np.arange(width, dtype=np.int64))
