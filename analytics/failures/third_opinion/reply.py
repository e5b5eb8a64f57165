"""What a language model answered: a cause of the taxonomy with lines that say it, or void.

None of its own words are shown: what it says cannot tell anybody to do anything.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analytics.failures.taxonomy import Taxonomy
    from analytics.failures.third_opinion.question import Question

MOST_CHARACTERS = 4_000
"""Of an answer; a longer one is void."""
MOST_LINES = 5
LEAST_CITED = 8
"""Characters of a cited text, unless the line is shorter."""
UNKNOWN = "unknown"
_THOUGHT = re.compile(r"\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


@dataclass(frozen=True)
class Opinion:
    """What a model says of a log. It is evidence of nothing and counts in no rate."""

    cause: str
    """Of the taxonomy; ``unknown`` where the answer is void, or says so."""
    domain: str
    lines: tuple[int, ...] = ()
    """Lines of the log that it cites, from 1."""
    void: str = ""
    """Why the answer does not count; empty where it does."""


def opinion(answer: str, question: Question, taxonomy: Taxonomy) -> Opinion:
    """What an answer says, checked against what was asked.

    Parameters
    ----------
    answer : str
        One JSON object, perhaps in a fence of Markdown or behind a thought.
    question : Question
        What was asked.
    taxonomy : Taxonomy
        The site's.

    Returns
    -------
    Opinion
        Void where the answer has no such form, where its cause or domain is none of the taxonomy's,
        or where one line that it cites does not exist, was not shown or does not hold the text.

    Examples
    --------
    >>> from analytics.failures.taxonomy import taxonomy
    >>> from analytics.failures.third_opinion.question import question
    >>> asked = question(["step 1", "the disk is gone"], taxonomy(), 100)
    >>> said = '{"cause": "disk", "domain": "hardware", "lines": [{"line": 9, "text": "gone"}]}'
    >>> opinion(said, asked, taxonomy()).void
    'it cites line 9 of 2'
    """
    try:
        said = _said(answer)
        cause = _cause(said, taxonomy)
        lines = _lines(said.get("lines"), question, needed=cause != UNKNOWN)
    except _VoidError as error:
        return Opinion(UNKNOWN, UNKNOWN, void=str(error))
    return Opinion(cause, taxonomy.domain_of(cause), lines)


class _VoidError(Exception):
    """Why an answer does not count."""


def _said(answer: str) -> dict[str, Any]:
    """The object that the answer is."""
    if len(answer) > MOST_CHARACTERS:
        raise _VoidError(f"it is longer than {MOST_CHARACTERS:,} characters")
    text = _THOUGHT.sub("", answer, count=1)
    fenced = _FENCED.fullmatch(text)
    try:
        said = json.loads(fenced[1] if fenced else text)
    except (ValueError, RecursionError):
        raise _VoidError("it is no JSON") from None
    if not isinstance(said, dict):
        raise _VoidError("it is no JSON object")
    return said


def _cause(said: dict[str, Any], taxonomy: Taxonomy) -> str:
    cause = said.get("cause")
    if not isinstance(cause, str) or cause not in taxonomy.causes:
        raise _VoidError("its cause is none of the site's")
    domain = taxonomy.domain_of(cause)
    if said.get("domain") != domain:
        raise _VoidError(f"its domain is not that of {cause}, which is {domain}")
    return cause


def _lines(cited: object, question: Question, *, needed: bool) -> tuple[int, ...]:
    """Numbers of the lines that are cited, each of which holds what is cited of it."""
    if cited in (None, []):
        if needed:
            raise _VoidError("it cites no line")
        return ()
    if not isinstance(cited, list) or len(cited) > MOST_LINES:
        raise _VoidError(f"its lines are no list of at most {MOST_LINES}")
    return tuple(dict.fromkeys(_line(one, question) for one in cited))


def _line(one: object, question: Question) -> int:
    """The number of a line that is cited rightly."""
    number, text = (one.get("line"), one.get("text")) if isinstance(one, dict) else (None, None)
    if type(number) is not int or not isinstance(text, str):
        raise _VoidError("a line that it cites has no number or no text")
    if not 1 <= number <= question.n_lines:
        told = str(number) if abs(number) < 10**9 else "of too many digits"
        raise _VoidError(f"it cites line {told} of {question.n_lines:,}")
    if number not in question.shown:
        raise _VoidError(f"it cites line {number:,}, which it was not shown")
    line, part = _spaced(question.shown[number]), _spaced(text)
    if part not in line or len(part) < min(LEAST_CITED, len(line)):
        raise _VoidError(f"line {number:,} does not hold the text that it cites")
    return number


def _spaced(text: str) -> str:
    """The text with one blank between two words."""
    return " ".join(text.split())
