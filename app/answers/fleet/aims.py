"""What a site aims at: the figures that can be, and what goes wrong of the GPU-time of jobs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from analytics.efficiency.goodput import lost_gpu_hours
from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    import pandas as pd

    from data.site_alerts import AlertSettings

Figure = Literal["availability", "ettr", "failure_rate"]
TITLES: dict[Figure, str] = {
    "availability": "Availability",
    "ettr": "Ledger ETTR",
    "failure_rate": "Failures per 1,000 node-days",
}
PAGES: dict[Figure, str] = {
    "availability": "availability",
    "ettr": "ledger",
    "failure_rate": "mttf",
}
"""Where each is measured."""
COUNTED: dict[Figure, str] = {
    "availability": "node", "ettr": "attempt", "failure_rate": "failure",
}  # fmt: skip
"""What each rests on."""
NO_LEDGER = "the ledger of these records is not built: `faultline ledger` builds it"


def aim_of(stated: AlertSettings, figure: Figure, cluster: str | None) -> float | None:
    """What is aimed at in a cluster; None where nothing is."""
    aims = stated.aims(cluster)
    if figure == "failure_rate":
        return aims.failures_per_1000_node_days
    return aims.availability if figure == "availability" else aims.ettr


def unproductive(rows: pd.DataFrame) -> Estimate:
    """Share of the GPU-time of jobs that was not productive, by rows of the ledger, with the
    interval that it gives its buckets; n are attempts.
    """
    total = float(rows["gpu_seconds"].sum()) / 3600.0
    if not total:
        return unknown(CONF_LEVEL, 0)
    lost = lost_gpu_hours(rows[rows["bucket"] != "productive"]).scaled(1.0 / total)
    return replace(lost, upper=None if lost.upper is None else min(lost.upper, 1.0))
