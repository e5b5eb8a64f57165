"""On which days a cluster's node events were collected: else no node is known to be in service."""

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
