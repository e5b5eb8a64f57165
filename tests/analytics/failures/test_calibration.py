"""How far a check can be trusted, where there is little or nothing to go by."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from analytics.failures.calibration import causal_ratio, check_trust, not_by_chance


def ratio(hits: int, completed: int, failed_hits: int, failed: int, **more: float) -> float:
    counts = {
        "n_completed_hits": hits,
        "n_completed": completed,
        "n_failed_hits": failed_hits,
        "n_failed": failed,
        "n_failed_node_days": failed_hits,
        "n_background_hits": 0,
        "background_node_days": 0.0,
        "window_minutes": 15.0,
    }
    return float(causal_ratio(pd.DataFrame([counts | more])).iloc[0])


def left(**more: float) -> float:
    """What is left of a piece of evidence of which nothing speaks for chance but what is given."""
    piece = {"n_nodes": 1, "n_hits": 0, "node_days": 60.0, "rate_per_node_day": 1e-5,
             "window_minutes": 15.0, "causal_ratio": 1.0}  # fmt: skip
    return float(not_by_chance(pd.DataFrame([piece | more])).iloc[0])


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


def test_a_check_that_fires_as_often_where_attempts_run_on_is_chance() -> None:
    # 960 node-days around failures at 0.02 a node-day meet 20 hits by chance
    elsewhere = {"n_background_hits": 200, "background_node_days": 10_000.0}
    assert ratio(0, 0, 20, 96_000, **elsewhere) == 0.0
    assert ratio(0, 0, 200, 96_000, **elsewhere) == pytest.approx(0.89, abs=0.005)


def test_one_hit_of_a_check_that_fires_elsewhere_is_no_evidence_yet() -> None:
    rare = {"n_background_hits": 10, "background_node_days": 10_000.0}  # 0.1 hits by chance
    assert ratio(0, 0, 1, 9_600, **rare) < 0.5
    assert ratio(0, 0, 4, 9_600, **rare) > 0.9
    assert ratio(0, 0, 1, 9_600, n_background_hits=0, background_node_days=10_000.0) == 1.0


def test_a_state_that_lasts_is_one_coincidence_however_many_attempts_fail_in_it() -> None:
    rare = {"n_background_hits": 10, "background_node_days": 10_000.0}
    assert ratio(0, 0, 50, 9_600, n_failed_node_days=1, **rare) < 0.5
    assert ratio(0, 0, 50, 9_600, n_failed_node_days=50, **rare) > 0.9


def test_the_more_nodes_an_attempt_has_the_more_of_its_evidence_is_chance() -> None:
    shares = [left(n_nodes=n, rate_per_node_day=0.02) for n in (1, 8, 64, 512)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > 0.9
    assert shares[-1] < 0.5


def test_a_check_that_hardly_ever_fires_by_chance_counts_at_any_size() -> None:
    assert left(n_nodes=512, rate_per_node_day=1e-6) > 0.99


def test_a_noisy_node_says_less_than_a_quiet_one() -> None:
    assert left(n_hits=180, rate_per_node_day=0.02) < 0.5
    assert left(n_hits=0, rate_per_node_day=0.001) > 0.99


def test_a_site_of_a_few_hours_trusts_its_checks() -> None:
    barely_known = 0.5 / 1_000
    assert left(n_nodes=512, node_days=0.1, rate_per_node_day=barely_known) > 0.7
    assert left(n_hits=math.nan, node_days=math.nan, causal_ratio=math.nan) > 0.999


def test_no_checks_have_no_ratios() -> None:
    columns = ["n_completed_hits", "n_completed", "n_failed_hits", "n_failed", "n_failed_node_days",
               "n_background_hits", "background_node_days", "window_minutes"]  # fmt: skip
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
