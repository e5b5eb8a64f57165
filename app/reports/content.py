"""What every report is made of: sentences, numbers, tables, charts, and what they rest on.

One model, several writers: `html`, `markdown`, `pdf`, `xlsx` and `document` (JSON) print the same
`Report`. Cells hold values; `cells` says how they are printed.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal

from app.reports import cells
from data.site import load_site

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from analytics.estimate import Estimate
    from app.components.glossary import Term
    from app.reports.cells import Column
    from app.reports.timeline_svg import Picture
    from data.store import Store

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_PSEUDONYM = re.compile(r"\b(user|account|job)-[a-z2-7]{10}\b")


@dataclass(frozen=True)
class Headline:
    """A number of the report as it is printed."""

    label: str
    value: str
    interval: str
    n: str
    definition: str
    exact: Estimate | float | None = None
    """What is printed, to the last digit; None where it is no number, or is not known."""
    unit: str = ""
    """Of the exact value."""


@dataclass(frozen=True)
class Table:
    """A table of the report."""

    key: str
    """Its name in JSON and the name of its sheet."""
    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Any, ...], ...]
    """Values as the kinds of the columns want them."""
    empty: str
    """What to say where there are no rows."""
    note: str = ""
    """What must be known of it, below its title."""

    @property
    def headers(self) -> tuple[str, ...]:
        """Titles as they are printed: an estimate takes two columns."""
        return tuple(title for column in self.columns for title in cells.titles(column))

    @property
    def aligned(self) -> tuple[str, ...]:
        """How each printed column stands: text, time or number."""
        return tuple(cells.alignment(c) for c in self.columns for _ in cells.titles(c))

    @property
    def printed(self) -> tuple[tuple[str, ...], ...]:
        """Rows as they are printed."""
        return tuple(
            tuple(
                text
                for column, value in zip(self.columns, row, strict=True)
                for text in cells.texts(column, value)
            )
            for row in self.rows
        )


@dataclass(frozen=True)
class Chart:
    """A picture of results: drawn by the writer, in the fonts that it has."""

    key: str
    title: str
    says: str
    """What it shows, for those who do not see it."""
    draw: Callable[[Figure], None]
    """Draws it into a figure; a `functools.partial` of a function and the results that it takes."""
    height: float
    """Share of its width."""


@dataclass(frozen=True)
class Drawing:
    """Lanes along time, as shapes at their places."""

    title: str
    says: str
    picture: Picture


@dataclass(frozen=True)
class LogLine:
    """A line of a log."""

    line_no: int
    text: str
    counts: bool
    """The verdict names it."""


@dataclass(frozen=True)
class Excerpt:
    """Some lines of the log of one attempt."""

    title: str
    lines: tuple[LogLine, ...]


Block = Table | Chart | Drawing | Excerpt


@dataclass(frozen=True)
class Section:
    """A part of the report under one heading."""

    title: str
    blocks: tuple[Block, ...]
    sentences: tuple[str, ...] = ()

    @property
    def in_words(self) -> bool:
        """Whether anything of it can be said without a picture."""
        pictures = (Chart, Drawing)
        return bool(self.sentences) or any(not isinstance(b, pictures) for b in self.blocks)


@dataclass(frozen=True)
class Report:
    """What a writer prints."""

    kind: Literal["fleet", "incident", "node"]
    stem: str
    """Name of its files, without the ending."""
    title: str
    period: str
    filters: str
    answer: str
    """One sentence that says only what the numbers support."""
    summary: tuple[str, ...]
    """The other things to know, in plain words, most important first."""
    headlines: tuple[Headline, ...]
    notes: tuple[str, ...]
    """Without which the numbers would be misread."""
    sections: tuple[Section, ...]
    definitions: tuple[tuple[str, str], ...]
    missing: tuple[str, ...]
    """Sources without a record."""
    conf_level: float | None
    """Of the intervals; None where there are none."""
    synthetic: bool
    basis: tuple[tuple[str, str], ...]
    """What the report was made from: versions and configuration."""
    content_sha256: str = ""

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


def basis(store: Store) -> tuple[tuple[str, str], ...]:
    """Versions and configuration that a report was made from."""
    return (
        ("product", f"Faultline {version('faultline')}"),
        ("schema", str(store.current.schema_version)),
        ("configuration", load_site(store.root).sha256),
    )


def digest(report: Report) -> str:
    """SHA-256 of what a report says: the same content has the same hash, whenever it is made.

    It covers versions, configuration, filters and every printed value. Where names were replaced,
    their pseudonyms count by the order in which they appear: the key that made them does not.
    """
    printed = {
        "kind": report.kind,
        "title": report.title,
        "period": report.period,
        "filters": report.filters,
        "answer": report.answer,
        "summary": report.summary,
        "headlines": [(h.label, h.value, h.interval, h.n, h.definition) for h in report.headlines],
        "notes": report.notes,
        "sections": [
            (part.title, part.sentences, [_said(block) for block in part.blocks])
            for part in report.sections
        ],
        "definitions": report.definitions,
        "missing": report.missing,
        "conf_level": report.conf_level,
        "synthetic": report.synthetic,
        "basis": report.basis,
    }
    text = _numbered(json.dumps(printed, ensure_ascii=False))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


def _said(block: Block) -> Any:
    """What a block says; of a chart its words, for its values stand in tables."""
    if isinstance(block, Table):
        return (block.title, block.note, block.headers, block.printed or block.empty)
    if isinstance(block, Excerpt):
        return (block.title, [(line.line_no, line.text, line.counts) for line in block.lines])
    return (block.title, block.says)


def _numbered(text: str) -> str:
    """Pseudonyms as numbers, in the order of their first appearance."""
    seen: dict[str, int] = {}
    return _PSEUDONYM.sub(
        lambda found: f"{found[1]}-{seen.setdefault(found[0], len(seen) + 1)}", text
    )


def defined(headlines: Sequence[Headline], terms: Sequence[Term]) -> tuple[tuple[str, str], ...]:
    """Definitions of headline numbers and further terms, each once."""
    found = [(headline.label, headline.definition) for headline in headlines]
    return tuple(dict([*found, *((term.label, term.definition) for term in terms)]).items())


def one_line(text: str) -> str:
    r"""Text of a log or record without control characters and line ends.

    >>> one_line("\x1b[31mred\x1b[0m\r\nnext")
    'red next'
    """
    return " ".join(_CONTROL.sub("", text).split())


def printable(text: str) -> str:
    r"""A line of a log as it stands, without control characters; its indent stays.

    >>> printable("\t\x07at x\r\n")
    '        at x'
    """
    return " ".join(_CONTROL.sub("", text).expandtabs().splitlines())


def shortened(text: str, longest: int) -> str:
    """Text of at most so many letters; an ellipsis says that it goes on.

    >>> shortened("a long name", 6), shortened("short", 6)
    ('a lon…', 'short')
    """
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def file_name(name: str) -> str:
    """A name as part of a file's name.

    >>> file_name("rack 3/../n1.example")
    'rack-3-..-n1.example'
    """
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.") or "unnamed"
