"""What does a log, or a text, say was at fault?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from analytics.errors import AnalysisError
from analytics.failures.taxonomy import taxonomy
from analytics.proportion import proportion
from data.ingest.labelled_text import read_labelled_text
from data.ingest.log_lines import read_log_lines
from data.models import load_model, save_model
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from analytics.estimate import Estimate
    from analytics.failures.log_classifier import LogVerdict
    from analytics.failures.text_model import (
        CrossValidation,
        Evaluation,
        Prediction,
        TextModel,
        Training,
    )
    from data.ingest.labelled_text import LabelledText

SCHEMES = ("rsc", "acme", "llama3")
"""Whose labels stand beside a cause."""
_EVER = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True)
class FileVerdict:
    """What one log shows."""

    verdict: LogVerdict
    """Lines are numbered as in the file."""
    labels: dict[str, str | None]
    """Scheme -> its label for the cause; None where it has none."""
    n_lines: int
    """Lines of the file."""
    n_read: int
    """Lines that were looked at: the first and last ones of a very long file."""


@dataclass(frozen=True)
class Trained:
    """What a training learnt."""

    n: int
    rows_by_label: dict[str, int]
    columns: tuple[str, ...]
    cross_validation: CrossValidation
    evaluation: Evaluation
    """Of the rows held out, each judged by a model that has not seen it."""
    threshold: float | None
    target_accuracy: float
    training_sha256: str
    path: Path | None
    """Where the model was stored."""
    labels_without_cause: tuple[str, ...]
    """Labels that mean no cause of the site's taxonomy."""
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Abstaining:
    """A model that says "unknown" below its threshold."""

    threshold: float | None
    target_accuracy: float
    coverage: Estimate
    """Share of the rows on which it speaks."""
    accuracy: Estimate
    """On those."""


@dataclass(frozen=True)
class TextEvaluation:
    """How good a model trained on one file is on another."""

    evaluation: Evaluation
    abstaining: Abstaining
    n_train: int
    trainings: int
    notes: tuple[str, ...]


def log_file_verdict(name: str, root: Path) -> FileVerdict:
    """What does this log say its job failed of?

    The rules first; where they find nothing, the model that the site at `root` trained, if any.
    """
    from analytics.failures.log_classifier import classify_log

    log = read_log_lines(name)
    site = load_site(root)
    verdict = classify_log(log.lines)
    if verdict.method == "none" and (document := load_model(root)) is not None:
        from analytics.failures.text_model import from_document
        from analytics.failures.text_model.job_logs import classify_by_model

        verdict = classify_by_model(log.lines, from_document(document), site.causes)
    evidence = tuple(replace(one, line=log.numbers[one.line - 1]) for one in verdict.evidence)
    return FileVerdict(
        verdict=replace(verdict, evidence=evidence),
        labels={scheme: site.causes.label_of(scheme, verdict.cause) for scheme in SCHEMES},
        n_lines=log.n_lines,
        n_read=len(log.lines),
    )


def train_on_file(
    name: str,
    text: Sequence[str],
    label: str,
    *,
    time: str | None = None,
    root: Path | None = None,
    conf_level: float = 0.90,
    seed: int = 0,
) -> Trained:
    """What can a model learn from these labelled rows? Stored below `root` where one is given."""
    from analytics.failures.text_model import evaluate, to_document
    from analytics.failures.text_model.job_logs import cause_of_label

    found = read_labelled_text(name, text, label, time=time)
    causes = taxonomy() if root is None else load_site(root).causes
    training = _trained(_rows(found), text, in_order=time is not None, conf_level=conf_level)
    model = training.model
    path = None if root is None else save_model(root, model.training_sha256, to_document(model))
    return Trained(
        n=model.n,
        rows_by_label=dict(zip(model.labels, model.rows_by_label, strict=True)),
        columns=model.columns,
        cross_validation=model.cross_validation,
        evaluation=evaluate(
            training.truth,
            training.chosen,
            training.confidence,
            conf_level=conf_level,
            seed=seed,
        ),
        threshold=model.threshold,
        target_accuracy=model.target_accuracy,
        training_sha256=model.training_sha256,
        path=path,
        labels_without_cause=tuple(
            one for one in model.labels if cause_of_label(one, causes) is None
        ),
        notes=_notes(name, found),
    )


def evaluate_on_file(
    train: str,
    test: str,
    text: Sequence[str],
    label: str,
    *,
    time: str | None = None,
    conf_level: float = 0.90,
    seed: int = 0,
) -> TextEvaluation:
    """How good is a model trained on one file on the rows of another?"""
    known = read_labelled_text(train, text, label, time=time)
    asked = read_labelled_text(test, text, label, time=time)
    model = _trained(_rows(known), text, in_order=time is not None, conf_level=conf_level).model
    unseen = ", ".join(sorted(set(asked.labels) - set(known.labels)))
    never_said = (f"labels that training has not seen: {unseen}",) if unseen else ()
    return _judged(
        known.labels,
        list(zip(asked.labels, model.predict(asked.rows), strict=True)),
        model,
        conf_level=conf_level,
        seed=seed,
        notes=(*_notes(train, known), *_notes(test, asked), *never_said),
    )


def evaluate_monthly(
    train: str,
    test: str,
    text: Sequence[str],
    label: str,
    *,
    time: str,
    conf_level: float = 0.90,
    seed: int = 0,
) -> TextEvaluation:
    """How good is a model trained anew at each month's start (UTC) on all labels before it?"""
    known = read_labelled_text(train, text, label, time=time)
    asked = read_labelled_text(test, text, label, time=time)
    pool = sorted((*_rows(known), *_rows(asked)), key=lambda row: row.at or _EVER)
    answers: list[tuple[str, Prediction]] = []
    models: list[TextModel] = []
    dated = sorted((row for row in _rows(asked) if row.at), key=lambda row: row.at or _EVER)
    for month, group in groupby(dated, key=lambda row: row.month):
        rows = list(group)
        before = [row for row in pool if row.at and row.month < month]
        models.append(_trained(before, text, in_order=True, conf_level=conf_level).model)
        said = models[-1].predict([row.texts for row in rows])
        answers += zip((row.label for row in rows), said, strict=True)
    if not models:
        raise AnalysisError(f"--time {time!r} holds no time that can be read: name another column")
    undated = sum(row.at is None for row in pool)
    return _judged(
        known.labels,
        answers,
        models[-1],
        conf_level=conf_level,
        seed=seed,
        trainings=len(models),
        notes=(f"{undated} rows without a readable time are left out",) if undated else (),
    )


class _Row(NamedTuple):
    at: datetime | None
    texts: tuple[str, ...]
    label: str

    @property
    def month(self) -> tuple[int, int]:
        return (self.at.year, self.at.month) if self.at else (0, 0)


def _rows(found: LabelledText) -> list[_Row]:
    return [_Row(*row) for row in zip(found.times, found.rows, found.labels, strict=True)]


def _trained(
    rows: list[_Row], text: Sequence[str], *, in_order: bool, conf_level: float
) -> Training:
    """A model of the rows, from the oldest to the newest; undated ones count as oldest."""
    from analytics.failures.text_model import train

    ordered = sorted(rows, key=lambda row: row.at or _EVER) if in_order else rows
    return train(
        [row.texts for row in ordered],
        [row.label for row in ordered],
        columns=text,
        in_time_order=in_order,
        conf_level=conf_level,
    )


def _judged(
    known: Sequence[str],
    answers: Sequence[tuple[str, Prediction]],
    model: TextModel,
    *,
    conf_level: float,
    seed: int,
    notes: tuple[str, ...],
    trainings: int = 1,
) -> TextEvaluation:
    """Answers beside the truth, labels spelled as the labels of both files most often are."""
    from analytics.failures.text_model import canonical_labels, evaluate

    truth = [label for label, _ in answers]
    said = [prediction for _, prediction in answers]
    spelled = canonical_labels([*known, *truth, *(one.label for one in said)])[len(known) :]
    truth, chosen = spelled[: len(truth)], spelled[len(truth) :]
    spoken = [
        right == one
        for right, one, prediction in zip(truth, chosen, said, strict=True)
        if prediction.speaks
    ]
    return TextEvaluation(
        evaluation=evaluate(
            truth, chosen, [one.confidence for one in said], conf_level=conf_level, seed=seed
        ),
        abstaining=Abstaining(
            threshold=model.threshold,
            target_accuracy=model.target_accuracy,
            coverage=proportion(len(spoken), len(said), conf_level),
            accuracy=proportion(sum(spoken), len(spoken), conf_level),
        ),
        n_train=model.n,
        trainings=trainings,
        notes=notes,
    )


def _notes(name: str, found: LabelledText) -> tuple[str, ...]:
    """What of a file was left out."""
    counts = {
        "without a label": found.n_unlabelled,
        "whose fields do not fit the header": found.n_broken,
    }
    return tuple(f"{name}: {n} rows {why} are left out" for why, n in counts.items() if n)
