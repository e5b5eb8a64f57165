"""Which lemons are to be drained: those of which draining saves something, chance included."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from analytics.estimate import CONF_LEVEL
from analytics.nodes.draining import savings
from analytics.nodes.lemons import MOST_FAILING
from analytics.nodes.ratios import GRID

if TYPE_CHECKING:
    from analytics.arrays import Bools, Ints
    from analytics.nodes.lemons import JudgedCluster

NOTHING_SAVED: Final = "draining it may save nothing"


def settled(judged: JudgedCluster) -> JudgedCluster:
    """The cluster with those lemons to be watched of which draining may save nothing.

    That is where the interval (90 %) of what draining saves includes 0; where no loss of any job
    is known, where that of the ratio includes 1. Further failures are tried until it does not.
    """
    open_ = _may_save_nothing(judged, judged.lemons)
    if not open_.any():
        return judged
    places = np.flatnonzero(open_)
    failing_days: dict[int, int] = {}
    for k in range(1, MOST_FAILING + 1):
        still = _may_save_nothing(_failed_again(judged, places, k), open_)
        for at in places[~still[places]].tolist():
            failing_days.setdefault(at, k)
    nodes = list(judged.nodes)
    for at in places.tolist():
        nodes[at] = replace(
            nodes[at], verdict="watch", why=NOTHING_SAVED, failing_days=failing_days.get(at)
        )
    return replace(judged, nodes=tuple(nodes))


def _may_save_nothing(judged: JudgedCluster, chosen: Bools) -> Bools:
    """Those of the chosen nodes of which the interval includes nothing saved."""
    found = np.zeros(len(chosen), dtype=bool)
    if (judged.records.events["lost_gpu_hours"] > 0).any():
        for each in savings(judged, chosen, conf_level=CONF_LEVEL):
            found[each.at] = (each.gpu_hours.lower or 0.0) <= 0
        return found
    estimates = judged.ratios.estimates(CONF_LEVEL)
    for at in np.flatnonzero(chosen).tolist():
        found[at] = (estimates[at].lower or 0.0) <= 1
    return found


def _failed_again(judged: JudgedCluster, places: Ints, k: int) -> JudgedCluster:
    """The same had jobs failed k times more on some nodes, each as dear as its occasions were."""
    ratios, events = judged.ratios, judged.records.events
    posterior, n = ratios.posterior.copy(), ratios.n.copy()
    posterior[places] *= GRID**k
    posterior[places] /= posterior[places].sum(axis=1, keepdims=True)
    n[places] += k
    failed = events[(events["signal"] == "job_failure") & (events["share"] >= 1)]
    lost = failed.groupby("place")["lost_gpu_hours"].sum().reindex(places, fill_value=0.0)
    per_occasion = np.repeat((lost / ratios.n[places].clip(1)).to_numpy(), k)
    more = pd.DataFrame({
        "place": np.repeat(places, k), "signal": "job_failure", "share": 1.0,
        "lost_gpu_hours": per_occasion, "n_nodes": 1, "evident": True,
    })  # fmt: skip
    records = replace(judged.records, events=pd.concat([events, more], ignore_index=True))
    return replace(judged, records=records, ratios=replace(ratios, posterior=posterior, n=n))
