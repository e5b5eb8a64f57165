"""What makes nodes fail sooner: their hazard by a fact, age and incidents before, day by day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.estimate import CONF_LEVEL
from analytics.frames import sums_by_group
from analytics.nodes.chance import discoveries
from analytics.reliability.hazards import hazard_ratios

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats, Ints
    from analytics.frames import Columns
    from analytics.reliability.hazards import HazardModel, HazardRatio

MOST_LEVELS: Final = 12
"""Levels of a fact with a ratio of their own; the others count as one."""
LEAST_OF_LEVEL: Final = 5
"""Failed steps that a level needs to have one."""
LEAST_NODES: Final = 3
"""Nodes on which they must have been: what one node does is no property of its level."""
LEAST_EVENTS: Final = 10
"""Failed steps that the model needs."""
MOST_INCIDENTS: Final = 5
"""Incidents before from which more count as so many."""
RECENT_DAYS: Final = 90
"""Days before in which incidents of a node count."""
FALSE_ALARMS: Final = 0.05
"""Share of covariates that stand out by chance among those that do."""
UNKNOWN: Final = "unknown"
OTHERS: Final = "all other levels"
DAY_S: Final = 86_400


@dataclass(frozen=True)
class Covariate:
    """What may raise the hazard, and by how much it does."""

    what: str
    """Its kind: fact, age, incidents before, cluster."""
    level: str
    reference: str
    """Level that it is compared with; empty of a number."""
    failures: int
    """Nodes that failed in a step at this level; of a number, after at least one incident."""
    node_days: float
    """Exposure there."""
    ratio: HazardRatio
    stands_out: bool


@dataclass(frozen=True)
class NodeHazards:
    """What makes nodes fail sooner."""

    covariates: tuple[Covariate, ...]
    """Strongest first."""
    model: HazardModel | None
    """That with frailty; None where too little failed."""
    n_nodes: int
    n_events: int
    """Steps of nodes in which something failed."""
    days: int
    """Days of a step."""
    without: float
    """Node-days of nodes of which the fact is not known; they are left out."""
    unplaced: int
    """Steps of nodes with an incident in which the node is not known to have run; left out."""
    own_factors: tuple[tuple[str, float], ...]
    """Nodes (cluster/node) with the largest own factors, above 1."""


def node_hazards(
    steps: Columns,
    incidents: Columns,
    *,
    days: int,
    conf_level: float = CONF_LEVEL,
) -> NodeHazards:
    """Cox's model of nodes in steps of time, which takes out what all had in common in each.

    Covariates are the levels of a fact, the age of the node and the cluster, each beside its level
    of most exposure. What a node ran in a step is its exposure there, one that failed in it counts
    once, and rows of a node share a frailty. By how much each incident of a node in the
    `RECENT_DAYS` before a step, up to `MOST_INCIDENTS`, multiplies the hazard says a second model
    without frailty: both say that nodes differ, and one model with both tells neither.

    Parameters
    ----------
    steps
        Columns cluster, node, step, level, age, exposure (share of the step).
    incidents
        Columns cluster, node, failed_us (since 1970-01-01), step, level, age, inside (whether it
        counts as a failure, or only as one before).
    days
        Of a step.
    """
    known = np.array([level is not None for level in steps["level"]], dtype=bool)
    left_out = ~known & known.any()
    without = float(steps["exposure"][left_out].sum()) * days
    rows = {name: column[~left_out] for name, column in steps.items()}
    names = [f"{c}/{n}" for c, n in zip(rows["cluster"], rows["node"], strict=True)]
    nodes = {name: place for place, name in enumerate(dict.fromkeys(names))}
    node = np.array([nodes[name] for name in names], dtype=np.int64)
    step = rows["step"].astype(np.int64)
    struck = {
        key for key, inside in zip(_keys(incidents), incidents["inside"], strict=True) if inside
    }
    failed = np.fromiter((key in struck for key in _keys(rows)), dtype=np.bool_, count=len(node))
    recent = _recent(rows, node, incidents, nodes, days)
    n_events = int(failed.sum())
    columns = _columns(rows, node, failed)
    before = _Column("incidents", "", "", recent)
    model: HazardModel | None = None
    found: tuple[Covariate, ...] = ()
    if n_events >= LEAST_EVENTS and len(nodes) > 1:
        begin = (step - step.min()).astype(float)
        values = {name: column.values for name, column in columns.items()}
        model = hazard_ratios(
            begin, begin + 1, failed, values,
            exposure=rows["exposure"], groups=node, conf_level=conf_level,
        )  # fmt: skip
        after_incidents = hazard_ratios(
            begin, begin + 1, failed, {**values, "incidents": recent},
            exposure=rows["exposure"], conf_level=conf_level,
        )  # fmt: skip
        found = tuple(
            _told(
                [*columns.values(), before],
                [*model.ratios, after_incidents.ratios[-1]],
                failed,
                rows["exposure"] * days,
            )
        )
    clusters = set(steps["cluster"].tolist())
    unplaced = {key for key in struck if key[0] in clusters}.difference(_keys(steps))
    return NodeHazards(
        found,
        model,
        len(nodes),
        n_events,
        days,
        without,
        len(unplaced),
        _largest(model, list(nodes)),
    )


@dataclass(frozen=True)
class _Column:
    """Values of a covariate."""

    what: str
    level: str
    reference: str
    values: Floats
    enough: bool = True
    """Whether enough failed there: else it is in the model, and no ratio is told."""


def _keys(rows: Columns) -> Iterator[tuple[Any, ...]]:
    """What tells apart which steps of which nodes are meant."""
    names = ("cluster", "node", "step", "level", "age")
    return zip(*(rows[name].tolist() for name in names), strict=True)


def _recent(
    rows: Columns, node: Ints, incidents: Columns, nodes: Mapping[str, int], days: int
) -> Floats:
    """How many incidents the node of each row had had in the `RECENT_DAYS` before it."""
    of = zip(incidents["cluster"], incidents["node"], strict=True)
    place = np.array([nodes.get(f"{c}/{n}", -1) for c, n in of], dtype=np.int64)
    at = incidents["failed_us"].astype(np.int64)[place >= 0] // 1_000_000
    # Places of nodes apart by more than all time, so that one sorted array holds all of them.
    apart = np.int64(2**44)
    ordered = np.sort(place[place >= 0] * apart + at)
    begin = node * apart + rows["step"].astype(np.int64) * days * DAY_S
    before = np.searchsorted(ordered, begin, side="left")
    since = np.searchsorted(ordered, begin - RECENT_DAYS * DAY_S, side="left")
    recent: Floats = np.minimum(before - since, MOST_INCIDENTS).astype(np.float64)
    return recent


def _columns(rows: Columns, node: Ints, failed: Bools) -> dict[str, _Column]:
    """The covariates that differ, by a name of each.

    Levels at which little failed count as one. Only steps in which some nodes have a level and
    others have not tell its ratio: where fewer than `LEAST_NODES` are on either side of all of
    these it is not in the model, as their own factors say the same.
    """
    found: dict[str, _Column] = {}
    step = rows["step"].astype(np.int64)
    for what, key in (("fact", "level"), ("age", "age"), ("cluster", "cluster")):
        named = np.array([UNKNOWN if each is None else each for each in rows[key]], dtype=str)
        values, levels = _told_apart(named, node, failed, rows["exposure"])
        for level, enough in list(levels.items())[1:]:
            there = np.asarray(values == level, float)
            inside = _mixed(there > 0, step)
            sides = [inside & (there > 0), inside & (there == 0)]
            if min(len(np.unique(node[side])) for side in sides) < LEAST_NODES:
                continue
            enough = enough and all(_enough(node[side & failed]) for side in sides)
            found[f"{what}: {level}"] = _Column(what, level, next(iter(levels)), there, enough)
    return found


def _mixed(there: Bools, step: Ints) -> Bools:
    """Rows of steps in which some are there and others are not."""
    _, place = np.unique(step, return_inverse=True)
    n_there, n = np.bincount(place, there), np.bincount(place)
    mixed: Bools = ((n_there > 0) & (n_there < n))[place]
    return mixed


def _enough(nodes: Ints) -> bool:
    """Whether as many failed, and on enough nodes, as a ratio needs; a node for each failure."""
    return len(nodes) >= LEAST_OF_LEVEL and len(np.unique(nodes)) >= LEAST_NODES


def _told_apart(
    values: NDArray[np.str_], node: Ints, failed: Bools, exposure: Floats
) -> tuple[NDArray[np.object_], dict[str, bool]]:
    """The level of each row, those at which little failed as one; and all of them, each with
    whether enough failed: that of most exposure first, what is unknown last. None where nowhere
    enough failed."""
    names, place, held, enough = _counted(values, node, failed, exposure)
    largest = np.argsort(np.where(enough, -held, 0.0), kind="stable")[:MOST_LEVELS]
    apart = np.isin(np.arange(len(names)), largest[enough[largest]])
    alone = (~apart).sum() == 1
    merged = np.where(apart | alone, names.astype(object), OTHERS)[place]
    names, _, held, enough = _counted(merged.astype(str), node, failed, exposure)
    order = np.lexsort((-held, names == UNKNOWN, ~enough))
    return merged, {str(names[at]): bool(enough[at]) for at in order if enough.any()}


def _counted(
    values: NDArray[np.str_], node: Ints, failed: Bools, exposure: Floats
) -> tuple[NDArray[np.str_], NDArray[np.intp], Floats, Bools]:
    """Levels, the place of that of each row, exposure of each, and whether enough failed there."""
    names, place = np.unique(values, return_inverse=True)
    pairs = np.unique(np.stack([place[failed], node[failed]]), axis=1)
    n_failed = np.bincount(place, failed, len(names))
    n_nodes = np.bincount(pairs[0], minlength=len(names))
    enough: Bools = (n_failed >= LEAST_OF_LEVEL) & (n_nodes >= LEAST_NODES)
    return names, place, np.array(sums_by_group(place, exposure, len(names))), enough


def _told(
    columns: Sequence[_Column], ratios: Sequence[HazardRatio], failed: Bools, node_days: Floats
) -> list[Covariate]:
    """Each covariate with its ratio, strongest first."""
    told = [pair for pair in zip(columns, ratios, strict=True) if pair[0].enough]
    p = np.array([1.0 if ratio.p_value is None else ratio.p_value for _, ratio in told])
    found = []
    for (column, ratio), stands_out in zip(told, discoveries(p, FALSE_ALARMS), strict=True):
        there = column.values > 0
        found.append(
            Covariate(
                column.what,
                column.level,
                column.reference,
                int(failed[there].sum()),
                float(node_days[there].sum()),
                ratio,
                bool(stands_out),
            )
        )
    return sorted(found, key=lambda each: -abs(each.ratio.coefficient or 0.0))


def _largest(model: HazardModel | None, nodes: Sequence[str]) -> tuple[tuple[str, float], ...]:
    """Nodes that fail more often than all that is known of them explains."""
    if model is None or model.frailty is None:
        return ()
    factors = model.frailty.factors
    order = np.argsort(-factors, kind="stable")[:10]
    return tuple((nodes[at], float(factors[at])) for at in order.tolist() if factors[at] > 1.0)
