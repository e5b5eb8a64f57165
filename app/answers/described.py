"""A row described once: table, JSON, CSV and the data of a chart are made of the same fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from app.answers.content import Sheet, Table
from app.words.cells import ESTIMATES, Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pandas as pd

    from app.words.cells import Kind
    from app.words.terms import Term

Surface = Literal["table", "json", "csv", "chart"]
EVERYWHERE: tuple[Surface, ...] = ("table", "json", "csv", "chart")
DATA: tuple[Surface, ...] = ("json", "csv", "chart")
TABLE: tuple[Surface, ...] = ("table",)
JSON: tuple[Surface, ...] = ("json",)
CSV: tuple[Surface, ...] = ("csv",)
CHART: tuple[Surface, ...] = ("chart",)


@dataclass(frozen=True)
class Field:
    """One quantity of a row."""

    column: Column
    of: Callable[[Any], Any] | str | None = None
    """Its value of a result, or the attributes or keys, with dots between, that lead to it; those
    of the column's key where none are given."""
    on: tuple[Surface, ...] = EVERYWHERE
    """Where it stands."""
    names: Mapping[Surface, str | tuple[str, ...]] = dataclasses.field(default_factory=dict)
    """What a surface calls it, where that is not the column's key; of an estimate in CSV and
    charts the headers of value, lower, upper, conf_level and n, as many as stand there.
    """

    def value(self, item: Any) -> Any:
        """The value of a result."""
        of = self.column.key if self.of is None else self.of
        if not isinstance(of, str):
            return of(item)
        for name in of.split("."):
            item = item[name] if isinstance(item, Mapping) else getattr(item, name)
        return item

    def headers(self, surface: Surface) -> tuple[str, ...]:
        """What CSV or a chart's data call it: an estimate takes a cell a bound.

        >>> Field(Column("ettr", "ETTR", "ettr")).headers("csv")
        ('ettr', 'ettr_lower', 'ettr_upper')
        """
        name = self.names.get(surface, self.column.key)
        if isinstance(name, tuple):
            return name
        if self.column.kind in ESTIMATES and surface in ("csv", "chart"):
            return (name, f"{name}_lower", f"{name}_upper")
        return (name,)

    def cells(self, surface: Surface, item: Any) -> tuple[Any, ...]:
        """What stands below its headers."""
        value = self.value(item)
        if self.column.kind not in ESTIMATES or surface not in ("csv", "chart"):
            return (value,)
        bounds = (value.value, value.lower, value.upper, value.conf_level, value.n)
        return bounds[: len(self.headers(surface))]


def field(
    key: str,
    title: str = "",
    kind: Kind = "text",
    of: Callable[[Any], Any] | str | None = None,
    *,
    on: tuple[Surface, ...] = EVERYWHERE,
    names: Mapping[Surface, str | tuple[str, ...]] | None = None,
    term: Term | None = None,
    **column: Any,
) -> Field:
    """A field with its column in one line; `column` is what else `Column` holds.

    A `term` of the glossary gives the title, where none is given, and the help.
    """
    if term is not None:
        title, column["help"] = title or term.label, term.definition
    return Field(Column(key, title, kind, **column), of, on, names or {})


@dataclass(frozen=True)
class Rows:
    """Results and what describes them."""

    described: Iterable[Any]
    """Fields; a column, or the key of one without a title, stands on every surface."""
    items: Sequence[Any]

    @classmethod
    def of(cls, names: Iterable[str], rows: Iterable[Sequence[Any]]) -> Rows:
        """Values by the names of their columns, alike on every surface."""
        names = tuple(names)
        return cls(names, [dict(zip(names, row, strict=True)) for row in rows])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what a chart lists: the ways to a value may be functions, which cannot be."""
        return Rows.of, self._of("chart")

    @property
    def fields(self) -> tuple[Field, ...]:
        """What describes the results."""
        columns = (Column(of, "") if isinstance(of, str) else of for of in self.described)
        return tuple(Field(of) if isinstance(of, Column) else of for of in columns)

    def table(self, key: str, title: str, **said: Any) -> Table:
        """What people see; `said` is what else `Table` holds."""
        columns = tuple(one.column for one in self.fields if "table" in one.on)
        return Table(key, title, columns, self._of("table")[1], **said)

    def records(self) -> list[dict[str, Any]]:
        """What JSON prints."""
        headers, rows = self._of("json")
        return [dict(zip(headers, row, strict=True)) for row in rows]

    def sheet(self) -> Sheet:
        """What CSV prints."""
        return Sheet(*self._of("csv"))

    def frame(self) -> pd.DataFrame:
        """The data of a chart, for its download."""
        import pandas as pd  # here: most commands draw nothing

        headers, rows = self._of("chart")
        return pd.DataFrame(rows, columns=list(headers))

    def _of(self, surface: Surface) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
        """Headers and rows of a surface."""
        fields = [one for one in self.fields if surface in one.on]
        headers = tuple(header for one in fields for header in one.headers(surface))
        cells = ([one.cells(surface, item) for one in fields] for item in self.items)
        return headers, [tuple(cell for part in row for cell in part) for row in cells]


def sheet_of(records: Sequence[Mapping[str, Any]], keys: Iterable[str] | None = None) -> Sheet:
    """Records as CSV prints them; where `keys` are given, these alone.

    >>> sheet_of([{"gpus": 8, "mttf_hours": 14.2}], ["mttf_hours"]).rows
    [(14.2,)]
    """
    columns = tuple(records[0] if keys is None else keys)
    rows = [tuple(record[key] for key in columns) for record in records]
    return Sheet(columns, rows)


def listed(columns: Iterable[Column], rows: Iterable[Sequence[Any]]) -> Sheet:
    """Rows of a table as CSV prints them, of estimates the value."""
    return Sheet(tuple(column.key for column in columns), [tuple(map(_plain, row)) for row in rows])


def quantities(named: Iterable[tuple[str, Any]], *, value: str = "value") -> Sheet:
    """A row for each quantity; plain numbers have no interval.

    >>> quantities([("gpus", 8)]).rows
    [('gpus', 8, None, None, None, None)]
    """
    bounds = ("lower", "upper", "conf_level", "n")
    rows = [
        (name, _plain(one), *(getattr(one, bound, None) for bound in bounds)) for name, one in named
    ]
    return Sheet(("quantity", value, *bounds), rows)


def _plain(value: Any) -> Any:
    """Of an estimate its value."""
    return getattr(value, "value", value)
