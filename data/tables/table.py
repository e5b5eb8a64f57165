"""What is declared of a table: its columns, what tells its rows apart, who is named in it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

People = Literal["user", "account", "job", "id", "text", "nested"]
"""Whom a column names: a user, an account, a job by the name its owner gave it; an id, which in
Kubernetes is made of such names; or a text, or JSON of texts, in which any of them may stand."""


class Column(NamedTuple):
    """A column of a table."""

    type: str
    """DuckDB's name of it."""
    comment: str
    """Meaning, unit and source."""
    people: People | None = None
    """Whom it names, and so what a redacted report must not show; None where it names nobody."""
    derived: bool = False
    """Set at publish: it does not tell rows of a source apart."""
    compression: str | None = None
    """DuckDB's method, where it chooses one by trying that costs more than it saves."""


varchar = partial(Column, "VARCHAR")
unlike = partial(Column, "VARCHAR", compression="zstd")
"""A text of which hardly two rows have the same: a dictionary of it takes three times as long to
write, and no less to read."""
integer = partial(Column, "INTEGER")
bigint = partial(Column, "BIGINT")
double = partial(Column, "DOUBLE")
boolean = partial(Column, "BOOLEAN")
date = partial(Column, "DATE")
timestamptz = partial(Column, "TIMESTAMPTZ")


NODE_WRITTEN = varchar(
    "host name as the source writes it, where that is another name of the node, or the same record "
    "in another spelling counts and this one has no node; set at publish",
    derived=True,
)
"""Column of a table whose `node` is set at publish to the one name of the node."""
NODE_AS_WRITTEN = 'coalesce("node_written", "node")'
"""What the source wrote, as SQL."""
CLUSTER_FROM = varchar(
    "what tells the cluster where neither the source nor --cluster names one, set at publish: host "
    "or job, which one cluster alone knows; site, as site.toml states no other; several clusters "
    "know it, or none does: then the cluster is NULL, or called cluster in a store that names none",
    derived=True,
)
"""Column of a table whose `cluster` is set at publish where the source names none."""
UNNAMED = "cluster"
"""What a record's cluster is called as long as nobody names one."""


@dataclass(frozen=True)
class Coverage:
    """How the rows of a table count in the coverage: by cluster, source and day."""

    by: str | None = None
    """Column by whose values the rows are of different sources, `<table>.<value>`."""
    where: str = "true"
    """Condition for the rows that count."""
    period: tuple[str, str] | None = None
    """First and last time of a row, where the rows tell which period the records are of; every
    site can have such rows, and is told where it has none."""
    sources: tuple[str, ...] = ()
    """Values of `by` that every site can have."""


@dataclass(frozen=True)
class Table:
    """A table of a snapshot."""

    name: str
    about: str
    """What one row is."""
    columns: Mapping[str, Column]
    key: tuple[str, ...] = ()
    """Columns that no two rows share; none of a table of one row."""
    time: str | None = None
    """When a row is of: a column, or an expression of them."""
    coverage: Coverage | None = None
    """None where its rows are no records of a source."""
    weight: str | None = None
    """Column that says for how many records a row stands, NULL for one; such a row gives way to a
    record of its key that stands for itself."""

    @property
    def comment(self) -> str:
        """What one row is, and its key."""
        return f"{self.about} Key: {', '.join(self.key)}." if self.key else self.about

    @property
    def n_records(self) -> str:
        """How many records rows stand for, as SQL that adds up."""
        return f"CAST(sum(coalesce({self.weight}, 1)) AS BIGINT)" if self.weight else "count(*)"


@dataclass(frozen=True)
class Records(Table):
    """A table of records that sources state: new ones are merged into it, of each key one stays."""

    later: str | None = None
    """Of rows with one key the one with the later value of this column wins; NULL is earliest."""
    stated: tuple[str, ...] = ()
    """Before `later`, one wins that states these columns, the first of them above all; of two
    statements the one that came last, so that a person can correct it."""
    placed_by: tuple[str, ...] = ()
    """Columns, the first that holds one above all, that name the host or job of a row: the cluster
    that knows it is the row's where its source names none."""
    derived_with: tuple[str, str] | None = None
    """A column of the key that is set at publish where the second column holds a value."""

    def value(self, column: str) -> str:
        """What of a column tells rows apart, as SQL."""
        if column == "cluster" and "cluster_from" in self.columns:
            return '(CASE WHEN "cluster_from" IS NULL THEN "cluster" END)'
        if column == "node" and "node_written" in self.columns:
            return NODE_AS_WRITTEN
        if self.derived_with is None or column != self.derived_with[0]:
            return f'"{column}"'
        return f'(CASE WHEN "{self.derived_with[1]}" IS NULL THEN "{column}" END)'

    @property
    def host_or_job(self) -> str:
        """The host or job by which a row is placed, as its source writes it, as SQL."""
        return f"coalesce({', '.join(map(self.value, self.placed_by))}, NULL)"

    @property
    def placed_by_job(self) -> bool:
        """Whether a row without a cluster belongs to that of a job, not of a host."""
        return "job_id" in self.placed_by

    @property
    def content(self) -> str:
        """Hash over all that the source states, as SQL."""
        stated = (self.value(name) for name, column in self.columns.items() if not column.derived)
        return f"hash({', '.join(stated)})"
