"""The last weeks of a headline number, for the bars below it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd

from app.answers.efficiency import ettr
from app.answers.reliability import rate_by_group
from app.answers.reliability.mttf import EARLIEST, QUARTER
from app.ask import FEW
from app.words import terms
from data.queries import efficiency

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from app.answers.content import Number
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

Weeks = tuple[float, ...]
MOST = 13
"""Weeks of a quarter."""


def lately(selection: Selection) -> Selection:
    """The quarter that ends with the period; all of an open one."""
    end = selection.to_at
    if end is None or end - EARLIEST < QUARTER:
        return selection
    return replace(selection, from_at=end - QUARTER)


def beside(ask: Ask, selection: Selection, shown: Iterable[Number]) -> Iterator[Number]:
    """Numbers, those of the failure rate, of ETTR and of what failures cost with their weeks."""
    for number in shown:
        label = number.term.label
        if label.startswith(terms.FAILURE_RATE.label):
            yield replace(number, weeks=rate(ask, selection))
        elif label in (terms.ETTR.label, terms.ettr_from(selection.min_gpus).label):
            yield replace(number, weeks=of_runs(ask, selection))
        elif number.term is terms.LOST_TO_FAILURES and ask(efficiency.has_ledger):
            yield replace(number, weeks=ask(lost, selection))
        else:
            yield number


def rate(ask: Ask, selection: Selection) -> Weeks:
    """Failures per 1,000 node-days."""
    groups = ask(rate_by_group.rates, lately(selection), "week")
    values = (group.estimate.rate_per_1000_node_days.value for group in groups)
    return _last(value for value in values if value is not None)


def of_runs(ask: Ask, selection: Selection) -> Weeks:
    """ETTR of runs of the sizes selected."""
    groups = ask(ettr.measured, lately(selection), limit=FEW).by_week
    return _last(group.ettr.value for group in groups if group.ettr.value is not None)


def lost(store: Store, selection: Selection) -> Weeks:
    """GPU-hours lost to failures in the weeks (UTC, from Monday on) that the ledger knows."""
    rows = efficiency.ledger_rows(store, lately(selection), by=("day",))
    week = pd.to_datetime(rows["day"]).dt.to_period("W-SUN")
    lost = rows["gpu_seconds"].where(rows["bucket"].eq("lost_work"), 0)
    return _last(lost.groupby(week).sum() / 3600.0)


def _last(values: Iterable[float]) -> Weeks:
    return tuple(map(float, values))[-MOST:]
