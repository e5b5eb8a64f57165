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
    from collections.abc import Iterable, Mapping

    from analytics.arrays import Bools, Ints
    from analytics.nodes.lemons import JudgedCluster

NOTHING_SAVED: Final = "draining it may save nothing"


def settled(judged: JudgedCluster) -> JudgedCluster:
    """The cluster with those lemons to be watched of which draining may save nothing, as foretold.

    That is where the interval (90 %) of what draining saves includes 0; where no loss of any job
    is known, where that of the ratio includes 1. Further failures are tried until it does not.
    """
    places = np.flatnonzero(_may_save_nothing(judged, judged.lemons))
    failing_days: dict[int, int] = {}
    for k in range(1, MOST_FAILING + 1 if len(places) else 1):
        chosen = np.isin(np.arange(len(judged.nodes)), places)
        still = _may_save_nothing(_failed_again(judged, places, k), chosen)
        for at in places[~still[places]].tolist():
            failing_days.setdefault(at, k)
    return watched(judged, places.tolist(), failing_days)


def watched(
    judged: JudgedCluster, places: Iterable[int], failing_days: Mapping[int, int] | None = None
) -> JudgedCluster:
    """The cluster with those lemons among some nodes to be watched: draining may save nothing."""
    nodes = list(judged.nodes)
    for at in places:
        if nodes[at].verdict == "lemon":
            decided_by = (failing_days or {}).get(at)
            nodes[at] = replace(
                nodes[at], verdict="watch", why=NOTHING_SAVED, failing_days=decided_by
            )
    return replace(judged, nodes=tuple(nodes))


def _may_save_nothing(judged: JudgedCluster, chosen: Bools) -> Bools:
    """Those of the chosen nodes of which the interval includes nothing saved."""
    if (judged.records.events["lost_gpu_hours"] > 0).any():
        saved = savings(judged, chosen, conf_level=CONF_LEVEL)
        lower = {each.at: each.gpu_hours.lower or 0.0 for each in saved}
    else:
        ratios = judged.ratios.estimates(CONF_LEVEL)
        lower = {int(at): (ratios[at].lower or 0.0) - 1 for at in np.flatnonzero(chosen)}
    found = np.zeros(len(chosen), dtype=bool)
    found[[at for at, bound in lower.items() if bound <= 0]] = True
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
    more = pd.DataFrame({
        "place": np.repeat(places, k),
        "day": judged.records.days + 1 + np.tile(np.arange(float(k)), len(places)),
        "signal": "job_failure", "share": 1.0, "n_nodes": 1, "evident": True,
        "lost_gpu_hours": np.repeat((lost / ratios.n[places].clip(1)).to_numpy(), k),
    })  # fmt: skip
    records = replace(judged.records, events=pd.concat([events, more], ignore_index=True))
    found = judged.found.with_failures(more["place"].to_numpy(), more["day"].to_numpy())
    ratios = replace(ratios, posterior=posterior, n=n)
    return replace(judged, records=records, found=found, ratios=ratios)
