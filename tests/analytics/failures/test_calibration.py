"""How far a check can be trusted, where there is little or nothing to go by."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from analytics.failures.calibration import causal_ratio, check_trust


def ratio(hits: int, completed: int, failed_hits: int, failed: int) -> float:
    counts = {
        "n_completed_hits": [hits],
        "n_completed": [completed],
        "n_failed_hits": [failed_hits],
        "n_failed": [failed],
    }
    return float(causal_ratio(pd.DataFrame(counts)).iloc[0])


@pytest.mark.parametrize("completed", [0, 1, 1000])
def test_without_a_hit_around_successes_nothing_is_discounted(completed: int) -> None:
    assert ratio(0, completed, 3, 10) == 1.0


def test_as_many_hits_around_successes_as_around_failures_are_chance() -> None:
    # the lower bound of 900 in 1,000 is 0.883: what lies above it is not proved to be chance
    assert ratio(900, 1000, 9, 10) == pytest.approx(1 - 0.8830 / 0.9, abs=1e-4)
    assert ratio(900, 1000, 1, 10) == 0.0


def test_one_success_proves_little() -> None:
    assert ratio(1, 1, 5, 5) == pytest.approx(0.95)
    assert ratio(100, 100, 5, 5) == pytest.approx(1 - 0.05 ** (1 / 100))


@pytest.mark.parametrize("counts", [(3, 10, 0, 10), (3, 10, 0, 0), (3, 2, 1, 2), (3, 0, 1, 2)])
def test_what_cannot_be_said_is_unknown(counts: tuple[int, int, int, int]) -> None:
    assert math.isnan(ratio(*counts))


def test_no_checks_have_no_ratios() -> None:
    columns = ["n_completed_hits", "n_completed", "n_failed_hits", "n_failed"]
    assert causal_ratio(pd.DataFrame(columns=columns, dtype="int64")).empty


def test_shares_of_checks_are_unknown_where_nothing_ended() -> None:
    counts = pd.DataFrame(
        [("quiet", 1.0, 1, 100, 4, 8), ("loud", 0.5, 2, 100, 2, 8), ("new", math.nan, 0, 0, 0, 0)],
        columns=["signal", "causal_ratio", "n_completed_attempts_hit", "n_completed_attempts",
                 "n_failed_hits", "n_failed"],
    )  # fmt: skip
    trust = check_trust(counts)
    checks = trust.checks.set_index("signal")
    assert checks["percent_of_completed_attempts"].tolist()[:2] == [1.0, 2.0]
    assert checks["percent_of_failed_nodes"].tolist()[:2] == [50.0, 25.0]
    assert checks["over_1_percent"].tolist()[:2] == [False, True]
    assert checks.loc["new", ["percent_of_completed_attempts", "over_1_percent"]].isna().all()
    assert checks["discounted"].tolist() == [False, True, False]
    assert (trust.n_over, trust.n_discounted) == (1, 1)
