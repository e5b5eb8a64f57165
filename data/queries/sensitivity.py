"""What each definition counts as a failure, day by day."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.frames import DEFINITION, FAILURE_DEFINITIONS
from data.definitions import FAILED_BY, INFRASTRUCTURE, UNEXPLAINED
from data.queries.exposure import OF_RATED_SIZE, dates, node_failures, of_size, runs
from data.queries.exposure import node_failure_days as node_days
from data.queries.reliability import EXPOSURE, together
from data.queries.verdict_sums import verdicts_alike

if TYPE_CHECKING:
    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

_COUNTS: dict[str, str] = {
    **{name: FAILED_BY[name] for name in FAILURE_DEFINITIONS},
    "lost": f"{INFRASTRUCTURE} AND node_lost",
    "lost_explained": f"{INFRASTRUCTURE} AND node_lost AND domain <> 'unknown'",
    "found": f"{INFRASTRUCTURE} AND NOT node_lost",
    "unexplained": UNEXPLAINED,
    "unchecked": "(state = 'FAILED' AND critical_check IS NULL)",
}
"""What is counted, each under its condition on a verdict."""


def judged_days(store: Store, selection: Selection) -> Columns:
    """Failed attempts of a selection that each definition counts, and those it could not explain.

    Columns cluster, day, one for each definition under its name, lost, lost_explained, found,
    unexplained, unchecked, logged (see `analytics.reliability.sensitivity`). Failures of nodes
    known without jobs count by every definition: their source names them so; those that hit
    something else by the default one alone.
    """
    verdicts = verdicts_alike(store, selection)
    counts = ", ".join(
        f"CAST(coalesce(sum(n_attempts) FILTER ({condition}), 0) AS BIGINT) AS {name}"
        for name, condition in _COUNTS.items()
    )
    judged = store.columns(
        f"""WITH {verdicts.tables}
            SELECT cluster, day - DATE '1970-01-01' AS day, {counts}
            FROM alike JOIN clusters USING (cluster)
            WHERE ({" OR ".join(_COUNTS.values())}) AND {OF_RATED_SIZE}
            GROUP BY cluster, day ORDER BY cluster, day""",
        verdicts.parameters,
    )
    nodes = node_failures(store, replace(selection, definition=DEFINITION))
    one, none = (fill(len(nodes["day"]), dtype=np.int64) for fill in (np.ones, np.zeros))
    of_node = np.array([hit is None for hit in nodes["hit"]], dtype=np.int64)
    logged = {name: of_node if name in FAILURE_DEFINITIONS else none for name in _COUNTS}
    logged[DEFINITION] = one
    names = ("cluster", "day", *_COUNTS, "logged")
    judged = {**judged, "day": dates(judged["day"]), "logged": np.zeros_like(judged["day"])}
    return together(names, judged, {**nodes, **logged, "logged": one})


def exposure_days(store: Store, selection: Selection) -> Columns:
    """Exposure of a selection: columns cluster, day, exposure_node_days; several rows a day."""
    ran = of_size(runs(store, selection), selection.min_gpus)
    return together(EXPOSURE, ran, node_days(store, selection))
