"""What does a log say its job failed of, and how well does a model of labelled text name causes?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from analytics.errors import AnalysisError
from analytics.failures.certainty import in_words
from analytics.failures.taxonomy import taxonomy
from analytics.proportion import proportion
from app.answers.columns import columns
from app.answers.content import Answer, Number, Table, estimated
from app.answers.described import Rows, sheet_of
from app.answers.failures import third_opinion
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_failures
from data.ingest.formats.log_lines import read_log_lines
from data.ingest.formats.tabular import read_labelled_text
from data.models import load_model, save_model
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from analytics.estimate import Estimate
    from analytics.failures.log_classifier import LogVerdict
    from analytics.failures.taxonomy import Taxonomy
    from analytics.failures.text_model.evaluation import Evaluation
    from analytics.failures.text_model.model import Prediction, TextModel
    from analytics.failures.text_model.training import Training
    from app.answers.failures.third_opinion import Asked
    from data.ingest.formats.tabular import LabelledText

_EVER = datetime.min.replace(tzinfo=UTC)
PER_CLASS = (
    Column("label", "Label"),
    Column("precision", "Precision", "share"),
    Column("recall", "Recall", "share"),
    Column("f1", "F1", "share"),
    Column("n", "Rows", "count"),
)
AT_COVERAGE = (Column("coverage", "Coverage", "ratio"), Column("accuracy", "Accuracy", "share"))
SCHEMES = ("rsc", "acme", "llama3")
"""Whose labels stand beside a cause."""
EVIDENCE = (Column("line", "Line", "count"), *columns("text"))
ALTERNATIVES = (*columns("cause", "confidence"), Column("reason", "Because"))


@dataclass(frozen=True)
class LabelledFiles:
    """A file to learn from, one to be judged by, and which of their columns say what."""

    train: str
    test: str
    text: Sequence[str]
    label: str
    time: str | None
    conf_level: float
    seed: int

    def read(self) -> tuple[LabelledText, LabelledText]:
        """The rows of both."""
        known = read_labelled_text(self.train, self.text, self.label, time=self.time)
        return known, read_labelled_text(self.test, self.text, self.label, time=self.time)

    def model_of(self, rows: list[_Row]) -> TextModel:
        """A model of these rows."""
        in_order = self.time is not None
        return _model_of(rows, self.text, in_order=in_order, conf_level=self.conf_level).model


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

    @property
    def learnt(self) -> dict[str, Any]:
        """Keys of the JSON besides the scores."""
        return {"n_train": self.n_train, "abstaining": self.abstaining}


def of_training(
    name: str,
    text: Sequence[str],
    label: str,
    *,
    time: str | None,
    root: Path | None,
    conf_level: float,
    seed: int,
) -> Answer:
    """What can a model learn of labelled rows? It is judged by rows that were held out, and stored
    below `root` where one is given.
    """
    from analytics.failures.text_model.evaluation import evaluate
    from analytics.failures.text_model.job_logs import cause_of_label
    from analytics.failures.text_model.model import to_document

    labelled = read_labelled_text(name, text, label, time=time)
    causes = taxonomy() if root is None else load_site(root).causes
    training = _model_of(_rows(labelled), text, in_order=time is not None, conf_level=conf_level)
    model, checked = training.model, training.model.cross_validation
    path = None if root is None else save_model(root, model.training_sha256, to_document(model))
    judged = (training.truth, training.chosen, training.confidence)
    evaluation = evaluate(*judged, conf_level=conf_level, seed=seed)
    unmapped = tuple(name for name in model.labels if cause_of_label(name, causes) is None)
    notes = [*_notes(name, labelled)]
    if unmapped:
        notes.append(
            f"labels that mean no cause: {', '.join(unmapped)}: `classify FILE` does not say them; "
            "[taxonomy.labels.site] in site.toml maps them"
        )
    share = numbers.percent(evaluation.accuracy.value)
    return _scored(
        f"A model of {numbers.counted(model.n, 'row')} names the label of {share} of rows it has "
        "not seen",
        evaluation,
        coverage=Number(of_failures.MODEL_COVERAGE, numbers.percent(checked.covered_ratio)),
        covered_accuracy=checked.covered_accuracy,
        record={
            "n": model.n,
            "n_judged": evaluation.n,
            "in_time_order": checked.in_time_order,
            "classes": dict(zip(model.labels, model.rows_by_label, strict=True)),
            "text": model.columns,
            "threshold": model.threshold,
            "target_accuracy": model.target_accuracy,
            "coverage": checked.covered_ratio,
            "covered_accuracy": checked.covered_accuracy,
            "training_sha256": model.training_sha256,
            "model": None if path is None else str(path),
            "labels_without_cause": unmapped,
        },
        notes=tuple(notes),
    )


def of_evaluation(tested: TextEvaluation, monthly: TextEvaluation | None) -> Answer:
    """How good a model of one file is on another; beside it, one trained anew each month."""
    record, notes = tested.learnt, tested.notes
    sentence = f"The model names the label of {numbers.percent(tested.evaluation.accuracy.value)} "
    sentence += f"of {numbers.counted(tested.evaluation.n, 'row')}"
    if monthly is not None:
        again = _scores(monthly.evaluation) | monthly.learnt
        record["retrained"] = again | {"trainings": monthly.trainings}
        notes += tuple(f"retrained: {text}" for text in monthly.notes)
        accuracy = numbers.percent(monthly.evaluation.accuracy.value)
        sentence += f"; trained anew each month, of {accuracy}"
    return _scored(
        sentence,
        tested.evaluation,
        coverage=estimated(of_failures.MODEL_COVERAGE, "share", tested.abstaining.coverage),
        covered_accuracy=tested.abstaining.accuracy,
        record=record,
        notes=notes,
    )


def _scored(
    sentence: str,
    evaluation: Evaluation,
    *,
    coverage: Number,
    covered_accuracy: Estimate,
    record: dict[str, Any],
    notes: tuple[str, ...],
) -> Answer:
    """Scores as headline numbers, label by label, and at several coverages."""
    by_label = Rows(PER_CLASS, evaluation.per_class)
    by_coverage = Rows(AT_COVERAGE, evaluation.at_coverage)
    record = _scores(evaluation) | record
    return Answer(
        sentence,
        (
            estimated(of_failures.ACCURACY, "share", evaluation.accuracy),
            estimated(of_failures.MACRO_F1, "ettr", evaluation.macro_f1),
            coverage,
            estimated(of_failures.COVERED_ACCURACY, "share", covered_accuracy),
        ),
        (
            by_label.table("per_class", "Label by label"),
            by_coverage.table("at_coverage", "Where the model speaks less often"),
        ),
        notes=notes,
        record=record,
        sheet=sheet_of([record]),
    )


def _scores(evaluation: Evaluation) -> dict[str, Any]:
    keys = ("accuracy", "macro_f1", "n", "per_class", "at_coverage")
    return {key: getattr(evaluation, key) for key in keys}


def evaluated(files: LabelledFiles) -> TextEvaluation:
    """How good is a model trained on one file on the rows of another?"""
    known, unseen = files.read()
    model = files.model_of(_rows(known))
    new = ", ".join(sorted(set(unseen.labels) - set(known.labels)))
    never_said = (f"labels that training has not seen: {new}",) if new else ()
    return _judged(
        files,
        known.labels,
        list(zip(unseen.labels, model.predict(unseen.rows), strict=True)),
        model=model,
        notes=(*_notes(files.train, known), *_notes(files.test, unseen), *never_said),
    )


def evaluated_monthly(files: LabelledFiles) -> TextEvaluation:
    """How good is a model trained anew at each month's start (UTC) on all labels before it?"""
    known, unseen = files.read()
    pool = sorted((*_rows(known), *_rows(unseen)), key=lambda row: row.at or _EVER)
    answers: list[tuple[str, Prediction]] = []
    models: list[TextModel] = []
    dated = sorted((row for row in _rows(unseen) if row.at), key=lambda row: row.at or _EVER)
    for month, group in groupby(dated, key=lambda row: row.month):
        rows = list(group)
        models.append(files.model_of([row for row in pool if row.at and row.month < month]))
        predictions = models[-1].predict([row.texts for row in rows])
        answers += zip((row.label for row in rows), predictions, strict=True)
    if not models:
        column = f"--time {files.time!r}"
        raise AnalysisError(f"{column} holds no time that can be read: name another column")
    undated = sum(row.at is None for row in pool)
    return _judged(
        files,
        known.labels,
        answers,
        model=models[-1],
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


def _rows(labelled: LabelledText) -> list[_Row]:
    return [_Row(*row) for row in zip(labelled.times, labelled.rows, labelled.labels, strict=True)]


def _model_of(
    rows: list[_Row], text: Sequence[str], *, in_order: bool, conf_level: float
) -> Training:
    """A model of the rows, from the oldest to the newest; undated ones count as oldest."""
    from analytics.failures.text_model.training import train

    ordered = sorted(rows, key=lambda row: row.at or _EVER) if in_order else rows
    return train(
        [row.texts for row in ordered],
        [row.label for row in ordered],
        columns=text,
        in_time_order=in_order,
        conf_level=conf_level,
    )


def _judged(
    files: LabelledFiles,
    known: Sequence[str],
    answers: Sequence[tuple[str, Prediction]],
    *,
    model: TextModel,
    notes: tuple[str, ...],
    trainings: int = 1,
) -> TextEvaluation:
    """Answers beside the truth, labels spelled as the labels of both files most often are."""
    from analytics.failures.text_model.evaluation import evaluate
    from analytics.failures.text_model.training import canonical_labels

    truth = [label for label, _ in answers]
    predictions = [prediction for _, prediction in answers]
    labels = [*known, *truth, *(prediction.label for prediction in predictions)]
    spelled = canonical_labels(labels)[len(known) :]
    truth, chosen = spelled[: len(truth)], spelled[len(truth) :]
    spoken = [
        right == label
        for right, label, prediction in zip(truth, chosen, predictions, strict=True)
        if prediction.speaks
    ]
    return TextEvaluation(
        evaluation=evaluate(
            truth,
            chosen,
            [prediction.confidence for prediction in predictions],
            conf_level=files.conf_level,
            seed=files.seed,
        ),
        abstaining=Abstaining(
            threshold=model.threshold,
            target_accuracy=model.target_accuracy,
            coverage=proportion(len(spoken), len(predictions), files.conf_level),
            accuracy=proportion(sum(spoken), len(spoken), files.conf_level),
        ),
        n_train=model.n,
        trainings=trainings,
        notes=notes,
    )


def _notes(name: str, labelled: LabelledText) -> tuple[str, ...]:
    counts = {
        "without a label": labelled.n_unlabelled,
        "whose fields do not fit the header": labelled.n_broken,
    }
    return tuple(f"{name}: {n} rows {why} are left out" for why, n in counts.items() if n)


def of_log(
    name: str, root: Path, ask_model: Callable[[Sequence[str]], Asked] | None = None
) -> Answer:
    """The cause that a log shows, on which lines, and what else it may be.

    The rules first; where they do not decide, the model that the site at `root` trained, if any,
    before the shipped one. Where the cause is unknown after that, `ask_model` is asked too, if it
    is given: what it says stands beside the verdict and changes nothing of it.
    """
    log = read_log_lines(name)
    site = load_site(root)
    verdict = _verdict(log.lines, root, site.causes)
    asked = ask_model(log.lines) if ask_model and verdict.cause == "unknown" else None
    evidence = tuple(replace(line, line=log.numbers[line.line - 1]) for line in verdict.evidence)
    verdict = replace(verdict, evidence=evidence)
    labels = {scheme: site.causes.label_of(scheme, verdict.cause) for scheme in SCHEMES}
    read = (
        f"{name}: all {log.n_lines:,} lines were looked at, {len(log.lines):,} of them weighed: "
        "the first, the last, and what may matter between"
    )
    keys = ("domain", "confidence", "method", "symptom", "evidence", "alternatives")
    record = {
        "cause": verdict.cause,
        "labels": labels,
        **{key: getattr(verdict, key) for key in keys},
        "n_lines": log.n_lines,
    }
    answer = Answer(
        _sentence(verdict),
        (
            Number(
                of_failures.LOG_CONFIDENCE,
                _surely(verdict),
                exact=verdict.confidence,
            ),
            Number(
                of_failures.LABELS,
                ", ".join(f"{scheme} {label}" for scheme, label in labels.items() if label)
                or "none",
            ),
        ),
        tuple(
            Rows(described, items).table(key, title)
            for key, title, described, items in (
                ("evidence", "The lines that say it", EVIDENCE, verdict.evidence),
                ("alternatives", "What else it may be", ALTERNATIVES, verdict.alternatives),
            )
            if items
        ),
        notes=(read,) if len(log.lines) < log.n_lines else (),
        record=record,
        sheet=sheet_of([record]),
    )
    return _with_opinion(answer, asked, log.numbers, site.causes) if ask_model else answer


def _verdict(lines: Sequence[str], root: Path, causes: Taxonomy) -> LogVerdict:
    """By rules, by the model that the site trained, by the shipped one."""
    from analytics.failures.log_classifier import classify_log

    verdict = classify_log(lines)
    if verdict.method == "log_rule" or (document := load_model(root)) is None:
        return verdict
    from analytics.failures.text_model.job_logs import with_site_model
    from analytics.failures.text_model.model import from_document

    return with_site_model(verdict, lines, from_document(document), causes)


def _with_opinion(
    answer: Answer, asked: Asked | None, line_numbers: Sequence[int], causes: Taxonomy
) -> Answer:
    """The answer with what the site's language model says beside it."""
    record = {**answer.record, "third_opinion": None}
    if asked is None:
        note = "the language model was not asked: the log says what failed"
        return replace(answer, notes=(*answer.notes, note), record=record)
    places = [str(number) for number in line_numbers]
    cited = asked.opinion.lines if asked.opinion else ()
    lines = [
        Table(key, title, EVIDENCE, [(line_numbers[at - 1], asked.question.shown[at]) for at in of])
        for key, title, of in (
            ("cited", "The lines that the third opinion cites, masked", cited),
            ("would_send", "What would be sent", () if asked.was_asked else asked.question.shown),
        )
        if of
    ]
    return replace(
        answer,
        about=third_opinion.sentence(asked, places, causes),
        blocks=(*answer.blocks, *lines),
        notes=(*answer.notes, third_opinion.cost(asked)),
        record={**record, "third_opinion": third_opinion.record(asked, line_numbers)},
    )


def _surely(verdict: LogVerdict) -> str:
    """How sure a verdict is; of an unknown cause nothing is."""
    surely = numbers.percent(verdict.confidence)
    return surely if verdict.cause == "unknown" else f"{surely} ({in_words(verdict.confidence)})"


def _sentence(verdict: LogVerdict) -> str:
    if verdict.method == "none":
        return "The log does not say what failed"
    symptom = f", seen as {verdict.symptom}" if verdict.symptom else ""
    return f"The log says {verdict.cause} ({verdict.domain}){symptom}, by {verdict.method}"
