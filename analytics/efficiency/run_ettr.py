"""ETTR of one run: where the time of each attempt went, and the ratio as the run went on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics import validate
from analytics.efficiency.attempt_time import SHOWN, attempt_time
from analytics.efficiency.beside_expected import expected_at_own_rate
from analytics.efficiency.group_ettr import RunTotals, ettr_of_each
from analytics.efficiency.habits import habit_sentences, recorded_habits
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.failures.columns import require

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.arrays import Floats

_COLUMNS = (
    *("cluster", "attempt_key", "n_gpus", "start_s", "ran_s", "waited_s", "several"),
    "interrupted",
)
_AS_RUN = {
    "waited_s": "queued_s",
    "ran_s": "scheduled_s",
    "productive_s": "productive_s",
    "lower_productive_s": "lower_productive_s",
    "upper_productive_s": "upper_productive_s",
    "shared_productive_s": "shared_productive_s",
    "own_productive_s": "own_productive_s",
    "variance_s2": "variance_productive_s2",
}
"""Column of an attempt -> what its sum is called of a run."""
_CLASSES = (("several_nodes", True), ("one_node", False))
"""Habits by class, and whether an attempt of it is on several nodes."""
IN_TIME = ("queued", "startup", "productive", "checkpoint", "lost")
"""Parts of an attempt in order of time; productive and checkpoints come by turns."""
_BY_TURNS = ("productive", "checkpoint")
WINDOW_S = 3_600.0
"""Window of the sliding ETTR: ByteRobust's (papers.md F)."""
POINTS = 400
"""Moments drawn beside the breakpoints: between two of these a ratio of lines is a curve."""
LEAST_S = 1e-6
"""Time below which a window holds nothing."""
COLUMNS = ("eligible_s", "waited_s", "start_s", "ran_s", "startup_s", "checkpoint_s", "lost_s",
           "productive_s")  # fmt: skip
"""Columns of the attempts: moments in seconds since the epoch, the others seconds."""


def run_attempts(
    attempts: pd.DataFrame,
    *,
    notes: Mapping[str, Any],
    progress: pd.DataFrame,
) -> pd.DataFrame:
    """Divides the running time of a run's attempts as the ledger does for `job_runs`.

    What stragglers waste is productive here: ETTR asks whether the run made headway, not how fast.

    Parameters
    ----------
    attempts : DataFrame
        One row an attempt: `cluster`, `attempt_key`, `start_s` (seconds since the epoch, NaN where
        it never started), `ran_s` (seconds; NaN counts as 0), `waited_s` (seconds, NaN where
        unknown), `several` (has the habits of jobs on several nodes) and `interrupted`.
    notes
        Habits by class, as `stage_runs.notes` holds them.
    progress : DataFrame
        What training metrics show, as `training_log.attempt_progress` returns it.

    Returns
    -------
    DataFrame
        The attempts with `startup_s`, `checkpoint_s`, `lost_s`, `productive_s`,
        `lower_productive_s`, `upper_productive_s`, `shared_productive_s`, `own_productive_s`,
        `variance_s2` (as `AttemptTime.per_attempt` tells), and `basis` of each:
        training_metrics, or that of its class.
    """
    require("attempts", attempts, _COLUMNS)
    divided = attempts.reset_index(drop=True)
    divided["ran_s"] = divided["ran_s"].astype(float).fillna(0).clip(lower=0).astype("int64")
    divided["waited_s"] = divided["waited_s"].astype(float)
    keys = ["cluster", "attempt_key"]
    columns = list(SHOWN.values())
    shown = divided[keys].merge(progress[[*keys, *columns]], on=keys, how="left")[columns]
    by_metrics = shown.notna().any(axis=1).to_numpy()
    parts = []
    for habits, several in _CLASSES:
        at = np.flatnonzero(divided["several"].eq(several))
        rows, known = divided.iloc[at], recorded_habits(notes[habits])
        measured = {name: shown[name].to_numpy(dtype=float)[at] for name in columns}
        time = attempt_time(
            rows["ran_s"].to_numpy(dtype=np.int64),
            rows["interrupted"].to_numpy(dtype=bool),
            known,
            measured if by_metrics[at].any() else None,
            n_gpus=rows["n_gpus"].astype(float).fillna(0).to_numpy().astype(np.int64),
        )
        basis = np.where(by_metrics[at], "training_metrics", known.basis)
        parts.append(time.per_attempt().assign(basis=basis).set_axis(at))
    return divided.join(pd.concat(parts))


def run_ettr(attempts: pd.DataFrame, *, conf_level: float = CONF_LEVEL) -> Estimate:
    """ETTR of a run from its attempts, as `run_attempts` returns them.

    Unknown where none ran, or where it is not known how long one waited. One run is no sample: the
    interval is what is not known of this one; n = interruptions.
    """
    validate.conf_level(conf_level)
    n = int(attempts["interrupted"].sum())
    if attempts["waited_s"].isna().any() or not attempts["ran_s"].sum():
        return unknown(conf_level, n)
    run = attempts[list(_AS_RUN)].astype(float).sum().rename(_AS_RUN).to_frame().T
    run["variance_productive_s2"] += run["own_productive_s"] ** 2  # one habit in all attempts
    (found,) = ettr_of_each(run, conf_level).to_dict("records")
    assumed = bool((run["lower_productive_s"] < run["upper_productive_s"]).any())
    level = None if assumed else conf_level
    return Estimate(found["ettr"], found["lower"], found["upper"], level, n)


def expected_of_run(
    attempts: pd.DataFrame, notes: Mapping[str, Any], *, conf_level: float = CONF_LEVEL
) -> Estimate:
    """ETTR to expect of this run at the rate at which it was interrupted itself.

    `expected_at_own_rate` with the habits of its class; unknown where the ETTR is.
    """
    n = int(attempts["interrupted"].sum())
    if attempts["waited_s"].isna().any():
        return unknown(conf_level, n)
    several = bool(attempts["several"].any())
    name = next(habits for habits, of_several in _CLASSES if of_several == several)
    totals = RunTotals(1, len(attempts), n, *(
        float(attempts[column].sum()) for column in ("waited_s", "ran_s", "productive_s")
    ))  # fmt: skip
    return expected_at_own_rate(totals, recorded_habits(notes[name]).central, conf_level=conf_level)


def run_notes(attempts: pd.DataFrame, notes: Mapping[str, Any]) -> tuple[str, ...]:
    """What the parts of these attempts take for granted, one sentence a class of jobs.

    `notes` are habits by class, as `run_attempts` takes them.
    """
    held = {
        habits: notes[habits]
        for habits, several in _CLASSES
        if attempts["several"].eq(several).any()
    }
    return habit_sentences(held)


@dataclass(frozen=True)
class EttrOverTime:
    """ETTR of a run at moments in order; NaN where there is nothing to divide by."""

    at_s: Floats
    """Seconds since the epoch: every breakpoint and moments between them."""
    cumulative: Floats
    """Productive over queued and scheduled time up to then; its last is the run's ETTR."""
    sliding: Floats
    """The same of the last `window_s`; NaN where the run neither waited nor ran then."""
    elapsed: Floats
    """Productive time over all time since the run became eligible, ByteRobust's cumulative ETTR."""
    window_s: float

    def table(self) -> pd.DataFrame:
        """One row a moment."""
        return pd.DataFrame(
            {
                "at": pd.to_datetime(pd.Series(self.at_s), unit="s", utc=True),
                "cumulative": self.cumulative,
                "sliding": self.sliding,
                "window_s": self.window_s,
                "productive_over_elapsed": self.elapsed,
            }
        )


@dataclass(frozen=True)
class RunEttr:
    """What one run got out of its time."""

    cluster: str
    run_id: str
    ettr: Estimate
    """n = interruptions."""
    expected: Estimate
    """At the rate of its own interruptions."""
    attempts: pd.DataFrame
    """One row an attempt, oldest first: what the scheduler recorded, the seconds of each part,
    verdict and incident."""
    over_time: EttrOverTime
    notes: tuple[str, ...]
    """What the parts take for granted."""

    @property
    def n_gpus(self) -> int:
        """The most that an attempt held."""
        return int(self.attempts["n_gpus"].max())

    @property
    def interruptions(self) -> pd.DataFrame:
        """The attempts that infrastructure, preemption or a requeue ended."""
        return self.attempts[self.attempts["interrupted"]]

    @property
    def elapsed_ratio(self) -> float:
        """Productive time over all time since the run first became eligible, pauses included."""
        return float(self.over_time.elapsed[-1])


def ettr_over_time(
    attempts: pd.DataFrame, *, window_s: float = WINDOW_S, points: int = POINTS
) -> EttrOverTime:
    """ETTR of one run over time, in two definitions of what it is divided by.

    With R(t), Q(t), S(t) the productive, queued and scheduled time up to t, seconds:

    .. math:: E(t) = \\frac{R(t)}{Q(t) + S(t)}, \\quad
        E_h(t) = \\frac{R(t) - R(t - h)}{A(t) - A(t - h)}, \\; A = Q + S

    An attempt starts up first, then works; its checkpoints are spread evenly over the work, and
    what it lost is the last of it. So R and A are linear between
    breakpoints and both ratios are exact everywhere. Time between two submissions of the run is
    not available: nobody waited.

    Parameters
    ----------
    attempts : DataFrame
        One row an attempt: `eligible_s`, `start_s` (seconds since the epoch; a start of NaN: never
        started), `waited_s`, `ran_s` (seconds of waiting from eligible, of running from the
        start), and of the latter `startup_s`, `checkpoint_s`, `lost_s`, `productive_s`.
    window_s : float
        h, seconds; > 0.
    points : int
        Moments evenly spaced, beside the breakpoints; >= 0.

    Raises
    ------
    OutOfRangeError
        For a window that is not > 0 or a negative number of points.

    Notes
    -----
    ByteRobust (papers.md F) divides productive time by all time elapsed: `elapsed`. It is lower
    where a run paused between submissions, and blames the scheduler for it. When lost work was
    done is known to the interval between checkpoints only.

    Examples
    --------
    >>> import pandas as pd
    >>> row = (0, 100, 100, 900, 100, 0, 300, 500)
    >>> found = ettr_over_time(pd.DataFrame([row], columns=list(COLUMNS)), points=0, window_s=400)
    >>> found.at_s.tolist()
    [0.0, 100.0, 200.0, 400.0, 500.0, 600.0, 700.0, 1000.0]
    >>> found.cumulative[-1].item(), found.sliding[-1].item(), found.elapsed[-1].item()
    (0.5, 0.25, 0.5)
    """
    validate.positive("window_s", window_s, "pass seconds, e.g. 3600")
    validate.nonnegative("points", points, "pass how many, e.g. 400")
    require("attempts", attempts, COLUMNS)
    rows = {name: attempts[name].to_numpy(dtype=float) for name in COLUMNS}
    began = np.fmin(rows["eligible_s"], rows["start_s"])
    first = float(np.nanmin(began)) if len(attempts) and not np.isnan(began).all() else 0.0
    productive = _sum_of_spans(*_productive(rows), origin=first)
    available = _sum_of_spans(*_available(rows), origin=first)
    breaks = np.concatenate([productive[0], available[0]])
    last = breaks.max()
    moments = np.concatenate([breaks, breaks + window_s, np.linspace(0.0, last, points)])
    at = np.unique(moments[(moments >= 0.0) & (moments <= last)])
    done, had = np.interp(at, *productive), np.interp(at, *available)
    before = at - window_s
    return EttrOverTime(
        at_s=first + at,
        cumulative=_ratio(done, had),
        sliding=_ratio(done - np.interp(before, *productive), had - np.interp(before, *available)),
        elapsed=_ratio(done, at),
        window_s=window_s,
    )


def _productive(rows: dict[str, Floats]) -> tuple[Floats, Floats, Floats]:
    """When attempts did work that they kept, and how much of it."""
    after = np.maximum(rows["ran_s"] - rows["startup_s"], 0.0)
    worked = np.maximum(after - rows["checkpoint_s"], 0.0)
    kept = np.maximum(worked - rows["lost_s"], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        length = np.where(worked > 0, kept * after / worked, 0.0)
    begin = rows["start_s"] + rows["startup_s"]
    return begin, begin + length, rows["productive_s"]


def _available(rows: dict[str, Floats]) -> tuple[Floats, Floats, Floats]:
    """When attempts waited and ran."""
    begin = np.concatenate([rows["eligible_s"], rows["start_s"]])
    length = np.concatenate([rows["waited_s"], rows["ran_s"]])
    return begin, begin + length, length


def _sum_of_spans(
    begin: Floats, end: Floats, amount: Floats, *, origin: float
) -> tuple[Floats, Floats]:
    """How much of all amounts had come by a time since the origin, each evenly over its span.

    Linear between the times given, and level beyond them.
    """
    held = ~np.isnan(begin) & (end > begin) & (amount > 0)
    start, stop, given = begin[held] - origin, end[held] - origin, amount[held]
    knots, place = np.unique(np.concatenate([[0.0], start, stop]), return_inverse=True)
    slope = given / (stop - start)
    change = np.zeros(len(knots))
    np.add.at(change, place[1:], np.concatenate([slope, -slope]))
    grown = np.cumsum(change)[:-1] * np.diff(knots)
    return knots, np.concatenate([[0.0], np.cumsum(grown)])


def _ratio(productive: Floats, available: Floats) -> Floats:
    """Productive over available time; rounding kept out of what is never beyond [0, 1]."""
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(available > LEAST_S, productive / available, np.nan)
    return np.asarray(np.clip(ratio, 0.0, 1.0))


def bucket_of_part(part: str, lost_to: object = None) -> str:
    """Bucket of the ledger that a part is of; lost work in that which ended the attempt.

    >>> bucket_of_part("queued"), bucket_of_part("lost", "lost_work_preempted")
    ('queue_hold', 'lost_work_preempted')
    """
    if part == "lost":
        return lost_to if isinstance(lost_to, str) else "lost_work"
    return "queue_hold" if part == "queued" else part


def part_spans(attempts: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Where the parts of attempts lie: start-up first, lost work last, between them the rest.

    Returns
    -------
    dict
        Part -> a row an attempt that has it: `row` (its place), `start_at`, `seconds` (length in
        time), `hours` (of the part itself), `share` of the height, the shares `below` it, and
        `lost_to`, the bucket of what an interruption lost.
    """
    ran, startup, lost = (attempts[f"{n}_s"].to_numpy(float) for n in ("ran", "startup", "lost"))
    after = ran - startup
    worked = after - attempts["checkpoint_s"].to_numpy(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        last = np.where(worked > 0, lost * after / worked, 0.0)
    between = after - last
    whole = attempts[[f"{part}_s" for part in _BY_TURNS]].sum(axis=1).to_numpy(float)
    begin = attempts["start_at"]
    eligible_at = pd.to_datetime(attempts["eligible_s"], unit="s", utc=True)
    spans = {
        "queued": _span_rows(attempts, "waited_s", eligible_at),
        "startup": _span_rows(attempts, "startup_s", begin),
        "lost": _span_rows(attempts, "lost_s", begin + pd.to_timedelta(startup + between, unit="s"))
        .assign(seconds=lambda rows: last[rows["row"]]),
    }  # fmt: skip
    below = np.zeros(len(attempts))
    for part in _BY_TURNS:
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(whole > 0, attempts[f"{part}_s"].to_numpy(float) / whole, 0.0)
        rows = _span_rows(attempts, f"{part}_s", begin + pd.to_timedelta(startup, unit="s"))
        place = rows["row"].to_numpy()
        spans[part] = rows.assign(seconds=between[place], share=share[place], below=below[place])
        below = below + share
    return {part: spans[part] for part in IN_TIME}


def _span_rows(attempts: pd.DataFrame, column: str, start_at: pd.Series) -> pd.DataFrame:
    """The attempts that have some of a part, over their whole height."""
    seconds = attempts[column].fillna(0).to_numpy(float)
    rows = pd.DataFrame(
        {
            "row": np.arange(len(attempts)),
            "start_at": start_at.to_numpy(dtype=object),
            "seconds": seconds,
            "hours": seconds / 3600,
            "share": 1.0,
            "below": 0.0,
            "lost_to": attempts["bucket"].to_numpy(dtype=object),
        }
    )
    return rows[(seconds > 0) & rows["start_at"].notna()]
