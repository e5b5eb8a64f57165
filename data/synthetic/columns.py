"""Arrow columns from NumPy arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from data.synthetic.spec import START_S

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Ints

CLUSTER = "demo"
"""Name of the demo cluster."""

TIMESTAMP = pa.timestamp("us", tz="UTC")

_BASE32 = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_HEX = np.frombuffer(b"0123456789abcdef", dtype=np.uint8)


def constant(value: str, n: int) -> pa.DictionaryArray:
    """n times the same text."""
    return words(np.zeros(n, dtype=np.int8), [value])


def words(codes: NDArray[np.integer], values: Sequence[str] | pa.Array) -> pa.DictionaryArray:
    """Text by its number in `values`, which may repeat; a negative number is NULL."""
    unique = pa.array(values, pa.string()).dictionary_encode()
    numbers = unique.indices.to_numpy()[codes]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=codes < 0), unique.dictionary)


def times(seconds: NDArray[np.floating] | Ints, known: Bools | None = None) -> pa.Array:
    """UTC timestamps from seconds of the period; NULL where not known."""
    micros = np.round(seconds * 1_000_000).astype(np.int64) + START_S * 1_000_000
    return pa.array(
        micros.view("datetime64[us]"), TIMESTAMP, mask=None if known is None else ~known
    )


def ints(values: NDArray[np.integer], known: Bools | None = None) -> pa.Array:
    """Whole numbers; NULL where not known."""
    return pa.array(values, mask=None if known is None else ~known)


def sluids(submit_s: Ints) -> pa.Array:
    """Identifiers in the manner of Slurm's SLUID: `s` and 13 digits in base 32, growing with time.

    The time in milliseconds fills the upper digits, the number of the row the lower ones.
    """
    row = np.arange(len(submit_s), dtype=np.uint64)
    millis = ((submit_s + START_S) * 1000).astype(np.uint64)
    return _digits((millis << np.uint64(22)) + (row & np.uint64((1 << 22) - 1)), b"s", (5, 13))


def event_ids(n: int, rng: np.random.Generator) -> pa.Array:
    """n identifiers of 16 hexadecimal digits."""
    return _digits(rng.integers(0, 1 << 64, n, dtype=np.uint64), b"", (4, 16))


def _digits(values: NDArray[np.uint64], prefix: bytes, form: tuple[int, int]) -> pa.Array:
    """Numbers as text of a fixed number of digits, each of some bits."""
    bits, n_digits = form
    alphabet = _BASE32 if bits == 5 else _HEX
    width = len(prefix) + n_digits
    text = np.empty((len(values), width), dtype=np.uint8)
    text[:, : len(prefix)] = np.frombuffer(prefix, dtype=np.uint8)
    for digit in range(n_digits):
        shift = np.uint64(bits * (n_digits - 1 - digit))
        text[:, len(prefix) + digit] = alphabet[(values >> shift) & np.uint64((1 << bits) - 1)]
    offsets = np.arange(len(values) + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(
        len(values), pa.py_buffer(offsets), pa.py_buffer(text.reshape(-1))
    )
