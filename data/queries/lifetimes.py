"""How long nodes ran in attempts until a failure, or without one: counted by exact seconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from data.filters import Filter
from data.queries.exposure import failures_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.frames import Columns
    from data.filters import Selection
    from data.store import Store

NAMES: Final[Mapping[str, str]] = {
    "none": "NULL",
    "partition": "coalesce(partition, 'unknown')",
    "account": "coalesce(account, 'unknown')",
    "size": "CASE WHEN units <= 1 THEN 1 WHEN units <= 8 THEN 8 "
    "ELSE CAST(2 ** ceil(log2(units)) AS BIGINT) END",
}
"""What attempts are told apart by -> its expression; size is the most GPUs of a class, or nodes
where jobs state no GPUs."""
_RAN = Filter(of="jobs", overlaps=("start_at", "end_at"))


def node_lives(store: Store, selection: Selection, by: str = "none") -> Columns:
    """Nodes in attempts that ran in the period, those that are alike in one row.

    Columns: `cluster`, `name` (of `by`), `since_s` (how long the attempt ran before the period
    began), `ran_s` (until its end, or that of the period or the records), `attempts`, `nodes` (of
    all of them; a part of one where an attempt holds some of its GPUs, NULL where the GPUs of a
    node are not known) and `failures` (attempts that ended then in one that counts by the
    selection's definition).
    """
    return store.columns(
        f"""WITH {failures_of(selection)},
            ran AS (
              SELECT cluster, account, partition,
                CASE WHEN basis = 'gpu_time' THEN n_gpus ELSE n_nodes END AS units,
                units / CASE WHEN basis = 'gpu_time' THEN coalesce(node_gpus, gpus_per_node)
                  ELSE 1 END AS nodes,
                epoch_us(start_at) AS start_us,
                epoch_us(greatest(start_at, $from_at)) AS begin_us,
                epoch_us(least(coalesce(end_at, as_of_at), $to_at)) AS end_us, 1 AS ran, 0 AS failed
              FROM jobs JOIN clusters USING (cluster)
              WHERE start_at IS NOT NULL AND {_RAN.where(selection)}
                AND CASE WHEN basis = 'gpu_time' THEN n_gpus >= greatest($min_gpus, 1)
                  ELSE n_nodes > 0 END),
            died AS (
              SELECT cluster, failed_account, partition, units, NULL, epoch_us(failed_start_at),
                epoch_us(greatest(failed_start_at, $from_at)), epoch_us(failed_at), 0, 1
              FROM failure WHERE failed_start_at IS NOT NULL AND units > 0)
            SELECT cluster, CAST({NAMES[by]} AS VARCHAR) AS name,
              (begin_us - start_us) // 1000000 AS since_s, (end_us - start_us) // 1000000 AS ran_s,
              CAST(sum(ran) AS BIGINT) AS attempts, sum(nodes) AS nodes,
              CAST(sum(failed) AS DOUBLE) AS failures
            FROM (FROM ran UNION ALL FROM died) WHERE end_us >= begin_us
            GROUP BY ALL ORDER BY ALL""",
        selection.parameters,
    )
