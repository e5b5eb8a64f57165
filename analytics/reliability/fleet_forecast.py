"""How many failures a fleet is to see, beside what was foretold a month ago."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from analytics.estimate import CONF_LEVEL, Estimate
from analytics.reliability.detection import day_numbers
from analytics.reliability.fleet_trend import FIRST_DAY, seen_rows
from analytics.reliability.forecast import Forecast, forecast, together

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from analytics.arrays import Floats, Ints
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
class Weeks:
    """Failures and exposure of one cluster by week, the oldest first, as far as it was seen."""

    failures: Floats
    exposure: Floats
    a_day: float = 0.0
    """Exposure a day that is assumed to come."""


@dataclass(frozen=True)
class FleetForecast:
    """Failures of a selection that are to come."""

    month: Forecast
    """Of the next 28 days."""
    quarter: Forecast
    """Of the next 91."""
    by_cause: tuple[tuple[str, Estimate], ...]
    """Of the next 28 days, the most frequent first; what has no cause has no name."""
    earlier: Earlier | None
    last: date | None
    """Last day on which anything ran; what is foretold begins on the next."""
    exposure_ahead: float
    """Exposure a day that is assumed: that of the last 28 days."""
    unit: Literal["node-day", "day"]
    scope: Scope
    weeks: Mapping[str, Weeks]
    """Of each cluster that is foretold."""
    seen: int
    """Failures that were seen, of all clusters."""
    not_foretold: tuple[str, ...]
    """Clusters that ran in the last 28 days, of which too few weeks were seen, or none of these."""


def fleet_forecast(
    counts: FailureCounts,
    causes: Mapping[str, int],
    *,
    conf_level: float = CONF_LEVEL,
    seed: int = 0,
) -> FleetForecast:
    """Failures of the next 28 and 91 days, if the fleet runs as much as in the last 28.

    Each cluster is foretold by itself, from the days on which its failures could be seen
    (`analytics.reliability.forecast.forecast`), and their draws are added. Weeks are counted back
    from the last day on which anything ran. A cause's share of what comes is drawn from its share
    of what came (Dirichlet with half a failure of each cause before).

    Parameters
    ----------
    causes
        Failures that count, by cause; the rest of them has none. Where these are more than all,
        they are of something else, and nothing is shared out.

    Raises
    ------
    OutOfRangeError
        For a conf_level outside (0, 1).
    """
    chance: dict[str, Any] = {"conf_level": conf_level, "seed": seed}
    rows, kept, scope = seen_rows(counts, **chance)
    unit: Literal["node-day", "day"] = "node-day" if counts.exposure_known else "day"
    exposure = np.asarray(rows["exposure_node_days"], dtype=np.float64)
    nothing = forecast([], [], [], **chance)
    if not exposure[kept].sum():
        return FleetForecast(nothing, nothing, (), None, None, 0.0, unit, scope, {}, 0, ())
    last = int(day_numbers(rows["day"])[exposure > 0].max())
    age = last - day_numbers(rows["day"])
    failures = np.where(kept, rows["failures"], 0).astype(np.float64)
    held = np.where(kept, exposure, 0.0)
    foretold: dict[str, _OfCluster] = {}
    not_foretold = []
    for number, cluster in enumerate(sorted(set(rows["cluster"].tolist()))):
        mine = rows["cluster"] == cluster
        ahead = float(exposure[mine & (age < MONTH)].sum()) / MONTH
        seen = float(held[mine & (age < MONTH)].sum()) / MONTH
        if not ahead:
            continue
        history = failures[mine], held[mine], age[mine]
        found = _of_cluster(*history, (ahead, seen), **chance | {"seed": seed + number})
        if found.month.failures.value is None or not seen:
            not_foretold.append(cluster)
        else:
            foretold[cluster] = found
    ahead = sum(each.ahead for each in foretold.values())
    month = together([each.month for each in foretold.values()], MONTH * ahead, conf_level)
    n_seen = round(float(failures.sum()))
    return FleetForecast(
        month,
        together([each.quarter for each in foretold.values()], QUARTER * ahead, conf_level),
        tuple(_by_cause(month, causes, n_seen, **chance)),
        _earlier(foretold.values(), conf_level),
        FIRST_DAY + timedelta(days=last),
        ahead,
        unit,
        scope,
        {c: replace(each.weeks, a_day=each.ahead) for c, each in foretold.items()},
        n_seen,
        tuple(not_foretold),
    )


@dataclass(frozen=True)
class _OfCluster:
    """What one cluster brings."""

    month: Forecast
    quarter: Forecast
    earlier: Forecast
    """Of the last 28 days, from what was known before them."""
    came: int
    """Failures of those days."""
    ahead: float
    """Exposure a day."""
    weeks: Weeks


def _of_cluster(
    failures: Floats, held: Floats, age: Ints, a_day: tuple[float, float], **chance: Any
) -> _OfCluster:
    """Forecasts of a cluster by its exposure a day: all of the last 28, and what was seen of it."""
    ahead, seen = a_day
    weeks, before = by_week(failures, held, age), by_week(failures, held, age - MONTH)

    def of(known: Weeks, n_days: int, each: float) -> Forecast:
        """Of so many days from what is known, with so much exposure each day."""
        coming = np.full(n_days // WEEK, WEEK * each)
        return forecast(known.failures, known.exposure, coming, **chance)

    return _OfCluster(
        of(weeks, MONTH, ahead),
        of(weeks, QUARTER, ahead),
        of(before, MONTH, seen),
        int(failures[age < MONTH].sum()),
        ahead,
        weeks,
    )


def _earlier(clusters: Iterable[_OfCluster], conf_level: float) -> Earlier | None:
    """What was foretold 28 days ago, of clusters that were known enough then."""
    known = [each for each in clusters if each.earlier.failures.value is not None]
    if not known:
        return None
    came = sum(each.came for each in known)
    return Earlier(together([each.earlier for each in known], 0.0, conf_level), came)


def by_week(failures: Floats, exposure: Floats, age: Ints) -> Weeks:
    """Sums of the weeks before a day, of rows that are so many days older than it."""
    some = age >= 0
    week = age[some] // WEEK
    n_weeks = int(week.max()) + 1 if len(week) else 0
    failed, held = (
        np.bincount(week, values[some], minlength=n_weeks)[::-1].astype(np.float64)
        for values in (failures, exposure)
    )
    return Weeks(failed, held)


def job_forecast(
    found: FleetForecast, nodes: float, days: float, *, conf_level: float, seed: int
) -> Forecast | None:
    """What a job on so many nodes meets in days of its own; None unless one cluster is foretold."""
    if len(found.weeks) != 1:
        return None
    (known,) = found.weeks.values()
    chance: dict[str, Any] = {"conf_level": conf_level, "seed": seed}
    return forecast(known.failures, known.exposure, weeks_of(days, nodes), **chance)


def weeks_of(days: float, a_day: float) -> list[float]:
    """Exposure of the weeks of some days, the last one cut.

    >>> weeks_of(9, 2.0)
    [14.0, 4.0]
    """
    whole, rest = divmod(days, WEEK)
    return [WEEK * a_day] * int(whole) + ([rest * a_day] if rest else [])


def drawn_by_cause(
    foretold: Forecast, causes: Mapping[str, int], n: int, seed: int
) -> dict[str, Ints]:
    """Drawn counts of each cause, the most frequent first and of none, "", last; shape (draws,).
    Empty where there is nothing to share out."""
    if not len(foretold.drawn) or not causes or sum(causes.values()) > n:
        return {}
    ordered = dict(sorted(causes.items(), key=lambda item: (-item[1], item[0])))
    seen: Floats = np.array([*ordered.values(), n - sum(causes.values())]) + DRAWS_OF_CAUSE
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(seen, len(foretold.drawn))
    drawn = generator.multinomial(foretold.drawn.astype(np.int64), shares)
    return dict(zip([*ordered, ""], drawn.T, strict=True))


def _by_cause(
    month: Forecast, causes: Mapping[str, int], n: int, *, conf_level: float, seed: int
) -> Iterator[tuple[str, Estimate]]:
    """What comes, shared out by cause."""
    tail = (1.0 - conf_level) / 2.0
    for cause, drawn in drawn_by_cause(month, causes, n, seed).items():
        seen = causes[cause] if cause else n - sum(causes.values())
        if cause or seen:
            low, high = np.quantile(drawn, [tail, 1.0 - tail], method="inverted_cdf").tolist()
            yield cause, Estimate(float(drawn.mean()), low, high, conf_level, seen)
