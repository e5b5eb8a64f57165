"""Which days are to be reduced: those with new or changed inputs, or another end of the day before.

A day (UTC) is made of all samples of it, and of the last ones of the day before, from which its
counters count on: so what is written depends on the set of inputs alone, in whatever order they
came.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from data.reduce.inputs import Partition
    from data.reduce.manifest import Manifest

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US
UNKNOWN = "unknown"
"""Instead of a day, and of the begin of an hour, where none is known."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAMED = 3


class Day(NamedTuple):
    """A day that is to be reduced."""

    day: str
    begin_us: int
    inputs: dict[str, list[int]]
    """Path -> identity of the partitions that hold samples of it."""
    hours: dict[int, int]
    """Begin of an hour -> samples."""
    late: dict[str, int]
    """Path -> samples of the day that came when it was done."""


class Stretch(NamedTuple):
    """Hours that are reduced at once."""

    begin_us: int
    end_us: int
    shares: int
    """In how many parts, by the hash of the series."""


def day_of(at_us: int | None) -> str:
    """The day of a time, as 2026-01-05."""
    if at_us is None:
        return UNKNOWN
    return f"{_EPOCH + timedelta(microseconds=at_us):%Y-%m-%d}"


def begin_of(day: str) -> int:
    """Begin of a day, in microseconds since 1970; 0 where none is known."""
    if day == UNKNOWN:
        return 0
    return (datetime.fromisoformat(day).replace(tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def after(day: str) -> str:
    """The next day."""
    return day_of(begin_of(day) + DAY_US)


def before(day: str) -> str:
    """The day before."""
    return day_of(begin_of(day) - DAY_US)


def due(
    manifest: Manifest, given: Sequence[Partition], marks: Mapping[str, str] | None = None
) -> list[Day]:
    """The days with new or changed inputs, by time; what was given once and is no more stays.

    Also those whose jobs have another mark, as far as all of their inputs are given.

    Raises
    ------
    SourceError
        Where samples came for a day of which an input is no longer given.
    """
    held = _held(manifest, {partition.path for partition in given})
    known = {partition.path for partition in given}
    found = []
    for day, one in sorted(held.items()):
        done = manifest.partitions.get(day)
        if done is None:
            found.append(one)
            continue
        missing = done.inputs.keys() - known
        is_marked = marks is None or done.windows.get("mark", "") == marks.get(day, "")
        if {**{p: done.inputs[p] for p in missing}, **one.inputs} == done.inputs and (
            is_marked or missing
        ):
            continue
        if missing:
            _refuse_missing(day, one, sorted(missing))
        new = {path for path, identity in one.inputs.items() if done.inputs.get(path) != identity}
        late = {path: _rows_on(manifest, path, day) for path in sorted(new)}
        found.append(one._replace(late=late))
    return sorted([*found, *_gone(manifest, held, known)])


def _gone(manifest: Manifest, held: Mapping[str, Day], known: set[str]) -> Iterator[Day]:
    """Days of which no input holds a sample any more, as they are given now."""
    for day, done in manifest.partitions.items():
        if day in held or not done.inputs.keys() & known:
            continue
        one = Day(day, begin_of(day), {}, {}, {})
        if missing := sorted(done.inputs.keys() - known):
            _refuse_missing(day, one, missing)
        yield one


def again(manifest: Manifest, day: str, given: Sequence[Partition]) -> Day | None:
    """A day that is done, to be reduced again as the day before ends otherwise; None if not done.

    Raises
    ------
    SourceError
        Where one of its inputs is no longer given.
    """
    done = manifest.partitions.get(day)
    if done is None:
        return None
    paths = {partition.path for partition in given}
    one = _held(manifest, paths).get(day, Day(day, begin_of(day), {}, {}, {}))
    if missing := sorted(done.inputs.keys() - paths):
        _refuse_missing(day, one, missing)
    return one


def stretches(hours: Mapping[int, int], most_rows: int) -> Iterator[Stretch]:
    """Hours in pieces of at most so many samples; a larger hour by parts of its series.

    Examples
    --------
    >>> pieces = stretches({0: 5, HOUR_US: 5, 2 * HOUR_US: 25}, 10)
    >>> [(piece.begin_us // HOUR_US, piece.shares) for piece in pieces]
    [(0, 1), (2, 3)]
    """
    piece: list[int] = []
    n_rows = 0
    for hour, n in sorted(hours.items()):
        if piece and n_rows + n > most_rows:
            yield Stretch(piece[0], piece[-1] + HOUR_US, -(-n_rows // most_rows))
            piece, n_rows = [], 0
        piece.append(hour)
        n_rows += n
    if piece:
        yield Stretch(piece[0], piece[-1] + HOUR_US, -(-n_rows // most_rows))


def _held(manifest: Manifest, paths: set[str]) -> dict[str, Day]:
    """Day -> which of these inputs hold samples of it, and how many by hour."""
    inputs: defaultdict[str, dict[str, list[int]]] = defaultdict(dict)
    hours: defaultdict[str, defaultdict[int, int]] = defaultdict(lambda: defaultdict(int))
    for path in sorted(paths & manifest.inputs.keys()):
        one = manifest.inputs[path]
        for begin, n in one.hours.items():
            day = day_of(_time_of(begin))
            inputs[day][path] = one.identity
            hours[day][_time_of(begin) or 0] += n
    return {day: Day(day, begin_of(day), inputs[day], dict(hours[day]), {}) for day in inputs}


def _rows_on(manifest: Manifest, path: str, day: str) -> int:
    """Samples of a day that an input holds."""
    hours = manifest.inputs[path].hours
    return sum(n for begin, n in hours.items() if day_of(_time_of(begin)) == day)


def _time_of(begin: str) -> int | None:
    """Begin of an hour as a manifest names it; None where none is known."""
    return None if begin == UNKNOWN else int(begin)


def _refuse_missing(day: str, one: Day, missing: Sequence[str]) -> None:
    """Refuses to make a day anew without all that it was made from."""
    came = ", ".join(sorted(one.inputs)[:_NAMED]) or "its day before"
    more = f" and {len(missing) - _NAMED:,} more" if len(missing) > _NAMED else ""
    raise SourceError(
        f"{day} is done and has to be made anew, as {came} came or changed, but what it was made "
        f"from is no longer given: give {', '.join(missing[:_NAMED])}{more}, too, or reduce into "
        "another folder"
    )
