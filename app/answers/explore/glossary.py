"""What do the words of the dashboard mean? Needs no store; causes are those of the site."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Final

from app.answers.content import Answer, Table
from app.answers.described import CSV, JSON, Rows, field
from app.answers.efficiency import ledger
from app.words import domains, terms
from app.words import glossary as words
from app.words.cells import Column
from app.words.menu import TITLES
from app.words.terms import Term
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

COMMANDS: Final = "Command line"
"""Group of the terms that no page shows."""
CAUSES: Final = "Causes"
LISTED = (
    Column("label", "Term", link="term"),
    Column("definition", "What it means"),
    Column("group", "Page"),
    Column("key", "Key", shown=False),
)


@dataclass(frozen=True)
class Entry:
    """A term with its place in the glossary."""

    key: str
    """Its name in the address."""
    group: str
    """The page that it belongs to, or what else holds it."""
    term: Term


@dataclass(frozen=True)
class Found:
    """Entries that hold a word; all of them where there is none."""

    word: str
    entries: tuple[Entry, ...]
    n: int
    """Entries that there are."""


def found(root: Path, word: str = "") -> Found:
    """Every entry, or those that hold a word."""
    everything = (*entries(), *causes(root))
    return Found(word.strip(), matching(everything, word), len(everything))


def listed(shown: Found) -> Table:
    """The terms of headline numbers and of what counts as a failure, from A to Z; what explains a
    column or a cause is found by a search."""
    rows = [
        (entry.term.label, _first_sentence(entry.term.definition), entry.group, entry.key)
        for entry in shown.entries
        if not (entry.term.of_column or entry.group in (CAUSES, COMMANDS))
    ]
    rows.sort(key=lambda row: row[0].casefold())
    return Table("terms", "Terms", LISTED, rows, searched=False, wrapped=True)


def _first_sentence(definition: str) -> str:
    """What a list says; its entry says the rest.

    >>> _first_sentence("Time per failure. Of all jobs.")
    'Time per failure.'
    """
    first, full_stop, _ = definition.partition(". ")
    return first + full_stop.rstrip()


def answer(shown: Found) -> Answer:
    """What a command prints of them; what an entry lacks is null."""
    described = (
        "key",
        "group",
        *(
            field(name, of=partial(_of_term, name))
            for name in ("label", "definition", "unit", "equation", "source")
        ),
        field("pages", of=lambda entry: list(entry.term.pages), on=JSON),
        field("pages", of=lambda entry: " ".join(entry.term.pages), on=CSV),
    )
    rows = Rows(described, shown.entries)
    return Answer(sentence(shown), record={"terms": rows.records()}, sheet=rows.sheet())


def _of_term(name: str, entry: Entry) -> str | None:
    return getattr(entry.term, name) or None


def matching(among: Iterable[Entry], word: str) -> tuple[Entry, ...]:
    """Entries that hold every word of a text, those that are called so first."""
    wanted = word.casefold().split()
    placed = [(place, entry) for entry in among if (place := _place(entry, wanted)) is not None]
    return tuple(entry for _, entry in sorted(placed, key=lambda hit: hit[0]))


def _place(entry: Entry, words: list[str]) -> int | None:
    """0 where its key or label is the text, 1 where these hold all words, 2 where its text does."""
    names = f"{entry.term.label} {entry.key}".casefold()
    text = f"{names} {entry.term.definition} {entry.term.source}".casefold()
    if " ".join(words) in (entry.key, entry.term.label.casefold()):
        return 0
    if all(word in names for word in words):
        return 1
    return 2 if all(word in text for word in words) else None


@cache
def entries() -> tuple[Entry, ...]:
    """The entries of the dashboard itself, page by page."""
    order = [*TITLES.values(), COMMANDS]
    return tuple(sorted(_own(), key=lambda entry: order.index(entry.group)))


def _own() -> Iterator[Entry]:
    """Terms of the modules of words, then what counts as a failure, then the ledger's buckets."""
    sections = iter_modules(words.__path__, f"{words.__name__}.")
    for module in (terms, *(import_module(section.name) for section in sections)):
        for name, value in vars(module).items():
            if isinstance(value, Term):
                yield _entry(name.lower(), value)
    for domain, term in zip(domains.TITLES, terms.DOMAINS, strict=True):
        yield _entry(f"domain_{domain}", term)
    for name, meaning in terms.DEFINITIONS.items():
        yield _entry(f"failure_{name}", Term(f"Failure, defined as {name.replace('_', ' ')}",
                     f"{meaning[0].upper()}{meaning[1:]}.", pages=("mttf",)))  # fmt: skip
    for name, term in ledger.meanings().items():
        yield _entry(f"bucket_{name}", term)


def _entry(key: str, term: Term) -> Entry:
    return Entry(key, TITLES[term.pages[0]] if term.pages else COMMANDS, term)


def causes(root: Path) -> tuple[Entry, ...]:
    """The causes that the site tells apart: whose fault, and who does what."""
    known = load_site(root).causes.causes.values()
    return tuple(
        Entry(f"cause_{cause.name}", CAUSES, Term(
            cause.title,
            f"Cause `{cause.name}`: {domains.title(cause.domain)}. {cause.action} "
            f"Who acts: {cause.owner}."
        ))
        for cause in known
    )  # fmt: skip


def sentence(shown: Found) -> str:
    """How many there are, or which one it is."""
    n = len(shown.entries)
    if not shown.word:
        return f"{len(listed(shown)):,} terms; a search finds all {n:,}"
    if n == 1:
        return shown.entries[0].term.label
    if not n:
        return f"None of {shown.n:,} terms holds {shown.word!r}"
    return f"{n:,} of {shown.n:,} terms hold {shown.word!r}"
