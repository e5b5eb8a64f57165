"""How often do jobs fail, and how long until one does?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from analytics import validate
from analytics.estimate import Estimate
from analytics.reliability.failure_rate import PROJECTION_GPUS, Projection, projected_mttf
from analytics.reliability.mttf import GroupRate, MttfReport, group_rates, mttf_report
from data.queries import reliability as reliability_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from data.queries.reliability import Grouping
    from data.queries.selection import Selection
    from data.store import Store

EARLIEST = datetime.min.replace(tzinfo=UTC)


def mttf(
    store: Store,
    selection: Selection,
    *,
    conf_level: float = 0.90,
    seed: int = 0,
    gpus: Sequence[int] | None = None,
) -> MttfReport:
    """How often do jobs of the selection fail, and how long until one of N GPUs does?

    `gpus` names the job sizes of the projection; 8, 16, ... 131,072 where it is None.
    """
    counts = reliability_queries.failure_counts(store, selection)
    return mttf_report(counts, conf_level=conf_level, seed=seed, gpus=gpus or PROJECTION_GPUS)


def mttf_before(
    store: Store, selection: Selection, *, conf_level: float = 0.90, seed: int = 0
) -> MttfReport | None:
    """The same for the preceding period of equal length; None where there is none with data."""
    if selection.from_at is None or selection.to_at is None:
        return None
    length = selection.to_at - selection.from_at
    if selection.from_at - EARLIEST < length:
        return None
    before = replace(selection, from_at=selection.from_at - length, to_at=selection.from_at)
    report = mttf(store, before, conf_level=conf_level, seed=seed)
    return report if report.rate.exposure else None


def rates_by(
    store: Store,
    selection: Selection,
    by: Grouping,
    *,
    conf_level: float = 0.90,
    seed: int = 0,
) -> tuple[GroupRate, ...]:
    """Does the failure rate differ between weeks, partitions, racks or ages of nodes?"""
    groups = reliability_queries.groups(store, selection, by)
    return group_rates(groups, conf_level=conf_level, seed=seed)


def projection(
    rate_per_1000_node_days: float, gpus: Sequence[int], *, gpus_per_node: float = 8
) -> tuple[Projection, ...]:
    """What MTTF does a given failure rate imply for jobs of these sizes?"""
    validate.nonnegative("rate_per_1000_node_days", rate_per_1000_node_days, "pass e.g. 6.5")
    rate = Estimate(rate_per_1000_node_days / 1000.0, None, None, 0.90, 0)
    return projected_mttf(rate, gpus, gpus_per_node=gpus_per_node)


def failure_rows(store: Store, selection: Selection, *, limit: int = 10_000) -> pd.DataFrame:
    """Which failures does the rate count?"""
    return reliability_queries.failure_rows(store, selection, limit)


def attempt_rows(
    store: Store, selection: Selection, *, gpus: tuple[int, int], limit: int = 10_000
) -> pd.DataFrame:
    """Which attempts stand behind a size class?"""
    return reliability_queries.attempt_rows(store, selection, gpus=gpus, limit=limit)
