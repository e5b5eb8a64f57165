"""Levels of the runs that logged last: what rules of alerts look at each hour, in two queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from data.filters import Filter
from data.queries.training import RUN

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

LEVELS = ("loss", "grad_norm", "loss_scale")
_LOGGED = Filter(columns=("cluster",))


class Logging(NamedTuple):
    """A run that logged."""

    cluster: str
    run_id: str
    n_rows: int
    n_ranks: int
    last_at: datetime | None
    """None where no row states a time."""


def last_runs(store: Store, selection: Selection, since_at: datetime, most: int) -> list[Logging]:
    """Runs that logged since a time or state none, the last to do so first."""
    rows = store.rows(
        f"""SELECT cluster, {RUN}, count(*), count(DISTINCT rank), max(logged_at) AS last_at
            FROM training_metrics WHERE cluster IS NOT NULL AND {_LOGGED.where(selection)}
            GROUP BY ALL HAVING last_at IS NULL OR last_at >= $since_at
            ORDER BY last_at DESC NULLS LAST, 2, cluster LIMIT {int(most)}""",
        selection.parameters | {"since_at": since_at},
    )
    return [Logging(*row) for row in rows]


def levels(store: Store, cluster: str, run_ids: Collection[str]) -> dict[str, Columns]:
    """Steps of runs whose rows state times, in their order: of the rank that logged most of them.

    Of each run columns step, logged_at (seconds since 1970), event (0 a step, 1 a save, 2 a load)
    and `LEVELS`, NaN where the row holds none, infinite where it says NaN.
    """
    told = ", ".join(
        f"CASE WHEN isnan({name}) THEN 'infinity'::DOUBLE ELSE coalesce({name}, 'nan'::DOUBLE) END "
        f"AS {name}"
        for name in LEVELS
    )
    held = store.columns(
        f"""WITH of_run AS (
              SELECT {RUN} AS run, * FROM training_metrics
              WHERE cluster = $cluster AND list_contains($runs, {RUN})),
            chosen AS (
              SELECT run, rank FROM of_run WHERE checkpoint_event IS NULL GROUP BY run, rank
              QUALIFY row_number() OVER (
                PARTITION BY run ORDER BY count(*) DESC, rank NULLS FIRST) = 1)
            SELECT of_run.run, coalesce(step, -1) AS step, epoch_us(logged_at) / 1e6 AS logged_at,
              CASE checkpoint_event WHEN 'saved' THEN 1 WHEN 'loaded' THEN 2 ELSE 0 END AS event,
              {told}
            FROM of_run LEFT JOIN chosen ON chosen.run = of_run.run
            WHERE checkpoint_event IS NOT NULL OR of_run.rank IS NOT DISTINCT FROM chosen.rank
            ORDER BY of_run.run, logged_at NULLS FIRST, line_no NULLS FIRST, step""",
        {"cluster": cluster, "runs": sorted(run_ids)},
    )
    names, first = np.unique(held["run"].astype(str), return_index=True)
    parts = {
        name: np.split(column, np.sort(first)[1:]) for name, column in held.items() if name != "run"
    }
    return {
        run: {name: part[place] for name, part in parts.items()}
        for place, run in enumerate(names[np.argsort(first)].tolist())
    }
