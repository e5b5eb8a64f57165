"""A proportion of trials in clusters is as sure as its clusters are unlike."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.clustered_proportion import clustered_proportion
from analytics.errors import AnalysisError
from analytics.proportion import proportion


def test_trials_that_are_their_own_clusters_have_about_the_exact_interval() -> None:
    hits = [True] * 12 + [False] * 28
    found, exact = clustered_proportion(hits, range(40)), proportion(12, 40)
    assert (found.value, found.n) == (exact.value, exact.n)
    assert (found.lower, found.upper) == pytest.approx((exact.lower, exact.upper), abs=0.01)


def test_trials_that_repeat_one_another_are_worth_their_clusters() -> None:
    rng = np.random.default_rng(2)
    once = list(rng.random(30) < 0.3)
    found = clustered_proportion(once * 10, list(range(30)) * 10)
    exact = clustered_proportion(once, range(30))
    assert (found.lower, found.upper) == pytest.approx((exact.lower, exact.upper), abs=0.01)


def test_where_none_is_a_hit_each_cluster_is_one_trial() -> None:
    found = clustered_proportion([False] * 48, [0, 1] * 24)
    assert found.upper == pytest.approx(proportion(0, 2).upper)
    assert clustered_proportion([True] * 9, [0] * 9).lower == pytest.approx(proportion(1, 1).lower)
    assert clustered_proportion([], []).value is None


def test_the_interval_covers_where_clusters_differ() -> None:
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(40), 5)
    covered = 0
    for _ in range(200):
        own = rng.beta(1.0, 3.0, 40)  # a mean of 0.25
        found = clustered_proportion(list(rng.random(200) < own[clusters]), list(clusters))
        covered += found.lower <= 0.25 <= found.upper
    assert covered >= 172


def test_a_trial_without_a_cluster_is_refused() -> None:
    with pytest.raises(AnalysisError, match="2 trials but 1 clusters"):
        clustered_proportion([True, False], [1])
