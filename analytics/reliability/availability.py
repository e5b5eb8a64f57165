"""How much of their time nodes were up, how often they went out of service, and for how long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.dispersion import FEWEST_WEEKS, MONDAY
from analytics.reliability.failure_rate import failure_rate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.arrays import Bools, Floats, Ints

PLANNED, DOWN, DRAINED, UP = range(4)
"""States of a node, the strongest first: of two at one time the first counts."""
STATES: Final = ("planned", "down", "drained", "up")
DAY_S: Final = 86_400
WEEK_S: Final = 7 * DAY_S
HOURS_OF_YEAR: Final = 8766.0
MONDAY_S: Final = MONDAY * DAY_S
"""From a Monday to 1970-01-01."""


@dataclass(frozen=True)
class Spans:
    """Times of nodes; arrays of one length, seconds since 1970, half open."""

    node: Ints
    """Ordinal of the node, from 0."""
    start_s: Ints
    end_s: Ints
    """> start_s; what ends as it begins, or before, counts nowhere."""

    def some(self, which: Bools) -> Spans:
        """Some of them."""
        return Spans(self.node[which], self.start_s[which], self.end_s[which])

    @classmethod
    def joined(cls, parts: Iterable[Spans]) -> Spans:
        """All of several."""
        each = [cls(*(np.zeros(0, dtype=np.int64),) * 3), *parts]
        return cls(
            np.concatenate([part.node for part in each]),
            np.concatenate([part.start_s for part in each]),
            np.concatenate([part.end_s for part in each]),
        )


@dataclass(frozen=True)
class States:
    """What nodes were in, one after the other; no two overlap on a node."""

    spans: Spans
    state: Ints
    """Ordinal in `STATES`."""

    def of(self, *states: int) -> Spans:
        """Times in these states."""
        return self.spans.some(np.isin(self.state, states))

    def seconds(self, node: Ints | None = None, n: int = 1) -> Ints:
        """Seconds in each state, shape (n, states); `node` gives the group of each node."""
        lasted = self.spans.end_s - self.spans.start_s
        group = np.zeros(len(lasted), np.int64) if node is None else node[self.spans.node]
        place = group * len(STATES) + self.state
        sums = np.zeros(n * len(STATES), dtype=np.int64)
        np.add.at(sums, place, lasted)
        return sums.reshape(n, len(STATES))


def states(there: Spans, out: Spans, kind: Ints) -> States:
    """What nodes were in while they were there and watched.

    Parameters
    ----------
    there
        Times in which a node was part of the fleet and its state was recorded.
    out, kind
        Times out of service, and of each whether it was `PLANNED`, `DOWN` or `DRAINED`. They may
        overlap, and reach beyond the times that the node was there: what lies beyond counts
        nowhere.

    Examples
    --------
    >>> import numpy as np
    >>> there = Spans(np.array([0]), np.array([0]), np.array([100]))
    >>> out = Spans(np.array([0, 0]), np.array([90, 40]), np.array([120, 95]))
    >>> states(there, out, np.array([PLANNED, DOWN])).seconds().tolist()
    [[10, 50, 0, 40]]
    """
    layer = np.concatenate([kind, np.full(len(there.node), UP)])
    node = np.tile(np.concatenate([out.node, there.node]), 2)
    at = np.concatenate([out.start_s, there.start_s, out.end_s, there.end_s])
    lasts = np.concatenate([out.end_s > out.start_s, there.end_s > there.start_s])
    step = np.concatenate([lasts, -lasts.astype(np.int64)]).astype(np.int64)
    order = np.lexsort((at, node))
    node, at, step, layer = node[order], at[order], step[order], np.tile(layer, 2)[order]
    held = np.stack([np.cumsum(np.where(layer == each, step, 0)) > 0 for each in range(4)])
    state = held.argmax(axis=0)
    until = np.append(at[1:], at[-1:])
    kept = held[UP] & (until > at)
    return States(Spans(node[kept], at[kept], until[kept]), state[kept])


def clipped(found: States, from_s: int, to_s: int) -> States:
    """What nodes were in within a time, in seconds since 1970.

    >>> import numpy as np
    >>> spans = Spans(np.array([0, 0]), np.array([0, 40]), np.array([40, 100]))
    >>> clipped(States(spans, np.array([UP, DOWN])), 30, 50).seconds().tolist()
    [[0, 10, 0, 10]]
    """
    spans = found.spans
    start, end = np.maximum(spans.start_s, from_s), np.minimum(spans.end_s, to_s)
    kept = end > start
    return States(Spans(spans.node, start, end).some(kept), found.state[kept])


def began_out(found: States) -> Spans:
    """Times out of service, whatever the state, that began while their node was watched and up.

    >>> import numpy as np
    >>> spans = Spans(np.array([0, 0, 0]), np.array([0, 40, 60]), np.array([40, 60, 90]))
    >>> began_out(States(spans, np.array([UP, DOWN, DRAINED]))).end_s.tolist()
    [90]
    """
    order = np.lexsort((found.spans.start_s, found.spans.node))
    spans, up = found.spans.some(order), found.state[order] == UP  # type: ignore[arg-type]
    follows = np.zeros(len(order), dtype=bool)
    follows[1:] = (spans.node[1:] == spans.node[:-1]) & (spans.start_s[1:] == spans.end_s[:-1])
    was_up = np.concatenate([[False], up[:-1]])
    begins = ~up & follows & was_up
    new = up | ~follows | begins
    last = np.append(np.flatnonzero(new)[1:], len(order)) - 1
    ends = spans.end_s[last] if len(order) else spans.end_s
    return Spans(spans.node[begins], spans.start_s[begins], ends[begins[new]])


def passed_before(spans: Spans, at: Ints) -> Ints:
    """Seconds of all spans together that had passed at some times, which rise.

    >>> import numpy as np
    >>> spans = Spans(np.array([0, 1]), np.array([0, 5]), np.array([10, 8]))
    >>> passed_before(spans, np.array([0, 6, 20])).tolist()
    [0, 7, 13]
    """
    begun, over = np.sort(spans.start_s), np.sort(spans.end_s)
    passed = np.zeros(len(at), dtype=np.int64)
    for ordered, sign in ((begun, 1), (over, -1)):
        summed = np.concatenate([[0], np.cumsum(ordered)])
        n = np.searchsorted(ordered, at, side="right")
        passed += sign * (n * at - summed[n])
    return passed


@dataclass(frozen=True)
class Outages:
    """Times out of service that nobody had planned, each as one, however it is recorded."""

    spans: Spans
    is_open: Bools
    """It had not ended when records do."""


def outages(out: Spans, is_open: Bools) -> Outages:
    """Unplanned times out of service: what overlaps or follows at once on a node is one.

    Schedulers write a row for each state that a node is in: down, then down and drained, then
    drained.
    """
    order = np.lexsort((out.end_s, out.start_s, out.node))
    spans, is_open = out.some(order), is_open[order]  # type: ignore[arg-type]
    if not len(order):
        return Outages(spans, is_open)
    reached = np.empty(len(order), dtype=np.int64)
    first = np.empty(len(order), dtype=bool)
    for place, (node, start, end) in enumerate(
        zip(spans.node.tolist(), spans.start_s.tolist(), spans.end_s.tolist(), strict=True)
    ):
        again = place > 0 and node == spans.node[place - 1] and start <= reached[place - 1]
        first[place] = not again
        reached[place] = max(end, int(reached[place - 1])) if again else end
    begun = np.flatnonzero(first)
    last = np.append(begun[1:], len(order)) - 1
    still = np.logical_or.reduceat(is_open, begun)
    return Outages(Spans(spans.node[begun], spans.start_s[begun], reached[last]), still)


@dataclass(frozen=True)
class Ratios:
    """Shares of the time of nodes."""

    available: Estimate
    planned: Estimate
    unplanned: Estimate
    """Down or drained without having been announced."""
    down: Estimate
    drained: Estimate
    serviceable: Estimate
    """Of the time that was not planned to be out."""
    node_seconds: int


def ratios(found: States, *, conf_level: float = CONF_LEVEL) -> Ratios:
    """Shares of the time that nodes were there in which they were up, and out of service.

    .. math:: A = \\frac{up}{all}, \\quad P = \\frac{planned}{all}, \\quad
        S = \\frac{all - planned - unplanned}{all - planned}

    in node-seconds; S is the serviceability (HECToR). With y_c of x_c node-seconds in cell c,
    their interval is r +- t sqrt(k / (k - 1) sum (y_c - r x_c)^2) / sum x_c, cut off at 0 and 1,
    over nodes, and over calendar weeks, whichever is wider: nodes that fail together (a cooling
    loop) make weeks differ, nodes that fail again and again make nodes differ.

    Parameters
    ----------
    found
        Of :func:`states`.

    Notes
    -----
    Weeks count from five on. References: Cochran (1977), Sampling Techniques, section 6.3 (ratio of
    sums); HECToR's monthly reports, 2010 (serviceability).
    """
    validate.conf_level(conf_level)
    n_nodes = int(found.spans.node.max()) + 1 if len(found.spans.node) else 0
    by_node = found.seconds(np.arange(n_nodes), n_nodes)
    by_node = by_node[by_node.sum(axis=1) > 0]
    weeks = by_period(found, WEEK_S)[1]
    weeks = weeks[weeks.sum(axis=1) > 0]
    cells = [by_node, *([weeks] if len(weeks) >= FEWEST_WEEKS else [])]

    def share(some: Sequence[int], of: Sequence[int] = range(4)) -> Estimate:
        """Of the time in some states, the share of those among them."""
        return _share(
            [(each[:, some].sum(axis=1), each[:, of].sum(axis=1)) for each in cells], conf_level
        )

    return Ratios(
        share([UP]),
        share([PLANNED]),
        share([DOWN, DRAINED]),
        share([DOWN]),
        share([DRAINED]),
        share([UP], [DOWN, DRAINED, UP]),
        int(by_node.sum()),
    )


def _share(cells: Sequence[tuple[Floats, Floats]], conf_level: float) -> Estimate:
    """A ratio of sums with the widest interval over several ways to cut the time into cells."""
    part, whole = cells[0]
    total = float(whole.sum())
    if not total:
        return unknown(conf_level, 0)
    value = float(part.sum()) / total
    estimate = Estimate(value, None, None, conf_level, len(part))
    for some, of in cells:
        k = int((of > 0).sum())
        off = float(((some - value * of) ** 2).sum())
        if k < 2 or not off:  # nothing was out, or all of it: how sure that is, nobody knows
            continue
        scatter = k / (k - 1) * off
        wide = float(special.stdtrit(k - 1, (1.0 + conf_level) / 2)) * scatter**0.5 / total
        estimate = estimate.widened(max(0.0, value - wide), min(1.0, value + wide))
    return estimate


def by_period(found: States, length_s: int) -> tuple[Ints, Ints]:
    """Begin of each period of so many seconds, from a Monday on, and the seconds of nodes in each
    state, shape (periods, states)."""
    spans = found.spans
    if not len(spans.node):
        return np.zeros(0, np.int64), np.zeros((0, len(STATES)), np.int64)
    first = (int(spans.start_s.min()) + MONDAY_S) // length_s
    last = (int(spans.end_s.max()) - 1 + MONDAY_S) // length_s
    edges = np.arange(first, last + 2) * length_s - MONDAY_S
    sums = [np.diff(passed_before(found.of(state), edges)) for state in range(len(STATES))]
    return edges[:-1], np.stack(sums, axis=1)


@dataclass(frozen=True)
class Occurrence:
    """How often nodes go out of service."""

    n: int
    mtbf_hours: Estimate
    """Time up between unplanned outages of a node."""
    mtti_hours: Estimate
    """Time up between interruptions of a node, planned ones included."""
    annual_failure_ratio: Estimate
    """Chance of an outage within a year of being up, of a node at the mean rate (AFR)."""
    fit: Estimate
    """Outages per 1e9 node-hours up."""


def occurrence(
    found: States, begun_s: Ints, planned_s: Ints, *, conf_level: float = CONF_LEVEL, seed: int = 0
) -> Occurrence:
    """How often nodes go out of service, by time that they were up.

    .. math:: MTBF = up / n, \\quad AFR = 1 - e^{-8766 / MTBF}, \\quad FIT = 10^9 / MTBF

    in hours, n unplanned outages that began; MTTI counts planned ones too. Intervals are those of
    `failure_rate` over days, wider where outages come together.

    Parameters
    ----------
    begun_s, planned_s
        When unplanned and planned outages began.
    """
    edges, sums = by_period(found, DAY_S)
    up = sums[:, UP] / 3600.0

    def rate(times: Ints) -> Estimate:
        """Of what began at these times, by the hour up."""
        n = np.histogram(times, np.append(edges, edges[-1] + DAY_S))[0]
        days = (edges // DAY_S).astype("datetime64[D]")
        kept = (up > 0) | (n > 0)
        return failure_rate(
            n[kept], up[kept], days=days[kept], conf_level=conf_level, seed=seed
        ).rate

    if not len(edges) or not up.sum():
        nothing = unknown(conf_level, len(begun_s))
        return Occurrence(len(begun_s), nothing, nothing, nothing, nothing)
    outage, any_ = rate(begun_s), rate(np.concatenate([begun_s, planned_s]))
    return Occurrence(
        outage.n,
        outage.inverted(1.0),
        any_.inverted(1.0),
        _within_a_year(outage),
        outage.scaled(1e9),
    )


def _within_a_year(rate: Estimate) -> Estimate:
    """Chance of one within a year, of a rate per hour."""
    shares = (
        None if value is None else float(-np.expm1(-HOURS_OF_YEAR * value))
        for value in (rate.value, rate.lower, rate.upper)
    )
    value, lower, upper = shares
    return Estimate(value, lower, upper, rate.conf_level, rate.n)


@dataclass(frozen=True)
class Capacity:
    """For how much of the time so many nodes were up."""

    out: int
    """Nodes that may be out: spares that a job of all the others needs."""
    ratio: float
    """Share of the time with no more out than that, as measured."""
    independent: float
    """The same if nodes went out one by one, each for as much of the time as all do."""


def capacity(found: States, most: int = 64) -> list[Capacity]:
    """For how much of the time at most 0, 1, 2, 4, ... nodes were out of service, up to what never
    was exceeded.

    The second figure is that of a binomial of as many nodes as were there on average: where it is
    the larger one, nodes go out together.
    """
    there, out = found.spans, found.of(PLANNED, DOWN, DRAINED)
    if not len(there.node):
        return []
    lasted, n_out, n_there = _sweep(out, there)
    total = float(lasted.sum())
    n = round(float((n_there * lasted).sum()) / total)
    share = float((n_out * lasted).sum()) / float((n_there * lasted).sum())
    shares = []
    for k in _counts(min(most, n)):
        ratio = float(lasted[n_out <= k].sum()) / total
        shares.append(Capacity(k, ratio, float(special.bdtr(k, n, share))))
        if ratio == 1.0:
            break
    return shares


@dataclass(frozen=True)
class OutAtOnce:
    """How many nodes were out of service unplanned at once."""

    nodes: int
    """Of the fleet, on average."""
    ratio_by_out: Mapping[int, float]
    """Number out -> share of the time."""


def out_at_once(found: States) -> OutAtOnce | None:
    """Share of the time with 0, 1, 2 ... nodes down or drained; None where none was watched."""
    if not len(found.spans.node):
        return None
    lasted, n_out, n_there = _sweep(found.of(DOWN, DRAINED), found.spans)
    total = float(lasted.sum())
    n = round(float((n_there * lasted).sum()) / total)
    shares = np.bincount(np.minimum(n_out, n), lasted / total)
    return OutAtOnce(n, {k: float(shares[k]) for k in np.flatnonzero(shares).tolist()})


@dataclass(frozen=True)
class WholeGroups:
    """For how much of the time all groups but so many were whole."""

    out: int
    """Groups that may have a node out of service."""
    any_ratio: float
    """Share of the time in which any of the others would do: what reconfiguration makes of it."""
    fixed_ratio: float
    """The same of a job that needs groups that were named before, on average of all choices."""
    independent: float
    """Any of them, if nodes went out one by one."""


def whole_groups(found: States, group: Ints, most: int = 64) -> list[WholeGroups]:
    """For how much of the time groups of nodes were whole: racks or cubes of which a job takes all
    nodes or none.

    A group is whole while as many of its nodes are up as it ever has. With reconfiguration a job of
    G - k groups runs while at most k of G are not whole; one on groups named before runs while none
    of those is among the m that are not: for C(G - m, G - k) / C(G, G - k) of all choices.

    Parameters
    ----------
    group : ndarray of int, shape (n_nodes,)
        Ordinal of the group of each node; below 0 of none.

    References
    ----------
    Zu et al. (2024), Resiliency at Scale: Managing Google's TPUv4 Machine Learning Supercomputer,
    NSDI, on cubes joined by optical switches.
    """
    inside = group[found.spans.node] >= 0
    spans = found.spans.some(inside)
    of_group = States(Spans(group[spans.node], spans.start_s, spans.end_s), found.state[inside])
    n_nodes = np.bincount(group[np.unique(spans.node)])
    n = int(np.count_nonzero(n_nodes))
    if n < 2 or n_nodes.max() < 2:
        return []
    lasted, n_whole, _ = _sweep(_whole(of_group.of(UP), n_nodes), of_group.spans)
    n_out = n - n_whole
    total = float(lasted.sum())
    seconds = of_group.seconds()[0]
    up = float(seconds[UP]) / float(seconds.sum())
    size = float(n_nodes[n_nodes > 0].mean())
    shares = []
    for k in _counts(min(most, n)):
        logs = special.gammaln
        m = np.minimum(n_out, k)
        chosen = np.exp(logs(n - m + 1) - logs(k - m + 1) - logs(n + 1) + logs(k + 1))
        fixed = np.where(n_out <= k, chosen, 0.0)
        ratio = float(lasted[n_out <= k].sum()) / total
        shares.append(
            WholeGroups(
                k,
                ratio,
                float((fixed * lasted).sum()) / total,
                float(special.bdtr(k, n, 1.0 - up**size)),
            )
        )
        if ratio == 1.0:
            break
    return shares


def _counts(most: int) -> list[int]:
    """0, 1, 2, 4, ... below a number."""
    return [0, *(2**k for k in range(20) if 2**k < most)]


def _sweep(out: Spans, there: Spans) -> tuple[Ints, Ints, Ints]:
    """Stretches in which any was there: seconds, how many were out, and how many there."""
    at = np.concatenate([out.start_s, out.end_s, there.start_s, there.end_s])
    ones = [np.ones(len(each.node), dtype=np.int64) for each in (out, there)]
    order = np.argsort(at, kind="stable")
    lasted = np.diff(at[order])
    n_out = np.cumsum(np.concatenate([ones[0], -ones[0], 0 * ones[1], 0 * ones[1]])[order])[:-1]
    n_there = np.cumsum(np.concatenate([0 * ones[0], 0 * ones[0], ones[1], -ones[1]])[order])[:-1]
    some = n_there > 0
    return lasted[some], n_out[some], n_there[some]


def _whole(up: Spans, n_nodes: Ints) -> Spans:
    """Times in which as many nodes of a group are up as it has."""
    group = np.tile(up.node, 2)
    at = np.concatenate([up.start_s, up.end_s])
    step = np.repeat([1, -1], len(up.node))
    order = np.lexsort((at, group))
    group, at, n_up = group[order], at[order], np.cumsum(step[order])  # 0 after each group
    whole = np.flatnonzero((n_up[:-1] >= n_nodes[group[:-1]]) & (np.diff(at) > 0))
    return Spans(group[whole], at[whole], at[whole + 1])
