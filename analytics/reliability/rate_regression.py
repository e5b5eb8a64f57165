"""Failure rates compared between levels of one fact, adjusted for what else differs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import ShapeError
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.profile_ratio import Cells, Pair, beside_others, fitted, profiled
from analytics.reliability.unusual_nodes import unusual

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import ArrayLike, NDArray

    from analytics.arrays import Floats

    Codes = NDArray[np.intp]

ROUNDS: Final = 4
"""Times that spread between nodes and adjustment are found in turn."""
MOST_ROUNDS_APART: Final = 6
"""Times that unusual nodes and the rates of the others are found in turn."""
LEAST_SPARE: Final = 3
"""Nodes beyond levels and adjustments below which the spread between nodes is not known."""
ALL_OTHERS: Final = "all others together"
LEAST_REFERENCE: Final = 0.1
"""Share of the exposure that a level must have for the others to be compared with it alone."""
STANDS_OUT: Final = 0.05
"""Chance, over all levels together, that one is said to differ where none does."""


@dataclass(frozen=True)
class LevelRate:
    """Failures of one level, and how its rate compares with the reference's."""

    level: str
    n_nodes: int
    failures: int
    exposure: float
    """In the unit of the input."""
    rate: Estimate
    """Failures per unit of exposure, as they were: not adjusted."""
    ratio: Estimate
    """Adjusted rate over the reference's, which has 1."""
    crude_ratio: float | None
    """The same not adjusted; None where the reference has no failure."""
    p_value: float | None
    """Chance of a ratio at least as far from 1 where the true one is 1; None where not tested."""
    stands_out: bool
    """Whether the ratio differs from 1 by more than chance, all levels considered (Holm)."""


@dataclass(frozen=True)
class UnusualNode:
    """A node whose failures are its own: ratios are of the other nodes."""

    node: str
    level: str
    """Where it failed most."""
    failures: int
    expected: float
    """How many it would have had as a usual node of its levels."""


@dataclass(frozen=True)
class RateComparison:
    """Rates of the levels of one fact."""

    levels: tuple[LevelRate, ...]
    """The reference first, then from the highest ratio down."""
    reference: str | None
    """Level that the others are compared with; None where each is compared with all others."""
    frailty: float | None
    """Variance of the nodes' own rates over their mean squared, 0 for a Poisson process; None
    where the nodes are too few to tell it."""
    dispersion: float | None
    """Variance of a level's count over its mean, averaged by the levels' failures; None as there.
    """
    adjusted_for: tuple[str, ...]
    """Factors that differ within the data."""
    unusual: tuple[UnusualNode, ...] = ()
    """Nodes that are in counts and rates of their level and in no ratio, most failures first."""

    @property
    def apart(self) -> tuple[LevelRate, ...]:
        """Levels whose rate differs from the reference's by more than chance."""
        return tuple(each for each in self.levels if each.stands_out)


def rate_ratios(
    nodes: Sequence[str],
    levels: Sequence[str],
    failures: ArrayLike,
    exposure: ArrayLike,
    *,
    factors: Mapping[str, Sequence[str]] | None = None,
    reference: str | None = None,
    conf_level: float = CONF_LEVEL,
) -> RateComparison:
    """Ratios of failure rates between the levels of a fact, adjusted for other factors.

    .. math:: E[n_{ilc}] = e_{ilc} \\exp(a_l + x_c' g), \\quad
        \\mathrm{Var}[n_{il}] = m_{il} + v m_{il}^2

    with n failures of node i in exposure e at level l and factors c, whose columns x are
    indicators; m is the expected count of a node. The ratio of level k is exp(a_k - a_r), with r
    the reference: the level of most exposure, or all others together where none has a tenth of
    it. Nodes that fail many times as often as usual (`analytics.reliability.unusual_nodes`) are in
    no ratio: one of them is no property of its level. The variance v between the others (frailty)
    is found by moments; each level's counts are then divided by its own dispersion,
    1 + v sum m^2 / sum m (quasi-likelihood). The interval holds the ratios whose profile likelihood
    is near enough to the largest, by Student's t over nodes less parameters; half a failure is
    added to each level (Jeffreys' prior), and each g has the weak prior log-F(1, 1), so that a
    level or a factor without a failure has finite bounds. Where the level has no failure the lower
    bound is 0; where the reference has none the ratio is unknown and only the lower bound is given.
    A level without exposure is compared with nothing, whatever failed in it.

    Parameters
    ----------
    nodes, levels : sequence of str, shape (n_rows,)
        A row is the time of one node at one level and one combination of factors.
    failures, exposure : array_like, shape (n_rows,)
        Counts and exposure, >= 0.
    factors
        Name -> value of each row. One that never differs is left out.
    reference
        A level to compare with instead; `ALL_OTHERS` for each beside all others together.
    conf_level : float
        In (0, 1).

    Raises
    ------
    OutOfRangeError, ShapeError
        For a level outside (0, 1), negative or non-finite entries, counts that are not whole,
        unequal lengths, or a reference that no row has.

    Notes
    -----
    Assumes that nodes fail independently of each other; what hits many at once should be counted
    once. What changes together with the fact and is no factor is in the ratio. With fewer than
    three nodes beyond levels and adjustments the spread between nodes is not known, and no bound
    is given.

    References
    ----------
    McCullagh, P. and Nelder, J. (1989). Generalized Linear Models, 2nd ed., sections 6.2, 9.2.
    Firth, D. (1993). Bias reduction of maximum likelihood estimates. Biometrika 80, 27-38.
    Greenland, S. and Mansournia, M. (2015). Penalization, bias reduction, and default priors in
    logistic and related categorical and survival regressions. Stat. Med. 34, 3133-3143.

    Examples
    --------
    >>> found = rate_ratios(list("abcdefghij"), ["x"] * 6 + ["y"] * 4,
    ...                     [1, 0, 2, 1, 1, 1, 2, 2, 1, 3], [100.0] * 10)
    >>> found.reference, [(each.level, each.ratio.value) for each in found.levels[1:]]
    ('x', [('y', 2.0)])
    """
    validate.conf_level(conf_level)
    counts = validate.count_array("failures", failures)
    held = validate.nonnegative_array("exposure", exposure)
    texts = {"nodes": nodes, "levels": levels, **(factors or {})}
    for name, values in texts.items():
        if len(values) != len(counts):
            raise ShapeError(f"{name} has {len(values)} rows, failures {len(counts)}: align them")
    validate.same_length(failures=counts, exposure=held)
    used = (held > 0) | (counts > 0)
    texts = {name: list(compress(values, used)) for name, values in texts.items()}
    names, of_level = _coded(texts.pop("levels"))
    if reference not in (None, ALL_OTHERS, *names):
        raise ShapeError(f"reference must be a level, got {reference!r}: none of {names[:9]}")
    if not names:
        return RateComparison((), None, None, None, ())
    node_names, of_node = _coded(texts.pop("nodes"))
    design, kept = _design(texts, held[used])
    data = _Data(of_node, of_level, counts[used], held[used], design)
    few, expected = _unusual(data)
    usual = data.without(few)
    spread = _spread(usual)
    base = _reference(data, names, reference)
    found = _compared(data, usual, spread, base, conf_level)
    named = [replace(each, level=name) for each, name in zip(found, names, strict=True)]
    compared_with = None if base is None else names[base]
    return RateComparison(
        tuple(_in_order(_holm(named), compared_with)),
        compared_with,
        spread.frailty if spread.known else None,
        spread.typical if spread.known else None,
        kept,
        tuple(_told(data, few, expected, node_names, names)),
    )


def _told(
    data: _Data,
    few: NDArray[np.bool_],
    expected: Floats,
    node_names: Sequence[str],
    level_names: Sequence[str],
) -> Iterator[UnusualNode]:
    """The unusual nodes, most failures first."""
    total = _sums(data.node, data.counts)
    for node in sorted(np.flatnonzero(few).tolist(), key=lambda node: (-total[node], node)):
        of_levels = _sums(data.level, np.where(data.node == node, data.counts, 0.0))
        level = level_names[int(np.argmax(of_levels))]
        yield UnusualNode(node_names[node], level, int(total[node]), float(expected[node]))


def _unusual(data: _Data) -> tuple[NDArray[np.bool_], Floats]:
    """Which nodes are unusual beside the rates of the others, and what was expected of each.

    The first time all levels have one rate, so that a node does not hide in the rate that it makes.
    """
    one_rate = replace(data, level=np.zeros_like(data.level))
    total = _sums(data.node, data.counts)
    few, among = np.zeros(len(total), dtype=bool), one_rate
    for _ in range(MOST_ROUNDS_APART):
        expected = _expected_of_nodes(among, among.without(few))
        found = unusual(total, expected)
        if among is data and (found == few).all():
            break
        few, among = found, data
        if not few.any():
            break
    return few, expected


def _expected_of_nodes(data: _Data, usual: _Data) -> Floats:
    """Failures of each node at its levels' rates among usual nodes, one more failure in each level
    at the rate of all.
    """
    adjustment = fitted(usual.cells, np.ones(int(usual.level.max()) + 1))
    relative = np.exp(data.design @ adjustment)
    n, held = _sums(usual.level, usual.counts), _sums(usual.level, usual.exposure * relative)
    if not n.sum() or not held.sum():
        return np.zeros(int(data.node.max()) + 1)
    rates = (n + 1.0) / (held + held.sum() / n.sum())
    return _sums(data.node, data.exposure * relative * rates[data.level])


def _coded(values: Iterable[str]) -> tuple[list[str], Codes]:
    """Different values in order, and the number of each row's; sorting the rows costs tenfold."""
    texts = [str(value) for value in values]
    found = sorted(set(texts))
    numbers = {text: number for number, text in enumerate(found)}
    return found, np.array([numbers[text] for text in texts], dtype=np.intp)


def _reference(data: _Data, names: Sequence[str], chosen: str | None) -> int | None:
    """Number of the level to compare with; None for all others."""
    if chosen == ALL_OTHERS:
        return None
    if chosen is not None:
        return names.index(chosen)
    held = _sums(data.level, data.exposure)
    most = int(np.argmax(held))
    return most if held[most] >= LEAST_REFERENCE * held.sum() else None


@dataclass(frozen=True)
class _Data:
    """Rows, by numbers of nodes and levels; a column of the design is an indicator."""

    node: Codes
    level: Codes
    counts: Floats
    exposure: Floats
    design: Floats

    def without(self, nodes: NDArray[np.bool_]) -> _Data:
        """The same rows, those of some nodes with neither failure nor exposure."""
        if not nodes.any():
            return self
        left_out = nodes[self.node]
        counts, exposure = (np.where(left_out, 0.0, held) for held in (self.counts, self.exposure))
        return replace(self, counts=counts, exposure=exposure)

    @cached_property
    def cells(self) -> Cells:
        """Rows of one level and one combination of factors put together, levels in order."""
        return Cells.of(self.level, self.design, self.counts, self.exposure)


@dataclass(frozen=True)
class _Spread:
    """How counts scatter beyond Poisson."""

    frailty: float
    of_level: Floats
    """Variance over mean of each level's count, >= 1."""
    typical: float
    spare: int
    """Nodes less levels and adjustments."""

    @property
    def known(self) -> bool:
        """Whether the nodes are enough to tell it."""
        return self.spare >= LEAST_SPARE


def _design(
    factors: Mapping[str, Sequence[str]], exposure: Floats
) -> tuple[Floats, tuple[str, ...]]:
    """Indicators of each factor's values but the one of most exposure; factors that differ."""
    columns: list[Floats] = []
    kept: list[str] = []
    for name, values in factors.items():
        found, code = _coded(values)
        most = int(np.argmax(_sums(code, exposure)))
        rest = [at for at in range(len(found)) if at != most]
        columns += [(code == at).astype(np.float64) for at in rest]
        kept += [name] if rest else []
    design = np.column_stack(columns) if columns else np.zeros((len(exposure), 0))
    return design, tuple(kept)


def _spread(data: _Data) -> _Spread:
    """Frailty by moments, in turn with the adjustment that it weighs.

    Nodes count by how much their squares tell of v: mu / (1 + 2 mu (1 + v mu)^2).
    """
    cells = data.cells
    in_level = _sums(data.level, data.counts)
    total = _sums(data.node, data.counts)
    frailty, of_level = 0.0, np.ones(len(in_level))
    for _ in range(ROUNDS):
        adjustment = fitted(cells, of_level)
        expected = _expected(data, in_level, adjustment)
        mean = expected.sum(axis=1)
        squares = (expected**2).sum(axis=0)
        share = np.divide(squares, in_level, out=np.zeros_like(squares), where=in_level > 0)
        own = np.divide(expected, in_level, out=np.zeros_like(expected), where=in_level > 0)
        taken = (own * expected).sum(axis=1) / np.where(mean > 0, mean, 1.0)
        frailty = _frailty(total, mean, 1.0 - taken)
        of_level = 1.0 + frailty * share
    failed = in_level > 0
    spare = int((mean > 0).sum()) - int(failed.sum()) - data.design.shape[1]
    if not failed.any():
        spare = len(total) - len(in_level)
    typical = float((of_level * in_level).sum() / in_level.sum()) if failed.any() else 1.0
    return _Spread(frailty, of_level, typical, spare)


def _expected(data: _Data, in_level: Floats, adjustment: Floats) -> Floats:
    """Expected counts of nodes at levels, which sum to each level's count."""
    relative = data.exposure * np.exp(data.design @ adjustment)
    of_level = _sums(data.level, relative)
    rates = np.divide(in_level, of_level, out=np.zeros_like(in_level), where=of_level > 0)
    shape = (int(data.node.max()) + 1, len(in_level))
    place = np.ravel_multi_index((data.node, data.level), shape)
    return _sums(place, relative * rates[data.level], shape[0] * shape[1]).reshape(shape)


def _sums(place: Codes, values: Floats, n: int = 0) -> Floats:
    """Sum of the values at each place."""
    return np.bincount(place, weights=values, minlength=n).astype(np.float64)


def _frailty(total: Floats, mean: Floats, free: Floats) -> float:
    """v >= 0 for which the nodes' squared deviations are as large as expected."""
    frailty = 0.0
    for _ in range(20):
        weight = mean / (1.0 + 2.0 * mean * (1.0 + frailty * mean) ** 2)
        told = (weight * free * mean**2).sum()
        if not told > 0:
            return 0.0
        frailty = max(0.0, float((weight * ((total - mean) ** 2 - free * mean)).sum() / told))
    return frailty


def _compared(
    data: _Data, usual: _Data, spread: _Spread, base: int | None, conf_level: float
) -> list[LevelRate]:
    """Rate of each level's nodes, and ratio of its usual ones."""
    of_all = spread if usual is data else _spread(data)
    count, exposure = _sums(data.level, data.counts), _sums(data.level, data.exposure)
    n_usual, usual_held = _sums(usual.level, usual.counts), _sums(usual.level, usual.exposure)
    of_nodes = int(data.node.max()) + 1
    n_nodes = np.bincount(np.unique(data.level * of_nodes + data.node) // of_nodes)
    distance = float(special.stdtrit(max(spread.spare, 1), (1.0 + conf_level) / 2.0))
    compared_with = (
        ~np.eye(len(count), dtype=bool) if base is None else np.arange(len(count)) == base
    )
    others = _sum_over(compared_with, exposure)
    n_others, n_usual_others = (_sum_over(compared_with, n) for n in (count, n_usual))
    comparable = (usual_held > 0) & (_sum_over(compared_with, usual_held) > 0)
    found = _pairs(usual.cells, spread, base, distance, np.flatnonzero(comparable).tolist())
    levels = []
    for k, (n, held) in enumerate(zip(count.astype(int).tolist(), exposure.tolist(), strict=True)):
        pair, of_itself = found.get(k), len(count) == 1 or k == base
        n_pair = int(n_usual[k]), int(n_usual_others[k])
        crude = n / held / (n_others[k] / others[k]) if held and n_others[k] and others[k] else None
        levels.append(
            LevelRate(
                "",
                int(n_nodes[k]),
                n,
                held,
                _rate(n, held, of_all, k, conf_level),
                _ratio(pair, *n_pair, spread, conf_level, of_itself=of_itself),
                crude,
                _p_value(pair, spread),
                stands_out=False,
            )
        )
    return levels


def _sum_over(compared_with: NDArray[np.bool_], values: Floats) -> Floats:
    """Of each level, the values of what it is compared with."""
    sums: Floats = np.broadcast_to(compared_with @ values, values.shape)
    return sums


def _pairs(
    cells: Cells, spread: _Spread, base: int | None, distance: float, comparable: Sequence[int]
) -> dict[int, Pair]:
    """Of each level but the reference the ratio to it, or to all others together."""
    others = [k for k in comparable if k != base]
    if not others or len(spread.of_level) < 2:
        return {}
    if base is None:
        return {k: beside_others(cells, spread.of_level, k, distance) for k in others}
    found = profiled(cells, spread.of_level, base, others, distance)
    return dict(zip(others, found, strict=True))


def _rate(n: int, exposure: float, spread: _Spread, level: int, conf_level: float) -> Estimate:
    """Rate with Garwood's bounds of the count divided by its dispersion."""
    if not exposure > 0:
        return unknown(conf_level, n)
    if not spread.known:
        return Estimate(n / exposure, None, None, conf_level, n)
    over, tail = float(spread.of_level[level]), (1.0 - conf_level) / 2.0
    lower = float(special.gammaincinv(n / over, tail)) * over / exposure if n else 0.0
    upper = float(special.gammaincinv(n / over + 1.0, 1.0 - tail)) * over / exposure
    return Estimate(n / exposure, lower, upper, conf_level, n)


def _ratio(
    pair: Pair | None,
    n: int,
    n_base: int,
    spread: _Spread,
    conf_level: float,
    *,
    of_itself: bool,
) -> Estimate:
    """Ratio with its bounds; n counts the level's failures."""
    if of_itself:
        return Estimate(1.0, 1.0, 1.0, conf_level, n)
    if pair is None or (not n and not n_base):
        return unknown(conf_level, n)
    value = pair.ratio if n_base else None
    if not spread.known:
        return Estimate(value, None, None, conf_level, n)
    return Estimate(value, pair.lower if n else 0.0, pair.upper if n_base else None, conf_level, n)


def _p_value(pair: Pair | None, spread: _Spread) -> float | None:
    """Two-sided, by Student's t of the signed root of the profile likelihood at 1."""
    if pair is None or not spread.known:
        return None
    return float(2.0 * special.stdtr(spread.spare, -abs(pair.root_at_one)))


def _holm(levels: Sequence[LevelRate]) -> list[LevelRate]:
    """Levels with what differs by more than chance, all tested together."""
    tested = sorted(
        (each.p_value, at) for at, each in enumerate(levels) if each.p_value is not None
    )
    apart = set[int]()
    for place, (p_value, at) in enumerate(tested):
        if p_value * (len(tested) - place) > STANDS_OUT:
            break
        apart.add(at)
    return [replace(each, stands_out=at in apart) for at, each in enumerate(levels)]


def _in_order(levels: Sequence[LevelRate], reference: str | None) -> list[LevelRate]:
    """The reference first, then from the highest ratio down, unknown ones last."""

    def place(each: LevelRate) -> tuple[bool, bool, float, str]:
        value = each.ratio.value
        return (each.level != reference, value is None, -(value or 0.0), each.level)

    return sorted(levels, key=place)
