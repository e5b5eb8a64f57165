"""A report: answers under headings, with what they rest on and a hash of what they say."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, fields, replace
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from analytics.frames import DEFINITION
from app.answers.content import Chart, Excerpt, Missing, Table
from app.words.addresses import Place
from app.words.periods import file_stem
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.answers.content import Answer, Block, Number
    from app.reports.redaction import Names
    from app.words.addresses import Dashboard
    from app.words.periods import Period
    from app.words.terms import Term
    from data.filters import Selection
    from data.store import Store

_PSEUDONYM = re.compile(r"\b(user|account|job)-[a-z2-7]{10}\b")


_NOT_SAID = ("stem", "clusters", "card", "dashboard")
"""Fields of a report that only name its files, lay it out or link it."""
RESTS_ON, TO_DO = "What this rests on", "Do this now"
"""Titles of the sections that hold where no record lies in the period."""
Printed = Table | Chart | Excerpt
"""Blocks that documents print."""


@dataclass(frozen=True)
class Section:
    """A part of the report under one heading."""

    title: str
    blocks: tuple[Printed, ...]
    sentences: tuple[str, ...] = ()
    shown_on: Place | None = None
    """The page of the dashboard that shows its charts."""

    @property
    def in_words(self) -> bool:
        """Whether anything of it can be said without a picture."""
        return bool(self.sentences) or any(not isinstance(b, Chart) for b in self.blocks)


def section(
    title: str,
    blocks: Iterable[Block | None],
    sentences: Sequence[str] = (),
    *,
    shown_on: Place | None = None,
) -> Section:
    """Blocks under a heading; what is missing is a sentence, None is left out."""
    shown = [block for block in blocks if block is not None]
    missing = [block.finding for block in shown if isinstance(block, Missing)]
    kept = tuple(block for block in shown if not isinstance(block, Missing))
    return Section(title, kept, (*missing, *sentences), shown_on)


def without_records(made: Report, why: str) -> Report:
    """The report of a period in which nobody looked: it says so, and no number as if all was
    quiet.
    """
    return replace(
        made,
        answer=f"{made.period} {why}. What happened then cannot be judged.",
        summary=(),
        headlines=(),
        notes=(),
        sections=tuple(part for part in made.sections if part.title in (RESTS_ON, TO_DO)),
        definitions=(),
    )


def rests_on(coverage: Answer) -> Section:
    """Which source covers which days, as picture and table."""
    return section(RESTS_ON, coverage.blocks, coverage.notes, shown_on=Place("data"))


@dataclass(frozen=True)
class Report:
    """What a writer prints."""

    kind: str
    """Name of the module of `app.reports` that arranged it."""
    stem: str
    """What it is about, in the names of its files."""
    title: str
    during: Period
    filters: str
    answer: str
    """One sentence that says only what the numbers support."""
    summary: tuple[str, ...]
    """The other things to know, in plain words, most important first."""
    headlines: tuple[Number, ...]
    notes: tuple[str, ...]
    """Without which the numbers would be misread."""
    sections: tuple[Section, ...]
    definitions: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    """Sources without a record."""
    conf_level: float | None
    """Of the intervals; None where there are none."""
    synthetic: bool = False
    basis: tuple[tuple[str, str], ...] = ()
    """What the report was made from: versions and configuration."""
    clusters: tuple[str, ...] = ()
    """Those that it is of, in the names of its files."""
    card: bool = False
    """It is one page: a PDF of one page, and a message holds all of it."""
    dashboard: Dashboard | None = None
    """Where charts and rows lead; None where no address is configured, or names were replaced."""

    @property
    def period(self) -> str:
        """What it is of, in words."""
        return self.during.words

    @property
    def file_stem(self) -> str:
        """Name of its files without the ending, from page and command alike."""
        return file_stem(self.stem, self.during, self.clusters, synthetic=self.synthetic)

    @property
    def tables(self) -> tuple[Table, ...]:
        """All tables, in order."""
        return tuple(
            block for part in self.sections for block in part.blocks if isinstance(block, Table)
        )

    @property
    def interval_title(self) -> str:
        """What stands over intervals."""
        return "Interval" if self.conf_level is None else f"{100 * self.conf_level:g} % interval"

    @cached_property
    def content_sha256(self) -> str:
        """SHA-256 of what it says: the same content has the same hash, whenever it is made.

        It covers versions, configuration, filters and every printed value. Where names were
        replaced, their pseudonyms count by the order in which they appear: the key that made them
        does not.
        """
        said = {
            "period" if field.name == "during" else field.name: getattr(self, field.name)
            for field in fields(self)
            if field.name not in _NOT_SAID
        } | {
            "period": self.period,
            "headlines": [
                (h.term.label, h.value, h.interval, h.n, h.term.definition) for h in self.headlines
            ],
            "sections": [
                (part.title, part.sentences, [_said(block) for block in part.blocks])
                for part in self.sections
            ],
        }
        text = _numbered(json.dumps(said, ensure_ascii=False))
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def basis(store: Store) -> tuple[tuple[str, str], ...]:
    """Versions and configuration that a report was made from."""
    return (
        ("product", f"Faultline {version('faultline')}"),
        ("schema", str(store.current.schema_version)),
        ("configuration", load_site(store.root).sha256),
    )


def _said(block: Printed) -> Any:
    """What a block says; of a chart its words, for its values stand in tables."""
    if isinstance(block, Table):
        return (block.title, block.note, block.headers, block.printed or block.empty)
    if isinstance(block, Excerpt):
        return (block.title, [(line.line_no, line.text, line.counts) for line in block.lines])
    return (block.title, block.says)


def _numbered(text: str) -> str:
    """Pseudonyms as numbers, in the order of their first appearance."""
    seen: dict[str, int] = {}
    return _PSEUDONYM.sub(lambda name: f"{name[1]}-{seen.setdefault(name[0], len(seen) + 1)}", text)


def defined(headlines: Sequence[Number], terms: Sequence[Term]) -> tuple[tuple[str, str], ...]:
    """Definitions of headline numbers and further terms, each once."""
    every = [*(headline.term for headline in headlines), *terms]
    return tuple({term.label: term.definition for term in every}.items())


def filters_in_words(selection: Selection, names: Names) -> str:
    """The filters in words."""
    account = selection.account and names.account(selection.account)
    chosen = {"cluster": selection.cluster, "partition": selection.partition, "account": account}
    named = [f"{name} {value}" for name, value in chosen.items() if value is not None]
    if selection.definition != DEFINITION:
        named.append(f"failures by definition {selection.definition}")
    if selection.min_gpus:
        named.append(f"jobs of {selection.min_gpus:,} GPUs and more")
    return ", ".join(named) or "all jobs"
