"""Mass failures: one user, node or cause with many failures within minutes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from analytics.failures.columns import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

WINDOW_MINUTES = 10.0
"""Length of the window that is slid over the failures."""
LEAST = 20
"""Failures in one window from which on they can be a mass failure."""
TIMES = 10.0
"""How many times as many as the group has in such a window on average."""
NAMELESS = ("unknown", "requeued")
"""Causes that say nothing that failures could have in common."""
By = Literal["user", "node", "cause"]
BY: tuple[By, ...] = ("user", "node", "cause")
"""What failures can have in common; a failure counts in the first that holds."""


@dataclass(frozen=True)
class MassFailure:
    """Failures of one user, node or cause within minutes."""

    cluster: str
    by: By
    name: str
    """The user, node or cause."""
    first_at: pd.Timestamp
    last_at: pd.Timestamp
    failures: int
    of_failures: int
    """All failures of that user, node or cause in the records given."""
    cause: str
    """The most frequent one."""
    of_cause: int
    """Failures of it."""
    held_gpu_hours: float | None
    """Running time x GPUs; None where it is known of none."""

    @property
    def key(self) -> str:
        """What it is known by: it stays where later records make it begin some minutes earlier."""
        return f"{self.cluster}/{self.by}/{self.name}/{self.first_at:%Y-%m-%d}"


def mass_failures(failures: pd.DataFrame) -> tuple[MassFailure, ...]:
    r"""Mass failures that the records show, by what they held and then by their number.

    Of the failures of one user of a cluster at t_1 <= t_2 <= ..., all in a window
    [t_i, t_i + 10 min] belong to a mass failure where the window holds at least

    .. math:: \max\Bigl(20, \; 10 \, \frac{N w}{T}\Bigr)

    of them: N failures of the user in the time T that all records given span, w = 10 min; where T
    is less than 10 w, at least 20. Windows that share a failure are one. What is left is looked
    at likewise by node, then by cause where one is known. The rule needs no exposure, which nobody
    has of a user; it is a rule and not a test, and says nothing of chance.

    Parameters
    ----------
    failures : DataFrame
        Columns cluster, failed_at (UTC), user, node, cause, held_gpu_seconds; user, node and
        GPU-seconds may be null. A failure without a time counts nowhere. Give only those that
        nobody has explained: members of incidents have their page. Where those of some users,
        nodes or causes are left out, because none of them can be many within minutes, the column
        span_minutes says what all of them span.

    Examples
    --------
    >>> seconds = pd.to_timedelta([*range(0, 60, 2), 86_400], unit="s")
    >>> rows = pd.DataFrame({"cluster": "c", "user": "ann", "node": None, "cause": "import_error",
    ...     "failed_at": pd.Timestamp("2026-01-01T00:00Z") + seconds, "held_gpu_seconds": 120})
    >>> (found,) = mass_failures(rows)
    >>> found.by, found.name, found.failures, found.of_failures, found.held_gpu_hours
    ('user', 'ann', 30, 31, 1.0)
    """
    require("failures", failures, ("cluster", "failed_at", *BY, "held_gpu_seconds"))
    left = failures[failures["failed_at"].notna()]
    left = left.sort_values("failed_at", kind="stable", ignore_index=True)
    if len(left) < LEAST:
        return ()
    span = (left["failed_at"].iloc[-1] - left["failed_at"].iloc[0]) / pd.Timedelta(minutes=1)
    if "span_minutes" in left:
        span = float(left["span_minutes"].iloc[0])
    found: list[MassFailure] = []
    for by in BY:
        taken: list[pd.Index] = []
        named = left if by != "cause" else left[~left["cause"].isin(NAMELESS)]
        times = named["failed_at"].dt.as_unit("us").astype("int64").to_numpy()
        of_name: dict[Any, Any] = named.groupby(["cluster", by], sort=True).indices
        for (cluster, name), places in of_name.items():
            for members in _crowds(times[places], span):
                chosen = named.iloc[places[members]]
                taken.append(chosen.index)
                found.append(_of(str(cluster), by, str(name), chosen, len(places)))
        left = left.drop(index=left.index[:0].append(taken))
    return tuple(
        sorted(found, key=lambda each: (-(each.held_gpu_hours or 0.0), -each.failures, each.key))
    )


def _crowds(times: NDArray[np.int64], span_minutes: float) -> Iterator[slice]:
    """Places of the failures of each mass failure of one group, at these microseconds in order."""
    if len(times) < LEAST:
        return
    window = int(WINDOW_MINUTES * 60e6)
    ends = np.searchsorted(times, times + window, side="right")
    usual = len(times) * WINDOW_MINUTES / max(span_minutes, WINDOW_MINUTES)
    # Records of less than ten windows hold no other time that could say what is usual.
    short = span_minutes < TIMES * WINDOW_MINUTES
    least = LEAST if short else max(LEAST, TIMES * usual)
    starts = np.flatnonzero(ends - np.arange(len(times)) >= least)
    yield from _joined(starts, ends[starts])


def _joined(starts: NDArray[np.intp], ends: NDArray[np.intp]) -> Iterator[slice]:
    """Stretches of places that overlap, as one."""
    if not len(starts):
        return
    apart = np.flatnonzero(starts[1:] >= ends[:-1]) + 1
    for places in np.split(np.arange(len(starts)), apart):
        yield slice(int(starts[places[0]]), int(ends[places[-1]]))


def _of(cluster: str, by: By, name: str, rows: pd.DataFrame, n: int) -> MassFailure:
    """What is told of the failures of one."""
    causes = rows["cause"].value_counts()
    seconds = rows["held_gpu_seconds"].sum(min_count=1)
    return MassFailure(
        cluster=cluster,
        by=by,
        name=name,
        first_at=rows["failed_at"].iloc[0],
        last_at=rows["failed_at"].iloc[-1],
        failures=len(rows),
        of_failures=n,
        cause=str(causes.index[0]) if len(causes) else "unknown",
        of_cause=int(causes.iloc[0]) if len(causes) else 0,
        held_gpu_hours=None if pd.isna(seconds) else float(seconds) / 3600.0,
    )
