"""Who must act, by the words of the whole log: a trained model's opinion beside the rules'."""

from __future__ import annotations

import json
import math
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from analytics.failures.text_model.features import Texts
    from analytics.failures.text_model.model import TextModel

COLUMNS = ("last lines", "lines of trouble", "log")
"""What the model reads of a log, one text each."""
UNCLEAR = "unclear"
"""Label of logs from which nobody could say who must act; the domain is ``unknown``."""
MODEL = "domain_model.json"
"""The shipped model, written by `make log-model`."""
WEIGHT_OF_RULES = 1.25
"""Log odds that a verdict of the rules adds to its domain, times the verdict's confidence."""
WEIGHT_OF_SILENCE = 2.0
"""The same for the domain ``unknown`` where the rules name no cause."""
_LAST_LINES = 6
_MOST_LINES = 400
"""Of a log, from its end."""
_LEAST_LINES = 15
"""Of a log that is not a mere excerpt: the logs of training have so many."""
TROUBLE = (
    "error", "fail", "fatal", "abort", "exception", "kill", "lost", "timeout", "timed out",
    "time out", "xid", "signal", "nan", "refused", "unable", "cannot", "invalid", "denied", "full",
    "exceed",
)  # fmt: skip
"""Words of lines that may tell of a failure."""
_LEAST_CHANCE = 1e-3


def texts_of(lines: Sequence[str]) -> Texts:
    """The texts of `COLUMNS`: the last six lines, lines with a word of trouble, the last 400.

    Parameters
    ----------
    lines : sequence of str
        The log in order; blank lines do not count.

    Returns
    -------
    tuple of str
        One text a column, of each of which the model reads the end.

    Examples
    --------
    >>> texts_of(["start", "", "disk error", "bye"])
    ('start\\ndisk error\\nbye', 'disk error', 'start\\ndisk error\\nbye')
    """
    written = [line for line in lines if line.strip()][-_MOST_LINES:]
    folded = (line.casefold() for line in written)
    trouble = [
        line
        for line, words in zip(written, folded, strict=True)
        if any(word in words for word in TROUBLE)
    ]
    return "\n".join(written[-_LAST_LINES:]), "\n".join(trouble), "\n".join(written)


def domain_chances(lines: Sequence[str]) -> dict[str, float]:
    """Probability of each domain by the words of a log.

    Parameters
    ----------
    lines : sequence of str
        The log in order.

    Returns
    -------
    dict
        Domain -> probability, summing to 1; empty where the model has no opinion: on fewer than
        fifteen lines, or where training has seen less than half of the words.

    Notes
    -----
    One logistic regression a domain on words, pairs of words and pieces of words (`text_model`),
    trained on composed logs, which are synthetic: METHODS.md says which, and what the model
    does on those that it has not seen.
    """
    from analytics.failures.text_model.model import LEAST_KNOWN

    if sum(1 for line in lines if line.strip()) < _LEAST_LINES:
        return {}
    found = model().predict([texts_of(lines)])[0]
    if found.known_ratio < LEAST_KNOWN:
        return {}
    chances = {found.label: found.confidence, **dict(found.alternatives)}
    return {"unknown" if label == UNCLEAR else label: p for label, p in chances.items()}


def weighed(
    domain: str, confidence: float, chances: Mapping[str, float], spoken_for: Iterable[str]
) -> dict[str, float]:
    """Probability of each domain by rules and model together.

    Proportional to p_d exp(w c) for the rules' domain and to p_d for each other one that a line of
    the log speaks for, with p_d the model's probability, c the rules' confidence and
    w = `WEIGHT_OF_RULES`: the model chooses between things that the log says and adds none. Where
    the rules name no cause, every domain is open, and exp(`WEIGHT_OF_SILENCE`) stands for theirs.

    Parameters
    ----------
    domain : str
        Of the rules.
    confidence : float
        In [0, 1]; 0 where they name no cause.
    chances : mapping
        As `domain_chances` gives them; without any the rules stand.
    spoken_for : iterable of str
        Domains of the causes that lines of the log name, ``unknown`` left out.

    Returns
    -------
    dict
        Domain -> probability, summing to 1.

    Examples
    --------
    >>> both = weighed("hardware", 0.9, {"hardware": 0.4, "user": 0.6}, ["user"])
    >>> max(both, key=both.get)
    'hardware'
    >>> both = weighed("hardware", 0.9, {"hardware": 0.05, "user": 0.95}, ["user"])
    >>> max(both, key=both.get)
    'user'
    >>> weighed("hardware", 0.9, {"hardware": 0.05, "user": 0.95}, [])
    {'hardware': 1.0}
    """
    if not chances:
        return {domain: 1.0}
    own = math.exp(WEIGHT_OF_RULES * confidence if confidence else WEIGHT_OF_SILENCE)
    open_to = {domain, *spoken_for} if confidence else set(chances)
    odds = {
        name: max(chances.get(name, 0.0), _LEAST_CHANCE) * (own if name == domain else 1.0)
        for name in sorted(open_to)
    }
    total = math.fsum(odds.values())
    return {name: one / total for name, one in odds.items()}


@cache
def model() -> TextModel:
    """The shipped model."""
    from analytics.failures.text_model.model import from_document

    folder = resources.files("analytics.failures.log_classifier")
    return from_document(json.loads(folder.joinpath(MODEL).read_text(encoding="utf-8")))
