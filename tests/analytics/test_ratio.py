"""A ratio of sums over few units of skewed sizes has an interval that holds as often as it says."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import special

from analytics.efficiency.group_ettr import ettr_of_groups
from analytics.ratio import Moments, positive_ratio, ratio_of_sums, t_of_few

CLUSTERS = 800
HOURS = 3600.0


def days(n: int, waves: int = 4) -> Moments:
    """Units a day apart, in one group."""
    return Moments(np.arange(n, dtype=float), np.array([waves]))


def drawn(n: int, clusters: int, seed: int) -> pd.DataFrame:
    """Clusters of n runs each, of skewed lengths; starts wait 22 min in the median, 109 in the mean."""
    rng = np.random.default_rng([seed, n])
    size = n * clusters
    hours = rng.lognormal(3.0, 1.0, size)
    ended = rng.poisson(hours / 20)
    of_start = np.repeat(np.arange(size), 1 + ended)
    waits = 22 / 60 * np.exp(1.79 * rng.normal(size=len(of_start)))
    waited = np.bincount(of_start, weights=waits)
    lost = np.minimum((1 + ended) * 0.2 + ended * rng.lognormal(-0.9, 0.5, size), 0.9 * hours)
    productive = (hours - lost) * HOURS
    return pd.DataFrame({
        "n_gpus": 8 * rng.integers(65, 129, size), "queued_s": waited * HOURS,
        "scheduled_s": hours * HOURS, "productive_s": productive, "n_attempts": 1 + ended,
        "n_interruptions": ended, "lower_productive_s": productive,
        "upper_productive_s": productive, "variance_productive_s2": 0.0,
        "shared_productive_s": 0.0,
        "first_start_at": pd.to_datetime(rng.random(size) * 90, unit="D", utc=True),
    })  # fmt: skip


def test_the_interval_of_few_runs_holds_what_runs_like_these_get() -> None:
    """At 90 %, of 5, 10 and 40 runs, over 800 clusters: Monte Carlo error 0.021 (two sigma)."""
    every = drawn(4000, 20, seed=1)
    weight = every["n_gpus"]
    truth = (weight * every["productive_s"]).sum() / (
        weight * (every["queued_s"] + every["scheduled_s"])
    ).sum()
    for n in (5, 10, 40):
        found = ettr_of_groups(
            drawn(n, CLUSTERS, seed=2), np.repeat(np.arange(CLUSTERS), n),
            [str(number) for number in range(CLUSTERS)], conf_level=0.9,
        )  # fmt: skip
        bounds = [
            (each.ettr.lower, each.ettr.upper) for each in found if each.ettr.lower is not None
        ]
        assert len(bounds) > 0.98 * CLUSTERS
        held = np.mean([low <= truth <= high for low, high in bounds])
        assert 0.85 <= held <= 0.95, n


def test_units_of_one_weight_have_the_variance_of_a_mean() -> None:
    values = np.array([1.0, 4.0, 2.0, 5.0])
    found = ratio_of_sums(values, np.ones(4), days(4, 3))
    assert found.variance[0] == pytest.approx(values.var(ddof=1) / 4)
    assert found.df[0] == pytest.approx(3.0)


def test_a_unit_that_outweighs_all_others_leaves_one_degree_of_freedom() -> None:
    weights = np.array([1000.0, 1.0, 1.0, 1.0])
    found = ratio_of_sums(weights * np.array([0.9, 0.5, 0.7, 0.8]), weights, days(4))
    assert 1.0 <= found.df[0] < 1.3


def test_variance_and_degrees_of_freedom_are_those_of_the_quadratic_form() -> None:
    """Units by themselves that vary alike: the mean of the form, and Satterthwaite's rule on it."""
    h = np.array([0.5, 0.2, 0.2, 0.1])
    place = np.array([1, 3, 5, 7]) / 8
    waves = np.cos(np.pi * np.outer([1, 2], place))
    lines = (waves - (waves @ h)[:, None]) * h
    form = lines.T @ lines
    unbiased = form * (h**2).sum() / np.trace(form)
    ratios = np.array([1.0, 2.0, 3.0, 5.0])
    found = ratio_of_sums(h * ratios, h, days(4, 2))
    assert found.variance[0] == pytest.approx(ratios @ unbiased @ ratios)
    assert found.df[0] == pytest.approx(np.trace(form) ** 2 / np.trace(form @ form))


def test_what_units_of_one_time_share_widens_the_variance() -> None:
    """Ten weeks, each with a level of its own for its forty units: as ten units, not as 400."""
    rng = np.random.default_rng(0)
    by_week, by_unit = [], []
    for _ in range(200):
        values = np.repeat(rng.normal(10.0, 1.0, 10), 40) + 0.1 * rng.normal(size=400)
        by_week.append(ratio_of_sums(values, np.ones(400), days(400)).variance[0])
        by_unit.append(values.var(ddof=1) / 400)
    assert np.mean(by_week) == pytest.approx(1 / 10, rel=0.2)
    assert np.mean(by_unit) < 1 / 300


def test_units_of_one_moment_and_a_group_without_waves_have_no_variance() -> None:
    ones = np.array([1.0, 2.0, 3.0])
    at_once = ratio_of_sums(ones, np.ones(3), Moments(np.full(3, 7.0), np.array([4])))
    unseen = ratio_of_sums(ones, np.ones(3), days(3, 0))
    for found in (at_once, unseen):
        assert found.value[0] == 2.0
        assert np.isnan(found.variance[0])
        assert np.isnan(found.df[0])


def test_groups_are_apart_and_one_without_units_is_unknown() -> None:
    top, bottom = np.array([1.0, 3.0, 7.0]), np.array([2.0, 4.0, 10.0])
    moments = Moments(np.array([3.0, 4.0, 9.0]), np.full(3, 2))
    found = ratio_of_sums(top, bottom, moments, np.array([0, 0, 2]))
    alone = ratio_of_sums(top[:2], bottom[:2], days(2, 2))
    assert found.value.tolist() == [
        pytest.approx(alone.value[0]),
        pytest.approx(np.nan, nan_ok=True),
        0.7,
    ]
    assert found.variance[0] == pytest.approx(alone.variance[0])
    assert np.isnan(found.variance[1:]).all()
    assert found.n.tolist() == [2, 0, 1]


def test_nothing_waited_for_has_no_interval() -> None:
    found = positive_ratio(np.zeros(3), np.ones(3), days(3), conf_level=0.9)
    assert (found.value, found.lower, found.upper) == (0.0, None, None)
    assert positive_ratio(np.zeros(0), np.zeros(0), days(0), conf_level=0.9).value is None


@pytest.mark.parametrize("level", [0.5, 0.9, 0.99])
def test_the_quantile_of_few_degrees_of_freedom_is_students(level: float) -> None:
    for df in (1.0, 1.3, 2.0, 3.7, 4.0, 30.0):
        assert t_of_few(df, level) == pytest.approx(special.stdtrit(df, (1 + level) / 2), rel=1e-3)
