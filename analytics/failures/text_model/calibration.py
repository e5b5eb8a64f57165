"""Calibration of a classifier of texts on rows held out of its training."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from analytics.errors import AnalysisError
from analytics.failures.text_model.features import lexicon, matrix
from analytics.failures.text_model.fitting import DIGITS, fit
from analytics.failures.text_model.model import probabilities

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.failures.text_model.features import Terms

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_FOLDS = 5
_LOG_TEMPERATURES = (-0.7, 2.0)
"""Cleanly parted rows would bear any sharpening, and every new text would then seem certain."""
LEAST_COVERED = 10
"""Held-out rows that a threshold must rest on."""


class HeldOut(NamedTuple):
    """Scores of rows and the labels that they have."""

    scores: Floats
    targets: Ints


def held_out(
    terms: Sequence[Terms], targets: Ints, names: Sequence[str], *, in_time_order: bool
) -> HeldOut:
    """Scores of rows by models that have not seen them; -inf odds of labels not yet known."""
    scores, found = [], []
    for learn, judge in _folds(targets, in_time_order=in_time_order):
        if len(set(targets[learn].tolist())) < 2:
            continue
        fitted = fit([terms[row] for row in learn], targets[learn], names)
        part = np.full((len(judge), len(names)), -np.inf)
        features = matrix([terms[row] for row in judge], lexicon(fitted.frequencies))
        part[:, fitted.places] = np.asarray(features @ fitted.weights.T) + fitted.intercepts
        scores.append(part)
        found.append(targets[judge])
    if not scores:
        raise AnalysisError(
            "training needs rows of two labels before those it is judged by: give more rows, or "
            "leave the time out"
        )
    return HeldOut(np.vstack(scores), np.concatenate(found))


def _folds(targets: Ints, *, in_time_order: bool) -> list[tuple[Ints, Ints]]:
    """Rows to learn from and rows to judge by.

    In time order the second half of the rows is judged in five parts, each by all rows before
    it; else every row is judged once, labels spread evenly over five parts.
    """
    n = len(targets)
    if in_time_order:
        edges = [n * (_FOLDS + part) // (2 * _FOLDS) for part in range(_FOLDS + 1)]
        rows = np.arange(n)
        return [(rows[:start], rows[start:end]) for start, end in pairwise(edges) if end > start]
    order = np.argsort(targets, kind="stable")
    part = np.empty(n, dtype=np.int64)
    part[order] = np.arange(n) % _FOLDS
    return [(np.flatnonzero(part != one), np.flatnonzero(part == one)) for one in range(_FOLDS)]


def temperature_of(scores: Floats, targets: Ints) -> float:
    """The temperature under which held-out rows were most likely."""
    rows = np.arange(len(targets))
    learnt = np.isfinite(scores[rows, targets])  # no temperature helps a label never seen before
    if not learnt.any():
        return 1.0

    def surprise(log_temperature: float) -> float:
        chances = probabilities(scores[learnt], float(np.exp(log_temperature)))
        chosen = chances[np.arange(len(chances)), targets[learnt]]
        return -float(np.log(np.maximum(chosen, 1e-12)).mean())

    best = minimize_scalar(surprise, bounds=_LOG_TEMPERATURES, method="bounded")
    return round(float(np.exp(best.x)), DIGITS)


def threshold_of(confidence: Floats, right: NDArray[np.bool_], target: float) -> float | None:
    """Least confidence from which on held-out rows were right often enough; None without one.

    Where all of them together were, nothing speaks against a confidence as low as `target`.
    """
    order = np.argsort(-confidence, kind="stable")
    ranked = confidence[order]
    accuracy = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    last_of_ties = np.append(ranked[1:] != ranked[:-1], True)
    good = np.flatnonzero(last_of_ties & (accuracy >= target))
    good = good[good >= LEAST_COVERED - 1]
    if not good.size:
        return None
    least = float(ranked[good[-1]])
    return min(least, target) if good[-1] == len(ranked) - 1 else least
