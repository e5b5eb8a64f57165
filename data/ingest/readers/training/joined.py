"""Single values of series joined into rows, a row a step: what loggers write value by value.

A value is one point of a series: run, name, step, time, number. Points of one run and step are one
row. Where a series goes back or repeats a step, the run was restarted, and its rows begin anew; a
series that goes on stays with the others. Files of writers that share a series, such as restarts
and ranks, keep rows of their own; others complete each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from data.ingest.readers.training.step_records import StepRecords, Value


class Point(NamedTuple):
    """One value of a series."""

    run: str | None
    name: str
    step: int
    at_s: float | None
    """Seconds since 1970; None where none is stated."""
    value: float
    line_no: int = 0
    writer: int = 0
    """File that holds it."""


class Row(NamedTuple):
    """Values of one step."""

    line_no: int
    """Of the first of them."""
    values: dict[str, Value]


class _Run:
    """How often a run began anew, as far as its points tell."""

    def __init__(self) -> None:
        self._of_all = 0
        self._of_series: dict[str, tuple[int, int]] = {}

    def start_of(self, point: Point) -> int:
        """Number of the start that wrote a point."""
        start, last = self._of_series.get(point.name, (self._of_all, point.step - 1))
        start = self._of_all if point.step > last else max(self._of_all, start + 1)
        self._of_all = max(self._of_all, start)
        self._of_series[point.name] = start, point.step
        return start


def rows_of(points: Sequence[Point]) -> Iterator[Row]:
    """Rows of points that lie in the order of their time, else of the source.

    A row is logged when its first value was.

    Examples
    --------
    >>> points = [Point(None, "loss", 1, 10.0, 2.5), Point(None, "lr", 1, 10.1, 1e-3)]
    >>> [row.values for row in rows_of([*points, Point(None, "loss", 1, 60.0, 2.5)])]
    [{'step': 1, 'logged_at': 10.0, 'loss': 2.5, 'lr': 0.001}, {'step': 1, 'logged_at': 60.0,
    'loss': 2.5}]
    """
    together = _writers_together(points)
    runs: dict[tuple[str | None, int], _Run] = {}
    rows: dict[tuple[str | None, int, int, int], Row] = {}
    for point in points:
        writers = together[point.run, point.writer]
        start = runs.setdefault((point.run, writers), _Run()).start_of(point)
        key = (point.run, writers, start, point.step)
        if key not in rows:
            named: dict[str, Value] = {"step": point.step, "logged_at": point.at_s}
            if point.run is not None:
                named["run_id"] = point.run
            rows[key] = Row(point.line_no, named)
        values = rows[key].values
        values[point.name if point.name not in _OWN else f"{point.name}/value"] = point.value
    yield from rows.values()


def _writers_together(points: Iterable[Point]) -> dict[tuple[str | None, int], int]:
    """Run and writer -> number of the group of writers whose series complete each other."""
    series: dict[tuple[str | None, int], set[str]] = {}
    for point in points:
        series.setdefault((point.run, point.writer), set()).add(point.name)
    groups: dict[str | None, list[set[str]]] = {}
    found: dict[tuple[str | None, int], int] = {}
    for (run, writer), names in series.items():
        of_run = groups.setdefault(run, [])
        free = next((n for n, held in enumerate(of_run) if not held & names), len(of_run))
        if free == len(of_run):
            of_run.append(set())
        of_run[free] |= names
        found[run, writer] = free
    return found


_OWN = frozenset(("step", "logged_at", "run_id"))


def add_joined(points: list[Point], records: StepRecords) -> None:
    """Takes the rows of points, in the order of their times where all state one.

    Points beyond the first of a row are counted as joined.
    """
    if all(point.at_s is not None for point in points):
        points.sort(key=lambda point: point.at_s or 0.0)
    n_rows = 0
    for row in rows_of(points):
        records.add(row.line_no, row.values)
        n_rows += 1
    records.skipped["joined_with_its_step"] += len(points) - n_rows
