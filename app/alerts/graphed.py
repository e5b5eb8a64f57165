"""The figures that every site graphs, of each cluster, over the last 30 days of its records."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from app.answers.reliability import mttf
from data.alerts import Figure
from data.queries import fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from app.ask import Ask
    from data.filters import Selection

DAYS = timedelta(days=30)
RATE = "failures_per_1000_node_days"


def figures(ask: Ask, clusters: Sequence[Selection], now: datetime) -> list[Figure]:
    """Failures per 1,000 node-days of each cluster, with the bounds of the interval.

    Of what was never collected the number is not known, and nothing is told.
    """
    return [figure for one in clusters for figure in _of(ask, one, now)]


def _of(ask: Ask, selection: Selection, now: datetime) -> Iterator[Figure]:
    _, last = ask(fleet.extent)
    if last is None or selection.cluster is None:
        return
    to_at = min(now, last)
    period = replace(selection, from_at=to_at - DAYS, to_at=to_at)
    report = ask(mttf.measured, period, gpus=(), by_node=False)
    rate = report.rate.rate_per_1000_node_days
    seen = report.sight is not None and not report.sight.none
    ends = (rate.value, rate.lower, rate.upper) if seen else (None, None, None)
    yield Figure(RATE, selection.cluster, *ends)
