"""Rules of the log classifier: what a line says of a cause, and which lines say nothing.

A rule has a cause, a role, a specificity and a confidence:

root       names a cause that others follow from: it counts wherever it stands in the log
fault      a failure that names itself: the first one counts
symptom    several causes look like it: it gives way to a root
cascade    what ranks write when another has failed: look behind it
end        the scheduler or a person ended the job
sign       an observation that matters only where the job failed
teardown   what a job writes while it dies

Of several rules that match one line the most specific one counts.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from typing import Any

ROLES = ("root", "fault", "symptom", "cascade", "end", "sign", "teardown")
_TABLES = ("gpu", "fabric", "host", "storage", "scheduler", "program")
_PACKAGE = "analytics.failures.log_classifier"
_ALWAYS = ("traceback", "error", "exception", "fail", "xid", "interrupt", "fatal", "warn")
"""Words besides those of the rules that make a line worth a closer look."""


@dataclass(frozen=True, slots=True)
class Rule:
    """What one kind of line says."""

    cause: str
    role: str
    specificity: int
    confidence: float
    pattern: re.Pattern[str]
    alternatives: tuple[tuple[str, float, str], ...] = ()
    """Causes that the same line leaves possible: cause, confidence, reason."""


@dataclass(frozen=True, slots=True)
class PythonTypes:
    """What exceptions mean by their type."""

    roles: dict[str, tuple[str, str]]
    """Type -> how much it says (fault, typical, open, cascade), cause."""
    probing: frozenset[str]
    wrappers: frozenset[str]
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

    def best(self, text: str) -> Rule | None:
        """The most specific rule that a line fulfils."""
        found: Rule | None = None
        low = text.lower()
        tried: set[int] = set()
        for word, rules in self.by_word.items():
            if word not in low:
                continue
            for rule in rules:
                if id(rule) in tried or (found and found.specificity >= rule.specificity):
                    continue
                tried.add(id(rule))
                if rule.pattern.search(low):
                    found = rule
        return found


@cache
def rules() -> Rules:
    """The rules that are shipped."""
    documents = [_document(f"{name}_rules.toml") for name in _TABLES]
    by_word: dict[str, list[Rule]] = {}
    for document in documents:
        for row in document["rule"]:
            for word in row["words"]:
                by_word.setdefault(word, []).append(_rule(row))
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
    return any(map(template.__contains__, _words()))


@cache
def _words() -> tuple[str, ...]:
    """The fewest words that let every rule through: none holds another."""
    known = {*_ALWAYS, *(_no_digits(word) for word in rules().by_word)}
    return tuple(
        word for word in sorted(known, key=len) if not any(o in word for o in known - {word})
    )


def _no_digits(word: str) -> str:
    return re.sub(r"\d", "", word)


@cache
def rules_version() -> str:
    """Hash of the rules and of the code that applies them."""
    folder = resources.files(_PACKAGE)
    files = sorted(
        (entry for entry in folder.iterdir() if entry.name.endswith((".toml", ".py"))),
        key=lambda entry: entry.name,
    )
    return hashlib.sha256(b"\0".join(entry.read_bytes() for entry in files)).hexdigest()[:16]


def _rule(row: dict[str, Any]) -> Rule:
    return Rule(
        cause=row["cause"],
        role=row["role"],
        specificity=row["specificity"],
        confidence=row["confidence"],
        pattern=re.compile(row["pattern"]),
        alternatives=tuple((cause, odds, why) for cause, odds, why in row.get("or", ())),
    )


def _python_types(document: dict[str, Any]) -> PythonTypes:
    groups = document.pop("groups")
    roles = {
        name: (kind, cause) for kind, types in document.items() for name, cause in types.items()
    }
    return PythonTypes(
        roles,
        frozenset(groups["probing"]),
        frozenset(groups["wrappers"]),
        _compiled(groups["loads_model"]),
        _compiled(groups["loads_data"]),
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


def _document(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files(_PACKAGE).joinpath(name).read_text(encoding="utf-8"))
