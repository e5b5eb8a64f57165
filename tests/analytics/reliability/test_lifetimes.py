"""Survival curves, families and the log-rank test, against R's survival and by direct computation."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import OutOfRangeError, ShapeError
from analytics.reliability.hazard_by_age import pieces
from analytics.reliability.lifetime_families import FEWEST, fits, hazard_of, straightened
from analytics.reliability.lifetimes import Lives, kaplan_meier, log_rank

REFERENCES = Path(__file__).resolve().parents[2] / "references"
TITAN = Path(__file__).resolve().parents[4] / "shared" / "data" / "titan" / "gc_summary_loc.csv"
EXPECTED = json.loads((REFERENCES / "lives_expected.json").read_text())
"""By `Rscript lives.R` on lives.csv."""
ROWS = pd.read_csv(REFERENCES / "lives.csv")
EARLY = Lives.of(ROWS["age"], ROWS["died"] == 1)
LATE = Lives.of(ROWS["age"], ROWS["died"] == 1, ROWS["since"])


@pytest.mark.parametrize(("lives", "key"), [(EARLY, ""), (LATE, "late_")], ids=["whole", "late"])
def test_the_curve_is_that_of_r(lives: Lives, key: str) -> None:
    curve = kaplan_meier(lives)
    for name, found in (
        ("time", curve.age),
        ("survival", curve.survival),
        ("lower", curve.lower),
        ("upper", curve.upper),
        ("cumhaz", curve.cumulative_hazard),
    ):
        if key and name == "time":
            continue
        assert found == pytest.approx(EXPECTED[f"{key}{name}"], rel=1e-9), name


def test_families_are_those_of_r() -> None:
    found = {fit.family: fit for fit in fits(EARLY)}
    for ours, theirs in (
        ("Weibull", "weibull"),
        ("exponential", "exponential"),
        ("log-normal", "lognormal"),
        ("log-logistic", "loglogistic"),
    ):
        scale, sigma, log_likelihood = EXPECTED[theirs]
        fit = found[ours]
        assert (np.exp(fit.mu), fit.sigma) == pytest.approx((scale, sigma), rel=1e-6)
        assert fit.log_likelihood == pytest.approx(log_likelihood, rel=1e-9)
    assert [fit.aic for fit in fits(EARLY)] == sorted(fit.aic for fit in fits(EARLY))


def test_the_log_rank_test_is_that_of_r() -> None:
    batches = [EARLY.some((ROWS["batch"] == batch).to_numpy()) for batch in "abc"]
    found = log_rank(batches)
    assert found is not None
    assert [found.statistic, found.df] == pytest.approx(EXPECTED["log_rank"], rel=1e-9)
    assert found.expected == pytest.approx(EXPECTED["log_rank_expected"], rel=1e-9)


def test_the_restricted_mean_is_that_of_r() -> None:
    mean, error = EXPECTED["restricted_mean_20"]
    found = kaplan_meier(EARLY).restricted_mean(20.0)
    assert found.value == pytest.approx(mean, rel=1e-9)
    assert found.upper == pytest.approx(mean + 1.6448536 * error, rel=1e-6)


def test_left_truncation_has_the_likelihood_written_out() -> None:
    """Of those watched since an age, density and survival are over the survival at that age."""
    weibull = next(fit for fit in fits(LATE) if fit.family == "Weibull")

    def log_likelihood(scale: float, shape: float) -> float:
        age, died, since = LATE.exit, LATE.deaths, LATE.entry
        hazard = shape / scale * (age / scale) ** (shape - 1)
        return float(
            (died * np.log(hazard) - (age / scale) ** shape + (since / scale) ** shape).sum()
        )

    scale, shape = (weibull.parameters[name].value or 0.0 for name in ("scale", "shape"))
    assert weibull.log_likelihood == pytest.approx(log_likelihood(scale, shape), rel=1e-12)
    for off in (0.999, 1.001):
        assert log_likelihood(scale * off, shape) < weibull.log_likelihood
        assert log_likelihood(scale, shape * off) < weibull.log_likelihood


@given(st.integers(0, 1000))
def test_rows_together_are_rows_one_by_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    age, died = rng.integers(1, 9, 60).astype(float), rng.random(60) < 0.6
    grouped = pd.DataFrame({"age": age, "died": died}).groupby(["age", "died"]).size().reset_index()
    alone = Lives.of(age, died)
    together = Lives.of(grouped["age"], grouped["died"], weight=grouped[0])
    for one, other in zip(fits(alone), fits(together), strict=True):
        assert (one.mu, one.sigma, one.aic) == pytest.approx((other.mu, other.sigma, other.aic))
    one, other = kaplan_meier(alone), kaplan_meier(together)
    assert one.survival == pytest.approx(other.survival, rel=1e-12)
    assert one.lower == pytest.approx(other.lower, rel=1e-12)
    assert (np.diff(np.concatenate([[1.0], one.survival])) <= 0).all()
    assert ((one.lower <= one.survival) & (one.survival <= one.upper)).all()


@pytest.mark.parametrize(
    ("shape", "says"), [(0.5, "infant mortality"), (1.0, "even"), (2.0, "wear-out")]
)
def test_the_shape_is_read_out(shape: float, says: str) -> None:
    rng = np.random.default_rng(1)
    age, end = 3 * rng.weibull(shape, 400), rng.uniform(0, 9, 400)
    hazard, found = hazard_of(fits(Lives.of(np.minimum(age, end), age <= end)))
    assert hazard == says
    assert found is not None
    assert (found.lower or 0) < shape < (found.upper or 0)


def test_with_few_deaths_there_is_too_little_to_tell() -> None:
    few = Lives.of([1.0, 2.0, 3.0, 4.0, *[5.0] * 50], [True] * 4 + [False] * 50)
    assert fits(few) == ()
    assert hazard_of(()) == ("too little to tell", None)
    some = Lives.of([1.0, 2.0, 3.0, 4.0, 6.0, *[7.0] * 50], [True] * FEWEST + [False] * 50)
    assert hazard_of(fits(some))[0] == "too little to tell"


def test_none_died_all_died_and_none_at_all() -> None:
    alive = kaplan_meier(Lives.of([3.0, 4.0], [False, False]))
    assert (len(alive.age), alive.at(2.0).value, alive.at(4.5).value) == (0, 1.0, None)
    assert alive.quantile(0.5).value is None
    assert alive.restricted_mean().value == 4.0
    dead = kaplan_meier(Lives.of([3.0, 3.0], [True, True]))
    assert (dead.survival.tolist(), dead.lower.tolist()) == ([0.0], [0.0])
    assert dead.at(3.0).upper == 1.0
    nothing = kaplan_meier(Lives.of([], []))
    assert (nothing.n, nothing.at(1.0).value, nothing.restricted_mean().value) == (0, None, None)
    assert log_rank([Lives.of([], []), Lives.of([1.0], [True])]) is None


def test_what_has_no_usable_age_is_left_out_and_counted() -> None:
    lives = Lives.of([-1.0, np.nan, 0.0, 2.0, 4.0], [True] * 5, [0.0, 0.0, 0.0, 3.0, 1.0])
    assert (lives.n, lives.n_left_out) == (2, 3)
    assert lives.exit.tolist() == [1.0, 4.0]  # a death at 0 counts as half of the least age


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([1.0], [True, False]), ShapeError, "differ in length"),
        (([1.0], [True], None, [-1.0]), OutOfRangeError, "weight must be >= 0"),
    ],
)
def test_what_is_refused(arguments: tuple[object, ...], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        Lives.of(*arguments)  # type: ignore[arg-type]


@pytest.mark.skipif(not TITAN.exists(), reason=f"the GPUs of Titan are not at {TITAN}")
def test_the_gpus_of_titan_live_as_published() -> None:
    """30,207 GPUs, 5,089 of them dead (SC'20): by batch .0664 and .0025 deaths a GPU-year."""
    cards = pd.read_csv(TITAN)
    lives = Lives.of(cards["years"], cards["dead"])
    curve = kaplan_meier(lives)
    assert [round(curve.at(age).value or 0, 4) for age in (2, 4, 5)] == [0.9925, 0.7796, 0.6875]
    weibull = next(fit for fit in fits(lives) if fit.family == "Weibull")
    shape, scale = (weibull.parameters[name].value for name in ("shape", "scale"))
    assert (round(shape or 0, 4), round(scale or 0, 4)) == (2.8794, 7.0782)
    batches = [lives.some((cards["batch"] == batch).to_numpy()) for batch in ("old", "new")]
    assert [round(one.n_deaths / one.exposure, 5) for one in batches] == [0.06637, 0.00247]
    found = log_rank(batches)
    assert found is not None
    assert found.p_value < 1e-60


def test_the_hazard_by_age_is_deaths_over_time_watched() -> None:
    lives = LATE
    found = pieces(lives)
    assert found is not None
    assert sum(each.deaths for each in found.pieces) == lives.n_deaths
    assert sum(each.exposure for each in found.pieces) == pytest.approx(lives.exposure)
    for each in found.pieces:
        held = sum(
            max(0.0, min(age, each.end) - max(since, each.begin))
            for age, since in zip(lives.exit.tolist(), lives.entry.tolist(), strict=True)
        )
        assert each.exposure == pytest.approx(held)
        assert each.rate.value == pytest.approx(each.deaths / held)
    curve = kaplan_meier(lives)
    ages = np.array([each.end for each in found.pieces[:-1]])
    assert found.survival(ages) == pytest.approx([curve.at(age).value for age in ages], abs=0.04)


def test_one_piece_is_the_exponential_and_too_few_deaths_have_none() -> None:
    lives = Lives.of([1.0, 2.0, 3.0, 4.0, 6.0, 7.0], [True] * 5 + [False])
    found = pieces(lives)
    assert found is not None
    (exponential,) = [fit for fit in fits(lives) if fit.family == "exponential"]
    assert found.log_likelihood == pytest.approx(exponential.log_likelihood)
    assert found.aic == pytest.approx(exponential.aic)
    assert pieces(Lives.of([1.0, 2.0], [True, False])) is None


@pytest.mark.parametrize("family", ["exponential", "Weibull", "log-normal", "log-logistic"])
def test_a_family_is_a_straight_line_on_its_probability_plot(family: str) -> None:
    lives = Lives.of([1.0, 2.0, 3.0, 4.0, 6.0, 9.0], [True] * 5 + [False])
    (fit,) = [fit for fit in fits(lives) if fit.family == family]
    age = np.array([0.5, 2.0, 8.0])
    height = straightened(family, fit.survival(age))
    assert height == pytest.approx((np.log(age) - fit.mu) / fit.sigma)
