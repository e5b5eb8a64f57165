"""Parts on the shelf last as many lead times as they are said to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analytics.errors import AnalysisError
from analytics.reliability.fleet_forecast import FleetForecast, Weeks
from analytics.reliability.forecast import forecast
from analytics.reliability.shelf import shelf

CAUSES = {"gpu_memory": 120, "gpu_sram": 30, "ib_link": 50}
COMPONENTS = {"gpu_memory": "GPU memory", "gpu_sram": "GPU memory", "ib_link": "link"}


def fleet(failures: list[int], a_day: float) -> FleetForecast:
    nothing = forecast([], [], [])
    exposure = np.full(len(failures), 7 * a_day)
    weeks = Weeks(np.array(failures, dtype=float), exposure, a_day)
    return FleetForecast(
        nothing, nothing, (), None, None, a_day, "node-day", "all", {"c": weeks}, sum(failures), ()
    )


@pytest.mark.slow
def test_what_is_kept_lasts_19_of_20_lead_times() -> None:
    """The truth is drawn apart: Poisson weeks of a rate that is then used for what comes."""
    chance = np.random.default_rng(6)
    lasted, n = {"GPU memory": 0, "link": 0}, 300
    for _ in range(n):
        weeks = chance.poisson(8.0, 26)
        causes = {"gpu_memory": int(weeks.sum() * 0.6), "ib_link": int(weeks.sum() * 0.25)}
        parts = shelf(fleet(weeks.tolist(), 100.0), causes, COMPONENTS, lead_days=28)
        came = {"GPU memory": chance.poisson(32 * 0.6), "link": chance.poisson(32 * 0.25)}
        for part in parts:
            lasted[part.component] += came[part.component] <= part.keep
    print({name: number / n for name, number in lasted.items()})
    assert all(0.92 <= number / n <= 1.0 for number in lasted.values())


def test_causes_of_one_component_are_kept_together_and_others_not_at_all() -> None:
    found = fleet([10] * 26, 100.0)
    parts = {part.component: part for part in shelf(found, CAUSES, COMPONENTS, lead_days=28)}
    assert (parts["GPU memory"].seen, parts["link"].seen) == (150, 50)
    assert parts["GPU memory"].expected == pytest.approx(40 * 150 / 260, rel=0.05)
    only = shelf(found, CAUSES, {"ib_link": "link"}, lead_days=28)
    assert [part.component for part in only] == ["link"]
    assert only[0].expected == pytest.approx(parts["link"].expected)
    assert shelf(found, CAUSES, {}, lead_days=28) == ()
    assert shelf(found, {}, COMPONENTS, lead_days=28) == ()


def test_nothing_is_kept_where_nothing_is_foretold() -> None:
    assert shelf(replace(fleet([1], 1.0), weeks={}), CAUSES, COMPONENTS, lead_days=28) == ()
    with pytest.raises(AnalysisError, match="lead_days"):
        shelf(fleet([1], 1.0), CAUSES, COMPONENTS, lead_days=0)
