"""Which pattern of slow pairs explains a matrix of delays best, and is it more than chance?

What can be slow: a link, a sender, a receiver, both ways of one end, or pairs of a group.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics.nodes.links.matrix import MAD, row_medians

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.arrays import Bools, Ints
    from analytics.nodes.links.matrix import Bursts, Matrix


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
    cells: Bools
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


def groups(z: Matrix, group: Ints | None) -> Iterator[Pattern]:
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


def _between(known: Bools, members: list[tuple[int, ...]]) -> Iterator[Pattern]:
    """From each group to each other one, and both ways between two."""
    n = 1.5 * len(members) * (len(members) - 1)
    for a, b in permutations(members, 2):
        cells = np.zeros_like(known)
        cells[np.ix_(a, b)] = known[np.ix_(a, b)]
        yield Pattern("group", cells, "between", a, b, n_alike=n)
        if a < b:
            yield Pattern("group", cells | (known & cells.T), "between", a, b, n_alike=n)


def _made_sets(z: Matrix, known: Bools) -> Iterator[Pattern]:
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
        for direction in (way, "across") if way == "either" else (way,):
            cells = _touched(known, members, direction)
            yield Pattern("group", cells, direction, members, n_alike=_choices(n, size), found=True)


def _made_blocks(z: Matrix, known: Bools) -> Iterator[Pattern]:
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


def _touched(known: Bools, members: tuple[int, ...], way: str) -> Bools:
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


LevelName = Literal["host", "device", "inside"]
"""Hosts; devices of different hosts; devices of one host, whose groups are hosts."""
FALSE_ALARMS: Final = 0.002
"""Expected number of false alarms of one kind of pattern by scatter in one analysis, at most."""
BURSTS: Final = 0.01
"""Expected number of pairs or ends that bursts alone make as slow, at most."""
LEAST_DEVIATION: Final = 0.005
"""Deviation of a pair's logarithm that is never fallen below: delays are written in steps."""
LEAST_SPREAD: Final = 0.004
"""The same of the mean distance of healthy ends from their median."""
LARGE: Final = 0.04
"""Share of all pairs from which a pattern leaves the median that it is measured by."""
TAIL: Final = 0.1
"""Share of healthy pairs that make the tail of chance."""
LEAST_TAIL: Final = 16
"""Healthy things that are looked at for the same, at least."""
ENDS_FREEDOM: Final = 8
"""Degrees of freedom of Student's t, by which healthy ends scatter, at most."""
MOST_LIFTED: Final = 12
"""Pairs of an end up to which bursts are asked for: they do not lift half of more."""


@dataclass(frozen=True)
class Candidate:
    """A pattern, how much it explains, and how often chance does as much."""

    pattern: Pattern
    log_ratio: float
    """Median of the logarithm of its delays over the usual ones."""
    gain: float
    """Twice the logarithm of the likelihood ratio against no slow pair, less its price."""
    by_chance: float
    """Expected number of patterns of its kind as slow as this by scatter, were nothing slow."""
    by_bursts: float
    """Expected number that bursts alone make as slow; 0 without repeated samples."""
    threshold: float
    """log_ratio from which it would be named."""
    residual: Matrix
    """Logarithm of delays over those usual without its pairs."""


@dataclass(frozen=True)
class Level:
    """A matrix of one level: hosts, or devices between hosts, or devices of one host."""

    log_us: Matrix
    tier: Ints
    """Class of each pair, by which it is compared: of one switch 0, of two 1."""
    group: Ints | None
    """Switch of each end."""
    bursts: Bursts
    name: LevelName = "host"


def candidates(level: Level, *, n_views: int) -> list[Candidate]:
    """The best pattern of each kind, the best explanation first.

    A pattern's pairs are shifted by their median against the usual delay of their tier; the gain
    in likelihood (Student's t about the scatter of a pair) less 2 ln(patterns of the kind) + 2
    says which pattern explains most: a slow sender beats each of its links, one slow link beats
    its sender. Patterns that hold much of the matrix are measured against the median of the rest.
    """
    residual = residuals(level, None)
    scatter = deviation(residual)
    z = residual / scatter
    found: dict[str, Candidate] = {}
    for pattern in _patterns(level, z):
        if not pattern.cells.any() or (pattern.cells.sum() == np.isfinite(z).sum()):
            continue
        one = _weighed(level, pattern, residual, scatter, n_views)
        if one and (pattern.kind not in found or one.gain > found[pattern.kind].gain):
            found[pattern.kind] = one
    return sorted(found.values(), key=lambda candidate: -candidate.gain)


def explained(devices: Level, cells: Bools, candidate: Candidate) -> float:
    """Gain of a candidate among hosts, told by the pairs of their devices."""
    residual = residuals(devices, None)
    scatter = deviation(residual)
    values = residual[cells & np.isfinite(residual)]
    gains = gain(values / scatter, candidate.log_ratio / scatter)
    return float(np.sum(gains))


def residuals(level: Level, without: Bools | None) -> Matrix:
    """Logarithm of each delay over the median of its tier, of the pairs that are not left out.

    NaN where a tier has no pair left: what is usual is unknown there.
    """
    found = np.full(level.log_us.shape, np.nan)
    known = np.isfinite(level.log_us)
    for tier in np.unique(level.tier[known]):
        mine = known & (level.tier == tier)
        usual = mine if without is None else mine & ~without
        if usual.any():
            found[mine] = level.log_us[mine] - np.median(level.log_us[usual])
    return found


def deviation(residual: Matrix) -> float:
    """Standard deviation of a pair beyond what its two ends share: MAD of double differences.

    a(i, j) - a(i', j) - a(i, j') + a(i', j') has four times the variance of a pair, and slow ends
    fall out of it.
    """
    apart = [
        residual
        - np.roll(residual, k, 0)
        - np.roll(residual, m, 1)
        + np.roll(residual, (k, m), (0, 1))
        for k, m in ((1, 2), (2, 1), (1, 3), (3, 1))
        if max(k, m) < len(residual)
    ]
    known = (
        np.concatenate([values[np.isfinite(values)] for values in apart]) if apart else np.array([])
    )
    if len(known) < LEAST_TAIL:
        some = residual[np.isfinite(residual)]
        return max(LEAST_DEVIATION, float(MAD * np.median(np.abs(some))) if len(some) else 0.0)
    return max(LEAST_DEVIATION, float(MAD * np.median(np.abs(known)) / 2))


def _patterns(level: Level, z: Matrix) -> Iterator[Pattern]:
    yield from links(z)
    yield from ends(z)
    if level.name != "device":
        for pattern in groups(z, level.group):
            if level.name == "host" or pattern.way == "within":
                yield pattern


def _weighed(
    level: Level, pattern: Pattern, residual: Matrix, scatter: float, n_views: int
) -> Candidate | None:
    """How much a pattern explains, and how often chance does; None where it is not slower."""
    cells, own = pattern.cells, residual
    if cells.sum() > LARGE * np.isfinite(residual).sum():
        own = residuals(level, cells)
    known = cells & np.isfinite(own)
    if not known.any():
        return None
    shift = float(np.median(own[known]))
    if shift <= 0:
        return None
    z, before = own / scatter, residual / scatter
    told = float(np.nansum(gain(z[known], shift / scatter)))
    if own is not residual:  # the rest is seen against another median, too
        freedom = FREEDOM
        seen = np.isfinite(z) & np.isfinite(before)
        told += (freedom + 1) * float(
            np.sum(np.log1p(before[seen] ** 2 / freedom) - np.log1p(z[seen] ** 2 / freedom))
        )
    told -= 2 * np.log(pattern.n_alike) + 2
    if told <= 0 and pattern.kind != "link":  # one pair explains little, and chance judges it
        return None
    by_chance, threshold = _chance(pattern, own, level, shift, FALSE_ALARMS / n_views)
    by_bursts = _by_bursts(pattern, level, shift)
    return Candidate(pattern, shift, told, by_chance, by_bursts, threshold, own)


def _by_bursts(pattern: Pattern, level: Level, shift: float) -> float:
    """Expected number of such patterns whose median bursts lift; of a link all that it has."""
    cells = np.argwhere(pattern.cells)
    if pattern.kind == "group" or len(cells) > MOST_LIFTED:
        return 0.0
    lifted = max(level.bursts.chance((int(a), int(b)), shift) for a, b in cells)
    n = len(cells)
    needed = n if pattern.kind == "link" else (n + 1) // 2
    return pattern.n_alike * float(special.bdtrc(needed - 1, n, min(1.0, lifted)))


def detectable(level: Level, *, n_views: int) -> tuple[float, float]:
    """Logarithm of the ratio from which one pair, and one end, would be named here."""
    residual, most = residuals(level, None), FALSE_ALARMS / n_views
    own = _beyond_ends(residual)
    pairs, rare = own[np.isfinite(own)], not len(level.bursts.excess)
    apart = _ends_apart(residual, np.zeros(residual.shape, dtype=bool))
    return (
        _among_pairs(pairs, 0.0, most, rare=rare)[1],
        _among_ends(apart, 0.0, 3.0 * len(residual), most)[1],
    )


def _chance(
    pattern: Pattern, residual: Matrix, level: Level, shift: float, most: float
) -> tuple[float, float]:
    """Expected number of such patterns by chance, from healthy pairs, ends or blocks; and from
    what on it is `most`.
    """
    if pattern.kind == "link":
        return _of_link(pattern, residual, level, shift, most)
    if pattern.way == "between" and level.group is not None and not pattern.found:
        blocks = _block_medians(np.where(pattern.cells, np.nan, residual), level.group)
        return _among_ends(blocks, shift, pattern.n_alike, most)
    n_alike = 3.0 * len(residual) + (pattern.n_alike if not pattern.found else 0.0)
    slow = pattern.cells.copy()
    if pattern.kind == "group" and len(pattern.ends) < len(residual) - 2:
        members = list(pattern.ends)  # what is left of them is no healthy end
        slow[members] = True
        slow[:, members] = True
    apart = _ends_apart(residual, slow)
    return _among_ends(apart, shift, n_alike, most)


def _of_link(
    pattern: Pattern, residual: Matrix, level: Level, shift: float, most: float
) -> tuple[float, float]:
    """The same of a link, by the healthy pairs."""
    own = _beyond_ends(residual)
    pairs = own[np.isfinite(own) & ~pattern.cells]
    apart = float(np.median(own[pattern.cells & np.isfinite(own)]))
    by_chance, needed = _among_pairs(pairs, apart, most, rare=not len(level.bursts.excess))
    return by_chance, needed + shift - apart


def _beyond_ends(residual: Matrix) -> Matrix:
    """Residuals less the medians of their ends, where that makes them scatter less."""
    ends = row_medians(residual)[:, None] + row_medians(residual.T)[None, :]
    beyond = residual - ends
    known = np.isfinite(residual)
    narrower = np.median(np.abs(beyond[known])) < np.median(np.abs(residual[known]))
    return beyond if narrower else residual


def _ends_apart(residual: Matrix, slow: Bools) -> Matrix:
    """How far healthy senders and receivers lie from their median."""
    healthy = np.where(slow, np.nan, residual)
    size = np.isfinite(residual).sum() / len(residual)
    return np.concatenate([_end_medians(healthy, size), _end_medians(healthy.T, size)])


def _end_medians(healthy: Matrix, size: float) -> Matrix:
    """Distance of each row's median from the median of all, as if each had as many pairs."""
    n = np.isfinite(healthy).sum(axis=1)
    some = n > 0
    medians = row_medians(healthy[some])
    if not len(medians):
        return medians
    distance: Matrix = np.abs(medians - np.median(medians)) * np.sqrt(
        np.minimum(1.0, n[some] / size)
    )
    return distance


def _block_medians(healthy: Matrix, group: Ints) -> Matrix:
    """Distance of the median of each block of two groups from the median of all blocks."""
    n = int(group.max()) + 1
    medians = []
    for a in range(n):
        rows = healthy[group == a]
        for b in range(n):
            block = rows[:, group == b]
            if a != b and np.isfinite(block).any():
                medians.append(np.nanmedian(block))
    found = np.array(medians)
    return np.abs(found - np.median(found)) if len(found) else found


def _among_ends(apart: Matrix, shift: float, n_alike: float, most: float) -> tuple[float, float]:
    """Expected number of n_alike healthy ends as slow as this, and from what on it is `most`.

    Medians of several pairs scatter about as Student's t does, with eight degrees of freedom at
    most, since some healthy ends are always slower than others.
    """
    freedom = min(len(apart) - 1, ENDS_FREEDOM)
    if freedom < 1:
        return np.inf, np.inf
    spread = max(LEAST_SPREAD, float(np.sqrt(np.mean(apart**2))))
    needed = -float(special.stdtrit(freedom, most / n_alike)) * spread
    return float(n_alike * special.stdtr(freedom, -shift / spread)), needed


def _among_pairs(healthy: Matrix, shift: float, most: float, *, rare: bool) -> tuple[float, float]:
    """Expected number of healthy pairs as slow as this, and from what on it is `most`.

    Two estimates of an exponential tail, the better counts. The slowest k scatter beyond their
    least u with mean m, P(X > u + x) = (1 + x / (k m))^-k, which knows how little k says; k is a
    tenth of them, and sixteen where repetition does not tell `rare` bursts. And of n the largest
    lies ln(n) means above the median: the next lies x beyond with P = n^-(x / (largest - median)).
    """
    if len(healthy) < 2:
        return np.inf, np.inf
    n, largest = len(healthy), float(np.max(healthy))
    reach = max(LEAST_SPREAD, largest - float(np.median(healthy)))
    by_gap = float(n ** -(max(0.0, shift - largest) / reach))
    needed_gap = largest + reach * float(np.log(1 / most) / np.log(n))
    k = min(LEAST_TAIL, (n + 1) // 2) if rare else max(min(LEAST_TAIL, (n + 1) // 2), int(TAIL * n))
    slowest = np.partition(healthy, n - k)[-k:]
    start = float(slowest.min())
    spread = max(LEAST_SPREAD, float(np.mean(slowest - start)))
    by_tail = float(k * (1 + max(0.0, shift - start) / (k * spread)) ** -k)
    needed_tail = start + k * spread * ((k / most) ** (1 / k) - 1)
    return min(by_gap, by_tail), min(needed_gap, needed_tail)
