"""Event files of TensorBoard: framed records, each a message of protobuf; scalars are read.

A record is its length (8 bytes), a checksum of the length (4), the message and a checksum of that
(4). The checksum is CRC-32C (RFC 3720), masked: turned right by 15 bits, plus a constant. Of the
message the fields of `Event`, `Summary` and `TensorProto` that make up a scalar are decoded here;
nothing in a file is executed.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGINNING = re.compile(rb".{12}(?:\x09.{8})?(?:\x10\x00)?\x1a.brain\.Event", re.DOTALL)
"""The first record, which states the version of the format."""
_POLYNOMIAL, _MASK_DELTA = 0x82F63B78, 0xA282EAD8
_HEADER = struct.Struct("<QI")
_FOOTER = struct.Struct("<I")
_CHUNK = 1 << 20
_VARINT_BYTES = 10
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5
_VALUE, _TAG, _SIMPLE_VALUE, _TENSOR = 1, 1, 2, 8
_DTYPE, _SHAPE, _CONTENT = 1, 2, 4
_DIM, _DIM_SIZE = 2, 1
_KINDS = {1: "<f4", 2: "<f8", 3: "<i4", 9: "<i8"}
"""Type of a tensor -> that of its bytes."""
_PACKED = {5: "<f4", 6: "<f8"}
"""Field of a tensor that lists its values -> their type."""
_INTS = {7: 32, 10: 64}


class Scalar(NamedTuple):
    """A value of a series."""

    tag: str
    value: float


class Event(NamedTuple):
    """What a record says."""

    step: int
    wall_time: float | None
    """Seconds since 1970; None where the record states none."""
    scalars: tuple[Scalar, ...]
    n_others: int
    """Values that are no scalars: histograms, images, texts."""


def is_event_file(head: bytes) -> bool:
    """Whether a file begins as one of TensorBoard does."""
    return BEGINNING.match(head) is not None


def events(stream: BinaryIO) -> Iterator[Event | RecordError | None]:
    """Each record: a summary, None for one of another kind, an error for one that is damaged.

    Behind a record whose length is damaged or that is cut off nothing can be found.
    """
    while header := stream.read(_HEADER.size):
        if len(header) < _HEADER.size:
            yield RecordError(CUT_OFF)
            return
        length, checksum = _HEADER.unpack(header)
        if masked_crc(header[:8]) != checksum:
            yield RecordError(LENGTH_DAMAGED)
            return
        message = _read(stream, length)
        footer = stream.read(_FOOTER.size)
        if len(message) < length or len(footer) < _FOOTER.size:
            yield RecordError(CUT_OFF)
            return
        yield _checked(message, _FOOTER.unpack(footer)[0])


CUT_OFF = "cut off before its end"
LENGTH_DAMAGED = "its length is damaged: nothing behind it can be found"
CHECKSUM = "its checksum is not that of its bytes"
NO_MESSAGE = "no message of protobuf"


def _read(stream: BinaryIO, length: int) -> bytes:
    """So many bytes, or what is left: a length may be more than any file holds."""
    parts = []
    while length > 0 and (part := stream.read(min(length, _CHUNK))):
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def _checked(message: bytes, checksum: int) -> Event | RecordError | None:
    """What a record says; the checksum is asked of those that hold values."""
    event: Event | RecordError | None
    try:
        event = _event(message)
    except (ValueError, IndexError, struct.error):
        event = RecordError(NO_MESSAGE)
    if event is not None and masked_crc(message) != checksum:
        return RecordError(CHECKSUM)
    return event


def _event(message: bytes) -> Event | None:
    """A summary; None where the record holds none."""
    step, wall_time, scalars, n_others, is_summary = 0, None, list[Scalar](), 0, False
    for field, value in _fields(message):
        if field == _WALL_TIME and isinstance(value, bytes):
            (wall_time,) = struct.unpack("<d", value)
        elif field == _STEP and isinstance(value, int):
            step = _signed(value)
        elif field == _SUMMARY and isinstance(value, bytes):
            is_summary = True
            for inner, one in _fields(value):
                if inner == _VALUE and isinstance(one, bytes):
                    scalar = _scalar(one)
                    n_others += scalar is None
                    scalars += [] if scalar is None else [scalar]
    return Event(step, wall_time, tuple(scalars), n_others) if is_summary else None


def _scalar(message: bytes) -> Scalar | None:
    """A value of a summary, in either form; None where it is no scalar."""
    tag, number = "", None
    for field, value in _fields(message):
        if field == _TAG and isinstance(value, bytes):
            tag = value.decode("utf-8", "replace")
        elif field == _SIMPLE_VALUE and isinstance(value, bytes):
            (number,) = struct.unpack("<f", value)
        elif field == _TENSOR and isinstance(value, bytes):
            number = _tensor(value)
    return None if number is None else Scalar(tag, number)


def _tensor(message: bytes) -> float | None:
    """The one number of a tensor without dimensions, or of one alone; None of others."""
    kind, n_values, found = 0, 1, list[float]()
    content = b""
    for field, value in _fields(message):
        if field == _DTYPE and isinstance(value, int):
            kind = value
        elif field == _SHAPE and isinstance(value, bytes):
            n_values = _size(value)
        elif field == _CONTENT and isinstance(value, bytes):
            content = value
        elif field in _PACKED and isinstance(value, bytes):
            found += np.frombuffer(value, dtype=_PACKED[field]).tolist()
        elif field in _INTS:
            found += [float(_signed(one, _INTS[field])) for one in _varints(value)]
    if content and kind in _KINDS:
        found = np.frombuffer(content, dtype=_KINDS[kind]).astype(np.float64).tolist()
    return found[0] if kind in _KINDS and n_values == 1 and len(found) == 1 else None


def _size(shape: bytes) -> int:
    """Values of a tensor of a shape."""
    n_values = 1
    for field, dimension in _fields(shape):
        if field == _DIM and isinstance(dimension, bytes):
            sizes = [one for inner, one in _fields(dimension) if inner == _DIM_SIZE]
            n_values *= sizes[0] if sizes and isinstance(sizes[0], int) else 0
    return n_values


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of each field; a number of fixed width as its bytes."""
    at, end = 0, len(message)
    while at < end:
        key, at = _varint(message, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            number, at = _varint(message, at)
            yield field, number
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(kind)
        if at + length > end:
            raise ValueError(length)
        yield field, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number of variable width, and the place behind it."""
    number = shift = 0
    for _ in range(_VARINT_BYTES):
        byte = message[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:  # the last one lacks the highest bit
            return number, at
        shift += 7
    raise ValueError(number)


def _varints(value: int | bytes) -> list[int]:
    """Numbers of a field, one or packed."""
    if isinstance(value, int):
        return [value]
    found, at = list[int](), 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def _signed(number: int, bits: int = 64) -> int:
    """A number of that many bits as one with a sign."""
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> (bits - 1) else number


def _table() -> list[int]:
    """CRC-32C of each byte."""
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE = _table()


def masked_crc(message: bytes) -> int:
    """The masked checksum of some bytes.

    Examples
    --------
    >>> hex(masked_crc(bytes(32)))
    '0xfd7fffa'
    """
    crc, table = 0xFFFFFFFF, _TABLE
    for byte in message:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return (((crc >> 15) | (crc << 17)) + _MASK_DELTA) & 0xFFFFFFFF
