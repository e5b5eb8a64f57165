"""Samples of how long transfers between pairs of endpoints took, and what is known of the ends."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.errors import OutOfRangeError, ShapeError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.arrays import Floats, Ints

MOST_ENDPOINTS: Final = 4096
"""Endpoints of one analysis: the matrix of their pairs has as many million cells as 16."""
_DEVICE = re.compile(
    r"(?P<host>.+?)(?:[:/#]|[-_. ](?=(?:gpu|dev|nic|hca|mlx|rank|local)))(?:gpu|dev|nic|hca|rank|"
    r"local|mlx)?[-_: ]?\d+(?:[-_:]\d+)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class DelaySamples:
    """Delays of single transfers.

    `source`, `destination`, `delay_us` and `size_bytes` have one length, one entry a transfer.
    """

    names: tuple[str, ...]
    """Endpoints: hosts, or GPUs or ports of hosts."""
    source: Ints
    """Index of the endpoint that sent."""
    destination: Ints
    """Index of the endpoint that received; transfers to oneself do not count."""
    delay_us: Floats
    """Microseconds, > 0."""
    size_bytes: Floats | None = None
    """Bytes of the message; None where all are alike, or nobody says it."""
    host_of: Mapping[str, str] = field(default_factory=dict)
    """Endpoint -> its host, where the names do not say it."""
    group_of: Mapping[str, str] = field(default_factory=dict)
    """Host or endpoint -> its switch; empty where switches are to be found in the delays."""

    def __post_init__(self) -> None:
        if len(self.names) > MOST_ENDPOINTS:
            raise OutOfRangeError(
                "endpoints", f"at most {MOST_ENDPOINTS:,}", f"{len(self.names):,}",
                "give one row of switches, or one rail, at a time",
            )  # fmt: skip
        if len({len(self.source), len(self.destination), len(self.delay_us)}) > 1:
            raise ShapeError("source, destination and delay_us differ in length: align them")
        if not (np.isfinite(self.delay_us) & (self.delay_us > 0)).all():
            raise OutOfRangeError("delay_us", "finite and > 0", "other values", "drop those rows")

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host of each endpoint: as stated, else what stands before its number, as in `n1:3`.

        The endpoint itself where neither tells.

        >>> import numpy as np
        >>> none = np.array([], dtype=int)
        >>> DelaySamples(("n1:0", "n1:1", "n2/gpu0", "n2/gpu1"), none, none, none + 1.0).hosts
        ('n1', 'n1', 'n2', 'n2')
        >>> DelaySamples(("node-1", "node-2"), none, none, none + 1.0).hosts
        ('node-1', 'node-2')
        """
        if self.host_of:
            return tuple(self.host_of.get(name, name) for name in self.names)
        found = [_DEVICE.fullmatch(name) for name in self.names]
        named = [match["host"] if match else None for match in found]
        shared = Counter(host for host in named if host)
        if not shared or max(shared.values()) == 1:
            return self.names
        return tuple(host or name for host, name in zip(named, self.names, strict=True))


def coded(names: tuple[str | None, ...]) -> tuple[Ints, tuple[str, ...]]:
    """Each name as its place among the different ones, -1 for None; and these, n2 before n10.

    >>> coded(("n10", "n2", None, "n10"))
    (array([ 1,  0, -1,  1]), ('n2', 'n10'))
    """
    kinds = tuple(sorted({name for name in names if name is not None}, key=_numbered))
    place: dict[Any, int] = {name: at for at, name in enumerate(kinds)}
    return np.array([place.get(name, -1) for name in names], dtype=np.int64), kinds


def _numbered(name: str) -> tuple[tuple[int, str], ...]:
    """A key by which numbers in names count as numbers."""
    parts = re.split(r"(\d+)", name)
    return tuple((int(part) if part.isdecimal() else -1, part) for part in parts)
