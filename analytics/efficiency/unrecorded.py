"""Time of attempts that have no record: what it may add to the buckets, and take from them."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from analytics.efficiency.fleet_time import DAY_S, Intervals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.arrays import Bools, Floats, Ints
    from analytics.estimate import Estimate

HOUR_S: Final = 3_600
FLEET: Final = -1
"""Code of the group of rows that are the whole cluster's."""
HELD: Final = "held"
"""All time that such attempts held, whatever became of it."""
PARTS: Final = ("held", "startup", "checkpoint", "lost", "straggler")
"""What is told of each group of jobs."""


@dataclass(frozen=True)
class Lives:
    """When attempts without a record may have waited and run; arrays of one length.

    A row is a job, or several alike of which nobody says how often they were requeued.
    """

    from_s: Ints
    """No earlier than this they were submitted, seconds since the epoch."""
    until_s: Ints
    """Submission of the attempt that is recorded: the requeue."""
    gpus: Ints
    """GPUs that they held at most, together."""
    needs: Ints
    """GPUs that must have been free for one of them to run."""
    attempts: Floats
    """How many there were; infinite where it is not known."""
    longest_s: Floats
    """Running time of one at most."""
    startup_s: Floats
    """Start-up of one at most."""
    unsaved_s: Floats
    """Work between two checkpoints at most."""
    written: Floats
    """Share of running time for which checkpoints stop it, at most."""
    wasted: Floats
    """Share that stragglers waste at most."""
    group: Ints
    """Code of partition, account and size."""

    def where(self, chosen: Bools) -> Lives:
        """Some of them."""
        return Lives(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})

    def intervals(self, chosen: Bools) -> Intervals:
        """GPUs that some of them may have held or wanted."""
        return Intervals(self.from_s[chosen], self.until_s[chosen], self.gpus[chosen])


def unrecorded_time(
    window_s: tuple[int, int],
    *,
    free: Intervals,
    out: Mapping[str, Intervals],
    wanted: Intervals,
    lives: Lives,
) -> pd.DataFrame:
    """What attempts without a record may change in each bucket, day by day.

    They held GPUs that by the records no job did, free or out of service. Be F the free GPUs, O_b
    those of bucket b out of service, room = F + sum O_b, R what recorded jobs wait for, and W the
    GPUs of jobs within their lives, W' of those among them that need no more than the room. Then

    - held H <= min(W', room), and of a job with k such attempts no more than its k longest
      stretches with room for it, nor k times its time limit;
    - O_b loses at most min(W', O_b), queue hold min(F, R) - min(max(F - W', 0), R), each no more
      than H; queue hold gains at most min(F, R + W) - min(F, R);
    - idle loses at most max(F - R, 0) - max(F - R - W, 0), and gains nothing.

    Of H start-up is at most k start-ups, lost work k intervals between checkpoints, checkpoints
    and stragglers their shares.

    Parameters
    ----------
    window_s
        Begin and end of what the records cover, seconds since the epoch.
    free, out, wanted
        As `fleet_time.free_time` takes them; `out` by bucket.
    lives
        Jobs with such attempts; parts outside the window are left out.

    Returns
    -------
    DataFrame
        `day` since the epoch, `group`, `bucket` (of the fleet, group `FLEET`: its buckets and
        `held`; of groups of jobs `PARTS`), `least` <= 0 and `most` >= 0: GPU-seconds.

    Examples
    --------
    >>> one = {"from_s": 0, "until_s": 60, "gpus": 4, "needs": 4, "attempts": 1.0,
    ...        "longest_s": np.inf, "startup_s": 10.0, "unsaved_s": 20.0, "written": 0.0,
    ...        "wasted": 0.0, "group": 0}
    >>> lives = Lives(**{name: np.array([value]) for name, value in one.items()})
    >>> free = Intervals(np.array([0]), np.array([100]), np.array([8]))
    >>> none = Intervals(*(np.zeros(0, dtype=np.int64),) * 3)
    >>> found = unrecorded_time((0, 100), free=free, out={}, wanted=none, lives=lives)
    >>> found[found["bucket"].isin(["idle", "lost"])].values.tolist()
    [[0, -1, 'idle', -240, 0], [0, 0, 'lost', 0, 80]]
    """
    begin, end = window_s
    lives = _within(lives, begin, end)
    if end <= begin or not len(lives.gpus):
        return pd.DataFrame({"day": [], "group": [], "bucket": [], "least": [], "most": []})
    clock = _Clock(window_s, [free, wanted, *out.values(), lives.intervals(lives.gpus >= 0)])
    there = {name: np.maximum(clock.level(held), 0.0) for name, held in out.items()}
    free_now = np.maximum(clock.level(free), 0.0)
    room = free_now + sum(there.values())
    seconds = _running(clock, lives, room)
    of_jobs = _of_jobs(seconds, lives)
    by_jobs = of_jobs[of_jobs["bucket"].eq(HELD)].groupby("day")["most"].sum()
    fleet, held = _of_fleet(
        clock,
        lives,
        {"free": free_now, "room": room, "wanted": clock.level(wanted)},
        there,
        by_jobs,
    )
    # What one group held all of them held.
    of_jobs["most"] = np.minimum(of_jobs["most"], of_jobs["day"].map(held))
    found = pd.concat([fleet, of_jobs[of_jobs["most"] > 0]], ignore_index=True)
    return found.assign(least=np.floor(found["least"]), most=np.ceil(found["most"])).astype(
        {"day": "int64", "group": "int64", "least": "int64", "most": "int64"}
    )


def _within(lives: Lives, begin: int, end: int) -> Lives:
    """The lives within the window."""
    cut = {"from_s": np.maximum(lives.from_s, begin), "until_s": np.minimum(lives.until_s, end)}
    whole = {each.name: getattr(lives, each.name) for each in fields(lives)} | cut
    return Lives(**whole).where((cut["until_s"] > cut["from_s"]) & (lives.gpus > 0))


class _Clock:
    """The moments at which anything changes, midnights among them, and what lies between them."""

    def __init__(self, window_s: tuple[int, int], every: list[Intervals]) -> None:
        begin, end = window_s
        times = [np.array(window_s), np.arange(begin // DAY_S * DAY_S, end, DAY_S)]
        times += [side for held in every for side in (held.start_s, held.end_s)]
        self.at = np.unique(np.clip(np.concatenate(times), begin, end))
        self.lasts = np.diff(self.at).astype(float)
        self.day = self.at[:-1] // DAY_S
        self._firsts = np.flatnonzero(np.diff(self.day, prepend=-1))
        self.days = self.day[self._firsts]

    def level(self, held: Intervals) -> Floats:
        """GPUs between each two moments."""
        n = len(self.at)
        clipped = (np.clip(side, self.at[0], self.at[-1]) for side in (held.start_s, held.end_s))
        begun, ended = (
            np.bincount(np.searchsorted(self.at, side), held.gpus, minlength=n) for side in clipped
        )
        gpus: Floats = np.cumsum(begun - ended)[:-1].astype(np.float64)
        return gpus

    def by_day(self, gpus: Floats) -> Floats:
        """GPU-seconds of each day."""
        seconds: Floats = np.add.reduceat(gpus * self.lasts, self._firsts).astype(np.float64)
        return seconds


def _running(clock: _Clock, lives: Lives, room: Floats) -> pd.DataFrame:
    """Seconds for which each life may have run on each day: `life`, `day`, `seconds`."""
    parts = []
    for needs in np.unique(lives.needs):
        of = np.flatnonzero(lives.needs == needs)
        fits = room >= needs
        so_far = np.concatenate([[0.0], np.cumsum(clock.lasts * fits)])
        most = _longest(clock, lives.where(lives.needs == needs), fits)
        first, last = (lives.from_s[of] // DAY_S, (lives.until_s[of] - 1) // DAY_S)
        n_days = last - first + 1
        row = np.repeat(np.arange(len(of)), n_days)
        day = first[row] + np.arange(len(row)) - np.repeat(np.cumsum(n_days) - n_days, n_days)
        ends = (
            np.maximum(day * DAY_S, lives.from_s[of][row]),
            np.minimum((day + 1) * DAY_S, lives.until_s[of][row]),
        )
        before, after = (so_far[np.searchsorted(clock.at, side)] for side in ends)
        parts.append(
            pd.DataFrame(
                {"life": of[row], "day": day, "seconds": np.minimum(after - before, most[row])}
            )
        )
    return pd.concat(parts, ignore_index=True)


def _longest(clock: _Clock, lives: Lives, fits: Bools) -> Floats:
    """Seconds of the longest stretches with room, as many as each has attempts, within its life."""
    change = np.diff(np.concatenate([[False], fits, [False]]).astype(np.int8))
    begins, ends = clock.at[change == 1], clock.at[change == -1]
    most = lives.attempts * lives.longest_s
    first = np.searchsorted(ends, lives.from_s, side="right")
    last = np.searchsorted(begins, lives.until_s, side="left")
    for place in np.flatnonzero(np.isfinite(lives.attempts) & (last - first > lives.attempts)):
        of = slice(first[place], last[place])
        lengths = np.minimum(ends[of], lives.until_s[place]) - np.maximum(
            begins[of], lives.from_s[place]
        )
        count = int(lives.attempts[place])
        most[place] = min(most[place], float(np.partition(lengths, -count)[-count:].sum()))
    return most


def _of_jobs(seconds: pd.DataFrame, lives: Lives) -> pd.DataFrame:
    """GPU-seconds of each group of jobs by day and part, at most."""
    life, ran = seconds["life"].to_numpy(), seconds["seconds"].to_numpy(dtype=float)
    gpus = lives.gpus[life]

    def each(most_s: Floats) -> Floats:
        """That of every attempt, no more than all ran."""
        with np.errstate(invalid="ignore"):  # no start-up of attempts that nobody counted
            together = np.where(most_s > 0, lives.attempts * most_s, 0.0)
        seconds: Floats = np.minimum(ran, together[life])
        return seconds

    most = {
        "held": ran,
        "startup": each(lives.startup_s),
        "checkpoint": ran * lives.written[life],
        "lost": each(lives.unsaved_s),
        "straggler": ran * lives.wasted[life],
    }
    rows = pd.DataFrame({name: value * gpus for name, value in most.items()})
    rows = rows.assign(day=seconds["day"], group=lives.group[life]).groupby(["day", "group"]).sum()
    rows = rows.reset_index().melt(["day", "group"], list(PARTS), "bucket", "most")
    return rows.assign(least=0.0)


def _of_fleet(
    clock: _Clock,
    lives: Lives,
    now: Mapping[str, Floats],
    out: Mapping[str, Floats],
    by_jobs: pd.Series,
) -> tuple[pd.DataFrame, pd.Series]:
    """Changes of the buckets that no job held, and the GPU-seconds held by day, at most."""
    free, room, wanted = now["free"], now["room"], np.maximum(now["wanted"], 0.0)
    alive, runs = np.zeros(len(free)), np.zeros(len(free))
    for needs in np.unique(lives.needs):
        gpus = clock.level(lives.intervals(lives.needs == needs))
        alive += gpus
        runs += np.where(room >= needs, gpus, 0.0)
    held = clock.by_day(np.minimum(runs, room))
    held = np.minimum(held, by_jobs.reindex(clock.days, fill_value=0.0).to_numpy())
    queued = np.minimum(free, wanted)
    nothing = np.zeros(len(held))
    left = np.minimum(np.maximum(free - runs, 0.0), wanted)
    changes = {
        name: (np.minimum(clock.by_day(np.minimum(runs, gpus)), held), nothing)
        for name, gpus in out.items()
    } | {
        "queue_hold": (
            np.minimum(clock.by_day(queued - left), held),
            clock.by_day(np.minimum(free, wanted + alive) - queued),
        ),
        "idle": (
            clock.by_day(free - queued - np.maximum(free - wanted - alive, 0.0)),
            nothing,
        ),
        HELD: (nothing, held),
    }
    frames = [
        pd.DataFrame(
            {"day": clock.days, "group": FLEET, "bucket": name, "least": -less, "most": more}
        )
        for name, (less, more) in changes.items()
    ]
    found = pd.concat(frames, ignore_index=True)
    return found[(found["least"] < 0) | (found["most"] > 0)], pd.Series(held, index=clock.days)


@dataclass(frozen=True)
class Unrecorded:
    """What attempts without a record may change in the buckets of a selection, GPU-seconds."""

    changes: Mapping[str, tuple[int, int]]
    """Bucket -> greatest loss, 0 or less, and greatest gain."""
    held: int
    """All that they held, at most."""


def missing_sentence(found: Unrecorded, *, fleet: bool) -> str:
    """What the bounds of a selection with such attempts mean.

    Examples
    --------
    >>> missing_sentence(Unrecorded({}, 7_200_000), fleet=False)[:69]
    'Attempts before a requeue that no record shows held 0 to 2,000 GPU-ho'
    """
    where = "GPUs that were free or out of service by the records" if fleet else "GPUs"
    return (
        f"Attempts before a requeue that no record shows held 0 to {found.held / HOUR_S:,.0f} "
        f"GPU-hours of {where}: what they may have changed is within the bounds, and the "
        "values are those of the attempts recorded."
    )


LOSSES: Final = ("lost_work", "lost_work_preempted", "other")
"""Buckets of work lost: nothing says which of them an attempt without a record belongs to."""


def unrecorded(rows: pd.DataFrame, *, fleet: bool) -> Unrecorded | None:
    """What attempts without a record may change in a selection; None where none is missing.

    Parameters
    ----------
    rows : DataFrame
        Sums of `unrecorded_time`: `cluster`, `bucket`, `whole` (of the whole cluster, not of a
        group of jobs), `least` and `most`.
    fleet
        Whether time that no job held is in the selection: what is known of all jobs together then
        bounds what their groups add up to.
    """
    if rows.empty:
        return None
    whole = rows["whole"].astype(bool)
    parts = rows[~whole].pivot_table(
        index="cluster", columns="bucket", values="most", aggfunc="sum"
    )
    parts = parts.reindex(columns=list(PARTS)).fillna(0.0)
    if fleet:
        held = rows[whole & rows["bucket"].eq(HELD)].groupby("cluster")["most"].sum()
        parts = parts.clip(upper=held.reindex(parts.index, fill_value=0), axis=0)
    most = {str(name): int(seconds) for name, seconds in parts.sum().items()}
    changes = {name: (0, most[name]) for name in ("startup", "checkpoint", "straggler")}
    changes |= {"productive": (0, most[HELD])} | dict.fromkeys(LOSSES, (0, most["lost"]))
    if fleet:
        of_fleet = rows[whole & rows["bucket"].ne(HELD)].groupby("bucket")[["least", "most"]].sum()
        for bucket, least, greatest in of_fleet.itertuples():
            changes[str(bucket)] = int(least), int(greatest)
    return Unrecorded(changes, most[HELD])


def moved(hours: Estimate, change: tuple[int, int], most: float | None = None) -> Estimate:
    """Bounds with room for a change in GPU-seconds, between 0 and a greatest value."""
    least, greatest = (seconds / HOUR_S for seconds in change)
    upper = None if hours.upper is None else hours.upper + greatest
    if most is not None and upper is not None:
        upper = min(upper, most)
    lower = None if hours.lower is None else max(0.0, hours.lower + least)
    return replace(hours, lower=lower, upper=upper, conf_level=None)


def share_of_held(hours: Estimate, total: int, held: int) -> Estimate:
    """Share of what jobs held, of which up to `held` GPU-seconds have no record."""
    share = hours.scaled(HOUR_S / total)
    lower = None if hours.lower is None else hours.lower * HOUR_S / (total + held)
    return replace(share, lower=lower, upper=None if share.upper is None else min(1.0, share.upper))
