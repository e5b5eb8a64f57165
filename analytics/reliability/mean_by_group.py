"""How many failures nodes of each group have had on average, beside all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics.estimate import CONF_LEVEL
from analytics.nodes.chance import discoveries
from analytics.reliability.mean_cumulative import MeanCumulative, mean_cumulative

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Ints
    from analytics.reliability.availability import Spans

FALSE_ALARMS: Final = 0.05
"""Share of groups that stand out by chance among those that do."""
FEWEST_FAILURES, FEWEST_NODES = 5, 3
"""Below which it cannot be told whether a group is unlike the others."""


@dataclass(frozen=True)
class GroupMean:
    """Failures of a node of one group."""

    name: str
    curve: MeanCumulative
    unlike: bool | None
    """Whether its nodes have had another number than all others, at a false-discovery rate of 5 %;
    None where that cannot be told."""


def means_by_group(
    there: Spans,
    node: Ints,
    at_s: Ints,
    names: Sequence[str | None],
    *,
    conf_level: float = CONF_LEVEL,
) -> tuple[GroupMean, ...]:
    """Mean cumulative function of the nodes of each group, the most failures per node first.

    A group is compared with all others together at the end: (M - M') / sqrt(var M + var M') is
    standard normal where nodes are alike, and all groups are judged at once (Benjamini, Hochberg).

    Parameters
    ----------
    there, node, at_s
        As of `mean_cumulative`.
    names
        Group of each node by its ordinal; None of none.
    """
    group = np.array([name or "" for name in names], dtype=str)
    listed = sorted({name for name in names if name})
    curves = [_of(there, node, at_s, group == name, conf_level) for name in listed]
    p = np.ones(len(listed))
    told = np.zeros(len(listed), dtype=bool)
    for place, (name, curve) in enumerate(zip(listed, curves, strict=True)):
        others = _of(there, node, at_s, (group != name) & (group != ""), conf_level)
        told[place] = all(
            each.n_events >= FEWEST_FAILURES and each.n_nodes >= FEWEST_NODES
            for each in (curve, others)
        )
        if told[place]:
            apart = curve.value[-1] - others.value[-1]
            error = np.sqrt(curve.variance[-1] + others.variance[-1])
            p[place] = 2 * special.ndtr(-abs(apart) / error)
    unlike = discoveries(p[told], FALSE_ALARMS).tolist()
    found = [
        GroupMean(name, curve, unlike.pop(0) if known else None)
        for name, curve, known in zip(listed, curves, told.tolist(), strict=True)
    ]
    return tuple(sorted(found, key=lambda each: -(each.curve.last.value or 0.0)))


def _of(there: Spans, node: Ints, at_s: Ints, chosen: Bools, conf_level: float) -> MeanCumulative:
    """Of some of the nodes."""
    mine = chosen[node]
    return mean_cumulative(
        there.some(chosen[there.node]), node[mine], at_s[mine], conf_level=conf_level
    )
