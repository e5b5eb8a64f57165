"""Pickles: what plain ones hold, and that hostile ones end with a word and without harm."""

from __future__ import annotations

import os
import pickle
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.errors import SourceError
from data.ingest.formats.plain_pickle import plain_pickle

SCALARS = (
    st.none() | st.booleans() | st.integers(-(2**62), 2**62) | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])) | st.binary()
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
    | st.tuples(inner, inner),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=40)
@given(value=VALUES.filter(lambda value: not _has_bytes(value)), protocol=st.integers(0, 5))
def test_what_pickle_wrote_comes_out(value: Any, protocol: int) -> None:
    assert plain_pickle(pickle.dumps(value, protocol), "dump") == value


def _has_bytes(value: object) -> bool:
    if isinstance(value, bytes):
        return True
    if isinstance(value, dict):
        return any(map(_has_bytes, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_bytes, value))


class Evil:
    """Runs a command wherever it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/evil",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_class_is_named_and_not_looked_up(protocol: int) -> None:
    with pytest.raises(SourceError, match=r"class or function \w+.system, which is not looked up"):
        plain_pickle(pickle.dumps({"entries": [Evil()]}, protocol), "_dump_0")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x80\x04\x8c\x03os\n\x8c\x06system\x93.", "class or function"),
        (b"\x80\x02cos\nsystem\n.", "os.system"),
        (b"\x80\x02(U\x02lsios\nsystem\n.", "os.system"),
        (b"\x80\x02K\x01Q.", "opcode BINPERSID"),
        (b"\x80\x02\x82\x01.", "opcode EXT1"),
        (b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"x", "BYTEARRAY8"),
        (b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"x", "cut off"),
        (b"\x80\x04\x95" + struct.pack("<Q", 2**60), "cut off"),
        (b"\x80\x02\x8b" + struct.pack("<i", 2**30) + b"x", "more than 64 bits"),
        (b"\x80\x02X" + struct.pack("<I", 2**31) + b"x", "cut off"),
        (b"I" + b"9" * 9999 + b"\n.", "more than 64 bits"),
        (b"\x80\x02" + b"(" * 10_000 + b".", "containers open"),
        (b"\x80\x02}(]K\x01u.", "broken"),
        (b"\x80\x02(h\x07.", "broken"),
        (b"\x80\x02(q\x00h\x00.", "broken"),
        (b"\x80\x09N.", "broken"),
        (b"\x80\x02e.", "broken"),
        (b"\x80\x02]" + b"N" * 5 + b".", "ends within a value"),
        (b"\x80\x02\xff", "byte 255"),
        (b"\x80\x02]", "cut off"),
    ],
)  # fmt: skip
def test_a_hostile_pickle_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(SourceError, match=why):
        plain_pickle(data, "dump")


def test_a_huge_place_in_the_memo_takes_no_memory() -> None:
    assert plain_pickle(b"\x80\x02]r\xff\xff\xff\xffj\xff\xff\xff\xff0.", "dump") == []


def test_every_cut_of_a_pickle_ends_with_a_word() -> None:
    whole = pickle.dumps({"entries": [{"seq": 1, "sizes": [[4, 5]]}], "rank": 3}, 2)
    for size in range(len(whole)):
        with pytest.raises(SourceError, match=r"cut off|broken"):
            plain_pickle(whole[:size], "dump")


PLAIN = (dict, list, tuple, set, frozenset, str, bytes, bytearray, int, float, type(None))


@given(data=st.binary(max_size=200))
def test_random_bytes_do_no_harm(data: bytes) -> None:
    try:
        found = plain_pickle(b"\x80\x02" + data, "dump")
    except SourceError:
        return
    assert isinstance(found, PLAIN)
