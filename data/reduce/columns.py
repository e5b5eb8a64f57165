"""Which columns of a partition are node, metric, time and value, whatever they are called."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping

NAMES = {
    "node": ("node", "machine", "hostname", "host", "instance"),
    "metric": ("metric", "metric_name", "__name__", "name"),
    "at": ("at", "observed_at", "timestamp", "time", "ts", "datetime"),
    "value": ("value", "reading", "val"),
    "gpu": ("gpu", "gpu_uuid", "uuid"),
    "labels": ("labels",),
    "cluster": ("cluster",),
}
"""What is needed -> how it may be called, the surest first."""
_OPTIONAL = frozenset({"gpu", "labels", "cluster"})


class Columns(NamedTuple):
    """Columns as the partition calls them; None where it has none such."""

    node: str
    metric: str
    at: str
    value: str
    gpu: str | None
    labels: str | None
    cluster: str | None


def columns_of(name: str, types: Mapping[str, str]) -> Columns:
    """The columns of a partition.

    Raises
    ------
    SourceError
        Where one that is needed is absent.

    Examples
    --------
    >>> columns_of("a.csv", {"host": "", "time": "", "metric": "", "value": ""}).node
    'host'
    """
    plain = {column.lower(): column for column in reversed(list(types))}
    found = {
        what: next((plain[one] for one in names if one in plain), None)
        for what, names in NAMES.items()
    }
    lacking = [what for what, column in found.items() if column is None and what not in _OPTIONAL]
    if lacking:
        there = ", ".join(list(types)[:8]) or "none"
        wanted = " and ".join(f"{what} ({', '.join(NAMES[what])})" for what in lacking)
        raise SourceError(f"{name}: has no column of {wanted}, its columns are {there}: rename one")
    return Columns(**found)  # type: ignore[arg-type]
