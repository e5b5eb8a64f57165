"""Metrics by hour: of a gauge least, mean and greatest value, of a counter how much it rose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.metric_kinds import metric_kind

if TYPE_CHECKING:
    import duckdb

    from data.stages import Context

NEEDS = ("node_metrics", "node_metrics_reduced")
READS = ("node_metrics", "node_metrics_reduced")
WRITES = ("node_metrics_hourly",)
INPUTS = ("data.metric_kinds",)
_COLUMNS = ("cluster", "node", "gpu", "metric", "labels")
_SERIES = ", ".join(_COLUMNS)


def run(connection: duckdb.DuckDBPyConnection, context: Context) -> None:
    """Fills the hours from all samples, and from what was reduced before it came here.

    Of an hour that is known both ways that counts which rests on more samples; of as many, what was
    reduced, for its first step may count on from samples that are not here.

    A counter's increase is the sum of value - before, or of the value where it is less than before
    (it began again), over samples with another one at most an hour before them. So the increases of
    hours add up, whatever stands at their limits.
    """
    _register_kinds(connection)
    connection.execute(
        f"""INSERT INTO node_metrics_hourly BY NAME
            WITH sample AS (
              SELECT {_SERIES}, observed_at, reading AS value,
                date_trunc('hour', observed_at) AS hour_at,
                lag(reading) OVER series AS before,
                lag(observed_at) OVER series + INTERVAL 1 HOUR >= observed_at AS is_near
              FROM node_metrics WHERE node IS NOT NULL
              WINDOW series AS (PARTITION BY {_SERIES} ORDER BY observed_at))
            SELECT {_SERIES}, hour_at, count(*) AS n, min(value) AS minimum,
              list_avg(list(value ORDER BY value)) AS mean, max(value) AS maximum,
              arg_max(value, observed_at) AS last,
              list_sum(list(CASE WHEN value < before THEN value ELSE value - before END
                            ORDER BY observed_at) FILTER (is_counter AND is_near)) AS increase,
              CASE WHEN any_value(is_counter)
                THEN coalesce(max(value) >= any_value(holds_at_most), false) END AS at_least,
              any_value(unit) AS unit
            FROM sample JOIN metric_kind USING (metric) GROUP BY {_SERIES}, hour_at ORDER BY ALL"""
    )
    if "node_metrics_reduced" in context.filled:
        _add_reduced(connection)
    connection.unregister("metric_kind")


def _add_reduced(connection: duckdb.DuckDBPyConnection) -> None:
    """Adds the hours that were reduced, in place of those of fewer samples."""
    same = " AND ".join(
        f"hours.{name} IS NOT DISTINCT FROM reduced.{name}" for name in (*_COLUMNS, "hour_at")
    )
    connection.execute(
        f"""DELETE FROM node_metrics_hourly AS hours USING node_metrics_reduced AS reduced
            WHERE {same} AND reduced.n >= hours.n"""
    )
    connection.execute(
        f"""INSERT INTO node_metrics_hourly BY NAME
            SELECT {_SERIES}, hour_at, n, minimum, mean, maximum, last, increase, at_least, unit
            FROM node_metrics_reduced AS reduced JOIN metric_kind USING (metric)
            WHERE node IS NOT NULL
              AND NOT EXISTS (FROM node_metrics_hourly AS hours WHERE {same}) ORDER BY ALL"""
    )


def _register_kinds(connection: duckdb.DuckDBPyConnection) -> None:
    """View metric_kind: what each metric of the samples is."""
    import pyarrow as pa

    metrics = [name for (name,) in connection.execute(
        "SELECT metric FROM node_metrics UNION SELECT metric FROM node_metrics_reduced"
    ).fetchall()]  # fmt: skip
    kinds = [metric_kind(name) for name in metrics]
    connection.register(
        "metric_kind",
        pa.table({
            "metric": pa.array(metrics, pa.string()),
            "is_counter": pa.array([kind.is_counter for kind in kinds], pa.bool_()),
            "unit": pa.array([kind.unit for kind in kinds], pa.string()),
            "holds_at_most": pa.array([kind.holds_at_most for kind in kinds], pa.float64()),
        }),
    )  # fmt: skip
