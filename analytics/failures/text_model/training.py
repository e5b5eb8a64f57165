"""Training and calibration of a classifier of texts."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.errors import AnalysisError, OutOfRangeError, ShapeError
from analytics.failures.text_model.calibration import held_out, temperature_of, threshold_of
from analytics.failures.text_model.fitting import distinct_terms, fit
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

    from analytics.failures.text_model.features import Texts

LEAST_ROWS = 20
LEAST_PER_LABEL = 5
"""Rows that the two most frequent labels must have."""
MOST_LABELS = 250
TARGET_ACCURACY = 0.95


class Training(NamedTuple):
    """A model, and what models of other rows said of the rows held out."""

    model: TextModel
    truth: list[str]
    chosen: list[str]
    confidence: list[float]


def train_text_model(
    rows: Sequence[Texts],
    labels: Sequence[str],
    *,
    columns: Sequence[str],
    in_time_order: bool = False,
    target_accuracy: float = TARGET_ACCURACY,
    conf_level: float = 0.90,
) -> TextModel:
    """Classifier of rows of texts, calibrated, that abstains where it does not know.

    One logistic regression a label (that label against all others), on terms weighted by
    (1 + ln count) x inverse document frequency; the words of a label's own name stand as five
    further rows of it, in the first column. Probabilities are scaled by one temperature and
    the threshold of abstention is set on rows held out of training: five parts, each judged by a
    model of the others (or, `in_time_order`, of the rows before it).

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
    target_accuracy : float
        In (0, 1): the model speaks where held-out rows of such confidence and above were right
        this often, where the label's own regression says more likely than not, and where training
        has seen half of the words.
    conf_level : float
        Of the intervals of the cross-validation.

    Returns
    -------
    TextModel
        The same for the same rows, to the last digit.

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
    >>> model = train_text_model(rows, ["disk", "fan"] * 20, columns=["text"])
    >>> model.predict([("broken disk",), ("lunch menu",)])[0].said
    'disk'
    >>> model.predict([("broken disk",), ("lunch menu",)])[1].said
    'unknown'
    """
    return train(
        rows,
        labels,
        columns=columns,
        in_time_order=in_time_order,
        target_accuracy=target_accuracy,
        conf_level=conf_level,
    ).model


def train(
    rows: Sequence[Texts],
    labels: Sequence[str],
    *,
    columns: Sequence[str],
    in_time_order: bool = False,
    target_accuracy: float = TARGET_ACCURACY,
    conf_level: float = 0.90,
) -> Training:
    """A model as `train_text_model` gives it, with its answers on the rows held out.

    Raises
    ------
    AnalysisError
        As `train_text_model`.

    Examples
    --------
    >>> rows = [("disk sda broken",), ("fan too slow",)] * 20
    >>> found = train(rows, ["disk", "fan"] * 20, columns=["text"])
    >>> found.truth == found.chosen
    True
    """
    _check(rows, labels, columns, target_accuracy)
    spelled = canonical_labels(labels)
    names = tuple(sorted(set(spelled)))
    _check_labels(spelled, names)
    place = {name: index for index, name in enumerate(names)}
    targets = np.array([place[label] for label in spelled], dtype=np.int64)
    terms = distinct_terms(rows)
    held = held_out(terms, targets, names, in_time_order=in_time_order)
    temperature = temperature_of(held.scores, held.targets)
    counts = np.bincount(targets, minlength=len(names))
    chosen, confidence = decisions(probabilities(held.scores, temperature), counts.tolist())
    right = chosen == held.targets
    claimed = claims(held.scores, chosen)
    threshold = threshold_of(confidence[claimed], right[claimed], target_accuracy)
    covered = claimed & (confidence >= (np.inf if threshold is None else threshold))
    fitted = fit(terms, targets, names)
    model = TextModel(
        columns=tuple(columns),
        labels=names,
        rows_by_label=tuple(counts.tolist()),
        frequencies=fitted.frequencies,
        weights=fitted.weights,
        intercepts=fitted.intercepts,
        temperature=temperature,
        threshold=threshold,
        target_accuracy=target_accuracy,
        training_sha256=training_sha256(
            rows, labels, columns, in_time_order=in_time_order, target_accuracy=target_accuracy
        ),
        cross_validation=CrossValidation(
            accuracy=proportion(int(right.sum()), len(right), conf_level),
            covered_ratio=float(covered.mean()),
            covered_accuracy=proportion(int(right[covered].sum()), int(covered.sum()), conf_level),
            in_time_order=in_time_order,
        ),
    )
    return Training(
        model,
        [names[row] for row in held.targets.tolist()],
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
    target_accuracy: float = TARGET_ACCURACY,
) -> str:
    """Hash of everything that a model is made from: the same hash, the same model.

    Examples
    --------
    >>> training_sha256([("a",)], ["x"], ["text"]) == training_sha256([("b",)], ["x"], ["text"])
    False
    """
    content = [list(columns), in_time_order, target_accuracy, [*zip(rows, labels, strict=True)]]
    return hashlib.sha256(json.dumps(content, ensure_ascii=True).encode()).hexdigest()


def _check(
    rows: Sequence[Texts], labels: Sequence[str], columns: Sequence[str], target: float
) -> None:
    if len(rows) != len(labels):
        raise ShapeError(f"rows ({len(rows)}) and labels ({len(labels)}) differ: align them")
    if not columns:
        raise AnalysisError("columns must name at least one text column: name one")
    for row in rows:
        if len(row) != len(columns):
            raise ShapeError(
                f"each row must have {len(columns)} texts, got {len(row)}: one a column"
            )
    if not 0 < target < 1:
        raise OutOfRangeError("target_accuracy", "in (0, 1)", target, "pass e.g. 0.95")
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
