"""Trends: verdicts, tests against their formulas, growth against its likelihood, and little data."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from analytics.frames import CountedFailures, FailureCounts
from analytics.reliability.failure_rate import failure_rate
from analytics.reliability.fleet_trend import Rollout, fleet_trend, large, near
from analytics.reliability.trend import trend

LANL = Path(__file__).resolve().parents[4] / "shared" / "data" / "lanl"
N_DAYS = 364
DAYS = np.arange(N_DAYS)


def fallen(rate: np.ndarray, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).poisson(rate)


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [
        (np.full(N_DAYS, 2.0), "steady"),
        (np.linspace(1.0, 3.0, N_DAYS), "worse"),
        (np.linspace(3.0, 1.0, N_DAYS), "better"),
        (np.full(N_DAYS, 0.06), "unknown"),
    ],
)
def test_the_verdict_is_that_of_the_rate(rate: np.ndarray, verdict: str) -> None:
    found = trend(DAYS, fallen(rate), np.full(N_DAYS, 10.0))
    assert found.verdict == verdict


def test_a_fleet_that_doubles_half_way_has_no_trend_by_it() -> None:
    exposure = np.where(N_DAYS / 2 > DAYS, 10.0, 20.0)
    found = trend(DAYS, fallen(exposure / 5, seed=1), exposure)
    assert found.verdict == "steady"
    assert found.changes.points == ()
    by_day = trend(DAYS, fallen(exposure / 5), np.ones(N_DAYS))
    assert by_day.verdict == "worse"


def test_tests_and_growth_are_those_of_their_formulas() -> None:
    """One failure a day, so that each stands in the middle of its day."""
    failed = np.zeros(N_DAYS)
    failed[::7] = 1
    found = trend(DAYS, failed, np.ones(N_DAYS))
    at = np.flatnonzero(failed) + 0.5
    n = len(at)
    by_name = {test.name: test for test in found.tests}
    laplace = (at.sum() / n - N_DAYS / 2) / (N_DAYS * np.sqrt(1 / (12 * n)))
    assert by_name["Laplace"].statistic == pytest.approx(laplace)
    assert by_name["Laplace"].p_value == pytest.approx(2 * stats.norm.sf(abs(laplace)))
    summed = 2 * np.log(N_DAYS / at).sum()
    assert by_name["MIL-HDBK-189"].statistic == pytest.approx(summed)
    tails = stats.chi2.cdf(summed, 2 * n), stats.chi2.sf(summed, 2 * n)
    assert by_name["MIL-HDBK-189"].p_value == pytest.approx(2 * min(tails))
    beta = 2 * n / summed
    assert found.growth.value == pytest.approx(beta)
    bounds = beta * stats.chi2.ppf([0.05, 0.95], 2 * n) / (2 * n)
    assert (found.growth.lower, found.growth.upper) == pytest.approx(tuple(bounds))


@pytest.mark.parametrize("slope", [-3.0, -0.4, 0.0, 1.2])
def test_end_over_begin_is_that_of_the_highest_likelihood(slope: float) -> None:
    rate = 3 * np.exp(slope * DAYS / N_DAYS)
    failed = fallen(rate, seed=2)
    found = trend(DAYS, failed, np.ones(N_DAYS))
    at = np.concatenate(
        [day + (np.arange(n) + 0.5) / n for day, n in enumerate(failed.tolist()) if n]
    )

    def minus_log_likelihood(b: float) -> float:
        area = 1.0 if b == 0 else np.expm1(b) / b
        return float(len(at) * np.log(area) - b * (at / N_DAYS).sum())

    best = optimize.minimize_scalar(minus_log_likelihood, (-5.0, 5.0), tol=1e-12)
    assert np.log(found.factor.value or 0) == pytest.approx(best.x, abs=1e-6)
    assert (found.factor.lower or 0) < np.exp(slope) < (found.factor.upper or 0)


def test_failures_in_threes_make_intervals_wider_and_the_test_no_surer() -> None:
    failed, exposure = fallen(np.full(N_DAYS, 0.4), seed=4), np.ones(N_DAYS)
    alone, threes = trend(DAYS, failed, exposure), trend(DAYS, 3 * failed, exposure)
    assert threes.changes.scatter == pytest.approx(3, rel=0.4)
    assert abs(threes.tests[0].statistic) > abs(alone.tests[0].statistic)
    for one, other in ((alone.factor, threes.factor), (alone.growth, threes.growth)):
        assert (other.upper or 0) / (other.lower or 1) > 0.95 * (one.upper or 0) / (one.lower or 1)


@pytest.mark.slow
@pytest.mark.parametrize("together", [1, 3])
def test_without_a_trend_one_in_twenty_is_told_to_have_one(together: int) -> None:
    told = 0
    for seed in range(400):
        failed = together * fallen(np.full(N_DAYS, 0.5), seed=seed)
        found = trend(DAYS, failed, np.full(N_DAYS, 2.0), seed=seed)
        told += found.verdict in ("better", "worse")
    print(f"{told} of 400")
    assert told <= 0.08 * 400


@pytest.mark.parametrize(
    ("failed", "exposure"),
    [
        ([], []),
        ([0.0] * 20, [0.0] * 20),
        ([1.0] * 9 + [0.0] * 20, [1.0] * 29),
        ([30.0], [5.0]),
        ([0.0] * 30, [1.0] * 30),
    ],
)
def test_of_little_nothing_is_said(failed: list[float], exposure: list[float]) -> None:
    found = trend(range(len(failed)), failed, exposure)
    assert (found.verdict, found.p_value, found.tests) == ("unknown", None, ())
    assert found.factor.value is found.growth.value is None


def test_days_on_which_nothing_ran_pass_no_time() -> None:
    """A gap of half a year, in which nothing ran, moves no change."""
    failed = np.array([0, 1] * 100 + [0] * 180 + [2, 3] * 100)
    exposure = np.concatenate([np.ones(200), np.zeros(180), np.ones(200)])
    found = trend(np.arange(580), failed, exposure)
    (point,) = found.changes.points
    assert point.at == pytest.approx(200, abs=2)
    assert not 200 < found.moment(point.at) < 380
    assert found.exposure == 400.0


def test_the_order_of_days_changes_nothing() -> None:
    failed, exposure = fallen(np.linspace(1.0, 2.0, N_DAYS)), np.linspace(1.0, 3.0, N_DAYS)
    order = np.random.default_rng(1).permutation(N_DAYS)
    one, other = trend(DAYS, failed, exposure), trend(DAYS[order], failed[order], exposure[order])
    assert (one.p_value, one.factor, one.changes) == (other.p_value, other.factor, other.changes)


@pytest.mark.slow
@pytest.mark.parametrize("system", [18, 19, 20])
def test_verdicts_of_los_alamos_agree_with_a_rank_test_of_quarters(system: int) -> None:
    """Kendall's tau of the counts of 91 days, which knows of no rate and no growth."""
    if not LANL.is_dir():
        pytest.skip(f"real data are not at {LANL}")
    (path,) = LANL.glob("*.csv")
    rows = pd.read_csv(path, low_memory=False, encoding="latin-1", skiprows=_preamble(path))
    rows = rows[rows["System"] == system]
    column = next(name for name in rows.columns if "started" in name.lower())
    days = pd.to_datetime(rows[column], format="%m/%d/%Y %H:%M").dt.floor("D")
    number = (days - days.min()).dt.days.to_numpy()
    failed = np.bincount(number)
    found = trend(np.arange(len(failed)), failed, np.ones(len(failed)))
    quarters = failed[: len(failed) // 91 * 91].reshape(-1, 91).sum(axis=1)
    rank = stats.kendalltau(np.arange(len(quarters)), quarters)
    second = "steady" if rank.pvalue >= 0.05 else "worse" if rank.statistic > 0 else "better"
    print(f"LANL {system}: {found.verdict}, p = {found.p_value:.2g}; Kendall {second}, "
          f"tau {rank.statistic:.2f}, p = {rank.pvalue:.2g}")  # fmt: skip
    assert found.verdict in (second, "unknown")


def _preamble(path: Path) -> int:
    """Lines above the header."""
    lines = path.read_text(encoding="latin-1").splitlines()
    return next(n for n, line in enumerate(lines) if line.startswith("System,"))


def rollout(begin: int, end: int, n_nodes: int | None = 10, kind: str = "driver") -> Rollout:
    return Rollout("a", kind, "1", "2", n_nodes, 100, date(2026, 3, begin), date(2026, 3, end))


def test_what_is_near_a_change_overlaps_its_interval_or_two_days_around_it() -> None:
    change = date(2026, 3, 12), date(2026, 3, 10), date(2026, 3, 15)
    rollouts = [rollout(1, 7), rollout(1, 8), rollout(12, 12), rollout(17, 30), rollout(18, 30)]
    assert near(change, rollouts) == (rollouts[1], rollouts[2], rollouts[3])


def test_a_change_of_few_nodes_is_no_roll_out() -> None:
    some = [rollout(1, 2, n) for n in (1, 4, 5)] + [rollout(1, 2, None, "check")]
    assert large(some) == some[2:]
    assert [each.sight for each in some] == [False, False, False, True]


def counts(**clusters: tuple[np.ndarray, np.ndarray]) -> FailureCounts:
    """What was counted of clusters: failures and exposure from their first day on."""
    day = np.datetime64("2026-01-01", "us") + DAYS.astype("m8[D]")
    rows = {
        "cluster": np.repeat(np.array(list(clusters), dtype=object), N_DAYS),
        "day": np.tile(day, len(clusters)),
        "failures": np.concatenate([failed for failed, _ in clusters.values()]),
        "exposure_node_days": np.concatenate([held for _, held in clusters.values()]),
        "unexplained": np.zeros(N_DAYS * len(clusters), dtype=np.int64),
    }
    nobody = CountedFailures({}, 0, 0, 0)
    return FailureCounts(rows, {}, np.zeros(0), np.zeros(0), True, "gpu_time", 8.0, None, None, 0,
                         nobody)  # fmt: skip


def test_a_cluster_that_fails_seldom_makes_no_trend_by_coming_later() -> None:
    late = np.where(DAYS >= N_DAYS / 2, 100.0, 0.0)
    old, new = fallen(np.full(N_DAYS, 2.0), seed=5), fallen(0.01 * late, seed=6)
    found = fleet_trend(counts(old=(old, np.full(N_DAYS, 10.0)), new=(new, late)))
    assert (found.trend.verdict, found.trend.changes.points, found.clusters) == ("steady", (), 2)
    assert found.trend.exposure == pytest.approx(10.0 * N_DAYS + late.sum())
    both = trend(DAYS, old + new, 10.0 + late)
    assert both.verdict == "better", "what the sum of both would say"


def test_time_in_which_nobody_looked_is_no_time_without_failures() -> None:
    """One failure in two days, all year; node events were collected in the second half alone."""
    seen = N_DAYS / 2 <= DAYS
    failed = np.where(seen, DAYS % 2, 0)
    day = np.datetime64("2026-01-01", "us") + DAYS.astype("m8[D]")
    evidence = {
        "cluster": np.full(N_DAYS + int(seen.sum()), "a", dtype=object),
        "source": np.array(["jobs"] * N_DAYS + ["node_events"] * int(seen.sum()), dtype=object),
        "day": np.concatenate([day, day[seen]]),
        "collected": np.zeros(N_DAYS + int(seen.sum()), dtype=bool),
    }
    known = counts(a=(failed, np.full(N_DAYS, 10.0)))
    found = fleet_trend(replace(known, evidence=evidence))
    assert found.trend.verdict in ("steady", "unknown")
    assert found.trend.changes.points == ()
    assert found.trend.exposure == pytest.approx(10.0 * seen.sum())
    assert fleet_trend(known).trend.verdict == "worse", "what all of the time would say"


def test_a_local_day_ahead_of_utc_is_kept_and_what_lies_behind_all_records_is_not() -> None:
    day = np.datetime64("2026-01-01", "us") + DAYS.astype("m8[D]")
    last = N_DAYS - 30
    evidence = {
        "cluster": np.full(last, "a", dtype=object),
        "source": np.full(last, "node_events", dtype=object),
        "day": day[:last],
        "collected": np.zeros(last, dtype=bool),
    }
    known = counts(a=(np.ones(N_DAYS, dtype=np.int64), np.full(N_DAYS, 10.0)))
    found = fleet_trend(replace(known, evidence=evidence))
    assert found.trend.n == last + 1


def test_rates_of_several_clusters_are_those_of_their_mix() -> None:
    rise = np.where(DAYS < N_DAYS / 2, 1.0, 3.0)
    one, other = fallen(rise, seed=8), fallen(2 * rise, seed=9)
    held = np.full(N_DAYS, 10.0)
    found = fleet_trend(counts(one=(one, held), other=(other, 4 * held)))
    (change,) = found.changed
    first, last = found.rates
    day = (change[0] - found.first).days
    assert first.rate.value == pytest.approx((one + other)[:day].sum() / (50.0 * day))
    assert last.failures == (one + other)[day:].sum()
    assert sum(each.exposure or 0 for each in found.rates) == pytest.approx(50.0 * N_DAYS)


def test_without_a_change_the_rate_is_that_of_every_page() -> None:
    failed, held = 2 * fallen(np.full(N_DAYS, 0.7), seed=3), np.linspace(5.0, 9.0, N_DAYS)
    known = counts(a=(failed, held))
    found = fleet_trend(known, seed=4)
    (rate,) = found.rates
    assert rate == failure_rate(failed, held, days=known.by_day["day"], seed=4)
