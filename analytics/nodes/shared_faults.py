"""What several nodes share: racks, pods, switches and power units at fault in place of nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.nodes.chance import discoveries
from analytics.nodes.episodes import WEEK_DAYS
from analytics.nodes.records import GROUPINGS

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from analytics.arrays import Bools, Floats
    from analytics.nodes.episodes import Episodes

LEAST_NODES: Final = 3
AT_ONCE_DAYS: Final = 10 / 1440
LEAST_AT_ONCE: Final = 5
TIMES_USUAL: Final = 10.0


@dataclass(frozen=True)
class BadGroup:
    """Nodes that share something and fail together."""

    cluster: str
    grouping: str
    """rack, pod, switch or pdu."""
    name: str
    nodes: tuple[str, ...]
    n_hit: int
    """Members with an occasion."""
    expected: float
    """Members that would have one, were they as the others."""
    ratio: float
    """Of their rates over those of others."""
    p_value: float


def struck_at_once(events: pd.DataFrame, days: float) -> Bools:
    """Records within ten minutes in which at least five nodes and ten times the usual were struck.

    They are of a switch, a file system, a power feed or a person: of no node.
    """
    whole = (events["share"] >= 1).to_numpy() & (events["signal"] != "excluded").to_numpy()
    rows = np.flatnonzero(whole)
    rows = rows[np.argsort(events["day"].to_numpy()[rows], kind="stable")]
    day, place = events["day"].to_numpy()[rows], events["place"].to_numpy()[rows]
    usual = len(rows) / max(days, 1.0) * AT_ONCE_DAYS
    least = max(LEAST_AT_ONCE, TIMES_USUAL * usual)
    struck = np.zeros(len(events), dtype=bool)
    last = np.searchsorted(day, day + AT_ONCE_DAYS, side="right")
    for first in np.flatnonzero(last - np.arange(len(day)) >= least):
        if len(np.unique(place[first : last[first]])) >= least:
            struck[rows[first : last[first]]] = True
    return struck


def bad_groups(
    cluster: str, nodes: pd.DataFrame, found: Episodes, mean: Floats, level: float
) -> list[BadGroup]:
    """Groups of which more members were hit than chance explains, with and without one week.

    Each member counts once, so that one lemon or two make no bad rack: the number hit is held
    against the sum of independent trials with chances 1 - exp(-E) (Poisson binomial).
    """
    hit = found.counts(len(nodes)).sum(axis=1) > 0
    rows = [
        (grouping, str(name), np.asarray(members))
        for grouping in GROUPINGS
        for name, members in nodes.groupby(grouping, sort=True).indices.items()
        if LEAST_NODES <= len(members) < len(nodes)
    ]
    p = np.array([_p_hit(mean[at], int(hit[at].sum())) for _, _, at in rows])
    bad = []
    for index in np.flatnonzero(discoveries(p, level)):
        grouping, name, at = rows[index]
        calm = _outside_worst_week(found, at).counts(len(nodes)).sum(axis=1) > 0
        if _p_hit(mean[at], int(calm[at].sum())) > level:
            continue
        chances, n_hit = 1 - np.exp(-mean[at]), int(hit[at].sum())
        names = tuple(nodes["node"].iloc[at])
        ratio = _ratio(mean[at], n_hit)
        bad.append(
            BadGroup(cluster, grouping, name, names, n_hit, float(chances.sum()), ratio, p[index])
        )
    return bad


def _outside_worst_week(found: Episodes, members: NDArray[np.intp]) -> Episodes:
    """Occasions of a group but for the seven days in which most of its members were hit."""
    of_group = found.where(np.isin(found.place, members))
    weeks = [(of_group.day >= day) & (of_group.day < day + WEEK_DAYS) for day in of_group.day]
    return of_group.where(~max(weeks, key=lambda inside: len(np.unique(of_group.place[inside]))))


def _p_hit(mean: Floats, n_hit: int) -> float:
    """Chance that at least so many members are hit."""
    density = np.zeros(len(mean) + 1)
    density[0] = 1.0
    for chance in 1 - np.exp(-mean):
        density[1:] = density[1:] * (1 - chance) + density[:-1] * chance
        density[0] *= 1 - chance
    return float(min(1.0, density[n_hit:].sum()))


def _ratio(mean: Floats, n_hit: int) -> float:
    """Rates over the usual ones with which so many members would be hit."""
    target = min(n_hit, len(mean) - 0.5)

    def missing(log_ratio: float) -> float:
        return float((1 - np.exp(-np.exp(log_ratio) * mean)).sum()) - target

    if missing(0.0) >= 0:
        return 1.0
    from scipy import optimize  # a tenth of a second, and hardly ever asked

    return float(np.exp(optimize.brentq(missing, 0.0, 12.0)))
