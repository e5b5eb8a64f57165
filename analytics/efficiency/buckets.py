"""The buckets of the GPU-hour ledger, what each means, their hours by group, and what they lack."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from analytics.frames import LedgerGroup


def uncounted_sentences(notes: Mapping[str, Any]) -> tuple[str, ...]:
    """What the ledger could not count."""
    sentences = []
    if names := notes.get("clusters_without_jobs"):
        sentences.append(f"No GPU-time is known of {', '.join(names)}: no job of it was recorded.")
    if n := notes["attempts_without_gpus"]:
        ran = (
            "attempt that ran states no GPUs and is"
            if n == 1
            else ("attempts that ran state no GPUs and are")
        )
        sentences.append(f"{n:,} {ran} not counted.")
    return tuple(sentences)


def excess_sentences(notes: Mapping[str, Any]) -> tuple[str, ...]:
    """That jobs held more than there was."""
    seconds = notes["excess_gpu_seconds"]
    told = (
        f"Jobs held {seconds / 3600:,.0f} GPU-hours more than the nodes known then have (all "
        "time): records of nodes are incomplete, or jobs shared GPUs."
    )
    return (told,) if seconds else ()


def no_state_sentences(clusters: Sequence[str], *, several: bool) -> tuple[str, ...]:
    """Clusters of which no record says nodes' states; nothing where there are none.

    `several`: whether other clusters have such records.

    Examples
    --------
    >>> no_state_sentences(["b"], several=True)[0][:53]
    'No record says when nodes of b were out of service: s'
    """
    if not clusters:
        return ()
    of = f" of {', '.join(clusters)}" if several else ""
    said = f"No record says when nodes{of} were out of service"
    return (f"{said}: such time is not told from idle time. Node events say it.",)


DAY, WEEK = pd.Timedelta(days=1), pd.Timedelta(days=7)
MAX_DAYS = 92
"""Days told apart one by one; longer periods are added up by week."""
UNKNOWN_GROUP = "none stated"
"""A group of jobs whose records name none."""


@dataclass(frozen=True)
class BucketKind:
    """What a bucket means."""

    title: str
    meaning: str
    goodput_term: str | None
    """Term of ml-goodput-measurement; None where it has none: time outside jobs."""
    of_jobs: bool = True
    """Time that jobs held; the others are the fleet's."""

    @property
    def estimated(self) -> bool:
        """Rests on what is known of checkpoints and start-up, not on records alone."""
        return self.of_jobs


BUCKETS: Final[Mapping[str, BucketKind]] = {
    "productive": BucketKind(
        "Productive",
        "Work that was kept. Errors of the user's own program count as productive, as "
        "in Kokolis et al., arXiv 2410.21680.",
        "GOODPUT",
    ),
    "checkpoint": BucketKind(
        "Checkpoints",
        "Training stood still to write a checkpoint.",
        "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
    ),
    "startup": BucketKind(
        "Start-up",
        "From the start of an attempt to its first step: launch, compilation, loading.",
        "PROGRAM_STARTUP",
    ),
    "lost_work": BucketKind(
        "Lost to failures",
        "Work since the last checkpoint when hardware, system software or a lost node ended "
        "the attempt.",
        "WASTED_PROGRESS_FROM_DISRUPTION",
    ),
    "lost_work_preempted": BucketKind(
        "Lost to preemption",
        "The same of attempts that were preempted; with a cause, where the requeue of a job that "
        "failed preempted them (second order).",
        "WASTED_PROGRESS_FROM_DISRUPTION",
    ),
    "straggler": BucketKind(
        "Stragglers",
        "Productive time that workers waited for the slowest: 1 - 1 / S of the runs with traces.",
        "OTHER",
    ),
    "other": BucketKind(
        "Other losses",
        "Work since the last checkpoint of attempts that were requeued by hand.",
        "OTHER",
    ),
    "queue_hold": BucketKind(
        "Held by the queue",
        "Free GPUs while eligible jobs waited for as many: fragmentation, limits, gang scheduling.",
        None,
        of_jobs=False,
    ),
    "drained": BucketKind(
        "Drained",
        "Nodes drained for repair or inspection; GPUs that jobs still held are not counted.",
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
        of_jobs=False,
    ),
    "down_planned": BucketKind(
        "Down, planned",
        "Planned maintenance and powered down.",
        None,
        of_jobs=False,
    ),
    "down_unplanned": BucketKind(
        "Down, unplanned",
        "Nodes the scheduler lost or found down.",
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
        of_jobs=False,
    ),
    "idle": BucketKind(
        "Idle", "In service, and no eligible job waited for it.", None, of_jobs=False
    ),
}
"""The buckets, productive first."""
STACK: Final = (
    "productive",
    "startup",
    "checkpoint",
    "straggler",
    "lost_work_preempted",
    "lost_work",
    "other",
    "queue_hold",
    "idle",
    "drained",
    "down_planned",
    "down_unplanned",
)
"""From the bottom of a stack up: what was kept, what jobs spent and lost, what was free or out."""


def gpu_hours_by(rows: pd.DataFrame, by: LedgerGroup) -> pd.DataFrame:
    """GPU-hours of each bucket by group.

    Parameters
    ----------
    rows : DataFrame
        Columns `by`, `bucket` and `gpu_seconds`; several rows a group and bucket.

    Returns
    -------
    DataFrame
        `by`, `bucket`, `gpu_hours`: one row a group and bucket that has time, sorted.

    Examples
    --------
    >>> rows = pd.DataFrame({"account": ["a", "a"], "bucket": "idle", "gpu_seconds": [1800, 5400]})
    >>> gpu_hours_by(rows, "account").values.tolist()
    [['a', 'idle', 2.0]]
    """
    hours = rows.groupby([by, "bucket"], dropna=False, sort=True)["gpu_seconds"].sum() / 3600.0
    return hours.rename("gpu_hours").reset_index()


def bucket_columns(by_group: pd.DataFrame, by: LedgerGroup) -> pd.DataFrame:
    """One row a group and one column a bucket: GPU-hours, 0 where the group has none of it.

    `by_group` is as `gpu_hours_by` returns it.
    """
    if by_group.empty:
        return pd.DataFrame({by: []})
    hours = by_group.set_index([by, "bucket"])["gpu_hours"]
    return hours.unstack(fill_value=0).reset_index()


@dataclass(frozen=True)
class HoursOverTime:
    """GPU-hours per day of each bucket over a period."""

    step: pd.Timedelta
    """A day, or a week of long periods."""
    gpu_hours: pd.DataFrame
    """Mean GPU-hours per day, one row a step (its first day, UTC), one column a bucket; NaN where
    nothing was collected."""
    by_day: pd.DataFrame
    """GPU-hours of each day and bucket, as they were added up."""

    @property
    def gaps(self) -> pd.DatetimeIndex:
        """Steps of which nothing was collected."""
        return pd.DatetimeIndex(self.gpu_hours.index[self.gpu_hours.isna().all(axis=1)])


def hours_over_time(
    by_day: pd.DataFrame,
    *,
    span: tuple[pd.Timestamp, pd.Timestamp],
    recorded: Collection[pd.Timestamp],
) -> HoursOverTime:
    """GPU-hours per day of each bucket, day by day; of more than 92 days the means of weeks.

    Parameters
    ----------
    by_day : DataFrame
        Columns `day` (UTC), `bucket` and `gpu_hours`.
    span
        The first day and the one after the last, UTC.
    recorded
        Days with a record of a job: one without, on which no job held a GPU either, is a gap.
    """
    days = pd.date_range(span[0], span[1], freq="D", inclusive="left")
    at = pd.to_datetime(by_day["day"], utc=True)
    wide = by_day.assign(day=at).pivot_table(
        index="day", columns="bucket", values="gpu_hours", aggfunc="sum", fill_value=0.0
    )
    wide = wide.reindex(days, fill_value=0.0)
    of_jobs = [name for name in wide.columns if BUCKETS[name].of_jobs]
    known = wide[of_jobs].sum(axis=1).gt(0) | wide.index.isin(list(recorded))
    gpu_hours = wide[known].reindex(days)
    if span[1] - span[0] <= MAX_DAYS * DAY:
        return HoursOverTime(DAY, gpu_hours, by_day)
    mondays = days - pd.to_timedelta(days.dayofweek, unit="D")
    return HoursOverTime(WEEK, gpu_hours.groupby(mondays).mean(), by_day)


@dataclass(frozen=True)
class GroupHours:
    """GPU-hours that the jobs of one group held."""

    group: str
    gpu_hours: float
    productive_ratio: float


@dataclass(frozen=True)
class LossesByGroup:
    """What the jobs of each size, partition or account lost of the GPU-hours they held."""

    by: LedgerGroup
    rows: pd.DataFrame
    """One row a group and bucket: `group`, `bucket`, `gpu_hours`, `percent` of the group's, and
    `group_gpu_hours`, which the group held in all."""

    @property
    def n_groups(self) -> int:
        """Groups whose jobs held GPUs."""
        return int(self.rows["group"].nunique())

    def largest(self, n: int) -> tuple[GroupHours, ...]:
        """The n groups with most GPU-hours, the most first; sizes from small to large."""
        totals = self.rows.groupby("group")["group_gpu_hours"].first()
        kept = self.rows[self.rows["bucket"].eq("productive")].set_index("group")["gpu_hours"]
        groups = [
            GroupHours(str(group), float(held), float(kept.get(group, 0.0)) / float(held))
            for group, held in totals.sort_values(ascending=False).head(n).items()
        ]
        if self.by == "size_class":
            groups.sort(key=lambda each: _smallest(each.group))
        return tuple(groups)


def losses_by_group(by_group: pd.DataFrame, by: LedgerGroup) -> LossesByGroup:
    """Share of the GPU-hours that jobs of each group held, by bucket.

    Parameters
    ----------
    by_group : DataFrame
        As `gpu_hours_by` returns it; time that no job held is left out.

    Examples
    --------
    >>> rows = [("1", "productive", 9.0), ("1", "lost_work", 1.0), (None, "idle", 5.0)]
    >>> by_size = pd.DataFrame(rows, columns=["size_class", "bucket", "gpu_hours"])
    >>> losses_by_group(by_size, "size_class").rows["percent"].tolist()
    [90.0, 10.0]
    """
    held = by_group[by_group["bucket"].map(lambda name: BUCKETS[name].of_jobs)]
    rows = held.rename(columns={by: "group"})
    rows = rows.assign(group=rows["group"].fillna(UNKNOWN_GROUP).astype(str))
    total = rows.groupby("group")["gpu_hours"].transform("sum")
    percent = 100 * (rows["gpu_hours"] / total)  # in this order all of it is 100 exactly
    return LossesByGroup(by, rows.assign(percent=percent, group_gpu_hours=total)[total.gt(0)])


def _smallest(size: str) -> int:
    """The least number of GPUs of a class; 0 of a group that is none.

    >>> _smallest("129-256"), _smallest("1")
    (129, 1)
    """
    first = size.partition("-")[0]
    return int(first) if first.isdigit() else 0
