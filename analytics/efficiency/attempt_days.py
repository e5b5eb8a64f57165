"""GPU-seconds of the parts of attempts, day by day."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.efficiency.attempt_time import PARTS, AttemptTime

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.arrays import Floats, Ints

DAY_S = 86_400
RULE_S = 1_800
"""Work that the RSC paper takes an interrupted attempt to lose at most: half of an hourly
checkpoint interval (papers.md A7)."""

COUNTS = (
    *("gpu_seconds", "lower_gpu_seconds", "upper_gpu_seconds", "shared_gpu_seconds"),
    *("habit_gpu_s2", "variance_gpu_s2", "n_attempts", "rule_gpu_seconds"),
)
COLUMNS = ["group", "day", "loss", "part", *COUNTS]
"""Columns of the rows."""


@dataclass(frozen=True)
class Held:
    """Attempts that held GPUs; arrays of one length."""

    start_s: Ints
    """Start, seconds since the epoch."""
    ran_s: Ints
    """Running time, seconds."""
    n_gpus: Ints
    group: Ints
    """Code of what rows are told apart by, beside the day; >= 0."""
    loss: Ints
    """Code of the bucket and cause of what it lost; -1 where nothing interrupted it."""
    counted_from_s: Ints
    """Time from which records are complete, seconds since the epoch: what is before is left out."""

    def of(self, places: Ints) -> Held:
        """Some of them."""
        return Held(**{each.name: getattr(self, each.name)[places] for each in fields(Held)})


def daily_rows(
    held: Held,
    time: AttemptTime,
    of_run: Mapping[str, Floats] | None = None,
    parts: Sequence[str] = PARTS,
) -> pd.DataFrame:
    """GPU-seconds by group, day and part of the running time.

    An attempt's parts lie in time as they happen: start-up first, checkpoints spread evenly over
    the rest, lost work at the end; so the parts of all days sum to those of the attempt, to the
    second. Bounds and deviations lie where the value lies, so that bounds of a sum are the sums of
    bounds. The variance by the habit of a run is the covariance of the row with the whole run: over
    the rows of a run it adds up to the variance of the run.

    Parameters
    ----------
    of_run
        Part -> standard deviation by its own habit of the run that the attempt belongs to,
        GPU-seconds (`own_of_run`), shape (n,); needed where habits have models.
    parts
        Those of which there are rows.

    Returns
    -------
    DataFrame
        One row for each `group`, `day` (days since the epoch), `part` and `loss` (-1 but for
        lost work): `gpu_seconds`, `lower_gpu_seconds`, `upper_gpu_seconds`, `shared_gpu_seconds`
        (a standard deviation that adds up), `habit_gpu_s2` and `variance_gpu_s2` (variances by the
        habits of runs and by chance); `n_attempts` on the day on which they end; of lost work
        `rule_gpu_seconds` on that day.
    """
    first = held.start_s // DAY_S
    end_s = held.start_s + held.ran_s
    n_days = np.maximum(end_s - 1, held.start_s) // DAY_S - first + 1
    row = np.repeat(np.arange(len(first)), n_days)
    place = np.arange(len(row)) - np.repeat(np.cumsum(n_days) - n_days, n_days)
    day = first[row] + place
    start = held.start_s[row]
    since = np.maximum(start, held.counted_from_s[row])
    until = np.minimum((day + 1) * DAY_S, end_s[row]) - start
    begin = np.minimum(np.maximum(day * DAY_S, since) - start, until)
    last = place == n_days[row] - 1
    if not (held.loss >= 0).any() and not any(
        time.upper[part].any() for part in PARTS if part != "productive"
    ):
        return _undisturbed_days(held, row, {"day": day, "seconds": until - begin, "last": last})
    ran = held.ran_s[row]
    counted = (until > begin) | ((ran == 0) & (since == start))
    value = {part: seconds[row] for part, seconds in time.value.items()}
    done, before = (_so_far(at, value, ran) for at in (until, begin))
    partial = (begin > 0) | (until < ran)
    frames = []
    for part in parts:
        struck = part == "lost"
        of_part = held.loss[row] >= 0 if struck else time.upper[part][row] > 0
        kept = np.flatnonzero(of_part & counted)
        chosen = row[kept]
        gpus = held.n_gpus[chosen]
        cut = np.flatnonzero(partial[kept])
        at = kept[cut]
        # Where there is nothing of the part, what may be there lies evenly in time.
        some = value[part][at] > 0
        whole = np.where(some, value[part][at], np.maximum(ran[at], 1))
        pieces = _Pieces(
            cut,
            np.where(some, before[part][at], begin[at]) / whole,
            np.where(some, done[part][at], until[at]) / whole,
        )
        counts: dict[str, NDArray[Any]] = {
            "gpu_seconds": (done[part] - before[part])[kept] * gpus,
            "lower_gpu_seconds": pieces.of(time.lower[part][chosen]) * gpus,
            "upper_gpu_seconds": pieces.of(time.upper[part][chosen]) * gpus,
        }
        if of_run is not None:
            share = pieces.share(len(kept)) * gpus
            counts["shared_gpu_seconds"] = time.shared[part][chosen] * share
            counts["habit_gpu_s2"] = time.own[part][chosen] * of_run[part][chosen] * share
        if part in ("productive", "lost"):
            by_chance = time.variance_s2[chosen] * gpus.astype(float) ** 2
            counts["variance_gpu_s2"] = np.where(last[kept], by_chance, 0.0)
        counts["n_attempts"] = last[kept]
        if struck:
            by_rule = np.minimum(ran[kept], RULE_S) * gpus
            counts["rule_gpu_seconds"] = np.where(last[kept], by_rule, 0)
        keys = {
            "group": held.group[chosen],
            "day": day[kept],
            "loss": held.loss[chosen] if struck else np.full(len(kept), -1),
        }
        frames.append(_sums(keys, counts).assign(part=part))
    return pd.concat(frames, ignore_index=True).reindex(columns=COLUMNS)


LOST = (
    *("gpu_seconds", "lower_gpu_seconds", "upper_gpu_seconds", "shared_gpu_seconds"),
    *("habit_gpu_seconds", "variance_gpu_s2"),
)
"""Columns of what an attempt lost."""


def lost_rows(held: Held, time: AttemptTime, ids: Ints) -> pd.DataFrame:
    """What each of some attempts that were interrupted lost, as `daily_rows` counts it.

    Parameters
    ----------
    ids : ndarray of int64, shape (n,)
        What each attempt is called.

    Returns
    -------
    DataFrame
        `id` and the columns of `daily_rows` but for `habit_gpu_seconds`: the standard deviation by
        the habit of its run, which adds up over attempts of one run.
    """
    alone = replace(held, group=np.arange(len(ids)))
    ones = dict.fromkeys(PARTS, np.ones(len(ids)))  # so that deviations stay what they are
    lost = daily_rows(alone, time, ones, ("lost",))
    lost = lost.rename(columns={"habit_gpu_s2": "habit_gpu_seconds"})
    of_attempt = lost.groupby("group")[list(LOST)].sum().reset_index()
    return of_attempt.assign(id=ids[of_attempt.pop("group")])


@dataclass(frozen=True)
class _Pieces:
    """How pieces of attempts divide their time of a part."""

    cut: Ints
    """Places of the pieces that are not whole attempts."""
    begin: Floats
    """Of these the share of the attempt's time before the piece, and that at its end."""
    end: Floats

    def of(self, seconds: Ints) -> Ints:
        """Whole seconds of each piece; those of the pieces of an attempt add up exactly."""
        of_cut = seconds[self.cut]
        placed = seconds.copy()
        placed[self.cut] = np.rint(of_cut * self.end) - np.rint(of_cut * self.begin)
        return placed

    def share(self, n: int) -> Floats:
        """Share of each of n pieces in its attempt."""
        share = np.ones(n)
        share[self.cut] = self.end - self.begin
        return share


def own_of_run(runs: Ints, lost_to: Ints, n_gpus: Ints, time: AttemptTime) -> dict[str, Floats]:
    """Standard deviation of each part of a whole run by its own habit, GPU-seconds.

    The attempts of a run share its habit: their deviations add up.

    Parameters
    ----------
    runs : ndarray of int64, shape (n,)
        Code of the run of each attempt.
    lost_to : ndarray of int64, shape (n,)
        Code, from -1 on, of the bucket of what it lost: lost work adds up within a bucket.

    Returns
    -------
    dict
        Part -> deviation of the run of each attempt, shape (n,).
    """
    of_run = pd.factorize(runs)[0]
    of_loss = pd.factorize(of_run * (int(lost_to.max(initial=0)) + 2) + lost_to + 1)[0]
    found = {}
    for part, spread in time.own.items():
        code = of_loss if part == "lost" else of_run
        found[part] = np.bincount(code, weights=spread * n_gpus).astype(float)[code]
    return found


def _undisturbed_days(held: Held, row: Ints, pieces: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """Rows of attempts that were productive throughout."""
    keys = {"group": held.group[row], "day": pieces["day"], "loss": np.full(len(row), -1)}
    counts = {
        "gpu_seconds": pieces["seconds"] * held.n_gpus[row],
        "n_attempts": pieces["last"] & (pieces["seconds"] > 0),
    }
    rows = _sums(keys, counts).assign(part="productive")
    bounds = {f"{side}_gpu_seconds": rows["gpu_seconds"] for side in ("lower", "upper")}
    return rows.assign(
        **bounds, shared_gpu_seconds=0.0, habit_gpu_s2=0.0, variance_gpu_s2=0.0
    ).reindex(columns=COLUMNS)


def _so_far(at: Ints, value: Mapping[str, Ints], ran_s: Ints) -> dict[str, Ints]:
    """Seconds of each part up to a time since the start."""
    startup = np.minimum(at, value["startup"])
    after, in_all = at - startup, ran_s - value["startup"]
    checkpoint = value["checkpoint"] * after // np.maximum(in_all, 1)
    worked = after - checkpoint
    in_kept = value["productive"] + value["straggler"]
    kept = np.minimum(worked, in_kept)
    straggler = value["straggler"] * kept // np.maximum(in_kept, 1)
    return {
        "startup": startup,
        "checkpoint": checkpoint,
        "straggler": straggler,
        "productive": kept - straggler,
        "lost": worked - kept,
    }


def _sums(keys: Mapping[str, Ints], counts: Mapping[str, NDArray[Any]]) -> pd.DataFrame:
    """Sums of counts by key; whole numbers below 2^53 stay exact."""
    joint = np.zeros(len(keys["group"]), dtype=np.int64)
    sizes = {}
    for name, values in keys.items():
        least = int(values.min(initial=0))
        sizes[name] = (least, int(values.max(initial=0)) - least + 1)
        joint = joint * sizes[name][1] + (values - least)
    code, distinct = pd.factorize(joint)
    columns: dict[str, Ints | Floats] = {}
    for name in reversed(list(keys)):
        least, size = sizes[name]
        distinct, rest = np.divmod(np.asarray(distinct), size)
        columns[name] = rest + least
    for name, values in counts.items():
        columns[name] = np.bincount(code, weights=values, minlength=len(columns["group"]))
    return pd.DataFrame(columns)
