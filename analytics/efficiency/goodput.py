"""The GPU-hour ledger: where every GPU-hour of the fleet went, and what the losses cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from analytics import validate
from analytics.efficiency.buckets import (
    BUCKETS,
    STACK,
    BucketKind,
    excess_sentences,
    no_state_sentences,
    uncounted_sentences,
)
from analytics.efficiency.fleet_time import OUT_OF_SERVICE
from analytics.efficiency.habit_model import positive_bounds
from analytics.efficiency.habits import habit_sentences
from analytics.efficiency.unrecorded import (
    HOUR_S,
    Unrecorded,
    missing_sentence,
    moved,
    share_of_held,
    unrecorded,
)
from analytics.estimate import CONF_LEVEL, Estimate, unknown

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

FREE = ("queue_hold", "idle")
"""Buckets of GPUs that no job held and no record says to be out of service."""
LOST = ("lost_work", "lost_work_preempted")
"""Buckets of work lost to failures and to preemption."""
NOTHING_OPEN = Estimate(0.0, 0.0, 0.0, None, 0)
"""What unexplained failures may have lost where there are none."""
CAPACITY, HELD = "Capacity", "Held by jobs"
"""What all GPU-time is called, and that of jobs."""
OUTSIDE = "none: outside jobs"
"""What stands for Google's term where it has none: time that no job held."""


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
    bounded: bool = False
    """Whether attempts without a record may change it: it lies within its bounds."""

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
class Step:
    """A bar of the way from all GPU-time down to the productive part: two shares of the total."""

    title: str
    bucket: Bucket | None
    """What is taken off, or at last what is left; None for a sum."""
    from_ratio: float
    to_ratio: float


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
        Lost work by bucket and cause: of failures first, then the largest first.
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
    if_unexplained_count: Estimate = NOTHING_OPEN
    """GPU-hours that failures would have lost besides if infrastructure had ended all unexplained
    ones: from 0 to the upper bound of that, no value; n = unexplained failures."""

    @property
    def bounded(self) -> bool:
        """Whether attempts without a record may change any bucket."""
        return any(bucket.bounded for bucket in self.buckets)

    @property
    def total_gpu_hours(self) -> float | None:
        """All GPU-hours; None where the records of the selection state none."""
        return self.total_gpu_seconds / HOUR_S if self.known else None

    @property
    def covers_fleet(self) -> bool:
        """Whether time that no job held is in it: no filter leaves jobs alone."""
        return any(not bucket.kind.of_jobs for bucket in self.buckets)

    @property
    def productive_ratio(self) -> Estimate:
        """Productive share of the total; of the time that jobs held where the bucket is missing."""
        productive = self.bucket("productive")
        return self.runtime_goodput if productive is None else productive.ratio

    @property
    def second_order_gpu_hours(self) -> float:
        """GPU-hours lost to preemption that the requeue of a failed job caused, as estimated."""
        return sum(
            loss.gpu_hours.value or 0.0
            for loss in self.losses
            if loss.bucket == "lost_work_preempted" and loss.cause is not None
        )

    @property
    def states_known(self) -> bool:
        """Whether records say of any cluster when its nodes were out of service."""
        return not self.clusters or self.without_states != self.clusters

    @property
    def out_of_service_gpu_hours(self) -> float | None:
        """GPU-hours of nodes drained or down; None where no record says when nodes were."""
        if not self.states_known:
            return None
        return sum(bucket.gpu_hours.value or 0.0 for bucket in self._of(OUT_OF_SERVICE))

    @property
    def out_of_service_ratio(self) -> float | None:
        """The same as a share of the total."""
        if not self.states_known:
            return None
        seconds = sum(bucket.gpu_seconds for bucket in self._of(OUT_OF_SERVICE))
        return seconds / (self.total_gpu_seconds or 1)

    @property
    def out_of_service_bounds(self) -> Estimate | None:
        """GPU-hours of nodes drained or down where attempts without a record may have held some."""
        parts = [
            bucket for bucket in self._of(OUT_OF_SERVICE) if bucket.gpu_hours.value is not None
        ]
        if not self.states_known or not any(bucket.bounded for bucket in parts):
            return None
        value, lower, upper = (
            sum(getattr(bucket.gpu_hours, side) for bucket in parts)
            for side in ("value", "lower", "upper")
        )
        return Estimate(value, lower, upper, None, 0)

    @property
    def losses_cost(self) -> float | None:
        """Price of lost work and of nodes out of service; None where one of them has none."""
        costs = [bucket.cost for bucket in (*self._of(LOST), *self._of(OUT_OF_SERVICE))]
        known = [cost for cost in costs if cost is not None]
        return sum(known) if len(known) == len(costs) else None

    @property
    def steps(self) -> tuple[Step, ...]:
        """From all GPU-time down: what each bucket takes off, last what is productive.

        Time out of service first, then what was free, then, below the sum of what jobs held, what
        these spent and lost. Buckets that are empty whatever the bound are left out.
        """
        there = {bucket.bucket: bucket for bucket in self.buckets if bucket.gpu_hours.upper}
        steps = [Step(CAPACITY if self.covers_fleet else HELD, None, 0.0, 1.0)]
        total = left = self.total_gpu_seconds or 1  # whole seconds: what is left is exact
        above_jobs = any(not bucket.kind.of_jobs for bucket in there.values())
        for bucket in (there[name] for name in reversed(STACK[1:]) if name in there):
            if bucket.kind.of_jobs and above_jobs:
                steps.append(Step(HELD, None, 0.0, left / total))
                above_jobs = False
            above, left = left, left - bucket.gpu_seconds
            steps.append(Step(bucket.kind.title, bucket, above / total, left / total))
        if (productive := self.bucket("productive")) is not None:
            steps.append(Step(productive.kind.title, productive, 0.0, left / total))
        return tuple(steps)

    @property
    def failure_losses(self) -> dict[str, Estimate]:
        """GPU-hours lost to failures by cause, the largest first; `unknown` where none is named.

        This is the one cost of failures: what else is counted of them is called what it is.
        """
        return {
            loss.cause or "unknown": loss.gpu_hours
            for loss in self.losses
            if loss.bucket == "lost_work"
        }

    def bucket(self, name: str) -> Bucket | None:
        """One bucket; None where the selection leaves it out."""
        return next((bucket for bucket in self.buckets if bucket.bucket == name), None)

    def _of(self, names: Collection[str]) -> list[Bucket]:
        """The buckets of these names that the selection has."""
        return [bucket for bucket in self.buckets if bucket.bucket in names]

    def table(self) -> pd.DataFrame:
        """One row a bucket: GPU-hours and percent with bounds, the cost where a price is known."""
        percent = {"percent": "value", "percent_lower": "lower", "percent_upper": "upper"}
        rows = [
            {
                "title": bucket.kind.title,
                "gpu_hours": bucket.gpu_hours.value,
                "gpu_hours_lower": bucket.gpu_hours.lower,
                "gpu_hours_upper": bucket.gpu_hours.upper,
                **{
                    name: getattr(bucket.ratio.scaled(100.0), side)
                    for name, side in percent.items()
                },
                "estimated": bucket.kind.estimated,
                "cost": bucket.cost,
                "goodput_term": bucket.kind.goodput_term or OUTSIDE,
                "bucket": bucket.bucket,
            }
            for bucket in self.buckets
        ]
        if self.currency is None:
            return pd.DataFrame(rows).drop(columns="cost")
        return pd.DataFrame(rows).rename(columns={"cost": f"cost_{self.currency}"})


def goodput_ledger(
    rows: pd.DataFrame,
    *,
    prices: Mapping[str, tuple[float, str]],
    notes: Mapping[str, Any],
    without_states: Collection[str] = (),
    blind: bool = False,
    missing: pd.DataFrame | None = None,
    conf_level: float = CONF_LEVEL,
) -> GoodputLedger:
    """The ledger of GPU-hours.

    Every GPU-second is in one bucket; buckets are whole numbers of GPU-seconds, so they sum to the
    total exactly. The interval of an estimated bucket of value v joins two distances on each side,

        sqrt(distance by habits^2 + distance by chance^2),

    by habits to the log-normal bound (`positive_bounds`) of variances (sum shared)^2 and sum habit:
    shared is the standard deviation of the mean habit of unobserved runs, which is wrong in all of
    them alike, habit the variance by the habit of each run; by chance z sqrt(sum
    variance), of when interruptions struck. Where habits are stated or assumed it goes from the
    lower bound of sum lower to the upper bound of sum upper, all attempts at the same bound of the
    range; its level is then None. Source: Zou and Donner, Construction of confidence limits about
    effect measures, Statistics in Medicine 27 (2008), 1693.

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
        What the derivation took for granted, as `stage_runs.notes` holds it.
    without_states
        Clusters of which no record says when nodes were out of service.
    blind
        Whether failures could be seen during none of the time: then lost work of which none is
        known is unknown, and not 0.
    missing : DataFrame, optional
        What attempts without a record may change, as `unrecorded.unrecorded` takes it. It comes on
        top of the bounds of each bucket, whose level is then None.
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
    if unstated:
        buckets = [_bounded(bucket, open_s, total) for bucket in buckets]
    losses = _losses(rows, total, conf_level)
    goodput = kept.scaled(HOUR_S / in_jobs) if in_jobs else unknown(conf_level, 0)
    found = None if missing is None else unrecorded(missing, fleet=fleet)
    if found is not None:
        buckets = [_with_missing(bucket, found, total, fleet=fleet) for bucket in buckets]
        losses = tuple(_loss_with_missing(loss, found) for loss in losses)
        goodput = _goodput_with_missing(goodput, kept, in_jobs, found.held)
    if blind:
        buckets = [_unseen(bucket) for bucket in buckets]
    return GoodputLedger(
        total_gpu_seconds=total,
        buckets=tuple(buckets),
        losses=losses,
        rule_first_order_gpu_hours=None if blind and not first.any() else _by_rule(rows, first),
        rule_second_order_gpu_hours=_by_rule(rows, second),
        runtime_goodput=goodput,
        known=not rows.empty,
        clusters=tuple(sorted(held_by)),
        without_states=unstated,
        currency=currency,
        conf_level=conf_level,
        notes=(
            *habit_sentences(notes),
            *uncounted_sentences(notes),
            *excess_sentences(notes),
            *no_state_sentences(unstated, several=len(held_by) > len(unstated)),
            *(() if found is None else (missing_sentence(found, fleet=fleet),)),
        ),
    )  # fmt: skip


def _unseen(bucket: Bucket) -> Bucket:
    """The bucket where no failure could be seen: of lost work at least what is known."""
    if bucket.bucket != "lost_work" or bucket.gpu_seconds:
        return bucket
    nobody_knows = unknown(bucket.gpu_hours.conf_level or CONF_LEVEL, 0)
    return replace(bucket, gpu_hours=nobody_knows, ratio=nobody_knows, cost=None, bounded=False)


def _bounded(bucket: Bucket, open_s: Mapping[str, int], total: int) -> Bucket:
    """A bucket with the bounds that missing states of nodes leave.

    `open_s`: free seconds, by bucket, that may as well have been out of service.
    """
    if bucket.kind.of_jobs:
        return bucket
    lower, upper = bucket.gpu_seconds, bucket.gpu_seconds
    if bucket.bucket in FREE:
        lower -= open_s[bucket.bucket]
    else:
        upper += sum(open_s.values())
    level, n = bucket.gpu_hours.conf_level, bucket.gpu_hours.n
    level = level if lower == upper else None
    hours, ratio = (
        Estimate(bucket.gpu_seconds / unit, lower / unit, upper / unit, level, n)
        for unit in (HOUR_S, total)
    )
    return replace(bucket, gpu_hours=hours, ratio=ratio)


def _with_missing(bucket: Bucket, found: Unrecorded, total: int, *, fleet: bool) -> Bucket:
    """A bucket with what attempts without a record may change in it."""
    change = found.changes.get(bucket.bucket)
    if change is None or change == (0, 0):
        return bucket
    hours = moved(bucket.gpu_hours, change, total / HOUR_S if fleet else None)
    # Without the fleet the total itself lacks what they held.
    ratio = hours.scaled(HOUR_S / total) if fleet else share_of_held(hours, total, found.held)
    return replace(bucket, gpu_hours=hours, ratio=ratio, bounded=True)


def _loss_with_missing(loss: Loss, found: Unrecorded) -> Loss:
    """A loss that attempts without a record may add to: any cause may be theirs."""
    change = found.changes[loss.bucket]
    return replace(loss, gpu_hours=moved(loss.gpu_hours, change)) if any(change) else loss


def _goodput_with_missing(share: Estimate, kept: Estimate, in_jobs: int, held: int) -> Estimate:
    """Productive share of what jobs held: of what has no record from none to all."""
    if not held or kept.lower is None or kept.upper is None:
        return share
    lower, upper = kept.lower * HOUR_S, kept.upper * HOUR_S
    bounds = lower / (in_jobs + held), min(1.0, (upper + held) / (in_jobs + held))
    return replace(share, lower=bounds[0], upper=bounds[1], conf_level=None)


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
    hours = _estimate(rows, total, conf_level) if total else unknown(conf_level, 0)
    by_cluster = {} if currency is None else rows.groupby("cluster")["gpu_seconds"].sum().to_dict()
    priced = currency is not None and all(c in prices for c in by_cluster)
    return Bucket(
        bucket=name,
        gpu_seconds=int(rows["gpu_seconds"].sum()),
        gpu_hours=hours,
        ratio=hours.scaled(HOUR_S / total) if total else unknown(conf_level, 0),
        cost=float(sum(prices[str(c)][0] * s for c, s in by_cluster.items()) / HOUR_S)
        if priced
        else None,
    )


def _losses(rows: pd.DataFrame, total: int, conf_level: float) -> tuple[Loss, ...]:
    """Lost work by bucket and cause: of failures first, then the largest first."""
    lost = rows[rows["rule_gpu_seconds"].notna()]
    losses = [
        Loss(
            bucket=str(bucket),
            cause=cause if isinstance(cause, str) else None,
            n_attempts=int(part["n_attempts"].sum()),
            gpu_hours=_estimate(part, total, conf_level),
            rule_gpu_hours=float(part["rule_gpu_seconds"].sum()) / HOUR_S,
        )
        for (bucket, cause), part in lost.groupby(["bucket", "cause"], dropna=False)
    ]
    return tuple(
        sorted(
            losses,
            key=lambda loss: (
                loss.bucket != "lost_work",
                -(loss.gpu_hours.value or 0.0),
                str(loss.cause),
            ),
        )
    )


def _by_rule(rows: pd.DataFrame, chosen: pd.Series) -> float | None:
    """GPU-hours lost by the paper's rule; None where no GPU-time is known at all."""
    return None if rows.empty else float(rows.loc[chosen, "rule_gpu_seconds"].sum()) / HOUR_S


def lost_gpu_hours(rows: pd.DataFrame, conf_level: float = CONF_LEVEL) -> Estimate:
    """What some attempts lost, with the interval that `goodput_ledger` gives a bucket.

    Parameters
    ----------
    rows : DataFrame
        One row a run, with the counts of `gpu_time`: `habit_gpu_s2` is the square of the sum of
        deviations of its attempts.

    Examples
    --------
    >>> row = {"gpu_seconds": 7200, "lower_gpu_seconds": 3600, "upper_gpu_seconds": 9000,
    ...     "shared_gpu_seconds": 0.0, "habit_gpu_s2": 0.0, "variance_gpu_s2": 0.0, "n_attempts": 1}
    >>> lost = lost_gpu_hours(pd.DataFrame([row]))
    >>> lost.value, lost.lower, lost.upper, lost.assumed
    (2.0, 1.0, 2.5, True)
    """
    return _estimate(rows, None, conf_level)


def _estimate(rows: pd.DataFrame, total: int | None, conf_level: float) -> Estimate:
    """GPU-hours of rows with their interval, as `goodput_ledger` says."""
    value, least, most, shared, habit, variance, n = (
        float(np.nansum(rows[name].to_numpy(dtype=float))) for name in _SUMMED
    )
    chance = special.ndtri((1 + conf_level) / 2) * variance**0.5
    below = np.hypot(least - positive_bounds(least, shared**2, habit, conf_level)[0], chance)
    above = np.hypot(positive_bounds(most, shared**2, habit, conf_level)[1] - most, chance)
    lower, upper = max(0.0, float(least - below)), float(most + above)
    if total is not None:
        upper = min(float(total), upper)
    level = conf_level if least == most else None
    return Estimate(value / HOUR_S, lower / HOUR_S, upper / HOUR_S, level, int(n))


_SUMMED = ("gpu_seconds", "lower_gpu_seconds", "upper_gpu_seconds", "shared_gpu_seconds",
           "habit_gpu_s2", "variance_gpu_s2", "n_attempts")  # fmt: skip
"""What an estimate rests on; whole numbers are exact up to 2^53."""
