"""Jobs that ran when the records end."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

    from data.filters import Selection
    from data.store import Store

MOST = 64


def running_jobs(store: Store, selection: Selection, limit: int = MOST) -> pd.DataFrame:
    """The largest attempts without an end of the selection's cluster, partition, account and size:
    columns cluster, job_id, n_gpus, n_running (how many there are in all)."""
    filters = {
        "cluster": selection.cluster,
        "partition": selection.partition,
        "account": selection.account,
    }
    given = {name: value for name, value in filters.items() if value is not None}
    where = "".join(f' AND "{name}" = ${name}' for name in given)
    return store.frame(
        f"""SELECT cluster, job_id, n_gpus, count(*) OVER () AS n_running FROM jobs
            WHERE state = 'RUNNING' AND end_at IS NULL AND start_at IS NOT NULL AND n_gpus > 0
              AND n_gpus >= $least{where}
            ORDER BY n_gpus DESC, cluster, job_id LIMIT {int(limit)}""",
        given | {"least": selection.min_gpus or 0},
    )
