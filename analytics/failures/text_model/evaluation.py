"""How good a classifier is on rows that it has not seen."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import AnalysisError, ShapeError
from analytics.estimate import Estimate
from analytics.proportion import proportion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints

COVERAGES = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)
RESAMPLES = 2_000


@dataclass(frozen=True)
class LabelScore:
    """How well one label is found."""

    label: str
    precision: Estimate
    """Of the rows called so, the share that are; unknown where none is called so."""
    recall: Estimate
    """Of the rows that are, the share called so."""
    f1: Estimate
    n: int
    """Rows of this label."""


@dataclass(frozen=True)
class Covered:
    """Accuracy on the rows of which the model is most sure."""

    coverage: float
    """Share of all rows, rounded up to whole rows."""
    accuracy: Estimate


@dataclass(frozen=True)
class Evaluation:
    """A classifier's answers held against the truth."""

    n: int
    accuracy: Estimate
    macro_f1: Estimate
    """Mean F1 of the labels that occur in the truth."""
    per_class: tuple[LabelScore, ...]
    """Most frequent first."""
    at_coverage: tuple[Covered, ...]


def evaluate(
    truth: Sequence[str],
    chosen: Sequence[str],
    confidence: Sequence[float],
    *,
    conf_level: float = 0.90,
    seed: int = 0,
) -> Evaluation:
    """Accuracy, F1 of each label and accuracy by coverage of a classifier's answers.

    F1_c = 2 TP_c / (2 TP_c + FP_c + FN_c), with true positives, false positives and false
    negatives of label c; macro-F1 is the plain mean over the labels that occur in `truth`. Accuracy
    at coverage q is that of the ceil(q n) rows of the highest confidence (earlier rows first
    where it is equal).

    Parameters
    ----------
    truth, chosen : sequence of str
        Label and answer of each row.
    confidence : sequence of float
        Probability that the model gives its answer, in [0, 1].
    conf_level : float
        In (0, 1). Shares have Clopper and Pearson's interval; F1 the percentiles of a bootstrap
        over rows (2,000 resamples, each over the labels that it holds).
    seed : int
        Of the bootstrap.

    Returns
    -------
    Evaluation

    Raises
    ------
    AnalysisError
        Where there are no rows, or the sequences differ in length.

    Notes
    -----
    Assumes independent rows: failures reported in bursts make the intervals too narrow.

    Examples
    --------
    >>> found = evaluate(["a", "a", "b", "b"], ["a", "b", "b", "b"], [0.9, 0.4, 0.8, 0.7])
    >>> found.accuracy.value, round(found.macro_f1.value, 4), found.at_coverage[3].accuracy.value
    (0.75, 0.7333, 1.0)
    """
    n = len(truth)
    if not (n == len(chosen) == len(confidence)):
        raise ShapeError(
            f"truth ({n}), chosen ({len(chosen)}) and confidence ({len(confidence)}) differ in "
            "length: align them"
        )
    if n == 0:
        raise AnalysisError("evaluation needs rows, got none: give labelled rows")
    labels = sorted({*truth, *chosen})
    place = {label: index for index, label in enumerate(labels)}
    found = np.zeros((len(labels), len(labels)), dtype=np.int64)
    np.add.at(found, ([place[one] for one in truth], [place[one] for one in chosen]), 1)
    scores, macro = _label_scores(labels, found, conf_level, seed)
    right = np.array([one == other for one, other in zip(truth, chosen, strict=True)])
    return Evaluation(
        n=n,
        accuracy=proportion(int(right.sum()), n, conf_level),
        macro_f1=macro,
        per_class=scores,
        at_coverage=_at_coverage(right, np.asarray(confidence, dtype=np.float64), conf_level),
    )


def _at_coverage(right: Bools, confidence: Floats, conf_level: float) -> tuple[Covered, ...]:
    """Accuracy on the rows of the highest confidence."""
    hits = np.cumsum(right[np.argsort(-confidence, kind="stable")])
    rows = [math.ceil(round(coverage * len(right), 9)) for coverage in COVERAGES]
    return tuple(
        Covered(coverage, proportion(int(hits[kept - 1]), kept, conf_level))
        for coverage, kept in zip(COVERAGES, rows, strict=True)
    )


def _label_scores(
    labels: Sequence[str], found: Ints, conf_level: float, seed: int
) -> tuple[tuple[LabelScore, ...], Estimate]:
    """Scores of the labels of the truth, and the mean of their F1."""
    in_truth = np.flatnonzero(found.sum(axis=1)).tolist()
    cells = np.flatnonzero(found)
    drawn = np.random.default_rng(seed).multinomial(
        found.sum(), found.flat[cells] / found.sum(), size=RESAMPLES
    )
    truth_of, chosen_of = np.divmod(cells, len(labels))
    resampled = _f1_of_draws(drawn, truth_of, chosen_of, len(labels))[:, in_truth]
    tails = (50.0 * (1.0 - conf_level), 50.0 * (1.0 + conf_level))
    lower, upper = np.nanpercentile(resampled, tails, axis=0)
    f1 = _f1_of_draws(found.flat[cells][None, :], truth_of, chosen_of, len(labels))[0, in_truth]
    bounds = np.percentile(np.nanmean(resampled, axis=1), tails)
    n = int(found.sum())
    scores = [
        LabelScore(
            label=labels[row],
            precision=proportion(int(found[row, row]), int(found[:, row].sum()), conf_level),
            recall=proportion(int(found[row, row]), int(found[row].sum()), conf_level),
            f1=Estimate(
                float(f1[at]), float(lower[at]), float(upper[at]), conf_level, int(found[row].sum())
            ),
            n=int(found[row].sum()),
        )
        for at, row in enumerate(in_truth)
    ]
    macro = Estimate(float(f1.mean()), float(bounds[0]), float(bounds[1]), conf_level, n)
    return tuple(sorted(scores, key=lambda one: (-one.n, one.label))), macro


def _f1_of_draws(counts: Ints, truth_of: Ints, chosen_of: Ints, n_labels: int) -> Floats:
    """F1 of each label in each draw, shape (draws, labels); NaN where no row has the label."""
    hits = np.zeros((len(counts), n_labels))
    said = np.zeros((len(counts), n_labels))
    there = np.zeros((len(counts), n_labels))
    for cell, (truth, chosen) in enumerate(zip(truth_of, chosen_of, strict=True)):
        there[:, truth] += counts[:, cell]
        said[:, chosen] += counts[:, cell]
        if truth == chosen:
            hits[:, truth] += counts[:, cell]
    found: Floats = np.where(there > 0, 2.0 * hits / np.maximum(there + said, 1.0), np.nan)
    return found
