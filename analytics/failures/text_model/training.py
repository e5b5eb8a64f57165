"""Training of a classifier of texts, and its calibration on rows held out of training."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from analytics.errors import AnalysisError, ShapeError
from analytics.failures.text_model.features import (
    inverse_frequencies,
    lexicon,
    matrix,
    normal_text,
    terms_of,
)
from analytics.failures.text_model.model import (
    CrossValidation,
    TextModel,
    claims,
    decisions,
    probabilities,
)
from analytics.proportion import proportion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.failures.text_model.features import Terms, Texts

LEAST_ROWS = 20
LEAST_PER_LABEL = 5
"""Rows that the two most frequent labels must have."""
MOST_LABELS = 250
TARGET_ACCURACY = 0.95
MOST_TERMS = 30_000
"""Terms of a block that are kept at most."""
NAME_ROWS = 5
"""Rows that a label's own name counts for: who writes "replaced fan" mostly means the fan."""
STRENGTH = 5.0
"""Inverse of the penalty on weights."""
INTERCEPT_SCALE = 3.0
DIGITS = 4
"""Decimal digits of a weight that are kept, by training and in the document alike."""
_FOLDS = 5
_LOG_TEMPERATURES = (-0.7, 2.0)
"""Cleanly parted rows would bear any sharpening, and every new text would then seem certain."""
LEAST_COVERED = 10
"""Held-out rows that a threshold must rest on."""


class Training(NamedTuple):
    """A model, and what models of other rows said of the rows held out."""

    model: TextModel
    truth: list[str]
    chosen: list[str]
    confidence: list[float]


class Fitted(NamedTuple):
    """What a training found."""

    frequencies: tuple[dict[str, float], ...]
    weights: Floats
    intercepts: Floats
    places: Ints
    """Of the labels it knows, among all."""


def train(
    rows: Sequence[Texts],
    labels: Sequence[str],
    *,
    columns: Sequence[str],
    in_time_order: bool = False,
    conf_level: float = 0.90,
    most_terms: int = MOST_TERMS,
) -> Training:
    """Classifier of rows of texts, calibrated, that abstains where it does not know.

    One logistic regression a label (that label against all others), on terms weighted by
    (1 + ln count) x inverse document frequency; the words of a label's own name stand as five
    further rows of it, in the first column. Probabilities are scaled by one temperature and
    the threshold of abstention is set on rows held out of training: five parts, each judged by a
    model of the others (or, `in_time_order`, of the rows before it). The model speaks where
    held-out rows of such confidence and above were right in 95 % of the cases
    (`TARGET_ACCURACY`), where the label's own regression says more likely than not, and where
    training has seen half of the words.

    Parameters
    ----------
    rows : sequence of tuple of str
        One text a column.
    labels : sequence of str
        Label of each row; case and blanks do not tell labels apart.
    columns : sequence of str
        Names of the columns.
    in_time_order : bool
        Whether rows go from the oldest to the newest: then calibration looks forward only.
    conf_level : float
        Of the intervals of the cross-validation.
    most_terms : int
        Terms of a block that are kept at most: fewer make a smaller document.

    Returns
    -------
    Training
        The model, the same for the same rows to the last digit; its answers on the rows held out
        beside their truth.

    Raises
    ------
    AnalysisError
        Where there are too few rows or labels to learn from.

    Notes
    -----
    Assumes that rows to come resemble the last ones of training. Misleads where labels were set
    by a habit that has changed: train again, with the newest rows.

    References
    ----------
    Temperature: Guo et al., "On Calibration of Modern Neural Networks", arXiv 1706.04599,
    section 4.2. Threshold: El-Yaniv and Wiener, "On the Foundations of Noise-free Selective
    Classification", JMLR 11 (2010).

    Examples
    --------
    >>> rows = [("disk sda broken",), ("fan too slow",)] * 20
    >>> model = train(rows, ["disk", "fan"] * 20, columns=["text"]).model
    >>> model.predict([("broken disk",), ("lunch menu",)])[0].said
    'disk'
    >>> model.predict([("broken disk",), ("lunch menu",)])[1].said
    'unknown'
    """
    _check(rows, labels, columns)
    spelled = canonical_labels(labels)
    names = tuple(sorted(set(spelled)))
    _check_labels(spelled, names)
    place = {name: index for index, name in enumerate(names)}
    targets = np.array([place[label] for label in spelled], dtype=np.int64)
    terms = distinct_terms(rows)
    scores, truth = held_out(
        terms, targets, names, in_time_order=in_time_order, most_terms=most_terms
    )
    temperature = temperature_of(scores, truth)
    counts = np.bincount(targets, minlength=len(names))
    chosen, confidence = decisions(probabilities(scores, temperature), counts.tolist())
    right = chosen == truth
    claimed = claims(scores, chosen)
    threshold = threshold_of(confidence[claimed], right[claimed], TARGET_ACCURACY)
    covered = claimed & (confidence >= (np.inf if threshold is None else threshold))
    fitted = fit(terms, targets, names, most_terms)
    model = TextModel(
        columns=tuple(columns),
        labels=names,
        rows_by_label=tuple(counts.tolist()),
        frequencies=fitted.frequencies,
        weights=fitted.weights,
        intercepts=fitted.intercepts,
        temperature=temperature,
        threshold=threshold,
        target_accuracy=TARGET_ACCURACY,
        training_sha256=training_sha256(rows, labels, columns, in_time_order=in_time_order),
        cross_validation=CrossValidation(
            accuracy=proportion(int(right.sum()), len(right), conf_level),
            covered_ratio=float(covered.mean()),
            covered_accuracy=proportion(int(right[covered].sum()), int(covered.sum()), conf_level),
            in_time_order=in_time_order,
        ),
    )
    return Training(
        model,
        [names[row] for row in truth.tolist()],
        [names[row] for row in chosen.tolist()],
        confidence.tolist(),
    )


def canonical_labels(labels: Sequence[str]) -> list[str]:
    """Labels of which those that differ in case or blanks alone are one: its commonest spelling.

    Examples
    --------
    >>> canonical_labels(["Disk", "DISK ", "Disk", "fan"])
    ['Disk', 'Disk', 'Disk', 'fan']
    """
    spellings: dict[str, Counter[str]] = {}
    for label in labels:
        written = " ".join(label.split())
        spellings.setdefault(written.casefold(), Counter())[written] += 1
    best = {key: min(seen, key=lambda one: (-seen[one], one)) for key, seen in spellings.items()}
    return [best[" ".join(label.split()).casefold()] for label in labels]


def training_sha256(
    rows: Sequence[Texts],
    labels: Sequence[str],
    columns: Sequence[str],
    *,
    in_time_order: bool = False,
) -> str:
    """Hash of everything that a model is made from: the same hash, the same model.

    Examples
    --------
    >>> training_sha256([("a",)], ["x"], ["text"]) == training_sha256([("b",)], ["x"], ["text"])
    False
    """
    content = [list(columns), in_time_order, TARGET_ACCURACY, [*zip(rows, labels, strict=True)]]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()


def held_out(
    terms: Sequence[Terms],
    targets: Ints,
    names: Sequence[str],
    *,
    in_time_order: bool,
    most_terms: int,
) -> tuple[Floats, Ints]:
    """Scores of rows by models that have not seen them, and their labels.

    Labels not yet known have odds of -inf.
    """
    scores, found = [], []
    for learn, judge in _folds(targets, in_time_order=in_time_order):
        if len(set(targets[learn].tolist())) < 2:
            continue
        fitted = fit([terms[row] for row in learn], targets[learn], names, most_terms)
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
    return np.vstack(scores), np.concatenate(found)


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


def threshold_of(confidence: Floats, right: Bools, target: float) -> float | None:
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


def distinct_terms(rows: Sequence[Texts]) -> list[Terms]:
    """Terms of each row; rows that differ in digits, case or blanks alone share them."""
    known: dict[Texts, Terms] = {}
    found = []
    for row in rows:
        key = tuple(normal_text(text) for text in row)
        if key not in known:
            known[key] = terms_of(row)
        found.append(known[key])
    return found


def fit(
    terms: Sequence[Terms], targets: Ints, names: Sequence[str], most_terms: int = MOST_TERMS
) -> Fitted:
    """One logistic regression a label, rounded to four digits."""
    from sklearn.linear_model import LogisticRegression  # here: 1 s, and prediction needs none

    by_id = {id(row): row for row in terms}
    grouped = Counter(zip(map(id, terms), targets.tolist(), strict=True))
    for place in np.unique(targets).tolist():
        example = terms_of((names[place], *[""] * (len(terms[0]) // 2 - 1)))
        by_id[id(example)] = example
        grouped[id(example), place] = NAME_ROWS
    distinct = [by_id[key] for key, _ in grouped]
    answers = np.array([target for _, target in grouped], dtype=np.int64)
    counts = list(grouped.values())
    frequencies = inverse_frequencies(distinct, counts, most_terms)
    features = matrix(distinct, lexicon(frequencies))
    places = np.unique(answers)
    weights = np.zeros((len(places), features.shape[1]))
    intercepts = np.zeros(len(places))
    for row, place in enumerate(places):
        regression = LogisticRegression(
            C=STRENGTH, solver="liblinear", intercept_scaling=INTERCEPT_SCALE, tol=1e-3
        ).fit(features, answers == place, sample_weight=counts)
        weights[row], intercepts[row] = regression.coef_[0], regression.intercept_[0]
    return Fitted(tuple(frequencies), weights.round(DIGITS), intercepts.round(DIGITS), places)


def _check(rows: Sequence[Texts], labels: Sequence[str], columns: Sequence[str]) -> None:
    if len(rows) != len(labels):
        raise ShapeError(f"rows ({len(rows)}) and labels ({len(labels)}) differ: align them")
    if not columns:
        raise AnalysisError("columns must name at least one text column: name one")
    for row in rows:
        if len(row) != len(columns):
            raise ShapeError(
                f"each row must have {len(columns)} texts, got {len(row)}: one a column"
            )
    if len(rows) < LEAST_ROWS:
        raise AnalysisError(
            f"training needs at least {LEAST_ROWS} labelled rows, got {len(rows)}: label more"
        )


def _check_labels(labels: Sequence[str], names: Sequence[str]) -> None:
    """Refuses labels from which nothing can be told apart."""
    if len(names) < 2:
        raise AnalysisError(
            f"training needs at least two labels, got {list(names)}: name another label column"
        )
    frequent = [n for _, n in Counter(labels).most_common(2)]
    if frequent[1] < LEAST_PER_LABEL:
        raise AnalysisError(
            f"training needs two labels of at least {LEAST_PER_LABEL} rows each, the two most "
            f"frequent have {frequent[0]} and {frequent[1]}: label more"
        )
    if len(names) > MOST_LABELS:
        raise AnalysisError(
            f"training takes at most {MOST_LABELS} labels, got {len(names)}: name a column whose "
            "values repeat"
        )
