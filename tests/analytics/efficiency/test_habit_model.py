"""The habits of unobserved runs, from those of the runs observed."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.efficiency.habit_model import (
    N_NODES,
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
    near, far = (model.shared_ratio(at(size))[0] for size in (90.0, 8192.0))
    assert far > 2 * near


HABITS = {
    "log-normal": lambda rng, n: np.exp(0.7 * rng.normal(size=n)),
    "gamma": lambda rng, n: rng.gamma(1.5, size=n),
    "weibull": lambda rng, n: rng.weibull(1.2, n),
    "hourly or by the day": lambda rng, n: np.where(rng.random(n) < 0.2, 24.0, 1.0),
}


def mean_over_truth(name: str, n: int, n_sets: int) -> tuple[float, float]:
    """Mean habit that n runs of any sizes let expect, over the true one; its standard error."""
    rng = np.random.default_rng(n)
    truth = 1800 * HABITS[name](rng, 200_000).mean()
    ratios = []
    for _ in range(n_sets):
        sizes = 2.0 ** rng.integers(4, 10, n)
        model = model_of(list(1800 * HABITS[name](rng, n)), list(sizes))
        ratios.append(float(model.mean(at(2.0**6.5))[0]) / truth)
    return float(np.mean(ratios)), float(np.std(ratios)) / n_sets**0.5


def test_the_mean_of_a_dozen_runs_is_right_in_the_mean() -> None:
    ratio, error = mean_over_truth("gamma", 12, 150)
    assert abs(ratio - 1) < 0.03 + 2 * error


@pytest.mark.slow
@pytest.mark.parametrize("name", HABITS)
@pytest.mark.parametrize("n", [1, 3, 12])
def test_the_mean_is_right_in_the_mean_whatever_the_habits(name: str, n: int) -> None:
    ratio, error = mean_over_truth(name, n, 4000)
    print(f"{n} runs, {name}: {ratio:.3f} +- {error:.3f}")
    assert abs(ratio - 1) < 0.03 + error


def test_nodes_are_the_habits_themselves_at_the_size_asked_for() -> None:
    seconds = [900.0 + 100 * place for place in range(N_NODES)]
    model = model_of(seconds, [64.0] * N_NODES)
    assert model.nodes(at(64.0))[:, 0] == pytest.approx(seconds)
    many = model_of(seconds * 5, [64.0] * 60)
    assert many.nodes(at(64.0))[:, 0] == pytest.approx(seconds)


def test_the_spread_of_many_runs_is_what_they_show_and_of_few_more() -> None:
    """Of runs that save by the hour or by the day a log-normal would take half the variance."""
    seconds = np.array([3600.0] * 90 + [86_400.0] * 10)
    many = model_of(list(seconds), [64.0] * 100)
    shown = seconds.var(ddof=1) / seconds.mean() ** 2
    assert many.between_cv2 == pytest.approx(shown)
    assert many.own_cv2 == pytest.approx(shown, rel=0.03)
    assert np.expm1(many.spread_var) < 0.4 * shown
    alike = model_of([1800.0, 1800.0, 1800.0], [64.0] * 3)
    assert alike.own_cv2 == pytest.approx(alike.unseen_cv2)
    assert alike.own_cv2 > 0


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
    assert unsure.spread_var < 0.4 * sure.spread_var


def test_nodes_keep_the_mean() -> None:
    model = model_of([1800.0, 3000.0, 900.0], [64.0, 512.0, 128.0])
    sizes = np.array([16.0, 64.0, 1024.0])
    nodes = model.nodes(sizes)
    assert nodes.shape == (N_NODES, 3)
    assert nodes.mean(axis=0) == pytest.approx(model.mean(sizes))


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
    shared = np.sqrt(model.own_cv2 * model.shared_ratio(at(64.0))[0])
    assert widths[2] > 1.5 * shared


def test_writes_that_take_no_time_have_a_habit_too() -> None:
    model = model_of([0.0, 0.0, 0.0], [64.0] * 3)
    assert 0 < model.mean(at(64.0))[0] < 30


def test_the_record_is_the_model_again() -> None:
    model = model_of([1800.0, 3000.0], [64.0, 128.0])
    assert HabitModel(**model.record) == model


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log-normal", "gamma", "weibull"])
def test_nine_in_ten_intervals_of_a_total_hold_it_whatever_the_number_of_runs(name: str) -> None:
    rng, n_sets = np.random.default_rng(3), 400
    unseen = 2.0 ** rng.integers(4, 12, 100)
    for n in (3, 5, 20, 100):
        held = 0
        for _ in range(n_sets):
            seen = 2.0 ** rng.integers(4, 12, n)
            seconds = 2500 * (seen / 128) ** -0.15 * HABITS[name](rng, n)
            own = 2500 * (unseen / 128) ** -0.15 * HABITS[name](rng, 100)
            total = model_of(list(seconds), list(seen)).total(unseen, unseen)
            held += total.lower <= (unseen * own).sum() <= total.upper  # type: ignore[operator]
        print(f"{n} runs, {name}: {held / n_sets:.3f}")
        assert 0.85 <= held / n_sets <= 0.97, n


def test_bounds_of_a_positive_quantity_are_positive_and_normal_where_narrow() -> None:
    lower, upper = positive_bounds(100.0, 100.0**2, 0.0)
    assert 0 < lower < 100 < upper
    assert positive_bounds(1e6, 0.5, 0.5) == pytest.approx((1e6 - 1.645, 1e6 + 1.645), abs=1e-3)


@pytest.mark.parametrize("level", [0.01, 0.5, 0.99])
def test_bounds_of_a_positive_quantity_hold_it_at_every_level(level: float) -> None:
    for variances in ((1e4, 0.0), (0.0, 1e4), (3e3, 2e3)):
        lower, upper = positive_bounds(100.0, *variances, level)
        assert 0 < lower <= 100.0 <= upper
