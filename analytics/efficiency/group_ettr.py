"""ETTR of runs together, and how far it could lie from that of runs like them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from scipy import special

from analytics.estimate import Estimate
from analytics.ratio import Moments, RatioOfSums, ratio_of_sums, sums_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints

DAY_S: Final = 86_400.0
HALF_WAVE_DAYS: Final = 14.0
"""Half waves at least this long count as slow: congestion of a queue lasts hours to days."""
LEAST_WAVES, MOST_WAVES = 2, 4
"""Half waves of a short and of a long period."""
LEAST_LOOKS: Final = 3
"""Runs that must have followed one another: those that overlap saw one queue."""


@dataclass(frozen=True)
class RunTotals:
    """What runs went through, each counting once whatever its size."""

    n_runs: int
    n_attempts: int
    n_interruptions: int
    queued_s: float
    scheduled_s: float
    productive_s: float

    @classmethod
    def none(cls) -> RunTotals:
        """Of no run."""
        return cls(0, 0, 0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class GroupEttr:
    """ETTR of runs of one size or week, weighted by GPU-time."""

    group: str
    totals: RunTotals
    gpu_hours: float
    """Queued and scheduled."""
    ettr: Estimate
    """What runs like these get; n = runs."""
    of_these_runs: Estimate
    """What these very runs got: without the sampling of runs."""
    overlapping: bool = False
    """Fewer than three of several runs followed one another: no interval of runs like these."""


def ettr_of_groups(
    runs: pd.DataFrame, group: Ints, names: Sequence[str], *, conf_level: float
) -> tuple[GroupEttr, ...]:
    r"""ETTR of runs together, by group, with the interval of these runs and that of runs like them.

    With g_i GPUs, A_i time waited and run, R_i productive time expected under the habits, w = g A
    and shares h = w / sum w:

    .. math:: E = \frac{\sum g_i R_i}{\sum g_i A_i}, \quad
        V = V_{runs} + \frac{\sum g_i^2 v_i + (\sum g_i s_i)^2}{(\sum g_i A_i)^2}

    V_runs is the variance of a ratio of sums over runs that share a queue (`ratio_of_sums`, each
    run in its middle, by half waves of 14 days and more: 2 to 4 of them), v_i that of R_i by
    chance: when in its interval an interruption struck, and how far the habits of a run lie from
    those of others. s_i is its standard deviation by what is not known of the habits of all runs
    (`habit_model`), wrong in all of them alike. Both bounds are taken on the scale of
    log(E / (1 - E)), where they stay within (0, 1) and the skew of few runs is less:

    .. math:: \mathrm{logit}(E_\pm) \pm t_\nu \frac{\sqrt V}{E_\pm (1 - E_\pm)}

    E_- and E_+ have all runs at the least and at the greatest R_i of what is assumed of their
    habits: an assumption is wrong in all runs alike. nu is V_runs' by Satterthwaite's rule, as the
    other part is known. One run is no sample: its interval is that of these runs, E_- - z s to
    E_+ + z s with s^2 the second part. Runs that all lost nothing tell of no others: no bounds.
    Nor do runs of which no three followed one another: they saw the queue once or twice.

    Where attempts before a requeue have no record, they waited and ran for up to U_i
    (`unrecorded_s`, 0 where the column is missing): with m = sum g U / sum g A the bounds become
    E_- / (1 + m), nothing of it kept, and (E_+ + m) / (1 + m), all of it.

    Parameters
    ----------
    runs : DataFrame
        Rows of `job_runs` that ran and whose wait is known; `first_start_at` in UTC.
    group : ndarray of int, shape (n,)
        Place in `names` of the group of each run.
    names
        Groups; those without a run are left out.
    conf_level
        Of the intervals. Where a range is assumed they have none: `conf_level` is None.

    Examples
    --------
    >>> import pandas as pd
    >>> run = {"n_gpus": 16, "queued_s": 1000, "scheduled_s": 9000, "n_attempts": 1,
    ...     "n_interruptions": 1, "variance_productive_s2": 0.0, "shared_productive_s": 0.0}
    >>> kept = [7000, 8000, 7500]
    >>> begin = pd.date_range("2026-01-05", periods=3, tz="UTC")
    >>> runs = pd.DataFrame([run] * 3).assign(first_start_at=begin, productive_s=kept,
    ...     lower_productive_s=kept, upper_productive_s=kept)
    >>> (all_three,) = ettr_of_groups(runs, np.zeros(3, dtype=int), ["all"], conf_level=0.5)
    >>> found = all_three.ettr
    >>> found.value, round(found.lower, 2), round(found.upper, 2), found.n
    (0.75, 0.73, 0.77, 3)
    >>> all_three.of_these_runs.lower, all_three.of_these_runs.upper
    (0.75, 0.75)
    """
    sums = _Sums.of(runs, group, len(names))
    own, alike = sums.own(conf_level), sums.alike(conf_level)
    return tuple(
        GroupEttr(
            group=names[place],
            totals=sums.run_totals(place),
            gpu_hours=float(sums.available[place]) / 3600,
            ettr=sums.estimate(place, alike if sums.ratio.n[place] > 1 else own, conf_level),
            of_these_runs=sums.estimate(place, own, conf_level),
            overlapping=bool(sums.overlapping[place]),
        )
        for place in np.flatnonzero(sums.available > 0).tolist()
    )


@dataclass(frozen=True)
class _Sums:
    """What intervals are computed from: arrays of shape (groups,), GPU-seconds and their ratios."""

    available: Floats
    ratio: RatioOfSums
    """The ETTR."""
    least: Floats
    most: Floats
    """The ETTR with all runs at the least and the greatest that is assumed of their habits."""
    ceiling: Floats
    """The ETTR if all running time were productive."""
    chance: Floats
    """Variance of the ETTR of these runs."""
    overlapping: Bools
    """Fewer than three of several runs followed one another."""
    missing: Floats
    """Time for which attempts without a record may have waited and run, over that of the others."""
    assumed: Bools
    """Whether least and most are an assumption, or attempts have no record."""
    totals: Floats
    """Sums of `_TOTALS`, shape (columns, groups)."""

    @classmethod
    def of(cls, runs: pd.DataFrame, group: Ints, n_groups: int) -> _Sums:
        """Sums of the columns of runs by group."""

        def total(values: Floats) -> Floats:
            return sums_of(values, group, n_groups)

        gpus = runs["n_gpus"].to_numpy(dtype=float)
        gpu_s = {name: gpus * runs[name].to_numpy(dtype=float) for name in _SECONDS}
        available = gpu_s["queued_s"] + gpu_s["scheduled_s"]
        moments = run_moments(runs, group, n_groups)
        ratio = ratio_of_sums(gpu_s["productive_s"], available, moments, group)
        whole = total(available)
        held = np.where(whole > 0, whole, np.nan)
        missing = total(gpus * unrecorded_s(runs)) / held
        ranged = gpu_s["lower_productive_s"] < gpu_s["upper_productive_s"]
        apart = total(gpus**2 * runs["variance_productive_s2"].to_numpy(dtype=float))
        alike = total(gpus * runs["shared_productive_s"].to_numpy(dtype=float))
        return cls(
            available=whole,
            ratio=ratio,
            least=np.fmin(total(gpu_s["lower_productive_s"]) / held, ratio.value),
            most=np.fmax(total(gpu_s["upper_productive_s"]) / held, ratio.value),
            ceiling=total(gpu_s["scheduled_s"]) / held,
            chance=(apart + alike**2) / held**2,
            overlapping=(moments.waves == 0) & (ratio.n > 1),
            missing=missing,
            assumed=(total(ranged.astype(np.float64)) > 0) | (missing > 0),
            totals=np.array([total(runs[name].to_numpy(dtype=float)) for name in _TOTALS]),
        )

    def run_totals(self, place: int) -> RunTotals:
        """Totals of one group."""
        attempts, interruptions, queued, scheduled, productive = self.totals[:, place].tolist()
        n_runs = int(self.ratio.n[place])
        return RunTotals(n_runs, int(attempts), int(interruptions), queued, scheduled, productive)

    def own(self, conf_level: float) -> tuple[Floats, Floats]:
        """Bounds of the ETTR of these very runs."""
        reach = special.ndtri((1 + conf_level) / 2) * np.sqrt(self.chance)
        bounds = _own_bounds(self.least, self.most, self.ceiling, reach)
        return _with_missing(*bounds, self.missing)

    def alike(self, conf_level: float) -> tuple[Floats, Floats]:
        """Bounds of the ETTR of runs like these."""
        by_runs = self.ratio.variance
        variance = by_runs + self.chance
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            df = self.ratio.df * (variance / by_runs) ** 2
        df = np.where(by_runs > 0, df, np.inf)
        reach = special.stdtrit(df, (1 + conf_level) / 2) * np.sqrt(variance)
        bounds = _on_logit(self.least, -reach), _on_logit(self.most, reach)
        return _with_missing(*bounds, self.missing)

    def estimate(self, place: int, bounds: tuple[Floats, Floats], conf_level: float) -> Estimate:
        """The ETTR of one group with these bounds; where a range is assumed it has no level."""
        value = float(self.ratio.value[place])
        lower, upper = (None if np.isnan(bound[place]) else float(bound[place]) for bound in bounds)
        level = None if self.assumed[place] else conf_level
        return Estimate(value, lower, upper, level, int(self.ratio.n[place]))


_SECONDS = ("queued_s", "scheduled_s", "productive_s", "lower_productive_s", "upper_productive_s")
"""Columns that are summed, weighted by GPUs."""
_TOTALS = ("n_attempts", "n_interruptions", "queued_s", "scheduled_s", "productive_s")
"""Columns that are summed as they are, in the order of `RunTotals`."""


def run_moments(runs: pd.DataFrame, group: Ints, n_groups: int) -> Moments:
    """The middle of each run, in days, and the half waves of each group that count as slow.

    None of a group of which no three runs followed one another: nothing can be judged then.
    """
    started = pd.to_datetime(runs["first_start_at"], utc=True, cache=False)
    begin = started.to_numpy(dtype="datetime64[us]").astype(np.int64) / (1e6 * DAY_S)
    end = begin + runs["scheduled_s"].to_numpy(dtype=float) / DAY_S
    middle = (begin + end) / 2
    first, last = np.full(n_groups, np.inf), np.full(n_groups, -np.inf)
    np.minimum.at(first, group, middle)
    np.maximum.at(last, group, middle)
    span = np.where(last > first, last - first, 0.0)
    waves = np.clip(span // HALF_WAVE_DAYS, LEAST_WAVES, MOST_WAVES)
    judged = _followed(begin, end, group, n_groups)
    return Moments(middle, np.where(judged, waves, 0).astype(np.int64))


def _followed(begin: Floats, end: Floats, group: Ints, n_groups: int) -> Bools:
    """Whether three runs of each group followed one another, each begun after the one before.

    The one that ends first comes first, and again of those that begin thereafter: so most do.
    """
    until = np.full(n_groups, -np.inf)
    for _ in range(LEAST_LOOKS):
        later = begin >= until[group]
        until = np.full(n_groups, np.inf)
        np.minimum.at(until, group[later], end[later])
    return np.asarray(np.isfinite(until))


def ettr_of_each(runs: pd.DataFrame, conf_level: float) -> pd.DataFrame:
    """ETTR of each run with the bounds of its own: nothing is sampled there.

    Parameters
    ----------
    runs : DataFrame
        Columns as of `ettr_of_groups`; runs that waited or ran, and whose wait is known.

    Returns
    -------
    DataFrame
        `ettr`, `lower`, `upper`: one row a run, the index a range.
    """
    seconds = {name: runs[name].to_numpy(dtype=float) for name in _SECONDS}
    available = seconds["queued_s"] + seconds["scheduled_s"]
    variance = runs["variance_productive_s2"] + runs["shared_productive_s"] ** 2
    deviation = np.sqrt(variance.to_numpy(dtype=float)) / available
    lower, upper = _own_bounds(
        seconds["lower_productive_s"] / available,
        seconds["upper_productive_s"] / available,
        seconds["scheduled_s"] / available,
        special.ndtri((1 + conf_level) / 2) * deviation,
    )
    lower, upper = _with_missing(lower, upper, unrecorded_s(runs) / available)
    value = seconds["productive_s"] / available
    return pd.DataFrame({"ettr": value, "lower": lower, "upper": upper})


def unrecorded_s(runs: pd.DataFrame) -> Floats:
    """Seconds for which attempts without a record may have waited and run, of each run."""
    if "unrecorded_s" not in runs:
        return np.zeros(len(runs))
    return runs["unrecorded_s"].fillna(0).to_numpy(dtype=float)


def _with_missing(lower: Floats, upper: Floats, missing: Floats) -> tuple[Floats, Floats]:
    """Bounds where more time, `missing` of what is known, has no record: from none to all kept."""
    return lower / (1.0 + missing), (upper + missing) / (1.0 + missing)


def _own_bounds(
    least: Floats, most: Floats, ceiling: Floats, reach: Floats
) -> tuple[Floats, Floats]:
    """Bounds moved apart by chance, never below 0 or above what ran."""
    lower = np.maximum(least - reach, 0.0)
    return lower, np.minimum(most + reach, np.fmax(ceiling, most))


def _on_logit(ratio: Floats, reach: Floats) -> Floats:
    """A ratio moved by so much, as the scale of its logit sees it; NaN of 0 and of 1."""
    inside = np.where((ratio > 0) & (ratio < 1), ratio, np.nan)
    return np.asarray(special.expit(special.logit(inside) + reach / (inside * (1.0 - inside))))
