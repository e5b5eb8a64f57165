"""How many failures nodes of each group have had on average, beside all others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.chance import discoveries
from analytics.reliability.availability import Spans
from analytics.reliability.mean_cumulative import MeanCumulative, mean_cumulative

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Ints

FALSE_ALARMS: Final = 0.05
"""Share of groups that stand out by chance among those that do."""
FEWEST_FAILURES, FEWEST_NODES = 5, 3
"""Below which it cannot be told whether a group is unlike the others."""


@dataclass(frozen=True)
class GroupMean:
    """Failures of a node of one group."""

    name: str
    curve: MeanCumulative
    at_once: MeanCumulative
    """The same over the time in which other groups had nodes too."""
    others: MeanCumulative
    """Of all others in that time."""
    unlike: bool | None
    """Whether its nodes have had another number than all others, at a false-discovery rate of 5 %;
    None where that cannot be told."""

    @property
    def last(self) -> Estimate:
        """Failures of a node in that time; without bounds where nodes are fewer than
        `FEWEST_NODES` or have failed equally often, so that nothing says how much they differ."""
        return _bounded(self.at_once)

    @property
    def last_of_others(self) -> Estimate:
        """The same of all others."""
        return _bounded(self.others)

    @property
    def more(self) -> float:
        """Failures of a node more than of one of all others."""
        return (self.last.value or 0.0) - (self.last_of_others.value or 0.0)


def _bounded(curve: MeanCumulative) -> Estimate:
    last = curve.last
    if curve.n_nodes >= FEWEST_NODES and last.lower != last.upper:
        return last
    return replace(last, lower=None, upper=None)


def means_by_group(
    there: Spans,
    node: Ints,
    at_s: Ints,
    names: Sequence[str | None],
    *,
    conf_level: float = CONF_LEVEL,
) -> tuple[GroupMean, ...]:
    """Mean cumulative function of the nodes of each group, those of more than all others first.

    A group is compared with all others together over the time in which both had nodes: (M - M') /
    sqrt(var M + var M') is standard normal where nodes are alike. All groups are judged at once
    (Benjamini, Hochberg).

    Parameters
    ----------
    there, node, at_s
        As of `mean_cumulative`.
    names
        Group of each node by its ordinal; None of none.
    """
    group = np.array([name or "" for name in names], dtype=str)
    found, p = [], []
    for name in sorted({name for name in names if name}):
        own, others = group == name, (group != name) & (group != "")
        common = _common(there.some(own[there.node]), there.some(others[there.node]))
        at_once = _within(there, common)
        mine, theirs = (_of(at_once, node, at_s, side, conf_level) for side in (own, others))
        known = all(
            each.n_events >= FEWEST_FAILURES and each.n_nodes >= FEWEST_NODES
            for each in (mine, theirs)
        )
        if known:
            p.append(_chance(mine, theirs))
        curve = _of(there, node, at_s, own, conf_level)
        found.append(GroupMean(name, curve, mine, theirs, False if known else None))
    unlike = discoveries(np.array(p), FALSE_ALARMS).tolist()
    judged = [
        each if each.unlike is None else replace(each, unlike=unlike.pop(0)) for each in found
    ]
    return tuple(sorted(judged, key=lambda each: -each.more))


def _chance(mine: MeanCumulative, theirs: MeanCumulative) -> float:
    """Of means as far apart where nodes are alike.

    Nodes that have failed equally often by chance differ by no less than Poisson's rule.
    """
    variance = sum(
        max(float(each.variance[-1]), float(each.value[-1]) / each.n_nodes)
        for each in (mine, theirs)
    )
    apart = abs(float(mine.value[-1]) - float(theirs.value[-1]))
    return float(2 * special.ndtr(-apart / np.sqrt(variance)))


def _common(one: Spans, other: Spans) -> list[tuple[int, int]]:
    """Stretches of time in which both have nodes."""
    if not len(one.node) or not len(other.node):
        return []
    at = np.unique(np.concatenate([one.start_s, one.end_s, other.start_s, other.end_s]))
    both = np.ones(len(at) - 1, dtype=bool)
    for spans in (one, other):
        begun = np.searchsorted(np.sort(spans.start_s), at[:-1], side="right")
        over = np.searchsorted(np.sort(spans.end_s), at[:-1], side="right")
        both &= begun > over
    return [(int(at[place]), int(at[place + 1])) for place in np.flatnonzero(both).tolist()]


def _within(there: Spans, stretches: Sequence[tuple[int, int]]) -> Spans:
    """Times in which nodes were there, cut to some stretches; those that touch count as one."""
    joined: list[tuple[int, int]] = []
    for begin, end in stretches:
        if joined and joined[-1][1] == begin:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((begin, end))
    parts = []
    for begin, end in joined:
        cut = Spans(there.node, np.maximum(there.start_s, begin), np.minimum(there.end_s, end))
        parts.append(cut.some(cut.end_s > cut.start_s))
    return Spans.joined(parts)


def _of(there: Spans, node: Ints, at_s: Ints, chosen: Bools, conf_level: float) -> MeanCumulative:
    """Of some of the nodes."""
    mine = chosen[node]
    return mean_cumulative(
        there.some(chosen[there.node]), node[mine], at_s[mine], conf_level=conf_level
    )
