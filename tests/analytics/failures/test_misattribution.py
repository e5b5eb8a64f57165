"""What chance makes of failed attempts grows with their size, and is told with its doubt."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from analytics.failures.calibration import misattribution

RARE = {"cluster": "c", "n_background_hits": 10, "background_node_days": 48_000.0,
        "n_completed_hits": 0, "n_completed": 20_000, "rate_per_node_day": 10.5 / 49_000.0,
        "window_minutes": 15.0, "causal_ratio": 1.0}  # fmt: skip
COMMON = RARE | {"n_background_hits": 960, "rate_per_node_day": 0.0196, "causal_ratio": 0.0}


def found(checks: list[dict[str, Any]], *sizes: int) -> dict[tuple[int, int], Any]:
    attempts = pd.DataFrame({"cluster": "c", "n_nodes": sizes, "n_attempts": 5})
    classes = misattribution(pd.DataFrame(checks), attempts)
    return {(each.nodes_from, each.nodes_to): each for each in classes}


def test_expected_shares_follow_the_nodes_and_classes_double() -> None:
    classes = found([RARE, COMMON], 1, 2, 3, 4, 512)
    assert list(classes) == [(1, 1), (2, 2), (3, 4), (257, 512)]
    assert classes[3, 4].n_attempts == 10
    expected = 1 - np.exp(-512 * (970 / 48_000) / 96)
    assert classes[257, 512].hit_by_chance.value == pytest.approx(expected)


def test_only_checks_that_still_count_as_evidence_misattribute() -> None:
    large = found([RARE, COMMON], 512)[257, 512]
    assert large.misattributed.value == pytest.approx(1 - np.exp(-512 * (10 / 48_000) / 96))
    assert large.misattributed.n == 10
    never = found([COMMON], 512)[257, 512].misattributed
    assert (never.value, never.lower, never.upper) == (0, 0, 0)


@pytest.mark.parametrize("n", [40, 200])
def test_intervals_cover_the_planted_share(n: int) -> None:
    chance, covered = np.random.default_rng(3), 0
    truth = 1 - np.exp(-512 * 0.001 / 96)
    for hits in chance.poisson(0.001 * 20_000, n).tolist():
        check = COMMON | {"n_background_hits": hits, "background_node_days": 20_000.0}
        share = found([check], 512)[257, 512].hit_by_chance
        covered += share.lower <= truth <= share.upper
    assert covered >= 0.875 * n


def test_a_check_that_never_fired_by_chance_leaves_an_upper_bound() -> None:
    quiet = RARE | {"n_background_hits": 0, "rate_per_node_day": 0.5 / 49_000}
    share = found([quiet], 512)[257, 512].misattributed
    assert (share.value, share.lower, share.n) == (0, 0, 0)
    assert share.upper == pytest.approx(1 - np.exp(-512 * 2.996 / 48_000 / 96), rel=1e-3)


def test_attempts_of_clusters_without_checks_say_nothing() -> None:
    attempts = pd.DataFrame({"cluster": "other", "n_nodes": [4], "n_attempts": [5]})
    assert misattribution(pd.DataFrame([RARE]), attempts) == ()
