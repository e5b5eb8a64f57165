"""How runs save and start up: observed, stated or assumed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from analytics.efficiency.habits import (
    OBSERVED,
    ONE_NODE,
    SEVERAL_NODES,
    Habit,
    habits,
    recorded_habits,
)


def observed(*runs: tuple[float, float, float], n_gpus: float = 64) -> pd.DataFrame:
    """Runs with the mean of ten values of each of their habits."""
    frame = pd.DataFrame(list(runs), columns=OBSERVED[1:4], dtype=float).assign(n_gpus=n_gpus)
    return frame.assign(
        n_intervals=10, n_writes=10, n_restarts=10,
        sd_interval_s=0.0, sd_write_s=0.0, sd_restart_s=0.0,
    )  # fmt: skip


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


def test_what_runs_show_has_a_model_and_assumes_nothing() -> None:
    found = habits(
        observed((1800, 20, 120), (2400, 40, 200), (2000, 30, 160)),
        stated={}, assumed=SEVERAL_NODES,
    )  # fmt: skip
    assert (found.basis, found.n_runs, found.assumes) == ("observed_runs", 3, False)
    assert set(found.models) == {"interval_s", "write_s", "restart_s"}
    mean = found.models["interval_s"].mean(np.array([64.0]))[0]
    assert found.central.interval_s == round(mean) > np.exp(np.log([1800, 2400, 2000]).mean())
    cycles = np.array([1820.0, 2440.0, 2030.0])
    shown = cycles.std(ddof=1) / cycles.mean()
    assert found.cycle_spread == pytest.approx(found.models["interval_s"].own_cv2 ** 0.5)
    assert found.cycle_spread > shown  # three may be alike by chance


def test_the_range_of_one_further_run_closes_in_on_what_more_runs_agree_on() -> None:
    ratios = []
    for n in (1, 4, 20):
        shown = observed(*[(3600, 60, 300)] * n)
        _, low, high = habits(shown, stated={}, assumed=SEVERAL_NODES).record["interval_s"]
        ratios.append(high / low)
    assert ratios == sorted(ratios, reverse=True)
    assert ratios[0] > 5
    assert ratios[-1] < 1.2


def test_runs_that_log_no_saves_say_nothing_of_the_interval() -> None:
    found = habits(observed((np.nan, np.nan, 100)), stated={}, assumed=SEVERAL_NODES)
    assert (found.basis, found.n_runs) == ("assumed", 0)
    assert set(found.models) == {"restart_s"}
    assert found.central.interval_s == 3600
    assert {corner.interval_s for corner in found.corners} == {900, 14_400}
    assert len({corner.restart_s for corner in found.corners}) == 1


def test_how_often_jobs_on_one_node_save_follows_all_runs_by_their_size() -> None:
    large = observed((1800, 20, 120), (2400, 40, 200), (2000, 30, 160))
    found = habits(observed(), stated={}, assumed=ONE_NODE, intervals=large)
    assert (found.basis, found.n_runs, found.costless) == ("observed_runs", 3, True)
    near, far = (found.models["interval_s"].shared_ratio(np.array([n])) for n in (64.0, 1.0))
    assert far > 2 * near


def test_the_record_tells_the_models_too() -> None:
    found = habits(observed((1800, 20, 120), (2400, np.nan, 200)), stated={}, assumed=SEVERAL_NODES)
    assert recorded_habits(found.record) == found


def test_jobs_on_one_node_cost_nothing_but_what_they_lose() -> None:
    assert habits(observed(), stated={}, assumed=ONE_NODE).costless
    assert not habits(observed(), stated={}, assumed=SEVERAL_NODES).costless
