"""The habits of unobserved runs, from those of the runs observed."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.efficiency.habit_model import (
    NODES,
    WEIGHTS,
    HabitModel,
    habit_model,
    positive_bounds,
)


def model_of(seconds: list[float], n_gpus: list[float], *, count: int = 20) -> HabitModel:
    each = np.array(seconds)
    fitted = habit_model({
        "seconds": each, "n_gpus": np.array(n_gpus), "count": np.full(len(each), float(count)),
        "sd": 0.1 * each,
    })  # fmt: skip
    assert fitted is not None
    return fitted


def at(n_gpus: float) -> np.ndarray:
    return np.array([n_gpus])


def test_where_no_run_shows_the_habit_there_is_no_model() -> None:
    nothing = np.array([np.nan, np.nan])
    assert habit_model({"seconds": nothing, "n_gpus": nothing, "count": nothing,
                        "sd": nothing}) is None  # fmt: skip


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_runs_leave_a_range_that_is_wide_and_finite(n: int) -> None:
    model = model_of([1800.0, 3000.0, 1200.0, 1500.0, 2500.0][:n], [64.0] * n)
    lower, upper = (float(bound[0]) for bound in model.bounds(at(64.0)))
    assert 60 < lower < 1200
    assert 3000 < upper < 86_400
    assert lower < model.mean(at(64.0))[0] < upper


def test_a_range_narrows_with_runs_and_widens_with_the_level() -> None:
    widths = []
    for n in (1, 2, 5, 20):
        lower, upper = model_of([1800.0] * n, [64.0] * n).bounds(at(64.0))
        widths.append(float(upper[0] / lower[0]))
    assert widths == sorted(widths, reverse=True)
    model = model_of([1500.0, 1800.0, 2400.0], [64.0, 64.0, 64.0])
    half, most = model.bounds(at(64.0), 0.5), model.bounds(at(64.0), 0.99)
    assert most[0] < half[0] < half[1] < most[1]


def test_a_slope_that_the_runs_do_not_show_stays_near_zero() -> None:
    assert model_of([1800.0, 1900.0], [64.0, 64.0]).slope == 0
    rng = np.random.default_rng(0)
    sizes = 2.0 ** rng.integers(4, 12, 200)
    shown = model_of(list(1800 * (sizes / 64) ** -0.3), list(sizes))
    assert shown.slope == pytest.approx(-0.3 * np.log(2), rel=0.05)


def test_far_from_the_sizes_observed_less_is_known() -> None:
    model = model_of([1800.0, 2500.0, 1500.0, 2100.0], [64.0, 128.0, 64.0, 128.0])
    near, far = (model.shared_var(at(size))[0] for size in (90.0, 8192.0))
    assert far > 2 * near


def test_the_mean_is_that_of_a_log_normal_and_not_its_median() -> None:
    rng = np.random.default_rng(0)
    model = model_of(list(1800 * np.exp(0.5 * rng.normal(size=2000))), [64.0] * 2000)
    assert model.own_var == pytest.approx(0.25, rel=0.1)
    assert model.mean(at(64.0))[0] == pytest.approx(1800 * np.exp(0.125), rel=0.05)


def test_a_noisy_mean_of_a_run_is_no_difference_between_runs() -> None:
    rng = np.random.default_rng(0)
    seconds = 1800 * np.exp(0.5 * rng.normal(size=60))
    sizes = np.full(60, 64.0)
    sure, unsure = (
        habit_model({"seconds": seconds, "n_gpus": sizes, "count": np.full(60, 1.0), "sd": sd})
        for sd in (np.zeros(60), 0.5 * seconds)
    )
    assert sure is not None
    assert unsure is not None
    assert unsure.own_var < 0.4 * sure.own_var


def test_nodes_keep_the_mean() -> None:
    model = model_of([1800.0, 3000.0, 900.0], [64.0, 512.0, 128.0])
    sizes = np.array([16.0, 64.0, 1024.0])
    nodes = model.nodes(sizes)
    assert nodes.shape == (len(NODES), 3)
    assert WEIGHTS @ nodes == pytest.approx(model.mean(sizes))


def test_the_error_of_the_parameters_does_not_average_out_over_runs() -> None:
    model = model_of([1800.0, 3000.0, 900.0, 2000.0], [64.0] * 4)
    widths = []
    for n in (1, 10, 10_000):
        total = model.total(np.full(n, 64.0), np.ones(n))
        assert total.value is not None
        assert total.lower is not None
        assert total.upper is not None
        widths.append((total.upper - total.lower) / total.value)
    assert widths[0] > widths[1] > widths[2]
    shared = np.sqrt(np.expm1(model.shared_var(at(64.0))[0]))
    assert widths[2] == pytest.approx(2 * 1.645 * shared, rel=0.1)


def test_writes_that_take_no_time_have_a_habit_too() -> None:
    model = model_of([0.0, 0.0, 0.0], [64.0] * 3)
    assert 0 < model.mean(at(64.0))[0] < 30


def test_the_record_is_the_model_again() -> None:
    model = model_of([1800.0, 3000.0], [64.0, 128.0])
    assert HabitModel(**model.record) == model


@pytest.mark.slow
def test_nine_in_ten_intervals_of_a_total_hold_it_whatever_the_number_of_runs() -> None:
    rng, n_sets = np.random.default_rng(3), 300
    unseen = 2.0 ** rng.integers(4, 12, 100)
    for n in (2, 5, 20, 100):
        held = 0
        for _ in range(n_sets):
            seen = 2.0 ** rng.integers(4, 12, n)
            seconds = [2500 * (g / 128) ** -0.15 * np.exp(0.5 * rng.normal()) for g in seen]
            own = 2500 * (unseen / 128) ** -0.15 * np.exp(0.5 * rng.normal(size=100))
            total = model_of(seconds, list(seen)).total(unseen, unseen)
            held += total.lower <= (unseen * own).sum() <= total.upper  # type: ignore[operator]
        assert 0.85 <= held / n_sets <= 0.99, n


def test_bounds_of_a_positive_quantity_are_positive_and_normal_where_narrow() -> None:
    lower, upper = positive_bounds(100.0, 100.0**2)
    assert 0 < lower < 100 < upper
    assert positive_bounds(1e6, 1.0) == pytest.approx((1e6 - 1.645, 1e6 + 1.645), abs=1e-3)
