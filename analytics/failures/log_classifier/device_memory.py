"""Whether a GPU that ran out of memory can have been full."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIZE = r"([\d.]+) ?([KMGT]i?B|bytes)"
_ASKED = re.compile(rf"tried to allocate {_SIZE}", re.IGNORECASE)
_FREE = re.compile(rf"{_SIZE} (?:is )?free", re.IGNORECASE)
_TOTAL = re.compile(rf"(?:total capacity of {_SIZE}|{_SIZE} total capacity)", re.IGNORECASE)
_HELD = re.compile(rf"(?:has {_SIZE} memory in use|{_SIZE} reserved in total)", re.IGNORECASE)
_CAPPED = re.compile(r"\d allowed|memory fraction", re.IGNORECASE)
_UNIT = {"b": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_UNACCOUNTED_RATIO = 0.5


def doubt_of_full(lines: Sequence[str]) -> str | None:
    """Why a message of exhausted GPU memory contradicts itself; None where it does not.

    Two contradictions count: more memory is free than was asked for, and more than half of the
    memory is held by no process that the message names.

    Parameters
    ----------
    lines : sequence of str
        The message, first line first.

    Examples
    --------
    >>> doubt_of_full(["Tried to allocate 20.00 MiB. GPU 0 has a total capacity of 79.15 GiB of "
    ...                "which 70.00 GiB is free."])
    'asked for 20 MiB while 70 GiB were free'
    """
    text = " ".join(lines)
    if _CAPPED.search(text):
        return None
    asked, free, total = (_first(pattern, text) for pattern in (_ASKED, _FREE, _TOTAL))
    if asked is None or free is None:
        return None
    if free > asked:
        return f"asked for {_told(asked)} while {_told(free)} were free"
    held = sum(_bytes(match) for match in _HELD.finditer(text))
    if total and held and total - free - held > _UNACCOUNTED_RATIO * total:
        return f"{_told(total - free - held)} of {_told(total)} are held by no process it names"
    return None


def _first(pattern: re.Pattern[str], text: str) -> float | None:
    found = pattern.search(text)
    return _bytes(found) if found else None


def _bytes(found: re.Match[str]) -> float:
    number, unit = [group for group in found.groups() if group is not None]
    return float(number.rstrip(".")) * _UNIT[unit[0].lower()]


def _told(size: float) -> str:
    unit, name = (2**30, "GiB") if size >= 2**30 else (2**20, "MiB")
    return f"{size / unit:.3g} {name}"
