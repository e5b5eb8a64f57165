"""Forecasts: how often what came lay inside, and what is said of little, of jobs and of causes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from analytics.frames import CountedFailures, FailureCounts
from analytics.reliability.fleet_forecast import fleet_forecast
from analytics.reliability.forecast import Forecast, forecast, job_odds

LANL = Path(__file__).resolve().parents[4] / "shared" / "data" / "lanl"
MONTH = 4


def inside(found: Forecast, came: int) -> int:
    """-1 where less came than foretold, 1 where more, 0 where it lay inside."""
    failures = found.failures
    return int(came > (failures.upper or 0)) - int(came < (failures.lower or 0))


@pytest.mark.slow
def test_los_alamos_by_rolling_origin() -> None:
    """Each 28 days foretold from all before them, of systems with at least 100 failures."""
    if not LANL.is_dir():
        pytest.skip(f"real data are not at {LANL}")
    (path,) = LANL.glob("*.csv")
    rows = pd.read_csv(path, low_memory=False, encoding="latin-1")
    total = np.zeros(3, dtype=int)
    for system, its_rows in rows.groupby("System"):
        if len(its_rows) < 100:
            continue
        day = pd.to_datetime(its_rows["Prob Started"], format="%m/%d/%Y %H:%M").dt.floor("D")
        failed = np.bincount((day - day.min()).dt.days.to_numpy())
        weeks = failed[: len(failed) // 7 * 7].reshape(-1, 7).sum(axis=1)
        where = [
            inside(forecast(weeks[:at], np.ones(at), np.ones(MONTH), seed=at),
                   int(weeks[at : at + MONTH].sum()))
            for at in range(12, len(weeks) - MONTH + 1, MONTH)
        ]  # fmt: skip
        found = np.bincount(np.array(where, dtype=int) + 1, minlength=3)
        print(f"system {system}: {len(its_rows)} failures, {found.sum()} months, "
              f"{found[0]} below, {found[1]} inside, {found[2]} above")  # fmt: skip
        total += found
    share = total[1] / total.sum()
    print(f"pooled: {share:.1%} of {total.sum()}")
    assert 0.85 <= share <= 0.95


@pytest.mark.slow
def test_weeks_that_scatter_are_foretold_as_often_as_said() -> None:
    rng, hit = np.random.default_rng(3), 0
    for seed in range(200):
        weeks = rng.poisson(6 * rng.gamma(4, 1 / 4, 30 + MONTH))
        found = forecast(weeks[:30], np.ones(30), np.ones(MONTH), seed=seed)
        hit += inside(found, int(weeks[30:].sum())) == 0
    print(f"{hit} of 200")
    assert 0.85 <= hit / 200 <= 0.95


@pytest.mark.slow
def test_after_a_change_less_is_held_and_more_weeks_mend_it() -> None:
    """A rate that doubles half way: foretold as it changes, and 12 weeks later."""
    rng, held = np.random.default_rng(4), {0: 0, 12: 0}
    for seed in range(100):
        weeks = np.concatenate([rng.poisson(6, 26), rng.poisson(12, 26)])
        for after in held:
            at = 26 + after
            found = forecast(weeks[:at], np.ones(at), np.ones(MONTH), seed=seed)
            held[after] += inside(found, int(weeks[at : at + MONTH].sum())) == 0
    print(f"as it changes {held[0]} of 100, 12 weeks later {held[12]}")
    assert held[0] < held[12]
    assert held[12] >= 85


def test_a_steady_rate_is_foretold_about_as_narrowly_as_chance_allows() -> None:
    found = forecast([10] * 40, [50.0] * 40, [50.0] * MONTH)
    assert found.failures.value == pytest.approx(40, rel=0.03)
    width = (found.failures.upper or 0) - (found.failures.lower or 0)
    assert 20 <= width <= 30, "of a Poisson count of 40 nine in ten lie within 21"
    assert found.moves < 0.05


def test_exposure_scales_what_comes() -> None:
    rng = np.random.default_rng(0)
    weeks, held = rng.poisson(8, 30), np.full(30, 100.0)
    once, twice = (forecast(weeks, held, [each] * MONTH) for each in (100.0, 200.0))
    assert twice.failures.value == pytest.approx(2 * (once.failures.value or 0), rel=0.05)
    assert twice.rate.value == pytest.approx(once.rate.value, rel=0.01)
    longer = forecast(np.append(weeks, 0), np.append(held, 0.0), [100.0] * MONTH)
    assert longer.failures.value == pytest.approx(once.failures.value, rel=0.05)


@pytest.mark.parametrize(
    ("failed", "exposed", "ahead"),
    [([], [], [1.0]), ([3, 4, 5], [1.0] * 3, [1.0]), ([1] * 9, [0.0] * 9, [1.0]), ([1] * 9, [1.0] * 9, [])],
)  # fmt: skip
def test_of_little_nothing_is_foretold(
    failed: list[int], exposed: list[float], ahead: list[float]
) -> None:
    found = forecast(failed, exposed, ahead)
    assert found.failures.value is found.failures.lower is found.rate.value is None
    assert job_odds(found.rates, 8, 1.0).p_uninterrupted.value is None


def test_no_failure_so_far_still_leaves_some_to_come() -> None:
    found = forecast([0] * 20, [100.0] * 20, [100.0] * MONTH)
    assert 0 < (found.failures.value or 0) < 0.5
    assert found.failures.lower == 0
    assert (found.failures.upper or 0) >= 0


def test_odds_are_those_of_a_poisson_job() -> None:
    rates = np.full(4000, 0.005)
    odds = job_odds(rates, 100, 3.0)
    assert odds.failures.value == pytest.approx(1.5)
    assert odds.p_uninterrupted.value == pytest.approx(np.exp(-1.5))
    assert odds.mttf_hours.value == pytest.approx(48.0)
    assert (odds.failures.lower, odds.failures.upper) == (0.0, 4.0)


def test_a_job_larger_than_any_is_less_sure() -> None:
    rates = np.random.default_rng(1).gamma(100, 0.005 / 100, 4000)
    one, other = (job_odds(rates, 400, 3.0, largest_nodes=n) for n in (400, 100))
    assert one.widened == 1.0
    assert other.widened == pytest.approx(1.25**2)
    assert other.failures.value == one.failures.value
    assert (other.failures.upper or 0) > 1.15 * (one.failures.upper or 0)
    assert (other.failures.lower or 0) < (one.failures.lower or 0)


def test_what_comes_is_shared_out_by_cause_and_the_last_month_stands_beside_its_forecast() -> None:
    n_days = 120
    failed = np.random.default_rng(2).poisson(1.0, n_days)
    failed[-28:] += 3
    rows = {
        "cluster": np.full(n_days, "a", dtype=object),
        "day": np.datetime64("2026-01-01", "us") + np.arange(n_days).astype("m8[D]"),
        "failures": failed,
        "exposure_node_days": np.full(n_days, 20.0),
        "unexplained": np.zeros(n_days, dtype=np.int64),
    }
    counts = FailureCounts(rows, {}, np.zeros(0), np.zeros(0), True, "gpu_time", 8.0, None, None, 0,
                           CountedFailures({}, 0, 0, 0))  # fmt: skip
    n = int(failed.sum())
    found = fleet_forecast(counts, {"link": n // 2, "memory": n // 4})
    (first, link), (second, memory), (rest, other) = found.by_cause
    assert (first, second, rest) == ("link", "memory", "")
    assert other.n == n - n // 2 - n // 4
    assert link.value == pytest.approx((found.month.failures.value or 0) / 2, rel=0.1)
    assert (memory.lower or 0) < (memory.value or 0) < (memory.upper or 0)
    assert found.earlier is not None
    assert found.earlier.came == failed[-28:].sum()
    assert not found.earlier.held
    assert found.exposure_ahead == 20.0
    assert str(found.last) == "2026-04-30"


def of_clusters(**clusters: tuple[np.ndarray, np.ndarray]) -> FailureCounts:
    n_days = len(next(iter(clusters.values()))[0])
    day = np.datetime64("2026-01-01", "us") + np.arange(n_days).astype("m8[D]")
    rows = {
        "cluster": np.repeat(np.array(list(clusters), dtype=object), n_days),
        "day": np.tile(day, len(clusters)),
        "failures": np.concatenate([failed for failed, _ in clusters.values()]),
        "exposure_node_days": np.concatenate([held for _, held in clusters.values()]),
        "unexplained": np.zeros(n_days * len(clusters), dtype=np.int64),
    }
    return FailureCounts(rows, {}, np.zeros(0), np.zeros(0), True, "gpu_time", 8.0, None, None, 0,
                         CountedFailures({}, 0, 0, 0))  # fmt: skip


def test_a_cluster_that_was_retired_brings_nothing_and_one_that_is_new_is_named() -> None:
    n_days, days = 180, np.arange(180)
    gone = np.where(days < 90, 10.0, 0.0)
    fresh = np.where(days >= 170, 500.0, 0.0)
    quiet = np.full(n_days, 100.0)
    found = fleet_forecast(
        of_clusters(
            gone=(np.where(gone > 0, 1, 0), gone),
            quiet=(np.zeros(n_days, int), quiet),
            fresh=(np.where(fresh > 0, 9, 0), fresh),
        ),
        {},
    )
    assert (found.month.failures.value or 0) < 0.5
    assert found.exposure_ahead == 100.0
    assert found.not_foretold == ("fresh",)
    assert str(found.last) == "2026-06-29"
    assert found.earlier is not None
    assert found.earlier.came == 0


def test_clusters_are_foretold_one_by_one_and_added() -> None:
    rng, held = np.random.default_rng(5), np.full(140, 10.0)
    one, other = rng.poisson(0.5, 140), rng.poisson(2.0, 140)
    both = fleet_forecast(of_clusters(one=(one, held), other=(other, held)), {})
    alone = [fleet_forecast(of_clusters(a=(each, held)), {}) for each in (one, other)]
    expected = sum(each.month.failures.value or 0 for each in alone)
    assert both.month.failures.value == pytest.approx(expected, rel=0.05)
    assert both.exposure_ahead == 20.0
    assert both.month.failures.n == one.sum() + other.sum()
