"""Series in answers of Prometheus: its API's JSON, and what `promtool query -o json` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import RecordError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from data.ingest.reader import Source
    from data.limits import Limits

NO_SERIES, NO_METRIC = "no series with its labels and values", "no metric name: ask for it bare"
NO_SAMPLE, IMPOSSIBLE_TIME = "no time with its value", "impossible time"
_EARLIEST_S, _LATEST_S = 946_684_800, 4_102_444_800  # 2000 to 2100


class AnsweredSeries(NamedTuple):
    """A series of an answer."""

    metric: str
    labels: dict[str, str]
    at_us: list[int]
    """Of each value, microseconds since 1970."""
    values: list[float]
    n_nan: int
    n_infinite: int
    n_broken: int
    """Values without a number or a possible time."""


def answered(
    source: Source, limits: Limits
) -> Iterator[tuple[int, str, AnsweredSeries | RecordError]]:
    """Line, text and content of each series, whether it has one value or many.

    Raises
    ------
    SourceError
        Where Prometheus says that it has no answer.
    """
    records = JsonRecords(source, ("data", "result"), limits)
    for line_no, raw, value in records:
        if isinstance(value, dict) and value.get("status") == "error":
            raise SourceError(f"{source.name}: Prometheus says {value.get('error')}: ask again")
        yield line_no, raw, value if isinstance(value, RecordError) else _series(value, limits)


def _series(value: object, limits: Limits) -> AnsweredSeries | RecordError:
    """A series as JSON holds it."""
    labels = value.get("metric") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(labels, dict):
        return RecordError(NO_SERIES)
    points = value.get("values", [value["value"]] if "value" in value else None)
    if not isinstance(points, list) or not all(isinstance(text, str) for text in labels.values()):
        return RecordError(NO_SERIES)
    if len(labels) > limits.fields:
        return RecordError(limits.fields_reason)
    metric = labels.get("__name__")
    if not metric:
        return RecordError(NO_METRIC)
    at_us: list[int] = []
    numbers: list[float] = []
    n_nan = n_infinite = n_broken = 0
    for point in points:
        try:
            at, number = _point(point)
        except (TypeError, ValueError, OverflowError):
            n_broken += 1
            continue
        if math.isnan(number):
            n_nan += 1
        elif math.isinf(number):
            n_infinite += 1
        else:
            at_us.append(at)
            numbers.append(number)
    return AnsweredSeries(metric, labels, at_us, numbers, n_nan, n_infinite, n_broken)


def _point(point: object) -> tuple[int, float]:
    """Time and value of a point, which Prometheus writes as a number and a text."""
    if not isinstance(point, list) or len(point) != 2 or isinstance(point[0], bool):
        raise TypeError(NO_SAMPLE)
    at, text = point
    if not isinstance(at, int | float) or not isinstance(text, str) or "_" in text:
        raise TypeError(NO_SAMPLE)
    if not _EARLIEST_S <= at < _LATEST_S:
        raise ValueError(IMPOSSIBLE_TIME)
    return round(at * 1_000_000), float(text)
