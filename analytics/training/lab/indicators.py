"""Indicators of a run, and when they alarm: scores against the run's own past, or a rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from analytics.errors import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.training.lab.training import Shown

PAST: Final = 20
"""Steps before, by which a step is judged."""
JUMP: Final = 5.0
"""Times the median of the past from which loss or gradient norm jumps (ByteRobust)."""
SCORED: Final = (
    "loss", "gradient_norm", "query_norm", "key_norm", "attention_entropy", "update_cosine",
    "replica_loss", "replica_norm",
)  # fmt: skip
"""Indicators with a threshold that clean runs calibrate."""
RULED: Final = ("jump_5x", "not_finite", "checksum")
"""Indicators that a rule decides."""
INDICATORS: Final = (*SCORED, *RULED)
_LOGARITHMIC: Final = ("loss", "gradient_norm", "query_norm", "key_norm")


@dataclass(frozen=True)
class Series:
    """What runs logged, step by step."""

    values: Mapping[str, Floats]
    """Of each scored indicator (steps, runs); of the two of replicas how far the farthest lies from
    the median of the replicas, as a logarithm."""
    replicas_differ: Bools
    """(steps, runs)."""

    @classmethod
    def of(cls, shown: Sequence[Shown]) -> Series:
        """The series of steps that follow one another."""
        loss = np.array([each.loss for each in shown], dtype=np.float64)
        norms = np.array([each.replica_norm for each in shown], dtype=np.float64)
        names = ("gradient_norm", "query_norm", "key_norm", "attention_entropy", "update_cosine")
        values = {name: np.array([getattr(s, name) for s in shown], np.float64) for name in names}
        values |= {
            "loss": loss.mean(axis=2),
            "replica_loss": _apart(loss),
            "replica_norm": _apart(norms),
        }
        return cls(values, np.array([each.replicas_differ for each in shown]))

    def of_runs(self, runs: Sequence[int]) -> Series:
        """The series of some runs, by their places; one may come several times."""
        values = {name: each[:, runs] for name, each in self.values.items()}
        return Series(values, self.replicas_differ[:, runs])


def _apart(of_replicas: Floats) -> Floats:
    """How far the farthest replica lies from the median of all, as a logarithm."""
    with np.errstate(all="ignore"):
        logs = np.log(of_replicas)
        found: Floats = np.abs(logs - np.median(logs, axis=2, keepdims=True)).max(axis=2)
    return found


def scores(name: str, values: Floats) -> Floats:
    """How far each step lies from the past of its run, in the past's own scatter.

    .. math:: z_t = |x_t - \\mathrm{median}(x_{t-w} \\dots x_{t-1})| / s_t

    with s_t the median distance of the past from its median times 1.4826, and x the logarithm of
    norms and of the loss. NaN for the first w = `PAST` steps and where all of the
    past is NaN; infinite where x is not finite. What of the past is not finite is left out of it.

    Parameters
    ----------
    values : numpy.ndarray, shape (steps, runs)
    """
    with np.errstate(all="ignore"):
        known = np.log(values) if name in _LOGARITHMIC else values.copy()
        known[~np.isfinite(known)] = np.nan
        past = sliding_window_view(known, PAST, axis=0)[:-1]
        middle = _median_known(past)
        scatter = 1.4826 * _median_known(np.abs(past - middle[:, :, None]))
        least = 1e-6 * (1.0 + np.abs(middle))
        found = np.full(values.shape, np.nan)
        found[PAST:] = np.abs(known[PAST:] - middle) / np.maximum(scatter, least)
    found[PAST:][np.isnan(known[PAST:])] = np.inf
    return found


def _median_known(past: Floats) -> Floats:
    """Median along the last axis of what is no NaN; NaN where all is."""
    ordered, n = np.sort(past, axis=2), np.isfinite(past).sum(axis=2)[:, :, None]
    lower = np.take_along_axis(ordered, np.maximum(n - 1, 0) // 2, axis=2)
    upper = np.take_along_axis(ordered, np.minimum(n // 2, past.shape[2] - 1), axis=2)
    found: Floats = ((lower + upper) / 2)[:, :, 0]
    return found


def threshold(highest: Floats, false_alarms: float) -> float:
    """Score that a further clean run exceeds with at most the given probability.

    .. math:: P(\\max_t z_t > h_{(k)}) = k / (n + 1), \\quad k = \\lfloor \\alpha (n + 1) \\rfloor

    with h_(k) the k-th largest of the n highest scores of clean runs: exact whatever the
    distribution, where runs are exchangeable.

    Parameters
    ----------
    highest : numpy.ndarray
        Highest score of each clean run.
    false_alarms : float
        alpha, in (0, 1).

    Raises
    ------
    OutOfRangeError
        Where there are too few clean runs for that probability.

    References
    ----------
    Vovk, Gammerman and Shafer (2005), Algorithmic Learning in a Random World.

    >>> threshold(np.arange(1.0, 100.0), 0.02)
    98.0
    """
    k = int(false_alarms * (len(highest) + 1) + 1e-9)
    if k < 1:
        raise OutOfRangeError(
            "clean runs", f"at least {int(np.ceil(1 / false_alarms)) - 1}", len(highest),
            f"for false alarms in {false_alarms:g} of runs",
        )  # fmt: skip
    return float(np.sort(highest)[-k])


def highest_scores(series: Series, since: int) -> dict[str, Floats]:
    """Highest score of each run from a step on, of each scored indicator."""
    return {name: scores(name, series.values[name])[since:].max(axis=0) for name in SCORED}


def first_alarms(series: Series, thresholds: Mapping[str, float], since: Ints) -> dict[str, Floats]:
    """Step of each run's first alarm from its step `since` on; NaN where there is none.

    An indicator that is NaN or infinite alarms: whoever logs it sees that.
    """
    steps = np.arange(len(series.replicas_differ))[:, None]
    found = {}
    for name, alarm in _alarms(series, thresholds).items():
        alarm = alarm & (steps >= since)
        first = np.argmax(alarm, axis=0).astype(np.float64)
        found[name] = np.where(alarm.any(axis=0), first, np.nan)
    return found


def _alarms(series: Series, thresholds: Mapping[str, float]) -> dict[str, Bools]:
    """Whether each indicator alarms, (steps, runs)."""
    values = series.values
    with np.errstate(all="ignore"):
        found = {name: scores(name, values[name]) > thresholds[name] for name in SCORED}
        jump = np.zeros(series.replicas_differ.shape, dtype=bool)
        for name in ("loss", "gradient_norm"):
            past = np.median(sliding_window_view(values[name], PAST, axis=0)[:-1], axis=2)
            jump[PAST:] |= values[name][PAST:] > JUMP * past
        finite = np.isfinite(values["loss"]) & np.isfinite(values["gradient_norm"])
    return found | {
        "jump_5x": jump | ~finite,
        "not_finite": ~finite,
        "checksum": series.replicas_differ,
    }
