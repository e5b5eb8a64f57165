"""What can be slow: a link, a sender, a receiver, both ways of one end, or pairs of a group."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics.nodes.links.matrix import row_medians

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from analytics.nodes.links.matrix import Matrix

    Mask = NDArray[np.bool_]

Kind = Literal["link", "sender", "receiver", "both_ways", "group"]
MOST_PAIRED: Final = 40
"""Groups up to which each two of them are tried."""
MOST_SET: Final = 0.5
"""Share of the ends that may be slow together where no switch is known."""
HOT: Final = 5.0
"""Deviations from which a pair counts as slow where a block of slow pairs is looked for."""
FULL: Final = 0.7
"""Share of the pairs of a block that are slow."""
FREEDOM: Final = 4.0
"""Degrees of freedom of Student's t, by which pairs scatter."""


@dataclass(frozen=True)
class Pattern:
    """Pairs that would be slow together, and why."""

    kind: Kind
    cells: Mask
    """Which pairs, sources by destinations; only such as were measured."""
    way: str
    """link; out (sent), in (received), either, across (leaves a group), within, between."""
    ends: tuple[int, ...]
    """The source and the destination of a link, the end, or the members of the group."""
    others: tuple[int, ...] = ()
    """Of `between`: the members of the receiving group."""
    n_alike: float = 1.0
    """How many patterns of its kind were possible."""
    found: bool = False
    """Whether no switch was known and the group was made from the slow pairs."""


def gain(z: Matrix, shift: Matrix | float) -> Matrix:
    """Twice the logarithm of the likelihood ratio of a shift of each pair, under Student's t.

    >>> [round(float(gain(np.array(z), 4.0)), 1) for z in (0.0, 4.0)]
    [-8.0, 8.0]
    """
    said: Matrix = (FREEDOM + 1) * (np.log1p(z**2 / FREEDOM) - np.log1p((z - shift) ** 2 / FREEDOM))
    return said


def links(z: Matrix) -> Iterator[Pattern]:
    """The pair that stands out most, in one direction, and in both."""
    if not np.isfinite(z).any():
        return
    one = np.where(np.isfinite(z), z, -np.inf)
    for way, score in (("link", one), ("both", np.minimum(one, one.T))):
        a, b = (int(at) for at in np.unravel_index(np.argmax(score), score.shape))
        if not np.isfinite(score[a, b]):
            continue
        cells = np.zeros(z.shape, dtype=bool)
        cells[a, b] = True
        cells[b, a] |= way == "both"
        n = np.isfinite(score).sum() / (2 if way == "both" else 1)
        yield Pattern("link", cells, way, (a, b), n_alike=float(n))


def ends(z: Matrix) -> Iterator[Pattern]:
    """The sender, the receiver and the end in both directions that stand out most."""
    known, n = np.isfinite(z), len(z)
    rows, columns = row_medians(z), row_medians(z.T)
    sent, received = _gains(z, rows), _gains(z.T, columns)
    whole = row_medians(np.hstack([z, z.T]))
    both = _gains(z, whole) + _gains(z.T, whole)
    kinds: tuple[tuple[Kind, str, Matrix], ...] = (
        ("sender", "out", np.where(rows > 0, sent, -np.inf)),
        ("receiver", "in", np.where(columns > 0, received, -np.inf)),
        ("both_ways", "either", np.where(whole > 0, both, -np.inf)),
    )
    for kind, way, score in kinds:
        at = int(np.argmax(score))
        if np.isfinite(score[at]):
            yield Pattern(kind, _touched(known, (at,), way), way, (at,), n_alike=float(n))


def groups(z: Matrix, group: NDArray[np.int64] | None) -> Iterator[Pattern]:
    """Pairs of each known group, of each two groups, and of groups made from the slow pairs."""
    known = np.isfinite(z)
    if group is not None:
        n_groups = int(group.max()) + 1
        members = [tuple(map(int, np.flatnonzero(group == at))) for at in range(n_groups)]
        members = [each for each in members if 1 < len(each) < len(z)]
        for each in members:
            for way in ("either", "across", "within", "out", "in"):
                cells = _touched(known, each, way)
                yield Pattern("group", cells, way, each, n_alike=5.0 * len(members))
        if 2 < len(members) <= MOST_PAIRED:
            yield from _between(known, members)
    yield from _made_sets(z, known)
    yield from _made_blocks(z, known)


def _between(known: Mask, members: list[tuple[int, ...]]) -> Iterator[Pattern]:
    """From each group to each other one, and both ways between two."""
    n = 1.5 * len(members) * (len(members) - 1)
    for a, b in permutations(members, 2):
        cells = np.zeros_like(known)
        cells[np.ix_(a, b)] = known[np.ix_(a, b)]
        yield Pattern("group", cells, "between", a, b, n_alike=n)
        if a < b:
            yield Pattern("group", cells | (known & cells.T), "between", a, b, n_alike=n)


def _made_sets(z: Matrix, known: Mask) -> Iterator[Pattern]:
    """Of the ends by their shift, those before the largest step: as senders, receivers, both."""
    n = len(z)
    shifts = {"out": row_medians(z), "in": row_medians(z.T)}
    shifts["either"] = np.fmin(shifts["out"], shifts["in"])
    for way, shift in shifts.items():
        order = np.argsort(-np.nan_to_num(shift, nan=-np.inf))
        most = int(MOST_SET * n)
        if most < 2:
            continue
        steps = shift[order[1:most]] - shift[order[2 : most + 1]]
        if not np.isfinite(steps).any():
            continue
        size = int(np.nanargmax(steps)) + 2
        members = tuple(map(int, np.sort(order[:size])))
        for each in (way, "across") if way == "either" else (way,):
            cells = _touched(known, members, each)
            yield Pattern("group", cells, each, members, n_alike=_choices(n, size), found=True)


def _made_blocks(z: Matrix, known: Mask) -> Iterator[Pattern]:
    """The block of the ends with two slow pairs at least, where most of its pairs are slow."""
    hot = known & (np.nan_to_num(z) > HOT)
    a, b = (np.flatnonzero(hot.sum(axis) >= 2) for axis in (1, 0))
    if min(len(a), len(b)) < 2 or len(a) * len(b) > MOST_SET * z.size:
        return
    cells = np.zeros_like(known)
    cells[np.ix_(a, b)] = known[np.ix_(a, b)]
    if hot[cells].mean() < FULL:
        return
    senders, receivers = tuple(map(int, a)), tuple(map(int, b))
    same = senders == receivers
    n = _choices(len(z), len(a)) * (1.0 if same else _choices(len(z), len(b)))
    way, others = ("within", ()) if same else ("between", receivers)
    yield Pattern("group", cells, way, senders, others, n_alike=n, found=True)


def _touched(known: Mask, members: tuple[int, ...], way: str) -> Mask:
    """Pairs that members send, receive, or have part in."""
    inside = np.zeros(len(known), dtype=bool)
    inside[list(members)] = True
    out, into = inside[:, None], inside[None, :]
    chosen = {
        "out": out & (~into if len(members) > 1 else True),
        "in": into & (~out if len(members) > 1 else True),
        "either": out | into,
        "across": out ^ into,
        "within": out & into,
    }[way]
    return known & chosen


def _gains(z: Matrix, shift: Matrix) -> Matrix:
    """Gain of each row from its shift."""
    total: Matrix = np.nansum(gain(z, shift[:, None]), axis=1)
    return total


def _choices(n: int, k: int) -> float:
    """How many sets of k there are among n; held below what a float can say."""
    said = special.gammaln(n + 1) - special.gammaln(k + 1) - special.gammaln(n - k + 1)
    return float(np.exp(min(said, 300.0)))
