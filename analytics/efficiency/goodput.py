"""The GPU-hour ledger: where every GPU-hour of the fleet went, and what the losses cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from scipy import special

from analytics import validate
from analytics.efficiency.buckets import BUCKETS, BucketKind
from analytics.efficiency.ledger_notes import (
    habit_sentences,
    no_state_sentences,
    record_sentences,
)
from analytics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import pandas as pd

HOUR_S = 3_600
FREE = ("queue_hold", "idle")
"""Buckets of GPUs that no job held and no record says to be out of service."""


@dataclass(frozen=True)
class Bucket:
    """GPU-time of one bucket."""

    bucket: str
    gpu_seconds: int
    gpu_hours: Estimate
    """Hours of GPU; n = attempts whose time it is, 0 for time that no job held. What records fix
    has no spread: its bounds are its value."""
    ratio: Estimate
    """Share of the total."""
    cost: float | None
    """Price of it; None where a cluster of it has no price."""

    @property
    def kind(self) -> BucketKind:
        """What it means."""
        return BUCKETS[self.bucket]


@dataclass(frozen=True)
class Loss:
    """Lost work by cause, estimated and by the paper's rule."""

    bucket: str
    cause: str | None
    """None: a preemption that no failure caused, or a requeue."""
    n_attempts: int
    gpu_hours: Estimate
    rule_gpu_hours: float
    """Sum of min(running time, 30 min) x GPUs (papers.md A7)."""


@dataclass(frozen=True)
class GoodputLedger:
    """Where the GPU-hours of a selection went.

    Attributes
    ----------
    total_gpu_seconds
        Sum of the buckets, exactly.
    buckets
        One of each bucket, in the order of `BUCKETS`; only those of jobs where a filter leaves
        jobs alone.
    losses
        Lost work by bucket and cause, the largest first.
    rule_first_order_gpu_hours, rule_second_order_gpu_hours
        Goodput loss as the RSC paper counts it: of failed attempts, and of attempts that the
        requeue of one preempted.
    runtime_goodput
        Productive over all time that jobs held.
    currency
        Of the costs; None where no price is known, or prices differ in currency.
    """

    total_gpu_seconds: int
    buckets: tuple[Bucket, ...]
    losses: tuple[Loss, ...]
    rule_first_order_gpu_hours: float | None
    rule_second_order_gpu_hours: float | None
    runtime_goodput: Estimate
    known: bool
    """Whether the selection holds any GPU-time: else every bucket is unknown, not empty."""
    clusters: tuple[str, ...]
    """Clusters with time."""
    without_states: tuple[str, ...]
    """Those of which no record says when nodes were out of service."""
    currency: str | None
    conf_level: float
    notes: tuple[str, ...]
    """What the estimates take for granted and the records leave open."""

    @property
    def total_gpu_hours(self) -> float | None:
        """All GPU-hours; None where the records of the selection state none."""
        return self.total_gpu_seconds / HOUR_S if self.known else None

    def bucket(self, name: str) -> Bucket | None:
        """One bucket; None where the selection leaves it out."""
        return next((each for each in self.buckets if each.bucket == name), None)


def goodput_ledger(
    rows: pd.DataFrame,
    *,
    prices: Mapping[str, tuple[float, str]],
    notes: Mapping[str, Any],
    without_states: Collection[str] = (),
    conf_level: float = 0.90,
) -> GoodputLedger:
    """The ledger of GPU-hours.

    Every GPU-second is in one bucket; buckets are whole numbers of GPU-seconds, so they sum to the
    total exactly. The interval of an estimated bucket joins what is assumed and chance:

        [sum lower - z sqrt(sum variance), sum upper + z sqrt(sum variance)] within [0, total]

    with lower and upper at the bounds of the habits of checkpointing (`habits.habits`), all
    attempts at the same bound, and the variance of when interruptions struck, which adds up over
    attempts.

    Of a cluster without records of nodes' states time out of service counts as free: it is 0 to all
    free time of the cluster, and what is free is 0 to what was counted.

    Parameters
    ----------
    rows : DataFrame
        Sums of `gpu_time`: `cluster`, `bucket`, `cause` and its counts; at least one row a
        bucket, cause and cluster that has time.
    prices
        Cluster -> price of a GPU-hour and its currency.
    notes
        What the derivation took for granted, as `store_meta.ledger_notes` holds it.
    without_states
        Clusters of which no record says when nodes were out of service.
    conf_level
        Of the intervals.

    Raises
    ------
    OutOfRangeError
        For a level outside (0, 1).
    """
    validate.conf_level(conf_level)
    total = int(rows["gpu_seconds"].sum())
    of_jobs = {name for name, kind in BUCKETS.items() if kind.of_jobs}
    fleet = bool((~rows["bucket"].isin(of_jobs)).any())
    names = [name for name, kind in BUCKETS.items() if fleet or kind.of_jobs]
    currencies = {prices[c][1] for c in rows["cluster"].unique() if c in prices}
    currency = currencies.pop() if len(currencies) == 1 else None
    held = rows[rows["bucket"].isin(of_jobs)]
    in_jobs = int(held["gpu_seconds"].sum())
    kept = _estimate(held[held["bucket"].eq("productive")], in_jobs, conf_level)
    first = rows["bucket"].eq("lost_work")
    second = rows["bucket"].eq("lost_work_preempted") & rows["cause"].notna()
    free = rows[rows["bucket"].isin(FREE) & rows["cluster"].isin(list(without_states))]
    open_s = {name: int(free.loc[free["bucket"].eq(name), "gpu_seconds"].sum()) for name in FREE}
    held_by = rows.loc[rows["gpu_seconds"] > 0, "cluster"].unique().tolist()
    unstated = tuple(sorted(set(without_states) & set(held_by))) if fleet else ()
    buckets = [
        _bucket(
            name,
            rows[rows["bucket"].eq(name)],
            total,
            prices=prices,
            currency=currency,
            conf_level=conf_level,
        )
        for name in names
    ]
    return GoodputLedger(
        total_gpu_seconds=total,
        buckets=tuple(_bounded(each, open_s, total) if unstated else each for each in buckets),
        losses=_losses(rows, total, conf_level),
        rule_first_order_gpu_hours=_by_rule(rows, first),
        rule_second_order_gpu_hours=_by_rule(rows, second),
        runtime_goodput=kept.scaled(HOUR_S / in_jobs) if in_jobs else _nothing(conf_level),
        known=not rows.empty,
        clusters=tuple(sorted(held_by)),
        without_states=unstated,
        currency=currency,
        conf_level=conf_level,
        notes=(
            *habit_sentences(notes),
            *record_sentences(notes),
            *no_state_sentences(unstated, several=len(held_by) > len(unstated)),
        ),
    )  # fmt: skip


def _bounded(found: Bucket, open_s: Mapping[str, int], total: int) -> Bucket:
    """A bucket with the bounds that missing states of nodes leave.

    `open_s`: free seconds, by bucket, that may as well have been out of service.
    """
    if found.kind.of_jobs:
        return found
    lower, upper = found.gpu_seconds, found.gpu_seconds
    if found.bucket in FREE:
        lower -= open_s[found.bucket]
    else:
        upper += sum(open_s.values())
    level, n = found.gpu_hours.conf_level, found.gpu_hours.n
    hours, ratio = (
        Estimate(found.gpu_seconds / unit, lower / unit, upper / unit, level, n)
        for unit in (HOUR_S, total)
    )
    return replace(found, gpu_hours=hours, ratio=ratio)


def _bucket(
    name: str,
    rows: pd.DataFrame,
    total: int,
    *,
    prices: Mapping[str, tuple[float, str]],
    currency: str | None,
    conf_level: float,
) -> Bucket:
    """One bucket of the ledger."""
    hours = _estimate(rows, total, conf_level) if total else _nothing(conf_level)
    by_cluster = rows.groupby("cluster")["gpu_seconds"].sum()
    priced = currency is not None and all(c in prices for c in by_cluster.index)
    return Bucket(
        bucket=name,
        gpu_seconds=int(rows["gpu_seconds"].sum()),
        gpu_hours=hours,
        ratio=hours.scaled(HOUR_S / total) if total else _nothing(conf_level),
        cost=float(sum(prices[str(c)][0] * s for c, s in by_cluster.items()) / HOUR_S)
        if priced
        else None,
    )


def _losses(rows: pd.DataFrame, total: int, conf_level: float) -> tuple[Loss, ...]:
    """Lost work by bucket and cause."""
    lost = rows[rows["rule_gpu_seconds"].notna()]
    found = [
        Loss(
            bucket=str(bucket),
            cause=None if cause == "" else str(cause),
            n_attempts=int(part["n_attempts"].sum()),
            gpu_hours=_estimate(part, total, conf_level),
            rule_gpu_hours=float(part["rule_gpu_seconds"].sum()) / HOUR_S,
        )
        for (bucket, cause), part in lost.assign(cause=lost["cause"].fillna("")).groupby(
            ["bucket", "cause"]
        )
    ]
    return tuple(sorted(found, key=lambda loss: (-(loss.gpu_hours.value or 0.0), str(loss.cause))))


def _by_rule(rows: pd.DataFrame, chosen: pd.Series) -> float | None:
    """GPU-hours lost by the paper's rule; None where no GPU-time is known at all."""
    return None if rows.empty else float(rows.loc[chosen, "rule_gpu_seconds"].sum()) / HOUR_S


def _estimate(rows: pd.DataFrame, total: int, conf_level: float) -> Estimate:
    """GPU-hours of rows with their interval."""
    sums: Any = rows[["gpu_seconds", "lower_gpu_seconds", "upper_gpu_seconds"]].sum()
    chance = float(special.ndtri((1 + conf_level) / 2)) * math.sqrt(rows["variance_gpu_s2"].sum())
    value = int(sums["gpu_seconds"])
    lower = max(0.0, min(float(value), float(sums["lower_gpu_seconds"]) - chance))
    upper = min(float(total), max(float(value), float(sums["upper_gpu_seconds"]) + chance))
    n = int(rows["n_attempts"].astype(float).sum())
    return Estimate(value / HOUR_S, lower / HOUR_S, upper / HOUR_S, conf_level, n)


def _nothing(conf_level: float) -> Estimate:
    """A share of nothing."""
    return Estimate(None, None, None, conf_level, 0)
