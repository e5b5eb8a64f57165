"""How many failures a fleet is to see, beside what was foretold a month ago."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.reliability.detection import day_numbers
from analytics.reliability.fleet_trend import FIRST_DAY, seen_rows
from analytics.reliability.forecast import Forecast, forecast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.arrays import Floats
    from analytics.frames import FailureCounts
    from analytics.reliability.detection import Scope

MONTH, QUARTER = 28, 91
"""Days that are foretold."""
WEEK: Final = 7
DRAWS_OF_CAUSE: Final = 0.5
"""Failures of each cause that are known of before (Jeffreys)."""


@dataclass(frozen=True)
class Earlier:
    """What was foretold for the last 28 days when they began, and what came."""

    forecast: Forecast
    came: int

    @property
    def held(self) -> bool:
        """Whether what came lies in the interval."""
        failures = self.forecast.failures
        return (failures.lower or 0) <= self.came <= (failures.upper or 0)


@dataclass(frozen=True)
class FleetForecast:
    """Failures of a selection that are to come."""

    month: Forecast
    """Of the next 28 days."""
    quarter: Forecast
    """Of the next 91."""
    by_cause: tuple[tuple[str, Estimate], ...]
    """Of the next 28 days, the most frequent first."""
    earlier: Earlier | None
    last: date | None
    """Last day with exposure; what is foretold begins on the next."""
    exposure_ahead: float
    """Exposure a day that is assumed: that of the last 28 days."""
    scope: Scope


def fleet_forecast(
    counts: FailureCounts,
    causes: Mapping[str, int],
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> FleetForecast:
    """Failures of the next 28 and 91 days, if the fleet runs as much as in the last 28.

    See `analytics.reliability.forecast.forecast`; weeks are counted back from the last day with
    exposure. A cause's share of what comes is drawn from its share of what came (Dirichlet with
    half a failure of each cause before).

    Parameters
    ----------
    causes
        Failures that count, by cause; they need not add up to all: the rest has none.

    Raises
    ------
    OutOfRangeError
        For a conf_level outside (0, 1).
    """
    chance: dict[str, Any] = {"conf_level": conf_level, "seed": seed}
    rows, kept, scope = seen_rows(counts, **chance)
    day = day_numbers(rows["day"])[kept]
    failures = np.asarray(rows["failures"], dtype=np.float64)[kept]
    exposure = np.asarray(rows["exposure_node_days"], dtype=np.float64)[kept]
    if not exposure.sum():
        nothing = forecast([], [], [], **chance)
        return FleetForecast(nothing, nothing, (), None, None, 0.0, scope)
    last = int(day[exposure > 0].max())
    age = last - day
    ahead = float(exposure[age < MONTH].sum()) / MONTH

    def foretold(n_days: int, until: int, each_day: float) -> Forecast:
        week = (age - until) // WEEK
        some = age >= until
        n_weeks = int(week[some].max()) + 1 if some.any() else 0
        failed, held = (
            np.bincount(week[some], values[some], minlength=n_weeks)[::-1]
            for values in (failures, exposure)
        )
        return forecast(failed, held, np.full(n_days // WEEK, WEEK * each_day), **chance)

    month = foretold(MONTH, 0, ahead)
    before = foretold(MONTH, MONTH, ahead)
    came = int(failures[age < MONTH].sum())
    return FleetForecast(
        month,
        foretold(QUARTER, 0, ahead),
        _by_cause(month, causes, round(float(failures.sum())), **chance),
        Earlier(before, came) if before.failures.value is not None else None,
        FIRST_DAY + timedelta(days=last),
        ahead,
        scope,
    )


def _by_cause(
    month: Forecast, causes: Mapping[str, int], n: int, *, conf_level: float, seed: int
) -> tuple[tuple[str, Estimate], ...]:
    """What comes, shared out by cause."""
    if not len(month.drawn) or not causes:
        return ()
    named = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
    rest = max(0, n - sum(causes.values()))
    seen: Floats = np.array([*(number for _, number in named), rest]) + DRAWS_OF_CAUSE
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(seen, len(month.drawn))
    drawn = generator.multinomial(month.drawn.astype(np.int64), shares)
    tail = (1.0 - conf_level) / 2.0
    low, high = np.quantile(drawn, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    found = [
        (cause, Estimate(float(mean), float(lower), float(upper), conf_level, number))
        for (cause, number), mean, lower, upper in zip(
            named, drawn.mean(axis=0)[:-1], low[:-1], high[:-1], strict=True
        )
    ]
    return tuple(found)
