"""Which lines of a log stand for it: those that a verdict names, and those around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def named(evidence: Sequence[Mapping[str, Any]]) -> set[tuple[str, int]]:
    """File and number of the lines that evidence names.

    >>> named([{"kind": "job_log", "key": "slurm-7.out:12"}, {"kind": "health_event", "key": "e"}])
    {('slurm-7.out', 12)}
    """
    keys = [str(each.get("key")) for each in evidence if each.get("kind") == "job_log"]
    parts = [key.rpartition(":") for key in keys]
    return {(file, int(number)) for file, _, number in parts if number.isdecimal()}


def places(marked: Sequence[bool], *, around: int, last: int) -> list[int]:
    """Places of the marked lines and of so many before and after each; without any, the last.

    >>> places([False, True, False, False, True], around=1, last=2)
    [0, 1, 2, 3, 4]
    >>> places([False, False, False], around=1, last=2)
    [1, 2]
    """
    if not any(marked):
        return list(range(max(0, len(marked) - last), len(marked)))
    near = {
        at
        for place, is_marked in enumerate(marked)
        if is_marked
        for at in range(place - around, place + around + 1)
    }
    return sorted(at for at in near if 0 <= at < len(marked))
