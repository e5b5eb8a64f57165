"""How available a fleet was, by node, rack, cluster and week, and how long its repairs took."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.efficiency.fleet_time import outage_bucket
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.reliability.availability import (
    DAY_S,
    DOWN,
    DRAINED,
    PLANNED,
    UP,
    WEEK_S,
    Capacity,
    Occurrence,
    Outages,
    OutAtOnce,
    Ratios,
    Spans,
    States,
    WholeGroups,
    by_period,
    capacity,
    occurrence,
    out_at_once,
    outages,
    passed_before,
    ratios,
    states,
    whole_groups,
)
from analytics.reliability.lifetime_families import fits
from analytics.reliability.lifetimes import Lives, kaplan_meier
from analytics.reliability.mttf import mean_estimate
from analytics.reliability.repair_clocks import Clock, to_drain, to_hands

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.reliability.detection import Stretch

Moment: TypeAlias = tuple[str, str, float]
"""Cluster, node and seconds since 1970."""
PERCENTILES: Final = (50, 90, 95)
MOST_GROUPS: Final = 40
"""Racks or clusters, the least available, whose shares have intervals."""
KINDS: Final = {"down_planned": PLANNED, "down_unplanned": DOWN, "drained": DRAINED}
"""Bucket of the ledger -> state."""


@dataclass(frozen=True)
class Spell:
    """Time in which a node was part of its cluster; seconds since 1970, half open."""

    cluster: str
    node: str
    rack: str | None
    start_s: int
    end_s: int


@dataclass(frozen=True)
class Out:
    """A record of a time out of service."""

    cluster: str
    node: str | None
    start_s: int
    end_s: int
    state: str | None
    """As the scheduler wrote it."""
    planned: bool | None
    is_open: bool
    """It had not ended when records do."""
    logged: bool
    """A failure log tells it: a repair of its own, whatever lasts beside it."""

    @property
    def kind(self) -> int:
        """Ordinal in `STATES`."""
        return KINDS[outage_bucket(self.state, planned=self.planned)]

    @property
    def says_planned(self) -> bool:
        """Whether it tells if somebody planned it; a failure log does not."""
        return self.kind == PLANNED or (self.planned is not None and not self.logged)


@dataclass(frozen=True)
class Repairs:
    """How long unplanned outages last, from out of service to return."""

    n: int
    n_open: int
    """Of them, those that had not ended."""
    mean_hours: Estimate
    """Up to the longest that was watched, where any is open."""
    percentiles: Mapping[int, Estimate]
    """Percentile -> hours."""
    lognormal: Mapping[str, Estimate]
    """median (hours) and sigma of the log-normal family; empty where it is not fitted."""


@dataclass(frozen=True)
class Part:
    """Time of a node, rack or cluster."""

    name: str
    cluster: str
    nodes: int
    seconds: tuple[int, ...]
    """In each of `STATES`."""
    outages: int
    """Unplanned ones that began in the period."""
    ratios: Ratios | None = None
    """With intervals, of the first racks and clusters."""

    def share(self, *kinds: int) -> float:
        """Share of its time in some of the states."""
        return sum(self.seconds[kind] for kind in kinds) / sum(self.seconds)

    @property
    def available(self) -> float:
        """Share of its time in which it was up."""
        return self.share(UP)

    @property
    def shares(self) -> tuple[Estimate, Estimate]:
        """Available and unplanned; without intervals where none are worked out."""
        if self.ratios is not None:
            return self.ratios.available, self.ratios.unplanned
        plain = (self.share(UP), self.share(DOWN, DRAINED))
        one, other = (Estimate(value, None, None, CONF_LEVEL, self.nodes) for value in plain)
        return one, other


@dataclass(frozen=True)
class Starts:
    """When outages of nodes began in the period, planned ones too: what others divide by."""

    node: Ints
    at_s: Ints
    """Seconds since 1970, in order for each node."""
    last_s: int
    """End of the period."""
    last_week_s: int
    """Node-seconds of its last seven days."""


@dataclass(frozen=True)
class FleetAvailability:
    """How available nodes were in a period."""

    ratios: Ratios
    occurrence: Occurrence
    repairs: Repairs
    capacity: tuple[Capacity, ...]
    """Of one cluster; of several none: no job runs on all of them."""
    at_once: OutAtOnce | None
    """Nodes of one cluster that were out at once."""
    racks: tuple[WholeGroups, ...]
    """The same of its racks, of which a job takes all nodes."""
    weeks: tuple[tuple[datetime, tuple[int, ...]], ...]
    """Monday -> node-seconds in each of `STATES`."""
    by_node: tuple[Part, ...]
    """The least available first."""
    by_rack: tuple[Part, ...]
    by_cluster: tuple[Part, ...]
    still_out: tuple[Out, ...]
    """Unplanned outages that had not ended when the period did, the longest first."""
    starts: Starts
    planned_known: bool
    """Whether any record says of an outage whether it was planned; else all count as unplanned."""
    logged: bool
    """Whether a failure log tells any of it."""
    not_judged: tuple[str, ...]
    """Clusters of which no record tells when nodes were out of service."""
    to_drain: Clock
    """From a failure to out of service, of unplanned outages."""
    to_hands: Clock
    """From out of service to a ticket."""
    days_unseen: int
    """Days of clusters on which such records were not collected: they count nowhere."""


def fleet_availability(
    spells: Sequence[Spell],
    out: Sequence[Out],
    gaps: Mapping[str, Sequence[Stretch]],
    *,
    failures: Sequence[Moment] = (),
    tickets: Sequence[Moment] = (),
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> FleetAvailability:
    """Availability of the nodes of some clusters while their states were recorded.

    Parameters
    ----------
    spells
        When which node was there, within the period.
    out
        All records of times out of service, also those before and after it.
    gaps
        Cluster -> first and last day, since 1970, of stretches in which no node states were
        collected.
    failures, tickets
        Failures that name a node, and when tickets of nodes were opened.

    Raises
    ------
    OutOfRangeError
        For a conf_level outside (0, 1).

    Notes
    -----
    A node is in the strongest of planned, down and drained, as in the ledger. An outage belongs to
    the period in which it began; how long it lasted counts whole. It is one however many states the
    scheduler wrote, and one that is open counts as censored: it lasts longer than was watched
    (Kaplan-Meier). Records of a failure log are repairs of their own.
    """
    recorded = {each.cluster for each in out}
    known = [each for each in spells if each.cluster in recorded]
    clusters = {each.cluster for each in known}
    names = sorted({(each.cluster, each.node) for each in known})
    place = {name: number for number, name in enumerate(names)}
    there = _watched(known, place, gaps)
    of_nodes = [each for each in out if (each.cluster, each.node) in place]
    kind = np.array([each.kind for each in of_nodes], dtype=np.int64)
    found = states(there, _spans(of_nodes, place), kind)
    unplanned = _outages([each for each in of_nodes if each.kind != PLANNED], place)
    planned = _outages([each for each in of_nodes if each.kind == PLANNED], place).spans
    begun = unplanned.spans.some(_begun(unplanned.spans, there))
    planned = planned.some(_begun(planned, there))
    chance: dict[str, Any] = {"conf_level": conf_level}
    n_of_node = np.bincount(begun.node, minlength=len(names))
    racks = _racks(known)
    logged = any(each.logged for each in of_nodes)
    timed = Spans.joined([]) if logged else begun
    return FleetAvailability(
        ratios(found, **chance),
        occurrence(found, begun.start_s, planned.start_s, seed=seed, **chance),
        _repairs(*_lasted(out, place, there), conf_level),
        tuple(capacity(found)) if len(clusters) == 1 else (),
        out_at_once(found) if len(clusters) == 1 else None,
        tuple(whole_groups(found, _ordinals(names, racks))) if len(clusters) == 1 else (),
        tuple(_weeks(found)),
        *_parts(found, names, racks, n_of_node, conf_level),
        tuple(_still_out(of_nodes, _open(unplanned, names, _period(there)[1]))),
        _starts(_outages(of_nodes, place).spans, there),
        any(each.says_planned for each in of_nodes),
        logged,
        tuple(sorted({each.cluster for each in spells} - recorded)),
        to_drain(timed, *_placed(failures, place), **chance),
        to_hands(timed, *_placed(tickets, place), **chance),
        _unseen(known, gaps),
    )


def watched_states(
    spells: Sequence[Spell], out: Sequence[Out], gaps: Mapping[str, Sequence[Stretch]]
) -> States:
    """What the nodes of some clusters were in while their states were recorded.

    The arguments are those of :func:`fleet_availability`, and so is what counts.
    """
    recorded = {each.cluster for each in out}
    known = [each for each in spells if each.cluster in recorded]
    place = {
        name: number
        for number, name in enumerate(sorted({(each.cluster, each.node) for each in known}))
    }
    of_nodes = [each for each in out if (each.cluster, each.node) in place]
    kind = np.array([each.kind for each in of_nodes], dtype=np.int64)
    return states(_watched(known, place, gaps), _spans(of_nodes, place), kind)


def _placed(moments: Sequence[Moment], place: Mapping[tuple[str, str], int]) -> tuple[Ints, Ints]:
    """Ordinals of nodes and seconds of moments of known nodes."""
    known = [(place[c, n], round(at)) for c, n, at in moments if (c, n) in place]
    pairs = np.array(known, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _ordinals(names: Sequence[tuple[str, str]], racks: Mapping[tuple[str, str], str]) -> Ints:
    """The ordinal of the rack of each node; -1 where it is not known."""
    ordinal = {rack: number for number, rack in enumerate(sorted(set(racks.values())))}
    found = (ordinal[racks[name]] if name in racks else -1 for name in names)
    return np.fromiter(found, dtype=np.int64, count=len(names))


def _outages(rows: Sequence[Out], place: Mapping[tuple[str, str], int]) -> Outages:
    """Records of nodes, those that follow without a break as one."""
    still = np.array([each.is_open for each in rows], dtype=bool)
    return outages(_spans(rows, place), still)


def _lasted(
    out: Sequence[Out], place: Mapping[tuple[str, str], int], there: Spans
) -> tuple[Floats, Bools]:
    """Hours that each unplanned outage of the period lasted, and whether it had not ended."""
    states_ = [
        each
        for each in out
        if each.kind != PLANNED and not each.logged and (each.cluster, each.node) in place
    ]
    found = _outages(states_, place)
    mine = _begun(found.spans, there)
    begin, end = _period(there)
    rows = [each for each in out if each.logged and begin <= each.start_s < end]
    states_lasted = (found.spans.end_s - found.spans.start_s)[mine]
    rows_lasted = np.array([each.end_s - each.start_s for each in rows], dtype=np.int64)
    hours = np.concatenate([states_lasted, rows_lasted]) / 3600.0
    return hours, np.concatenate([found.is_open[mine], np.zeros(len(rows), dtype=bool)])


def _open(
    found: Outages, names: Sequence[tuple[str, str]], until: int
) -> set[tuple[tuple[str, str], int]]:
    """Node and begin of each outage that had not ended then."""
    columns = (column.tolist() for column in vars(found.spans).values())
    return {
        (names[node], start)
        for node, start, end, last in zip(*columns, found.is_open, strict=True)
        if start < until and (end > until or (last and end == until))
    }


def _spans(rows: Sequence[Spell] | Sequence[Out], place: Mapping[tuple[str, str], int]) -> Spans:
    columns = (
        [place[each.cluster, each.node or ""] for each in rows],
        [each.start_s for each in rows],
        [each.end_s for each in rows],
    )
    return Spans(*(np.array(column, dtype=np.int64) for column in columns))


def unseen(gaps: Sequence[Sequence[Stretch]]) -> list[Stretch]:
    """Stretches of days that lie in a gap of every source.

    >>> unseen([[(1, 5), (9, 12)], [(4, 10)]])
    [(4, 5), (9, 10)]
    """
    found = list(gaps[0]) if gaps else []
    for others in gaps[1:]:
        found = [
            (max(a, c), min(b, d)) for a, b in found for c, d in others if max(a, c) <= min(b, d)
        ]
    return found


def _watched(
    spells: Sequence[Spell],
    place: Mapping[tuple[str, str], int],
    gaps: Mapping[str, Sequence[Stretch]],
) -> Spans:
    """Times in which nodes were there and their states recorded."""
    parts = []
    of_cluster: dict[str, list[Spell]] = defaultdict(list)
    for each in spells:
        of_cluster[each.cluster].append(each)
    for cluster, its_spells in of_cluster.items():
        whole = _spans(its_spells, place)
        begin, end = int(whole.start_s.min()), int(whole.end_s.max())
        for first, last in _between(gaps.get(cluster, ()), begin, end):
            start, until = np.maximum(whole.start_s, first), np.minimum(whole.end_s, last)
            parts.append(Spans(whole.node, start, until).some(until > start))
    return Spans.joined(parts)


def _between(gaps: Iterable[Stretch], begin: int, end: int) -> Iterable[tuple[int, int]]:
    """Stretches of time, in seconds, outside of gaps, in days."""
    for first, last in sorted(gaps):
        if first * DAY_S > begin:
            yield begin, min(first * DAY_S, end)
        begin = max(begin, (last + 1) * DAY_S)
        if begin >= end:
            return
    yield begin, end


def _unseen(spells: Sequence[Spell], gaps: Mapping[str, Sequence[Stretch]]) -> int:
    """Days of the period, of all clusters, that lie in gaps."""
    n = 0
    for cluster in {each.cluster for each in spells}:
        its_spells = [each for each in spells if each.cluster == cluster]
        begin = min(each.start_s for each in its_spells)
        end = max(each.end_s for each in its_spells)
        seen = sum(max(0, b - a) for a, b in _between(gaps.get(cluster, ()), begin, end))
        n += round((end - begin - seen) / DAY_S)
    return n


def _period(there: Spans) -> tuple[int, int]:
    if not len(there.node):
        return 0, 0
    return int(there.start_s.min()), int(there.end_s.max())


def _starts(every: Spans, there: Spans) -> Starts:
    """Begins of all outages in the period, however planned."""
    mine = every.some(_begun(every, there))
    end = _period(there)[1]
    before = passed_before(there, np.array([end - WEEK_S, end]))
    return Starts(mine.node, mine.start_s, end, int(np.diff(before)[0]))


def _begun(spans: Spans, there: Spans) -> Bools:
    """Whether each began while its node was watched."""
    order = np.lexsort((there.start_s, there.node))
    key = there.node[order].astype(np.float64) * 1e11 + there.start_s[order]
    place = np.searchsorted(key, spans.node * 1e11 + spans.start_s, side="right") - 1
    if not len(order):
        return np.zeros(len(spans.node), dtype=bool)
    spell = order[np.maximum(place, 0)]
    began: Bools = (
        (place >= 0)
        & (there.node[spell] == spans.node)
        & (there.start_s[spell] <= spans.start_s)
        & (spans.start_s < there.end_s[spell])
    )
    return began


def _repairs(hours: Floats, is_open: Bools, conf_level: float) -> Repairs:
    n, n_open = len(hours), int(is_open.sum())
    if n_open == n:
        nothing = unknown(conf_level, 0)
        return Repairs(n, n_open, nothing, dict.fromkeys(PERCENTILES, nothing), {})
    lives = Lives.of(hours, ~is_open)
    curve = kaplan_meier(lives, conf_level=conf_level)
    mean = curve.restricted_mean() if n_open else mean_estimate(hours, conf_level=conf_level)
    shapes = {fit.family: fit for fit in fits(lives, conf_level=conf_level)}
    lognormal = shapes["log-normal"].parameters if "log-normal" in shapes else {}
    percentiles = {each: curve.quantile(each / 100) for each in PERCENTILES}
    return Repairs(n, n_open, replace(mean, n=n - n_open), percentiles, lognormal)


def _racks(spells: Sequence[Spell]) -> dict[tuple[str, str], str]:
    """Cluster and node -> the rack it was in last."""
    return {
        (each.cluster, each.node): each.rack
        for each in sorted(spells, key=lambda each: each.start_s)
        if each.rack is not None
    }


def _parts(
    states_: States,
    names: Sequence[tuple[str, str]],
    racks: Mapping[tuple[str, str], str],
    n_outages: Ints,
    conf_level: float,
) -> tuple[tuple[Part, ...], tuple[Part, ...], tuple[Part, ...]]:
    """Nodes, racks and clusters, the least available first."""
    seconds = states_.seconds(np.arange(len(names)), len(names))
    nodes = [
        Part(node, cluster, 1, tuple(sums), int(n))
        for (cluster, node), sums, n in zip(names, seconds.tolist(), n_outages, strict=True)
        if sum(sums)
    ]
    grouped: dict[tuple[str, str], list[int]] = defaultdict(list)
    of_cluster: dict[tuple[str, str], list[int]] = defaultdict(list)
    for number, name in enumerate(names):
        of_cluster[name[0], name[0]].append(number)
        if name in racks:
            grouped[name[0], racks[name]].append(number)

    def parts(groups: Mapping[tuple[str, str], list[int]]) -> list[Part]:
        """Groups of nodes, the first with intervals."""
        found = [
            Part(
                name,
                cluster,
                len(members),
                tuple(seconds[members].sum(axis=0).tolist()),
                int(n_outages[members].sum()),
            )
            for (cluster, name), members in groups.items()
            if seconds[members].sum()
        ]
        found.sort(key=_order)
        first = [
            replace(part, ratios=_ratios_of(states_, groups[part.cluster, part.name], conf_level))
            for part in found[:MOST_GROUPS]
        ]
        return [*first, *found[MOST_GROUPS:]]

    return tuple(sorted(nodes, key=_order)), tuple(parts(grouped)), tuple(parts(of_cluster))


def _order(part: Part) -> tuple[float, str, str]:
    """The least available first."""
    return part.available, part.cluster, part.name


def _ratios_of(found: States, members: Sequence[int], conf_level: float) -> Ratios:
    which = np.isin(found.spans.node, members)
    return ratios(States(found.spans.some(which), found.state[which]), conf_level=conf_level)


def _weeks(found: States) -> Iterable[tuple[datetime, tuple[int, ...]]]:
    edges, sums = by_period(found, WEEK_S)
    for begin, seconds in zip(edges.tolist(), sums.tolist(), strict=True):
        yield datetime.fromtimestamp(begin, UTC), tuple(seconds)


def _still_out(rows: Sequence[Out], open_nodes: set[tuple[tuple[str, str], int]]) -> Iterable[Out]:
    """The first record of each outage that had not ended, the longest first."""
    begun = [each for each in rows if ((each.cluster, each.node or ""), each.start_s) in open_nodes]
    first = {(each.cluster, each.node): each for each in reversed(begun)}
    return sorted(first.values(), key=lambda each: (each.start_s, each.cluster, each.node or ""))
