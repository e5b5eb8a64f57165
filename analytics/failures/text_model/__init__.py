"""A classifier of texts that a site trains on its own labels, and that says when it is unsure."""

from analytics.failures.text_model.document import from_document, to_document
from analytics.failures.text_model.evaluation import Covered, Evaluation, LabelScore, evaluate
from analytics.failures.text_model.model import (
    UNKNOWN,
    CrossValidation,
    Prediction,
    TextModel,
)
from analytics.failures.text_model.training import (
    Training,
    canonical_labels,
    train,
    train_text_model,
    training_sha256,
)

__all__ = [
    "UNKNOWN",
    "Covered",
    "CrossValidation",
    "Evaluation",
    "LabelScore",
    "Prediction",
    "TextModel",
    "Training",
    "canonical_labels",
    "evaluate",
    "from_document",
    "to_document",
    "train",
    "train_text_model",
    "training_sha256",
]
