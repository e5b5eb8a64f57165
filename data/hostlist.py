"""Host lists as Slurm writes them: the one place where they are expanded."""

from __future__ import annotations

import re
from itertools import product
from math import prod

MAX_HOSTS = 200_000
"""Hosts of one list; a longer one is a mistake or an attack."""

_NOTHING = frozenset({"", "none", "none assigned", "(null)", "n/a", "unknown"})
_ONE_GROUP = re.compile(r"([^\[\],\s]+)\[([0-9,-]+)\]")
_ITEM = re.compile(r"(?:[^\[\],\s]|\[[^\[\]\s]*\])+")
_PART = re.compile(r"\[([^\[\]]*)\]|([^\[\]]+)")
_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")


class HostListError(ValueError):
    """A host list that cannot be expanded."""


def expand(text: str) -> list[str]:
    """Hosts of a compressed list, in its order; none for `None assigned` and the like.

    Zero padding is kept, several groups multiply out, duplicates stay.

    Raises
    ------
    HostListError
        For unbalanced brackets, a broken or descending range, or over 200,000 hosts.

    Examples
    --------
    >>> expand("n[001-003,7],login1")
    ['n001', 'n002', 'n003', 'n7', 'login1']
    >>> expand("r[1-2]n[3-4]")
    ['r1n3', 'r1n4', 'r2n3', 'r2n4']
    >>> expand("None assigned")
    []
    """
    match = _ONE_GROUP.fullmatch(text)  # nearly all lists of real clusters
    if match:
        prefix = match[1]
        return [prefix + number for number in _numbers(match[2])]
    text = text.strip()
    if "[" not in text and "," not in text:
        if text.lower() in _NOTHING:
            return []
        if "]" not in text and not re.search(r"\s", text):
            return [text]
    return _expand_items(text)


def _expand_items(text: str) -> list[str]:
    """Hosts of a list of several items or with several groups in one item."""
    items = _ITEM.findall(text)
    if ",".join(items) != text.replace(" ", "").strip(","):
        raise HostListError("host list is broken")
    hosts: list[str] = []
    for item in items:
        parts = [[plain] if plain else _numbers(group) for group, plain in _PART.findall(item)]
        if len(hosts) + prod(map(len, parts)) > MAX_HOSTS:
            raise HostListError(f"host list names over {MAX_HOSTS:,} hosts")
        hosts.extend("".join(combination) for combination in product(*parts))
    return hosts


def _numbers(group: str) -> list[str]:
    """Numbers of one bracket group, e.g. `001-004,7`."""
    numbers: list[str] = []
    for item in group.split(","):
        match = _RANGE.fullmatch(item)
        if match is None:
            raise HostListError("host list is broken")
        low, high = match[1], match[2]
        if high is None:
            numbers.append(low)
            continue
        first, last, width = int(low), int(high), len(low)
        if last < first:
            raise HostListError("host list has a descending range")
        if len(numbers) + last - first >= MAX_HOSTS:
            raise HostListError(f"host list names over {MAX_HOSTS:,} hosts")
        numbers.extend(str(number).zfill(width) for number in range(first, last + 1))
    return numbers
