"""What do the metrics of one node say?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.content import Missing, Table
from app.words.cells import Column
from app.words.glossary import of_nodes
from data.queries import metrics

if TYPE_CHECKING:
    from app.ask import Ask
    from data.filters import Selection

COLUMNS = (
    Column("metric", "Metric"),
    *columns("gpu"),
    Column("unit", "Unit", none="nobody says"),
    Column("minimum", "Least", "number"),
    Column("mean", "Mean", "number"),
    Column("maximum", "Greatest", "number"),
    Column("increase", "Rose by", "number", none="a gauge, or one sample alone",
           help=of_nodes.ROSE_BY.definition),
    Column("n", "Samples", "count"),
    Column("hour_at", "Last hour", "time", "UTC"),
)  # fmt: skip
NONE = Missing(
    "metrics",
    "No metric of this node is known in these days.",
    "Ingest what its exporters say:",
    (
        "faultline ingest dcgm metrics.txt",
        "faultline ingest prometheus-json answer.json",
        "faultline ingest infiniband counters.txt",
    ),
)


def table(ask: Ask, cluster: str | None, node: str, selection: Selection) -> Table | Missing:
    """Metrics of the node in the period, a row a metric and GPU."""
    rows = ask(metrics.of_node, cluster, node, selection)
    return NONE if rows.empty else Table("metrics", "Metrics", COLUMNS, rows)
