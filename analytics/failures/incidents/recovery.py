"""When what an incident hit was back: its jobs running again, its nodes in service."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import pandas as pd

from analytics.reliability.detection import not_collected

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.reliability.detection import Stretch

_EPOCH = pd.Timestamp(0, tz="UTC")


@dataclass(frozen=True)
class NodeEventDays:
    """Days since 1970 on which node events of a cluster were recorded, or collected and quiet."""

    days: Sequence[int]
    job_days: Stretch | None
    """First and last day with a record of a job."""

    @cached_property
    def gaps(self) -> tuple[Stretch, ...]:
        """Days that nobody knows of, as `not_collected` tells them from quiet ones."""
        return not_collected(self.days, self.job_days)

    def hold(self, day: int) -> bool:
        """Whether node events were collected on a day.

        Examples
        --------
        >>> known = NodeEventDays(range(40), (0, 99))
        >>> known.hold(20), known.hold(90), NodeEventDays((), (0, 99)).hold(20)
        (True, False, False)
        """
        return len(self.days) > 0 and not any(first <= day <= last for first, last in self.gaps)

    def hold_at(self, at: pd.Timestamp) -> bool:
        """The same of the day of a time."""
        return self.hold((at - _EPOCH).days)


@dataclass(frozen=True)
class Recovery:
    """How much of what an incident hit is known to be back, and when."""

    began_at: pd.Timestamp
    """When the incident began."""
    n_jobs: int
    """Jobs that failed, or that a requeue preempted."""
    n_jobs_again: int
    """Those of them that are known to have started again under the same job id."""
    n_outages: int
    """Times that nodes were taken out of service."""
    n_outages_over: int
    """Those of them whose end is known."""
    nodes_known: bool
    """Node events were collected when it began; else nobody knows of its outages."""
    returns: tuple[pd.Timestamp, ...]
    """When a job started again or a node came back, in order."""

    @property
    def complete(self) -> bool:
        """Something was lost, and all of it is known to be back."""
        back = (self.n_jobs_again, self.n_outages_over)
        return self.nodes_known and bool(self.returns) and back == (self.n_jobs, self.n_outages)

    @property
    def recovered_at(self) -> pd.Timestamp | None:
        """When the last of it was back; None where anything is not known to be."""
        return self.returns[-1] if self.complete else None

    @property
    def hours(self) -> float | None:
        """Time to recovery, from the beginning of the incident; None where it is not known.

        .. math:: t_{recovery} = \\max(t_{job\\ again}, t_{node\\ back}) - t_{begin}
        """
        at = self.recovered_at
        return None if at is None else max(0.0, (at - self.began_at).total_seconds() / 3600.0)


def recovery(
    began_at: pd.Timestamp, attempts: pd.DataFrame, outages: pd.DataFrame, collected: NodeEventDays
) -> Recovery:
    """When what an incident hit was back.

    Of a job with several attempts the last one counts: a crash loop is over when it runs for good.

    Parameters
    ----------
    began_at : datetime
        When the incident began.
    attempts : DataFrame
        Attempts that failed or were preempted: attempt_key, job_id, end_at, restarted_at (the next
        start of the same job id; null where none is recorded).
    outages : DataFrame
        Its outages: node, start_at, end_at (null while one lasts, or where no end is recorded).
    collected : NodeEventDays
        When node events of the cluster were collected.

    Notes
    -----
    A job that its owner submitted again under another id is not seen to be back.

    Examples
    --------
    >>> from analytics.failures.incidents.recovery import NodeEventDays
    >>> at = pd.to_datetime(["2026-01-01T00:00Z", "2026-01-01T02:00Z"])
    >>> jobs = pd.DataFrame({"attempt_key": ["a"], "job_id": ["7"], "end_at": at[:1],
    ...                      "restarted_at": at[1:]})
    >>> none = pd.DataFrame({"node": [], "start_at": [], "end_at": []})
    >>> recovery(at[0], jobs, none, NodeEventDays(range(20_400, 20_500), None)).hours
    2.0
    >>> recovery(at[0], jobs, none, NodeEventDays((), None)).hours is None
    True
    """
    ended = attempts.sort_values("end_at", na_position="first")
    keys, jobs = ended["attempt_key"], ended["job_id"]
    names = (job if isinstance(job, str) else key for key, job in zip(keys, jobs, strict=True))
    last = dict(zip(names, ended["restarted_at"], strict=True))
    again = [at for at in last.values() if not pd.isna(at)]
    over = [at for at in outages["end_at"] if not pd.isna(at)]
    return Recovery(
        began_at, len(last), len(again), len(outages), len(over), collected.hold_at(began_at),
        tuple(sorted([*again, *over])),
    )  # fmt: skip
