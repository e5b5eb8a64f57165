"""A trained classifier of short texts: plain numbers, without the library that found them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.errors import AnalysisError
from analytics.estimate import Estimate
from analytics.failures.text_model.features import known_ratios, lexicon, matrix, terms_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.failures.text_model.features import Lexicon, Texts

FORMAT = 1
"""Version of the document, and of how texts become terms: raised with either."""
UNKNOWN = "unknown"
"""What the model says where it does not know."""
RARE_POWER = 0.2
"""Power of the class size by which a rare label is preferred where probabilities are close."""
LEAST_KNOWN = 0.5
"""Share of a text's words that training must have seen."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What the model says of one row."""

    label: str
    """The most likely label, whether or not the model knows enough to say so."""
    confidence: float
    """Its calibrated probability."""
    speaks: bool
    """Whether the model knows enough to say so; else it abstains."""
    alternatives: tuple[tuple[str, float], ...]
    """Further labels with their probability, most likely first."""
    known_ratio: float
    """Share of the row's distinct words that training has seen."""

    @property
    def said(self) -> str:
        """The label, or `UNKNOWN` where the model abstains."""
        return self.label if self.speaks else UNKNOWN


@dataclass(frozen=True)
class CrossValidation:
    """What held-out parts of the training rows showed."""

    accuracy: Estimate
    covered_ratio: float
    """Share of the held-out rows on which the model did not abstain."""
    covered_accuracy: Estimate
    """Accuracy on those: the rows by which the threshold was chosen, so a little too high."""
    in_time_order: bool
    """Whether each part was held against a model of earlier rows alone."""


@dataclass(frozen=True)
class TextModel:
    """A classifier of rows of texts; every number of it can be written down and read again."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    rows_by_label: tuple[int, ...]
    frequencies: tuple[dict[str, float], ...]
    """Term -> inverse frequency, block by block, in alphabetical order."""
    weights: Floats
    """Shape (labels, terms)."""
    intercepts: Floats
    temperature: float
    """By which scores are divided: above 1 the raw probabilities were too sure of themselves."""
    threshold: float | None
    """Least confidence at which the model speaks; None where it never does."""
    target_accuracy: float
    """Accuracy that the threshold was chosen for."""
    training_sha256: str
    cross_validation: CrossValidation

    @property
    def n(self) -> int:
        """Rows it was trained on."""
        return sum(self.rows_by_label)

    @cached_property
    def _lexicon(self) -> Lexicon:
        return lexicon(self.frequencies)

    def predict(self, rows: Sequence[Texts]) -> list[Prediction]:
        """What each row's label is.

        Parameters
        ----------
        rows : sequence of tuple of str
            One text a column of the model.

        Returns
        -------
        list of Prediction
            In the order of `rows`.
        """
        if not rows:
            return []
        terms = [terms_of(row) for row in rows]
        scores = np.asarray(matrix(terms, self._lexicon) @ self.weights.T) + self.intercepts
        chances = probabilities(scores, self.temperature)
        chosen, confidence = decisions(chances, self.rows_by_label)
        known = known_ratios(terms, self._lexicon)
        least = np.inf if self.threshold is None else self.threshold
        speaks = (confidence >= least) & (known >= LEAST_KNOWN) & claims(scores, chosen)
        return [
            Prediction(
                self.labels[chosen[row]],
                float(confidence[row]),
                bool(speaks[row]),
                self._alternatives(chances[row], int(chosen[row])),
                float(known[row]),
            )
            for row in range(len(rows))
        ]

    def _alternatives(self, chances: Floats, chosen: int) -> tuple[tuple[str, float], ...]:
        """The three likeliest labels besides the one chosen."""
        order = [place for place in np.argsort(-chances, kind="stable")[:4] if place != chosen]
        return tuple((self.labels[place], float(chances[place])) for place in order[:3])


def probabilities(scores: Floats, temperature: float) -> Floats:
    """Calibrated probabilities of the labels.

    s_c = 1 / (1 + exp(-z_c / T)), p_c = s_c / sum of all s, with z_c the log odds of label c
    against all others and T the temperature.

    Parameters
    ----------
    scores : ndarray
        Shape (rows, labels), log odds.
    temperature : float
        > 0.

    Returns
    -------
    ndarray
        Shape (rows, labels); each row sums to 1.

    Examples
    --------
    >>> probabilities(np.array([[0.0, 0.0], [9.0, -9.0]]), 1.0).round(3).tolist()
    [[0.5, 0.5], [1.0, 0.0]]
    """
    single = 0.5 * (1.0 + np.tanh(0.5 * scores / temperature))  # never overflows
    found: Floats = single / np.maximum(single.sum(axis=1, keepdims=True), 1e-300)
    return found


def decisions(chances: Floats, rows_by_label: Sequence[int]) -> tuple[Ints, Floats]:
    """The label chosen for each row, and its probability.

    Chosen is the largest p_c / n_c ** `RARE_POWER`, with n_c the training rows of label c: a
    rare label wins a near tie, which costs no accuracy and finds more of them.

    Parameters
    ----------
    chances : ndarray
        Shape (rows, labels).
    rows_by_label : sequence of int
        Training rows of each label, > 0.

    Returns
    -------
    tuple of ndarray
        Place of the label, its probability.

    Examples
    --------
    >>> chosen, confidence = decisions(np.array([[0.5, 0.4], [0.9, 0.1]]), [1000, 10])
    >>> chosen.tolist(), confidence.tolist()
    ([1, 0], [0.4, 0.9])
    """
    preferred = chances * np.asarray(rows_by_label, dtype=np.float64) ** -RARE_POWER
    chosen = preferred.argmax(axis=1)
    return chosen, chances[np.arange(len(chances)), chosen]


def claims(scores: Floats, chosen: Ints) -> Bools:
    """Whether the chosen label's own regression says more likely than not.

    A text that suits no label better than any other (a healthy log, say) is claimed by none.

    Examples
    --------
    >>> claims(np.array([[-0.7, -0.7], [2.0, -2.0]]), np.array([0, 0])).tolist()
    [False, True]
    """
    found: Bools = scores[np.arange(len(scores)), chosen] >= 0.0
    return found


def to_document(model: TextModel) -> dict[str, Any]:
    """The model as plain lists, numbers and text.

    Weights stand as [terms by place, values] of each label, zeros left out.

    Parameters
    ----------
    model : TextModel
        As it was trained.

    Returns
    -------
    dict
        Fit for ``json.dumps``; `from_document` gives the same model back.
    """
    weights = []
    for row in model.weights:
        places = np.flatnonzero(row)
        weights.append([places.tolist(), row[places].tolist()])
    return {
        "format": FORMAT,
        **{field.name: getattr(model, field.name) for field in fields(model)},
        "frequencies": [[list(block), list(block.values())] for block in model.frequencies],
        "weights": weights,
        "intercepts": model.intercepts.tolist(),
        "cross_validation": asdict(model.cross_validation),
    }


def from_document(document: Mapping[str, Any]) -> TextModel:
    """The model that a document describes.

    Parameters
    ----------
    document : mapping
        As `to_document` gives it.

    Returns
    -------
    TextModel

    Raises
    ------
    AnalysisError
        Where it is no such document, or one of another version.
    """
    if document.get("format") != FORMAT:
        raise AnalysisError(
            f"a model must be of format {FORMAT}, got {document.get('format')!r}: train it again"
        )
    try:
        model = _model(document)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise AnalysisError(
            f"a model must be what training wrote, got something else ({error!r}): train it again"
        ) from None
    if len(model.rows_by_label) != len(model.labels) or len(model.intercepts) != len(model.labels):
        raise AnalysisError("a model's labels and weights must agree: train it again")
    return model


def _model(document: Mapping[str, Any]) -> TextModel:
    frequencies = tuple(
        dict(zip(terms, map(float, values), strict=True))
        for terms, values in document["frequencies"]
    )
    weights = np.zeros((len(document["labels"]), sum(map(len, frequencies))))
    for row, (places, values) in zip(weights, document["weights"], strict=True):
        row[np.asarray(places, dtype=np.int64)] = values
    checked = document["cross_validation"]
    return TextModel(
        columns=tuple(document["columns"]),
        labels=tuple(document["labels"]),
        rows_by_label=tuple(document["rows_by_label"]),
        frequencies=frequencies,
        weights=weights,
        intercepts=np.asarray(document["intercepts"], dtype=np.float64),
        temperature=float(document["temperature"]),
        threshold=document["threshold"],
        target_accuracy=float(document["target_accuracy"]),
        training_sha256=document["training_sha256"],
        cross_validation=CrossValidation(
            accuracy=Estimate(**checked["accuracy"]),
            covered_ratio=float(checked["covered_ratio"]),
            covered_accuracy=Estimate(**checked["covered_accuracy"]),
            in_time_order=bool(checked["in_time_order"]),
        ),
    )
