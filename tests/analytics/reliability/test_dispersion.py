"""The dispersion test rejects chance as often as it says; intervals of clustered failures cover."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from analytics.reliability.dispersion import dispersion, weeks_of
from analytics.reliability.failure_rate import failure_rate

CLUSTERED = {
    "weeks_gamma": lambda g, e, week: g.poisson(0.004 * e * g.gamma(4.0, 0.25, week.max() + 1)[week]),
    "weeks_log_normal": lambda g, e, week: g.poisson(
        0.004 * e * g.lognormal(-0.125, 0.5, week.max() + 1)[week]
    ),
    "storms_of_20": lambda g, e, week: g.poisson(0.001 * e)
    + 20 * g.multinomial(g.poisson(0.25 * (week.max() + 1)), e / e.sum()),
    "chance_alone": lambda g, e, week: g.poisson(0.001 * e),
}  # fmt: skip
RATE = {"weeks_gamma": 0.004, "weeks_log_normal": 0.004, "chance_alone": 0.001}


def uneven(generator: np.random.Generator, days: int) -> np.ndarray:
    """Exposure that grows, rests at week-ends, and is next to nothing on a quarter of the days."""
    week = np.resize([1, 1, 1, 1, 1, 0.6, 0.5], days)
    grows = np.linspace(80.0, 320.0, days)
    return week * grows * generator.choice([1.0, 1.0, 1.0, 0.005], days)


@pytest.mark.slow
@pytest.mark.parametrize(
    "exposure",
    [np.geomspace(1.0, 500.0, 30), np.resize([100.0, 100.0, 2.0], 30)],
    ids=["a_cluster_that_grows", "every_third_day_a_remnant"],
)
def test_chance_under_uneven_exposure_is_rejected_one_time_in_twenty(exposure: np.ndarray) -> None:
    generator = np.random.default_rng(1)
    counts = generator.multinomial(25, exposure / exposure.sum(), size=1000)
    tests = [dispersion(row, exposure) for row in counts]
    by_chi2 = np.mean([stats.chi2.sf(test.statistic, 29) < 0.05 for test in tests])
    rejected = np.mean([test.rejects for test in tests])
    assert by_chi2 > 0.15
    assert 0.03 <= rejected <= 0.07  # Monte Carlo error 0.007


def test_the_p_value_is_the_exact_one_of_all_outcomes() -> None:
    exposure, counts = np.array([6.0, 3.0, 1.0]), np.array([4, 3, 5])
    n, shares = 12, exposure / exposure.sum()
    outcomes = np.array([(i, j, n - i - j) for i in range(n + 1) for j in range(n + 1 - i)])
    expected = n * shares
    statistic = ((outcomes - expected) ** 2 / expected).sum(axis=1)
    observed = ((counts - expected) ** 2 / expected).sum()
    exact = stats.multinomial.pmf(outcomes, n, shares)[statistic >= observed - 1e-9].sum()
    assert dispersion(counts, exposure).statistic == pytest.approx(observed)
    assert dispersion(counts, exposure).p_value == pytest.approx(exact, abs=0.01)


def test_nodes_alike_pass_and_one_lemon_among_them_does_not() -> None:
    exposure = np.full(200, 30.0)
    alike = np.random.default_rng(0).multinomial(40, exposure / exposure.sum())
    lemon = alike.copy()
    lemon[7] += 12
    assert not dispersion(alike, exposure).rejects
    assert dispersion(lemon, exposure).p_value < 0.005


@pytest.mark.parametrize(
    ("failures", "exposure"),
    [([9, 0], [1.0, 1.0]), ([20, 3], [5.0, 0.0]), ([], [])],
    ids=["nine_failures", "one_cell_with_exposure", "nothing"],
)
def test_too_little_to_test_gives_no_test(failures: list[int], exposure: list[float]) -> None:
    assert dispersion(failures, exposure) is None


def test_a_week_begins_on_monday_before_and_after_1970() -> None:
    days = np.array(["1969-12-28", "1969-12-29", "1970-01-04", "1970-01-05"], dtype="M8[us]")
    assert weeks_of(days).tolist() == [-1, 0, 0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("weeks", [26, 52])
@pytest.mark.parametrize("kind", CLUSTERED)
def test_nine_in_ten_intervals_cover_the_rate(kind: str, weeks: int) -> None:
    generator = np.random.default_rng(weeks)
    draw: Callable[..., np.ndarray] = CLUSTERED[kind]
    days = np.arange(7 * weeks)
    covered, stores = 0, 400  # Monte Carlo error 0.015
    for _ in range(stores):
        exposure = uneven(generator, len(days))
        storms = 0.001 + 20 * 0.25 * weeks / exposure.sum()
        found = failure_rate(draw(generator, exposure, days // 7), exposure, days=days + 4).rate
        covered += found.lower <= RATE.get(kind, storms) <= found.upper
    print(f"\n{kind}, {weeks} weeks: {covered / stores:.3f} of 90 % intervals cover")
    assert 0.85 <= covered / stores <= 0.95
