"""What does a log say its job failed of?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from app.answers.columns import columns
from app.answers.content import Answer, Number
from app.answers.described import Rows, sheet_of
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_failures
from data.ingest.source import read_log_lines
from data.models import load_model
from data.site import load_site

if TYPE_CHECKING:
    from pathlib import Path

    from analytics.failures.log_classifier import LogVerdict

SCHEMES = ("rsc", "acme", "llama3")
"""Whose labels stand beside a cause."""
EVIDENCE = (Column("line", "Line", "count"), *columns("text"))
ALTERNATIVES = (*columns("cause", "confidence"), Column("reason", "Because"))


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


def verdict_of_file(name: str, root: Path) -> FileVerdict:
    """What does this log say its job failed of?

    The rules first; where they do not decide, the model that the site at `root` trained, if any,
    before the shipped one.
    """
    from analytics.failures.log_classifier import classify_log

    log = read_log_lines(name)
    site = load_site(root)
    verdict = classify_log(log.lines)
    if verdict.method != "log_rule" and (document := load_model(root)) is not None:
        from analytics.failures.text_model.job_logs import with_site_model
        from analytics.failures.text_model.model import from_document

        verdict = with_site_model(verdict, log.lines, from_document(document), site.causes)
    evidence = tuple(replace(line, line=log.numbers[line.line - 1]) for line in verdict.evidence)
    return FileVerdict(
        verdict=replace(verdict, evidence=evidence),
        labels={scheme: site.causes.label_of(scheme, verdict.cause) for scheme in SCHEMES},
        n_lines=log.n_lines,
        n_read=len(log.lines),
    )


def answer(name: str, root: Path) -> Answer:
    """The cause that a log shows, on which lines, and what else it may be."""
    judged = verdict_of_file(name, root)
    verdict = judged.verdict
    labels = [f"{scheme} {label}" for scheme, label in judged.labels.items() if label]
    record = _record(judged)
    read = f"{name}: read {judged.n_read:,} of {judged.n_lines:,} lines"
    return Answer(
        _sentence(verdict),
        (
            Number(
                of_failures.LOG_CONFIDENCE,
                numbers.percent(verdict.confidence),
                exact=verdict.confidence,
            ),
            Number(of_failures.LABELS, ", ".join(labels) or "none"),
        ),
        tuple(
            Rows(described, items).table(key, title)
            for key, title, described, items in (
                ("evidence", "The lines that say it", EVIDENCE, verdict.evidence),
                ("alternatives", "What else it may be", ALTERNATIVES, verdict.alternatives),
            )
            if items
        ),
        notes=(read,) if judged.n_read < judged.n_lines else (),
        record=record,
        sheet=sheet_of([record]),
    )


def _sentence(verdict: LogVerdict) -> str:
    """What the log says, and how that is known."""
    if verdict.method == "none":
        return "The log does not say what failed"
    symptom = f", seen as {verdict.symptom}" if verdict.symptom else ""
    return f"The log says {verdict.cause} ({verdict.domain}){symptom}, by {verdict.method}"


def _record(judged: FileVerdict) -> dict[str, Any]:
    """The JSON of the command."""
    verdict = judged.verdict
    names = ("domain", "confidence", "method", "symptom", "evidence", "alternatives")
    of_verdict = {name: getattr(verdict, name) for name in names}
    return {
        "cause": verdict.cause,
        "labels": judged.labels,
        **of_verdict,
        "n_lines": judged.n_lines,
    }
