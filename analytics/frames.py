"""Canonical frames: what queries hand to analyses, column by column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    import pandas as pd


@dataclass(frozen=True)
class FailureCounts:
    """What the rate is computed from: counts and exposure by UTC day, and single failures."""

    by_day: pd.DataFrame
    """Columns day, failures, incidents, exposure_node_days; one row a day."""
    by_size: pd.DataFrame
    """Columns n_gpus, day, failures, running_days of attempts; of all sizes."""
    starts_hours: pd.Series
    """Time of each failure, hours from any origin."""
    repair_minutes: pd.Series
    """Minutes down of each failure whose repair is known."""
    exposure_known: bool
    """False where failures are known but not the nodes that could have failed."""
    basis: str
    """gpu_time, node_time (no attempt has GPUs) or node_failures (failures known without jobs)."""
    gpus_per_node: float | None
    """GPUs of one node; None where unknown or where clusters differ."""
    from_at: datetime | None
    """Start of the period counted; None where there is nothing to count."""
    to_at: datetime | None
    """End of the period counted (exclusive)."""
    attempts_without_gpus: int
    """Attempts left out because they have no GPUs or their number is unknown."""
    by_hardware: int | None = None
    """Of the failed attempts counted, those whose verdict is hardware; None without attempts."""
    by_lost_node: int | None = None
    """Of them, those whose node the scheduler lost, whatever the verdict."""
