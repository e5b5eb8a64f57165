"""What went wrong hour by hour: failures by incident, and the time in which they could happen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from data.queries import exposure

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints
    from data.filters import Selection
    from data.store import Store

HOUR_S = 3600


class Failures(NamedTuple):
    """Failures of a selection with both ends of its period."""

    failed_s: Floats
    """Seconds from its begin, rising."""
    batch: Ints
    """Ordinal of the incident of each; a failure of none is one by itself."""
    node_days: Floats
    """Exposure of each of its hours."""


def by_hour(store: Store, selection: Selection, from_s: int, n_hours: int) -> Failures:
    """Failures that the rate counts, and exposure by hour; that of a day is spread over its hours.

    `from_s` is the begin of the selection's period, seconds since 1970, and `n_hours` its length.
    """
    failed = [exposure.job_failures(store, selection), exposure.node_failures(store, selection)]
    ran = [exposure.runs(store, selection), exposure.node_failure_days(store, selection)]
    at = np.concatenate([_seconds(each["failed_at"]) for each in failed]) - from_s
    names = [
        f"{table} {key if incident is None or incident != incident else incident}"
        for table, each in enumerate(failed)
        for key, incident in zip(each["key"], each["incident_id"], strict=True)
    ]
    order = np.argsort(at, kind="stable")
    batch = np.unique(np.array(names, dtype=str), return_inverse=True)[1]
    day_s = np.concatenate([_seconds(each["day"]) for each in ran])
    days = np.concatenate([each["exposure_node_days"].astype(float) for each in ran])
    return Failures(at[order], batch[order], _spread(day_s - from_s, days, n_hours))


def _seconds(times: np.ndarray) -> Floats:
    """Seconds since 1970."""
    return times.astype("datetime64[us]").astype(np.int64) / 1e6


def _spread(day_s: Floats, days: Floats, n_hours: int) -> Floats:
    """Exposure of days over those of their hours that lie in the period."""
    found = np.zeros(n_hours)
    for begin in np.unique(day_s).tolist():
        first = max(int(begin // HOUR_S), 0)
        last = min(int(begin // HOUR_S) + 24, n_hours)
        if last > first:
            found[first:last] += float(np.nansum(days[day_s == begin])) / (last - first)
    return found
