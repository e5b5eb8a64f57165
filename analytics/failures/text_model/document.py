"""A classifier as a JSON document, and back: the same to the last bit."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics.errors import AnalysisError
from analytics.estimate import Estimate
from analytics.failures.text_model.model import CrossValidation, TextModel

if TYPE_CHECKING:
    from collections.abc import Mapping

FORMAT = 1
"""Version of the document, and of how texts become terms: raised with either."""


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
        "columns": list(model.columns),
        "labels": list(model.labels),
        "rows_by_label": list(model.rows_by_label),
        "frequencies": [[list(block), list(block.values())] for block in model.frequencies],
        "weights": weights,
        "intercepts": model.intercepts.tolist(),
        "temperature": model.temperature,
        "threshold": model.threshold,
        "target_accuracy": model.target_accuracy,
        "training_sha256": model.training_sha256,
        "cross_validation": dataclasses.asdict(model.cross_validation),
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
