"""What an answer is made of: a sentence, numbers, tables, charts, and what must be known of them.

One model, one writer a surface (`app.show`): page, terminal, JSON, CSV, HTML, PDF, workbook and
Markdown draw the same objects. Cells hold values; `app.words.cells` says how they are printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from analytics.reliability.fleet_verdict import WATCH_RATIO
from app.words import cells, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Literal

    import pandas as pd

    from analytics.estimate import Estimate
    from app.answers.described import Rows
    from app.ask import Ask
    from app.words.addresses import Dashboard, Place
    from app.words.cells import Column, Kind, Link
    from app.words.terms import Term

    State = Literal["good", "watch", "bad", "unknown"]

UNITS = {"rate": "per 1,000 node-days", "share": "ratio", "mttf": "h", "ettr": "ratio"}
"""Units of the kinds of estimates."""


@dataclass(frozen=True)
class Part:
    """What is not on screen until a reader opens it: the question is asked then."""

    title: str
    table: Callable[..., Table]
    """A function of `ask`, the arguments and `limit`, defined at the top of a module."""
    arguments: tuple[Any, ...] = ()
    columns: tuple[str, ...] = ()
    """Of a part behind the rows of a table: columns whose values are further arguments."""
    total: int | None = None
    """How many rows there are, where that is known."""

    def opened(self, ask: Ask, *, limit: int) -> Table:
        """Its first rows."""
        return self.table(ask, *self.arguments, limit=limit)

    def behind(self, row: Mapping[str, Any]) -> Part:
        """The part behind one row of a table."""
        values = tuple(row[column] for column in self.columns)
        return replace(self, arguments=(*self.arguments, *values), columns=())


@dataclass(frozen=True)
class Change:
    """How a value differs from that of the quarter before."""

    ratio: float
    """Relative change; 0.1 is 10 % more."""
    before: str
    """The former value, written out."""
    certain: bool
    """The two intervals do not overlap."""

    def state(self, *, higher_is_better: bool) -> State:
        """Whether that is good, to be watched, or bad."""
        if (self.ratio > 0) == higher_is_better:
            return "good"
        if self.certain:
            return "bad"
        return "watch" if abs(self.ratio) >= WATCH_RATIO - 1 else "good"


@dataclass(frozen=True)
class Number:
    """A headline number as it is printed."""

    term: Term
    value: str
    basis: str = ""
    """What it rests on, in one line: interval, level and n of an estimate."""
    interval: str = ""
    n: str = ""
    exact: Estimate | float | None = None
    """What is printed, to the last digit; None where it is no number, or is not known."""
    unit: str = ""
    """Of the exact value."""
    change: Change | None = None
    higher_is_better: bool = False
    opens: Part | None = None
    """The rows behind it."""
    says: str = ""
    """What stands below it on a page; its interval where that is empty."""
    weeks: tuple[float, ...] = ()
    """Its values of the last weeks, the oldest first."""

    @property
    def state(self) -> State | None:
        """Good, to be watched, bad or unknown; None where there is nothing to judge it by."""
        if self.value == numbers.UNKNOWN:
            return "unknown"
        if self.change is None:
            return None
        return self.change.state(higher_is_better=self.higher_is_better)


def estimated(
    term: Term,
    kind: Kind,
    value: Estimate,
    *,
    before: Estimate | None = None,
    more: str = "",
    opens: Part | None = None,
) -> Number:
    """An estimate as a headline number; where only a bound is known, the bound is its value.

    Parameters
    ----------
    kind
        How it is written: rate, share, mttf or ettr.
    before
        The same of the quarter before; None where that is unknown.
    more
        What else it rests on.
    """
    printed, interval = cells.estimate(kind, value)
    bounded = value.value is None and interval != numbers.UNKNOWN
    unknown = value.value is None and not bounded
    return Number(
        term,
        interval if bounded else printed,
        cells.basis(kind, value) + more,
        "" if bounded or unknown or interval == numbers.UNKNOWN else interval,
        numbers.count(value.n),
        value,
        UNITS[kind],
        _change(kind, value, before),
        higher_is_better=kind in ("mttf", "ettr"),
        opens=opens,
    )


def composed(
    term: Term,
    value: str,
    parts: str = "",
    *,
    exact: float | None = None,
    unit: str = "",
    opens: Part | None = None,
) -> Number:
    """A number without an interval, beside which stands what it consists of."""
    return Number(term, value, parts, parts, exact=exact, unit=unit, opens=opens)


def ranged(term: Term, value: Estimate, parts: str, *, unit: str, hours: bool = False) -> Number:
    """An estimate of an amount, `hours` written as a length of time: its interval, and beside it
    what it consists of."""
    write = numbers.duration if hours else numbers.number
    span = numbers.duration_interval(value) if hours else numbers.interval(value)
    known = span if value.has_width else ""
    basis = "; ".join(
        part for part in (known and f"{known} ({numbers.level(value)})", parts) if part
    )
    n = numbers.count(value.n)
    says = "; ".join(part for part in (known, parts) if part)
    return Number(term, write(value.value), basis, known, n, value, unit, says=says)


def counted(
    term: Term, n: int | None, *, of: int, noun: str, basis: str = "", opens: Part | None = None
) -> Number:
    """How many of a known number; a count has no interval."""
    value = numbers.UNKNOWN if n is None else f"{n:,} of {of:,}"
    return Number(term, value, basis, exact=n, unit=noun, opens=opens)


def _change(kind: Kind, now: Estimate, before: Estimate | None) -> Change | None:
    """The change on the quarter before; None where one of the two is unknown or was 0."""
    if before is None or now.value is None or not before.value:
        return None
    was = cells.estimate(kind, before)[0]
    return Change(now.value / before.value - 1.0, was, now.apart_from(before))


@dataclass(frozen=True)
class Missing:
    """What stands where data are missing: what would fill the place, and the exact commands."""

    key: str
    finding: str
    remedy: str
    commands: tuple[str, ...] = ()


@dataclass(frozen=True)
class Table:
    """A table: values by column, in the kinds of the columns."""

    key: str
    """Its name in JSON, of its sheet and of its download."""
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Any, ...]] | pd.DataFrame
    """Values as the kinds of the columns want them; of a frame those of the columns' keys."""
    empty: str = "No rows."
    """What to say where there are no rows."""
    note: str = ""
    """What must be known of it, below its title."""
    opens: Part | None = None
    """What is behind a row; its arguments end with the values of the columns that it names."""
    everything: Part | None = None
    """All rows, where these are only the first of them."""
    searched: bool = True
    """Whether many rows have a search box above them; a page may have its own."""
    wrapped: bool = False
    """Whether long texts take several lines."""
    beside: tuple[Part, ...] = ()
    """Further tables of the same; a dialog has a tab for each."""
    places: Sequence[Place] = ()
    """Page that the first cell of each row leads to, where its column names none."""

    def __len__(self) -> int:
        return len(self.rows)

    def first(self, most: int) -> Table:
        """At most so many rows; the note says where there are more."""
        if len(self) <= most:
            return self
        kept = f"The first {most:,} of {numbers.counted(len(self), 'row')}."
        note = " ".join(part for part in (kept, self.note) if part)
        return replace(self, rows=self.rows[:most], places=self.places[:most], note=note)

    @cached_property
    def values(self) -> Sequence[tuple[Any, ...]]:
        """Rows in the order of the columns; None where a value is unknown."""
        rows: Any = self.rows
        if not hasattr(rows, "itertuples"):
            return list(rows)
        chosen = rows[[column.key for column in self.columns]]
        known = chosen.astype(object).where(chosen.notna(), None)
        return list(known.itertuples(index=False, name=None))

    @property
    def visible(self) -> tuple[Column, ...]:
        """Columns that documents and the command line have room for."""
        return tuple(column for column in self.columns if column.shown and not column.wide)

    @cached_property
    def shown(self) -> list[tuple[Any, ...]]:
        """Values of the columns that are visible."""
        places = [place for place, column in enumerate(self.columns) if column in self.visible]
        return [tuple(row[place] for place in places) for row in self.values]

    @property
    def headers(self) -> tuple[str, ...]:
        """Titles as they are printed: an estimate takes two columns."""
        return tuple(title for column in self.visible for title in cells.titles(column))

    @property
    def aligned(self) -> tuple[str, ...]:
        """How each printed column stands: text, time or number."""
        return tuple(cells.alignment(c) for c in self.visible for _ in cells.titles(c))

    @property
    def printed(self) -> tuple[tuple[str, ...], ...]:
        """Rows as they are printed."""
        return tuple(
            tuple(
                text
                for column, value in zip(self.visible, row, strict=True)
                for text in cells.texts(column, value)
            )
            for row in self.shown
        )

    def linked(self, dashboard: Dashboard | None) -> Sequence[Sequence[str]]:
        """Address that each printed cell leads to; empty where it leads nowhere."""
        if dashboard is None:
            return [[""] * len(self.headers)] * len(self)
        keys = [column.key for column in self.columns]
        rows = [dict(zip(keys, row, strict=True)) for row in self.values]
        found = [
            [address for column in self.visible for address in _of_cell(column, row, dashboard)]
            for row in rows
        ]
        for row, place in zip(found, self.places, strict=False):
            row[0] = row[0] or dashboard.address(place)
        return found


def _of_cell(column: Column, row: Mapping[str, Any], dashboard: Dashboard) -> list[str]:
    """Address of what a column prints: an estimate has its interval beside it."""
    address = "" if column.link is None else dashboard.of(column.link, row)
    return [address, *[""] * (len(cells.titles(column)) - 1)]


@dataclass(frozen=True)
class Chart:
    """A picture of results: its kind names the modules that draw it."""

    kind: str
    """Section and name, e.g. reliability.mttf_by_size: `app.figures` draws it on the page,
    `app.show.drawings` in documents; where it has none there, its data stand in tables."""
    title: str
    says: str
    """What it shows, for those who do not see it."""
    data: tuple[Any, ...]
    """The results that it is drawn from."""
    key: str = ""
    """Its name in the answer and of its downloads; that of its kind where none is given."""
    options: Mapping[str, Any] = field(default_factory=dict)
    captioned: bool = False
    """Whether documents print what it shows below it, for it explains the marks."""
    zoned: bool = False
    """Whether its times are told in the zone of the reader."""
    whole: bool = False
    """Whether it shows one thing whole, whatever the filters."""
    opens: Link | Part | None = None
    """What a mark opens: the page of what it names, or the part whose last argument it is."""
    rows: Rows | pd.DataFrame | None = None
    """What its download lists; None where its drawing lists it."""
    during: tuple[Any, Any] = (None, None)
    """First and last time that it is about, where the page that a mark opens shall show that."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", self.key or self.name)

    @property
    def name(self) -> str:
        """Name of the modules that draw it."""
        return self.kind.rpartition(".")[2]


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


Block = Table | Chart | Excerpt | Missing


@dataclass(frozen=True)
class Sheet:
    """Rows for machines: what CSV prints, to the last digit."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Answer:
    """The answer to one question; every surface shows this."""

    sentence: str
    """What the numbers support, and no more."""
    numbers: tuple[Number, ...] = ()
    blocks: tuple[Block, ...] = ()
    notes: tuple[str, ...] = ()
    """Without which the numbers would be misread."""
    terms: tuple[Term, ...] = ()
    """What must be defined besides the headline numbers."""
    record: Any = None
    """What JSON prints: results, dictionaries and frames, to the last digit."""
    sheet: Sheet | pd.DataFrame | None = None
    """What CSV prints."""
    about: str = ""
    """What one run, job or node is, in a line; empty where the answer is about many."""

    def table(self, key: str) -> Table:
        """One of its tables."""
        return next(b for b in self.blocks if isinstance(b, Table) and b.key == key)

    def tables(self, key: str) -> tuple[Table, ...]:
        """The same where it may not be there: one, or none."""
        return tuple(b for b in self.blocks if isinstance(b, Table) and b.key == key)

    def chart(self, key: str) -> Chart | Missing:
        """One of its charts, or what is said in its place."""
        return next(b for b in self.blocks if isinstance(b, Chart | Missing) and b.key == key)
