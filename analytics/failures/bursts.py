"""Bursts: repeated observations of one thing on one node, until it falls silent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.failures.columns import NEVER, SECOND, codes, microseconds, require, times

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Ints

SILENCE_SECONDS = 180.0
"""Silence that ends a burst."""
SEVERITIES = ("info", "warning", "critical", "fatal")
"""From the least; an unknown severity ranks below info."""
_KEY = ("cluster", "node", "gpu", "check_name", "xid", "sxid")
_KEPT = (*_KEY, "source", "cause", "domain", "message")


def severity_rank(severity: pd.Series) -> Ints:
    """Rank of each severity: 0 info to 3 fatal, -1 where unknown."""
    known = pd.CategoricalDtype(list(SEVERITIES), ordered=True)
    ranks: Ints = severity.astype(known).cat.codes.to_numpy().astype(np.int64)
    return ranks


def bursts(events: pd.DataFrame) -> pd.DataFrame:
    """Bursts of observations: the same check or code on the same node and GPU, close in time.

    Events of one (cluster, node, gpu, check_name, xid, sxid), in order of time, belong to one
    burst as long as no gap between neighbours exceeds `SILENCE_SECONDS`. A GPU that is not known
    is a value of its own: it is not taken to be any other.

    Parameters
    ----------
    events : DataFrame
        Columns cluster, event_id, node, observed_at (UTC), check_name, severity (info, warning,
        critical, fatal or null); optional gpu, xid, sxid, source, cause, domain, message, and
        n_records (how many records an event stands for; null for one). Events without a time or a
        node form no burst.

    Returns
    -------
    DataFrame
        One row a burst, in order of time: burst_id (the event_id of its first event: stable when
        later events arrive), the columns of the key, first_at, last_at, n (records), severity (the
        worst seen), worst_at (when it was first seen), and of its first event the optional
        columns given.

    Raises
    ------
    ShapeError
        For a missing column.

    References
    ----------
    Three minutes of silence are this product's choice; the need for coalescing is in Kokolis et
    al., arXiv 2410.21680, section II, and public GPU error logs (one card: 106 events within 69
    minutes, olcf/TitanGPULife).

    Examples
    --------
    >>> seen = pd.to_datetime(["2026-01-01T00:00Z", "2026-01-01T00:03Z", "2026-01-01T00:09Z"])
    >>> found = bursts(pd.DataFrame({
    ...     "cluster": "c", "event_id": ["e1", "e2", "e3"], "node": "n1", "observed_at": seen,
    ...     "check_name": "xid", "xid": 79, "severity": ["critical", "fatal", None]}))
    >>> found[["burst_id", "n", "severity"]].values.tolist()
    [['e1', 2, 'fatal'], ['e3', 1, None]]
    """
    columns = ("cluster", "event_id", "node", "observed_at", "check_name", "severity")
    require("events", events, columns)
    number = burst_numbers(events)
    inside = np.flatnonzero(number >= 0)
    at = microseconds(events["observed_at"])
    rank = severity_rank(events["severity"])
    by_burst = inside[np.lexsort((at[inside], number[inside]))]
    n_bursts = int(number.max(initial=-1)) + 1
    sizes = np.bincount(number[inside], minlength=n_bursts)
    begins = np.cumsum(sizes) - sizes
    first = _first_events(events["event_id"], at, by_burst, begins=begins, sizes=sizes)
    worst = np.maximum.reduceat(rank[by_burst], begins) if n_bursts else rank[:0]
    is_worst = rank[by_burst] == np.repeat(worst, sizes)
    worst_at = np.minimum.reduceat(np.where(is_worst, at[by_burst], np.iinfo(np.int64).max), begins)
    found = events.iloc[first][[name for name in _KEPT if name in events.columns]]
    found = found.reset_index(drop=True)
    found.insert(0, "burst_id", events["event_id"].to_numpy()[first])
    found["first_at"] = times(at[first])
    found["last_at"] = times(at[by_burst[begins + sizes - 1]])
    found["n"] = np.add.reduceat(_weights(events)[by_burst], begins) if n_bursts else sizes
    found["severity"] = np.array([*SEVERITIES, None], dtype=object)[worst]
    found["worst_at"] = times(worst_at)
    return found.iloc[_in_time(at[first], found["burst_id"])].reset_index(drop=True)


def burst_numbers(events: pd.DataFrame) -> Ints:
    """Number of the burst of each event, in the order of the rows; -1 where it is in none.

    Takes the columns of the key alone (`bursts`); the numbers have no meaning beyond this frame.
    """
    at = microseconds(events["observed_at"])
    inside = np.flatnonzero((at != NEVER) & events["node"].notna().to_numpy())
    key = codes(events, [name for name in _KEY if name in events.columns])[inside]
    order = np.lexsort((at[inside], key))
    key, moment = key[order], at[inside][order]
    starts = np.ones(len(inside), dtype=bool)
    starts[1:] = (np.diff(key) != 0) | (np.diff(moment) > SILENCE_SECONDS * SECOND)
    number = np.full(len(events), -1, dtype=np.int64)
    number[inside[order]] = np.cumsum(starts) - 1
    return number


def _weights(events: pd.DataFrame) -> Ints:
    """How many records each event stands for."""
    if "n_records" not in events.columns:
        return np.ones(len(events), dtype=np.int64)
    found: Ints = events["n_records"].fillna(1).to_numpy(dtype=np.int64)
    return found


def _in_time(at: Ints, ids: pd.Series) -> NDArray[np.intp]:
    """Order by time and, within one moment, by id; only ids of shared moments are compared."""
    order = np.argsort(at, kind="stable")
    same = np.diff(at[order]) == 0
    shared = np.flatnonzero(np.append(same, False) | np.append(False, same))
    rows = order[shared]
    order[shared] = rows[np.lexsort((ids.to_numpy(dtype=object)[rows].astype(str), at[rows]))]
    return order


def _first_events(
    event_ids: pd.Series,
    at: Ints,
    by_burst: Ints,
    *,
    begins: Ints,
    sizes: Ints,
) -> Ints:
    """Row of the first event of each burst; of several at that moment, the one of the least id."""
    first = by_burst[begins]
    tied = by_burst[at[by_burst] == np.repeat(at[first], sizes)]
    if len(tied) == len(first):
        return first
    number = np.repeat(np.arange(len(begins)), sizes)[at[by_burst] == np.repeat(at[first], sizes)]
    order = np.lexsort((event_ids.to_numpy(dtype=object)[tied].astype(str), number))
    found: Ints = tied[order][np.flatnonzero(np.diff(number[order], prepend=-1))]
    return found
