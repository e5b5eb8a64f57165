"""Rules of the log classifier: what a line says of a cause, and which lines say nothing.

A rule has a cause, a role, a specificity and a confidence:

root       names a cause that others follow from: it counts wherever it stands in the log
fault      a failure that names itself: the first one counts
symptom    several causes look like it: it gives way to a root
cascade    what ranks write when another has failed: look behind it
end        the scheduler or a person ended the job
sign       an observation that matters only where the job failed; one of a thing and its state
           (`things.toml`) only where the job did not go on after it
teardown   what a job writes while it dies
mended     what was broken works again

Of several rules that match one line the most specific one counts, of equals the first. A rule that
is `counted` reads a counter or condition in the form of a setting, which else says nothing.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

from analytics.patterns import lazily

ROLES = ("root", "fault", "symptom", "cascade", "end", "sign", "teardown", "mended")
_TABLES = ("gpu", "fabric", "host", "storage", "scheduler", "program")
_PACKAGE = "analytics.failures.log_classifier"
_ALWAYS = ("traceback", "error", "exception", "xid", "interrupt", "fatal", "critical")
"""Words besides those of the rules that make a line worth a closer look."""
VAGUE = 5
"""Specificity of what a thing and its state say: an exception on the line says more."""
_QUIET, _URL = "nccl info", "://"
NO_DIGITS = str.maketrans("", "", "0123456789")
_LETTERS = re.compile("[a-z]+")
_BEGINNING = 3  # letters by which a run is looked up


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a line, or an exception, says."""

    cause: str
    role: str
    specificity: int
    confidence: float
    alternatives: tuple[tuple[str, float, str], ...] = ()
    """Causes that the same line leaves possible: cause, confidence, reason."""
    counted: bool = False
    """Whether it is a counter or condition that reads like a setting and yet reports a failure."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one kind of line says."""

    meaning: Meaning
    pattern: str
    """A regular expression for a line in lower case."""
    place: int
    """Among all rules, the most specific first, from 0."""

    def matches(self, low: str) -> bool:
        """Whether it reads a line. Few rules are asked of a log: each is compiled then."""
        return _lazily_compiled(self.pattern).search(low) is not None


@dataclass(frozen=True, slots=True)
class PythonTypes:
    """What exceptions mean by their type."""

    roles: dict[str, tuple[str, str]]
    """Type -> how much it says (fault, typical, open, cascade), cause."""
    probing: frozenset[str]
    wrappers: frozenset[str]
    quoted: frozenset[str]
    loads_model: re.Pattern[str]
    loads_data: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Rules:
    """All rules, by the words that a line must hold for them."""

    by_word: dict[str, tuple[Rule, ...]]
    harmless: re.Pattern[str]
    retried: re.Pattern[str]
    given_up: re.Pattern[str]
    completed: re.Pattern[str]
    python: PythonTypes

    def best(self, text: str) -> Meaning | None:
        """What the most specific rule says that a line fulfils."""
        low = text.lower()
        words = words_in(low.translate(NO_DIGITS))
        found = {rule.place: rule for word in words for rule in self.by_word.get(word, ())}
        ranked = (found[place] for place in sorted(found))
        return next((rule.meaning for rule in ranked if rule.matches(low)), None)


@cache
def _lazily_compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@cache
def rules() -> Rules:
    """The rules that are shipped."""
    documents = [_document(f"{name}_rules.toml") for name in _TABLES]
    by_word: dict[str, list[Rule]] = {}
    rows = [row for document in documents for row in document["rule"]]
    rows += _things(_document("things.toml"))
    rows.sort(key=lambda row: row["specificity"], reverse=True)
    for place, row in enumerate(rows):
        meaning = Meaning(
            cause=row["cause"],
            role=row["role"],
            specificity=row["specificity"],
            confidence=row["confidence"],
            alternatives=tuple((cause, odds, why) for cause, odds, why in row.get("or", ())),
            counted=row.get("counted", False),
        )
        rule = Rule(meaning, row["pattern"], place)
        for word in row["words"]:
            by_word.setdefault(word.translate(NO_DIGITS), []).append(rule)
    program = documents[-1]
    return Rules(
        by_word={word: tuple(of_word) for word, of_word in by_word.items()},
        harmless=_compiled("|".join(program["harmless"])),
        retried=_compiled(program["retried"]),
        given_up=_compiled(program["given_up"]),
        completed=_compiled(program["completed"]),
        python=_python_types(_document("python_types.toml")),
    )


@lru_cache(maxsize=200_000)
def may_matter(template: str) -> bool:
    """Whether a line without its digits, in lower case, holds a word of any rule."""
    return _QUIET not in template and bool(words_in(template))


def words_in(template: str) -> set[str]:
    """Words of rules that a line holds.

    A job prints few different words. Of each it is remembered which words of rules have their
    longest run of letters in it, so that most lines are turned away by looking their words up.
    """
    possible = {word for run in _LETTERS.findall(template) for word in _words_near(run)}
    if _URL in template:
        possible |= _url_words()
    if not template.isascii():
        possible |= _words_of_other_scripts()
    return {word for word in possible if word in template}


@lru_cache(maxsize=100_000)
def _words_near(letters: str) -> tuple[str, ...]:
    """Words of rules whose longest run of letters lies within these letters."""
    by_beginning = _longest_runs()
    near = [word for run, word in by_beginning[""] if run in letters]
    for place in range(len(letters) - _BEGINNING + 1):
        of_beginning = by_beginning.get(letters[place : place + _BEGINNING], ())
        near += [word for run, word in of_beginning if letters.startswith(run, place)]
    return tuple(near)


@cache
def _longest_runs() -> dict[str, list[tuple[str, str]]]:
    """Longest run of letters of each word, and the word, by the first letters of the run.

    Shorter runs stand under the empty beginning.
    """
    by_beginning: dict[str, list[tuple[str, str]]] = {"": []}
    for word in sorted({*vocabulary()} - _url_words() - _words_of_other_scripts()):
        run = max(_LETTERS.findall(word), key=len)
        beginning = run[:_BEGINNING] if len(run) >= _BEGINNING else ""
        by_beginning.setdefault(beginning, []).append((run, word))
    return by_beginning


def vocabulary() -> tuple[str, ...]:
    """The words of which a line that a rule reads holds at least one, in lower case."""
    return tuple(sorted({*_ALWAYS, *rules().by_word}))


@cache
def _url_words() -> frozenset[str]:
    return frozenset(word for word in rules().by_word if _URL in word)


@cache
def _words_of_other_scripts() -> frozenset[str]:
    return frozenset(word for word in rules().by_word if not _LETTERS.search(word))


@cache
def rules_version() -> str:
    """Hash of the rules, of the model beside them and of the code that applies them."""
    folder = resources.files(_PACKAGE)
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith((".toml", ".json", ".py"))),
        key=lambda entry: entry.name,
    )
    return hashlib.sha256(b"\0".join(entry.read_bytes() for entry in files)).hexdigest()[:16]


def _things(document: dict[str, Any]) -> list[dict[str, Any]]:
    """A rule for each thing: its name near words that say what is wrong with it."""
    states, rows = document["states"], []
    for thing in document["thing"]:
        name = _whole(thing["name"])
        wrong = _whole("|".join(states[state]["pattern"] for state in thing["states"]))
        said = f"{name}.{{0,60}}?{wrong}"
        if "broken" in thing["states"]:
            said += f"|{_whole(states['broken']['pattern'])}.{{0,40}}?{name}"
        rows.append(
            {
                "cause": thing["cause"],
                "role": thing.get("role", "sign"),
                "specificity": thing.get("specificity", VAGUE),
                "confidence": thing.get("confidence", document["confidence"]),
                "words": sorted({w for state in thing["states"] for w in states[state]["words"]}),
                "pattern": f"^(?!.*(?:{document['well']})).*?(?:{said})",
            }
        )
    return rows


def _whole(pattern: str) -> str:
    """A pattern that is found only where no letter stands before or behind it."""
    return f"(?<![a-z])(?:{pattern})(?![a-z])"


def _python_types(document: dict[str, Any]) -> PythonTypes:
    groups = document.pop("groups")
    roles = {
        name: (kind, cause) for kind, types in document.items() for name, cause in types.items()
    }
    return PythonTypes(
        roles,
        frozenset(groups["probing"]),
        frozenset(groups["wrappers"]),
        frozenset(groups["quoted"]),
        _compiled(groups["loads_model"]),
        _compiled(groups["loads_data"]),
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    return lazily(pattern, re.IGNORECASE)


def _document(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8"))
