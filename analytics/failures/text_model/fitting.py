"""Weights of a classifier of texts: one logistic regression a label."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from analytics.failures.text_model.features import (
    inverse_frequencies,
    lexicon,
    matrix,
    normal_text,
    terms_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.failures.text_model.features import Terms, Texts

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST_TERMS = 30_000
"""Terms of a block that are kept at most."""
NAME_ROWS = 5
"""Rows that a label's own name counts for: who writes "replaced fan" mostly means the fan."""
STRENGTH = 5.0
"""Inverse of the penalty on weights."""
INTERCEPT_SCALE = 3.0
DIGITS = 4
"""Decimal digits of a weight that are kept, by training and in the document alike."""


class Fitted(NamedTuple):
    """What a training found."""

    frequencies: tuple[dict[str, float], ...]
    weights: Floats
    intercepts: Floats
    places: Ints
    """Of the labels it knows, among all."""


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


def fit(terms: Sequence[Terms], targets: Ints, names: Sequence[str]) -> Fitted:
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
    frequencies = inverse_frequencies(distinct, counts, MOST_TERMS)
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
