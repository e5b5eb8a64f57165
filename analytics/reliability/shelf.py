"""How many parts to keep on the shelf, so that a lead time finds none missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.reliability.fleet_forecast import drawn_by_cause, weeks_of
from analytics.reliability.forecast import forecast, together

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.reliability.fleet_forecast import FleetForecast

MOST_DAYS: Final = 3_660
"""Ten years: nothing is foretold beyond."""
ENOUGH: Final = 0.95
"""Share of lead times in which what is kept is to last."""


@dataclass(frozen=True)
class Part:
    """Parts of one kind."""

    component: str
    seen: int
    """Failures of it that were seen."""
    expected: float
    """Of the lead time."""
    keep: int
    """Fewest that last for `ENOUGH` of such times, if each failure takes one."""


def shelf(
    found: FleetForecast,
    causes: Mapping[str, int],
    components: Mapping[str, str],
    *,
    lead_days: float,
    enough: float = ENOUGH,
    seed: int = 0,
) -> tuple[Part, ...]:
    """Parts to keep for a lead time: the quantile `enough` of the failures of each component that
    are foretold for it, most first.

    Parameters
    ----------
    found
        What the fleet is to see.
    causes
        Failures that were seen, by cause; those that have none are of no component.
    components
        Cause -> component, of the causes that a part mends.
    lead_days
        From ordering a part to having it, > 0.
    enough : float
        In (0, 1).

    Raises
    ------
    OutOfRangeError
        For a lead time that is not > 0, or of more than ten years.
    """
    validate.positive("lead_days", lead_days, "name the days from order to delivery")
    if lead_days > MOST_DAYS:
        raise OutOfRangeError("lead_days", f"at most {MOST_DAYS:,}", lead_days, "order sooner")
    known = {cause: number for cause, number in causes.items() if cause in components}
    if not known:
        return ()
    of_each = [
        forecast(weeks.failures, weeks.exposure, weeks_of(lead_days, weeks.a_day),
                 seed=seed + number)
        for number, weeks in enumerate(found.weeks.values())
    ]  # fmt: skip
    ahead = sum(lead_days * weeks.a_day for weeks in found.weeks.values())
    drawn = drawn_by_cause(together(of_each, ahead, enough), causes, found.seen, seed)
    parts = []
    for component in {components[cause] for cause in known if drawn}:
        own = [cause for cause in known if components[cause] == component]
        count = np.sum([drawn[cause] for cause in own], axis=0)
        parts.append(
            Part(
                component,
                sum(known[cause] for cause in own),
                float(count.mean()),
                int(np.quantile(count, enough, method="inverted_cdf")),
            )
        )
    return tuple(sorted(parts, key=lambda part: (-part.keep, -part.expected, part.component)))
