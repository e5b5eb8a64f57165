"""A site's trained classifier on logs of jobs: what it learns from, and what it says of one."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from analytics.failures.log_classifier import Alternative, LogLine, LogVerdict
from analytics.failures.text_model.features import MOST_CHARACTERS, normal_text
from analytics.failures.text_model.model import LEAST_KNOWN, UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.failures.taxonomy import Taxonomy
    from analytics.failures.text_model.features import Texts
    from analytics.failures.text_model.model import Prediction, TextModel

LAST_LINES = 60
"""Distinct lines from the end of a log that the classifier looks at."""
LOG_COLUMN = "log"
LINE_KNOWN = 0.8
"""Share of the words of a single line that training must have seen: many lines are tried."""
LEAST_WORDS = 3
_LEAST_ALTERNATIVE = 0.05
_SHOWN = 500


class _Line(NamedTuple):
    number: int
    text: str


def training_rows(
    confirmed: Mapping[str, str], logs: Mapping[str, Sequence[str]]
) -> tuple[list[Texts], list[str]]:
    """Rows and labels for `train` from causes that people confirmed.

    Parameters
    ----------
    confirmed : mapping
        Key of an attempt -> cause, in the order in which they failed.
    logs : mapping
        Key of an attempt -> lines of its log.

    Returns
    -------
    tuple of list
        Texts of the column `LOG_COLUMN` (the last 60 distinct lines of each log), causes.
        Attempts without a log, and those whose cause is unknown to people too, teach nothing and
        are left out.

    Examples
    --------
    >>> training_rows({"a": "fan", "b": "unknown", "c": "disk"}, {"a": ["hot"], "b": ["done"]})
    ([('hot',)], ['fan'])
    """
    rows: list[Texts] = []
    labels: list[str] = []
    for key, cause in confirmed.items():
        text = _text(_last_lines(logs.get(key, ())))
        if text and cause != UNKNOWN:
            rows.append((text,))
            labels.append(cause)
    return rows, labels


def cause_of_label(label: str, taxonomy: Taxonomy) -> str | None:
    """Cause that a label of a site means: its own name, else what all schemes agree on.

    Parameters
    ----------
    label : str
        A cause, or a label of any scheme of the taxonomy.
    taxonomy : Taxonomy
        The site's.

    Returns
    -------
    str or None
        None where no scheme knows the label, or two disagree.

    Examples
    --------
    >>> from analytics.failures.taxonomy import taxonomy
    >>> cause_of_label("GPU memory", taxonomy()), cause_of_label("no such label", taxonomy())
    ('gpu_memory', None)
    """
    name = "_".join(label.casefold().replace("-", " ").replace("_", " ").split())
    if name in taxonomy.causes:
        return name
    meant = {taxonomy.cause_of(scheme, label) for scheme in taxonomy.schemes} - {None}
    return meant.pop() if len(meant) == 1 else None


def classify_by_model(lines: Sequence[str], model: TextModel, taxonomy: Taxonomy) -> LogVerdict:
    """What a site's trained classifier says of a log.

    The text of the log (its last 60 distinct lines) and each of these lines are tried; the
    answer of the highest confidence stands, where the classifier does not abstain and its label
    means a cause.

    Parameters
    ----------
    lines : sequence of str
        The log in order.
    model : TextModel
        Of one text column or more: the log goes into the first.
    taxonomy : Taxonomy
        The site's.

    Returns
    -------
    LogVerdict
        Method ``log_model``, or ``none`` with the cause unknown and what was likely among the
        alternatives.

    Notes
    -----
    Misleads on logs unlike those it was trained on; a text of which it knows under half of the
    words, and a line of which it knows under 80 %, it does not judge.
    """
    last = _last_lines(lines)
    blank = [""] * (len(model.columns) - 1)
    texts = [_text(last), *(line.text for line in last)]
    whole, *single = model.predict([(text, *blank) for text in texts])
    candidates = [(whole, last)] + [
        (found, [line])
        for found, line in zip(single, last, strict=True)
        if found.known_ratio >= LINE_KNOWN and len(normal_text(line.text).split()) >= LEAST_WORDS
    ]
    spoken = [
        (found, at, cause)
        for found, at in candidates
        if found.said != UNKNOWN
        and (cause := cause_of_label(found.said, taxonomy)) not in (None, UNKNOWN)
    ]
    if not spoken:
        return _unsure(whole, taxonomy)
    found, at, cause = max(spoken, key=lambda one: one[0].confidence)
    telling = at if len(at) == 1 else _telling(last, single, found.label)
    return LogVerdict(
        cause=str(cause),
        domain=taxonomy.domain_of(str(cause)),
        confidence=round(found.confidence, 4),
        method="log_model",
        evidence=tuple(LogLine(line.number, line.text[:_SHOWN]) for line in telling),
        alternatives=_alternatives(found.alternatives, taxonomy, "texts labelled at this site"),
    )


def with_site_model(
    verdict: LogVerdict, lines: Sequence[str], model: TextModel, taxonomy: Taxonomy
) -> LogVerdict:
    """The verdict of a log where a site has a classifier of its own.

    Parameters
    ----------
    verdict : LogVerdict
        Of `classify_log`.
    lines, model, taxonomy
        As for `classify_by_model`.

    Returns
    -------
    LogVerdict
        A rule's verdict stands; else the site's classifier goes before the shipped model, which
        has never seen this site, where it speaks.
    """
    if verdict.method == "log_rule":
        return verdict
    own = classify_by_model(lines, model, taxonomy)
    return verdict if own.method == "none" and verdict.method != "none" else own


def _text(lines: Sequence[_Line]) -> str:
    return "\n".join(line.text for line in lines)


def _last_lines(lines: Sequence[str]) -> list[_Line]:
    """The last 60 distinct lines of a log, each where it stands last, in `MOST_CHARACTERS`.

    Lines that differ in digits, case or blanks alone are one.
    """
    found: deque[_Line] = deque()
    seen: set[str] = set()
    length = 0
    for number in range(len(lines), 0, -1):
        text = lines[number - 1].strip()[-MOST_CHARACTERS:]
        normal = normal_text(text)
        if not normal or normal in seen:
            continue
        length += len(text) + 1
        if found and (len(found) == LAST_LINES or length > MOST_CHARACTERS):
            break
        seen.add(normal)
        found.appendleft(_Line(number, text))
    return list(found)


def _telling(lines: list[_Line], found: list[Prediction], label: str) -> list[_Line]:
    """The line that by itself most suggests the label; none where no line does."""
    agreeing = [
        (one.confidence, line) for line, one in zip(lines, found, strict=True) if one.label == label
    ]
    return [max(agreeing, key=lambda one: one[0])[1]] if agreeing else []


def _unsure(whole: Prediction, taxonomy: Taxonomy) -> LogVerdict:
    """Unknown, with what was likely where the text is of a kind that the classifier knows."""
    likely: tuple[Alternative, ...] = ()
    if whole.known_ratio >= LEAST_KNOWN:
        guesses = ((whole.label, whole.confidence), *whole.alternatives)
        likely = _alternatives(guesses, taxonomy, "texts labelled at this site, not sure enough")
    return LogVerdict(UNKNOWN, UNKNOWN, 0.0, "none", alternatives=likely)


def _alternatives(
    guesses: tuple[tuple[str, float], ...], taxonomy: Taxonomy, reason: str
) -> tuple[Alternative, ...]:
    """Labels that mean a cause and are not too unlikely."""
    causes = ((cause_of_label(label, taxonomy), likely) for label, likely in guesses)
    return tuple(
        Alternative(cause, round(likely, 4), reason)
        for cause, likely in causes
        if cause is not None and cause != UNKNOWN and likely >= _LEAST_ALTERNATIVE
    )
