"""Order of the derivation: runs, attempts, fleet, rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pandas as pd

from analytics.reliability.failure_rate import size_label
from data.derive.ledger.attempts import AttemptRows, attempt_rows
from data.derive.ledger.fleet import fleet_rows
from data.derive.ledger.runs import write_runs
from data.derive.runs import set_runs
from data.derive.straggler_traces import link_traces
from data.derive.training_attempts import join_training
from data.ledger_state import forget_ledger, ledger_key

if TYPE_CHECKING:
    from collections.abc import Callable

    import duckdb

    from data.said import Said
    from data.site import Site


def derive_ledger(
    connection: duckdb.DuckDBPyConnection,
    site: Site,
    said: Said,
    progress: Callable[[str], None] = lambda message: None,
) -> tuple[str, str]:
    """Fills `job_runs` and `gpu_time`; the key and notes of `store_meta`."""
    connection.execute("BEGIN")
    forget_ledger(connection)
    progress("joining attempts to runs")
    set_runs(connection, site.runs.rule)
    join_training(connection)
    link_traces(connection)
    progress("dividing running time")
    held = attempt_rows(connection, site.runs, said)
    progress("sweeping the fleet")
    rest, excess = fleet_rows(connection)
    progress("writing the ledger")
    _write(connection, held, rest)
    progress("writing the runs")
    write_runs(connection, held)
    connection.execute("COMMIT")
    return ledger_key(site, said), json.dumps(held.notes | {"excess_gpu_seconds": excess})


def _write(connection: duckdb.DuckDBPyConnection, held: AttemptRows, rest: pd.DataFrame) -> None:
    """Writes the rows of attempts and of the fleet, by day."""
    sizes = [
        n for (n,) in connection.execute("SELECT DISTINCT n_gpus FROM ledger_group").fetchall()
    ]
    classes = pd.DataFrame({"n_gpus": sizes, "size_class": [size_label(n) for n in sizes]})
    connection.register("ledger_size", classes.astype({"n_gpus": "int64"}))
    connection.register("attempt_time", held.daily)
    connection.register("fleet_time", rest)
    connection.execute(
        """INSERT INTO gpu_time BY NAME
           WITH summed AS (
             SELECT day, "group", loss, part, sum(gpu_seconds) AS gpu_seconds,
               sum(lower_gpu_seconds) AS lower_gpu_seconds,
               sum(upper_gpu_seconds) AS upper_gpu_seconds,
               sum(variance_gpu_s2) AS variance_gpu_s2, sum(n_attempts) AS n_attempts,
               sum(rule_gpu_seconds) AS rule_gpu_seconds
             FROM attempt_time GROUP BY ALL)
           SELECT DATE '1970-01-01' + CAST(day AS INTEGER) AS day, cluster, partition, account,
             size_class, n_gpus, coalesce(ledger_loss.bucket, part) AS bucket, cause,
             CAST(gpu_seconds AS BIGINT) AS gpu_seconds,
             CAST(least(floor(lower_gpu_seconds), gpu_seconds) AS BIGINT) AS lower_gpu_seconds,
             CAST(greatest(ceil(upper_gpu_seconds), gpu_seconds) AS BIGINT) AS upper_gpu_seconds,
             variance_gpu_s2, CAST(n_attempts AS BIGINT) AS n_attempts,
             CAST(rule_gpu_seconds AS BIGINT) AS rule_gpu_seconds
           FROM summed JOIN ledger_group ON ledger_group.code = summed.group
           JOIN ledger_size USING (n_gpus)
           LEFT JOIN ledger_loss ON ledger_loss.code = summed.loss
           WHERE gpu_seconds > 0 OR upper_gpu_seconds > 0 OR rule_gpu_seconds IS NOT NULL
           ORDER BY day, cluster"""
    )
    connection.execute(
        """INSERT INTO gpu_time BY NAME
           SELECT DATE '1970-01-01' + CAST(day AS INTEGER) AS day, cluster, bucket, gpu_seconds,
             gpu_seconds AS lower_gpu_seconds, gpu_seconds AS upper_gpu_seconds,
             0.0 AS variance_gpu_s2
           FROM fleet_time WHERE gpu_seconds > 0 ORDER BY day, cluster, bucket"""
    )
    connection.unregister("ledger_size")
    connection.unregister("attempt_time")
    connection.unregister("fleet_time")
