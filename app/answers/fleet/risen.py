"""Which causes strike more often than in the time before?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from analytics.estimate import CONF_LEVEL
from analytics.reliability.risen_causes import (
    FALSE_DISCOVERY_RATE,
    FEWEST,
    RisenCause,
    risen_causes,
)
from app.answers.described import Rows, field
from app.answers.efficiency import ledger
from app.answers.reliability.sight import sight
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_fleet
from data.queries import exposure, fleet
from data.queries import occurrences as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from analytics.efficiency.goodput import GoodputLedger
    from app.answers.content import Table
    from data.filters import Selection
    from data.store import Store

SEEN_BY = {"health_event": "health_events", "log_rule": "job_logs", "log_model": "job_logs"}
"""Records without which no verdict is named in this way."""
SEEN_ALIKE = 0.5
"""Share of the days covered now that must have been covered before too."""
DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
COLUMNS = (
    Column("now", "Now", "count", help=of_fleet.OCCURRENCES.definition),
    Column("before", "Before", "count"),
    Column("ratio", "Rate ratio", "rate", help=of_fleet.RISEN.definition),
    Column("q_value", "False discovery rate", "decimal"),
    Column("stake_gpu_hours", "GPU-hours at stake", "rate", none="unknown"),
    Column("failures", "Failed attempts now", "count", wide=True),
    Column("dispersion", "Dispersion", "number", wide=True),
    Column("domain", "Domain", wide=True),
    Column("cause", "Cause in SQL", shown=False),
)


@dataclass(frozen=True)
class Compared:
    """Causes now beside the time before."""

    causes: tuple[RisenCause, ...]
    """Every cause, those that surely rose first."""
    from_at: datetime | None
    """From when to when now is, and from when the time before; None where nothing ran."""
    split_at: datetime | None
    to_at: datetime | None
    halves: bool
    """Nothing ran in the period before, so that the later half is compared with the earlier."""
    not_alike: tuple[str, ...] = ()
    """Records that cover too few of the days before: causes that only they show are left out."""

    @property
    def risen(self) -> tuple[RisenCause, ...]:
        """Those that surely rose."""
        return tuple(cause for cause in self.causes if cause.risen)

    @property
    def left_out(self) -> tuple[str, ...]:
        """Which causes are not compared, as a sentence; none where all are."""
        text = (
            f"Causes that only {' and '.join(self.not_alike)} show are left out: before, these "
            "cover less than half as large a share of the days."
        )
        return (text,) if self.not_alike else ()


NOTHING = Compared((), None, None, None, halves=False)


def fallen(store: Store, selection: Selection) -> tuple[RisenCause, ...]:
    """Causes that surely strike less often than in the period before: those that would have risen,
    had the two periods come the other way round. Their `now` is the period before.

    Empty where nothing ran in the period before.
    """
    spans = _spans(store, selection)
    if spans is None or spans[2]:
        return ()
    before, now, _ = spans
    rows = _occurrences(store, now, before, _not_alike(store, now, before))
    causes = risen_causes(rows, _both(_node_days, store, now, before), lost_gpu_hours={})
    return tuple(cause for cause in causes if cause.risen)


def compared(store: Store, selection: Selection, *, conf_level: float = CONF_LEVEL) -> Compared:
    """Causes of the selection beside those of the period before.

    Where nothing ran in that period, the later half of the selection's own records is compared
    with the earlier half.
    """
    spans = _spans(store, selection)
    if spans is None:
        return NOTHING
    earlier, later, halves = spans
    absent = _not_alike(store, earlier, later)
    rows = _occurrences(store, earlier, later, absent)
    lost: dict[str, float | None] = {}
    if not sight(store, later).none:
        lost = _lost(ledger.if_built(store, later))
    node_days = _both(_node_days, store, earlier, later)
    causes = risen_causes(rows, node_days, lost_gpu_hours=lost, conf_level=conf_level)
    return Compared(causes, earlier.from_at, later.from_at, later.to_at, halves, absent)


def _occurrences(
    store: Store, earlier: Selection, later: Selection, absent: Collection[str]
) -> pd.DataFrame:
    """Occurrences of both times, without those that only the absent records show."""
    rows = _both(queries.occurrences, store, earlier, later)
    return rows[~rows["method"].map(SEEN_BY).isin(absent)]


def _both(
    query: Callable[[Store, Selection], pd.DataFrame],
    store: Store,
    earlier: Selection,
    later: Selection,
) -> pd.DataFrame:
    """Rows of a query for the time before and for now (column `now`)."""
    frames = [
        query(store, selection).assign(now=selection is later) for selection in (earlier, later)
    ]
    return pd.concat(frames, ignore_index=True)


def _lost(cost: GoodputLedger | None) -> dict[str, float | None]:
    """GPU-hours that failures of each cause lost by the ledger."""
    losses = {} if cost is None else cost.failure_losses
    return {cause: hours.value for cause, hours in losses.items()}


def _spans(store: Store, selection: Selection) -> tuple[Selection, Selection, bool] | None:
    """The time before and now; None where nothing ran now."""
    if selection.from_at is not None and selection.to_at is not None:
        length = selection.to_at - selection.from_at
        if selection.from_at - datetime.min.replace(tzinfo=UTC) > length:
            start = selection.from_at - length
            before = replace(selection, from_at=start, to_at=selection.from_at)
            if _node_days(store, before)["node_days"].sum() > 0:
                return before, selection, False
    days = _node_days(store, selection)["day"]
    if len(days) < 2:
        return None
    first, last = EPOCH + int(days.min()) * DAY, EPOCH + int(days.max() + 1) * DAY
    first, last = max(first, selection.from_at or first), min(last, selection.to_at or last)
    middle = first + (last - first) / 2
    middle = middle.replace(hour=0, minute=0, second=0, microsecond=0)
    if not first < middle < last:
        return None
    earlier = replace(selection, from_at=first, to_at=middle)
    return earlier, replace(selection, from_at=middle, to_at=last), True


def _node_days(store: Store, selection: Selection) -> pd.DataFrame:
    """Running time of each day: columns day (number since 1970-01-01), node_days where known."""
    ran = exposure.of_size(exposure.runs(store, selection), selection.min_gpus)
    days = ran["day"].astype("datetime64[D]").astype(np.int64)
    rows = pd.DataFrame({"day": days, "node_days": ran["exposure_node_days"]})
    return rows.dropna().groupby("day")["node_days"].sum().reset_index()


def _not_alike(store: Store, earlier: Selection, later: Selection) -> tuple[str, ...]:
    """Records that cover less than half as large a share of the days before as of those now."""
    shares = []
    for selection in (earlier, later):
        days = fleet.coverage_days(store, selection)
        tables = days["source"].str.split(".").str[0]
        per_table = days.groupby(tables)["day"].nunique()
        shares.append(per_table / (per_table.get("jobs", 0) or 1))  # of the days with jobs
    return tuple(
        name
        for name in sorted(set(SEEN_BY.values()))
        if shares[0].get(name, 0.0) < SEEN_ALIKE * shares[1].get(name, 0.0)
    )


def table(compared: Compared, titles: Mapping[str, str]) -> Table:
    """Causes with their ratios, those that surely rose first."""
    title = field("title", "Cause", of=lambda cause: titles.get(cause.cause, cause.cause))
    return Rows((title, *COLUMNS), compared.causes).table(
        "causes_compared",
        "Causes beside the time before",
        empty="Nothing to compare: no time before is known.",
        note=note(compared),
    )


def note(compared: Compared) -> str:
    """What was compared, and how."""
    if compared.split_at is None or compared.from_at is None or compared.to_at is None:
        return ""
    text = (
        f"{numbers.period(compared.split_at, compared.to_at, 'UTC')} beside "
        f"{numbers.period(compared.from_at, compared.split_at, 'UTC')}. Risen: "
        f"{FEWEST} occurrences or more, false discovery rate at most "
        f"{numbers.percent(FALSE_DISCOVERY_RATE)}."
    )
    return " ".join((text, *compared.left_out))


def record(compared: Compared) -> dict[str, Any]:
    """Keys of the JSON."""
    return {
        "from_at": compared.from_at,
        "split_at": compared.split_at,
        "to_at": compared.to_at,
        "compares_halves": compared.halves,
        "not_compared": compared.not_alike,
        "causes": [vars(cause) | {"risen": cause.risen} for cause in compared.causes],
    }
