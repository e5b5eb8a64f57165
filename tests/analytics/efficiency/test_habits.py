"""How runs save and start up: observed, stated or assumed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.habits import ONE_NODE, SEVERAL_NODES, Habit, habits

COLUMNS = ["checkpoint_interval_s", "checkpoint_write_s", "restart_s"]


def observed(*runs: tuple[float, float, float]) -> pd.DataFrame:
    return pd.DataFrame(list(runs), columns=COLUMNS, dtype=float)


def test_without_any_knowledge_published_habits_are_assumed() -> None:
    found = habits(observed(), stated={}, assumed=SEVERAL_NODES)
    assert (found.basis, found.n_runs, found.cycle_spread) == ("assumed", 0, None)
    assert found.central == Habit(3600, 60, 300)
    assert {corner.interval_s for corner in found.corners} == {900, 14_400}
    assert {(c.write_s, c.restart_s) for c in found.corners} == {(0, 60), (300, 1200)}


def test_what_site_toml_states_takes_the_place_of_what_is_assumed() -> None:
    stated = {"interval_s": (900.0, 3600.0), "write_s": (30.0, 30.0), "restart_s": (0.0, 600.0)}
    found = habits(observed(), stated=stated, assumed=SEVERAL_NODES)
    assert found.basis == "configured"
    assert found.central == Habit(1800, 30, 300)


def test_one_quantity_that_nobody_states_makes_the_basis_assumed() -> None:
    found = habits(observed(), stated={"interval_s": (1800.0, 1800.0)}, assumed=SEVERAL_NODES)
    assert found.basis == "assumed"
    assert found.central.interval_s == 1800


def test_bounds_of_observed_runs_leave_room_for_a_run_unlike_them() -> None:
    found = habits(
        observed((1800, 20, 120), (2400, 40, 200), (2000, 30, 160)),
        stated={}, assumed=SEVERAL_NODES,
    )  # fmt: skip
    assert found.basis == "observed_runs"
    assert found.central == Habit(2000, 30, 160)
    assert min(c.interval_s for c in found.corners) == round((3 * 1800 + 900) / 4)
    assert max(c.interval_s for c in found.corners) == round((3 * 2400 + 14_400) / 4)
    cycles = np.array([1820.0, 2440.0, 2030.0])
    assert found.cycle_spread == pytest.approx(cycles.std(ddof=1) / cycles.mean())


def test_the_bounds_close_in_on_what_more_runs_agree_on() -> None:
    widths = []
    for n in (1, 4, 20):
        corners = habits(observed(*[(3600, 60, 300)] * n), stated={}, assumed=SEVERAL_NODES).corners
        widths.append(max(c.interval_s for c in corners) - min(c.interval_s for c in corners))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.2 * 3600


def test_runs_that_log_no_saves_say_nothing_of_the_interval() -> None:
    found = habits(observed((np.nan, np.nan, 100)), stated={}, assumed=SEVERAL_NODES)
    assert (found.basis, found.n_runs) == ("assumed", 0)
    assert (found.central.interval_s, found.central.restart_s) == (3600, 100)


def test_jobs_on_one_node_cost_nothing_but_what_they_lose() -> None:
    assert habits(observed(), stated={}, assumed=ONE_NODE).costless
    assert not habits(observed(), stated={}, assumed=SEVERAL_NODES).costless
