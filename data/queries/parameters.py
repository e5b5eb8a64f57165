"""The values that the filters give to an ad hoc query: it names them as `$cluster` and so on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from data.filters import Selection

EARLIEST = datetime(1, 1, 1, tzinfo=UTC)
LATEST = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class Parameter:
    """A value that a query can name: `$name`."""

    name: str
    type: str
    """DuckDB's name of it."""
    value: Any
    open: bool
    """The filters leave it open: a name is NULL, a time the earliest or latest there is."""


def parameters(selection: Selection) -> tuple[Parameter, ...]:
    """Which values do the filters give to a query?"""
    chosen = selection
    return (
        Parameter("cluster", "VARCHAR", chosen.cluster, chosen.cluster is None),
        Parameter("from_at", "TIMESTAMPTZ", chosen.from_at or EARLIEST, chosen.from_at is None),
        Parameter("to_at", "TIMESTAMPTZ", chosen.to_at or LATEST, chosen.to_at is None),
        Parameter("partition", "VARCHAR", chosen.partition, chosen.partition is None),
        Parameter("account", "VARCHAR", chosen.account, chosen.account is None),
        Parameter("min_gpus", "INTEGER", chosen.min_gpus, chosen.min_gpus == 0),
    )


def values(selection: Selection) -> dict[str, Any]:
    """Value of each parameter, by its name."""
    return {parameter.name: parameter.value for parameter in parameters(selection)}
