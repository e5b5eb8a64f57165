"""Failure rates week by week, and the weeks in which nothing ran."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.estimate import Estimate
    from analytics.reliability.mttf import GroupRate

WEEK = pd.Timedelta(days=7)


@dataclass(frozen=True)
class WeeklyRates:
    """Failures per 1,000 node-days week by week, of the weeks between the first and the last."""

    by_week: Mapping[pd.Timestamp, Estimate | None]
    """First day of the week -> rate; None where nothing ran, or no failure could be seen."""

    @property
    def gaps(self) -> list[pd.Timestamp]:
        """Weeks of unknown rate: nothing ran, or no failure could be seen."""
        return [week for week, rate in self.by_week.items() if rate is None]

    @property
    def runs(self) -> list[list[tuple[pd.Timestamp, Estimate]]]:
        """Weeks without a gap between them, each with its rate."""
        runs: list[list[tuple[pd.Timestamp, Estimate]]] = [[]]
        for week, rate in self.by_week.items():
            if rate is not None:
                runs[-1].append((week, rate))
            elif runs[-1]:
                runs.append([])
        return [run for run in runs if run]


def weekly_rates(weeks: Sequence[GroupRate]) -> WeeklyRates:
    """The rate of every week from the first to the last in which something ran.

    Parameters
    ----------
    weeks : sequence of GroupRate
        Groups named by the first day of a week, as `group_rates` returns them.
    """
    known = {
        pd.Timestamp(week.group): week.estimate.rate_per_1000_node_days
        for week in weeks
        if week.estimate.rate.value is not None
    }
    if not known:
        return WeeklyRates({})
    every = pd.date_range(min(known), max(known), freq=WEEK)
    return WeeklyRates({week: known.get(week) for week in every})
