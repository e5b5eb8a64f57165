"""ETTR of a run over time: by hand, and against sums over seconds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.efficiency.run_ettr import COLUMNS, EttrOverTime, ettr_over_time
from analytics.errors import OutOfRangeError, ShapeError


def run_of(*rows: tuple[float, ...]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=list(COLUMNS))


def at(found: EttrOverTime, second: float) -> tuple[float, float, float]:
    (place,) = np.flatnonzero(found.at_s == second)
    curves = (found.cumulative, found.sliding, found.elapsed)
    return tuple(round(float(curve[place]), 6) for curve in curves)


@st.composite
def runs(draw: st.DrawFn) -> pd.DataFrame:
    rows, now = [], draw(st.integers(0, 2_000_000_000))
    for _ in range(draw(st.integers(1, 5))):
        eligible = now + draw(st.integers(0, 5_000))
        waited = draw(st.integers(0, 5_000))
        parts = [draw(st.integers(0, 5_000)) for _ in range(4)]
        start = eligible + waited
        rows.append((eligible, waited, start, sum(parts), *parts))
        now = start + sum(parts)
    return run_of(*rows)


def test_two_attempts_by_hand() -> None:
    """Waits 100 s, starts 100, works 600 of which the last 200 are lost; pauses 200; waits 100,
    starts 100, works 800 of which 80 write checkpoints."""
    found = ettr_over_time(
        run_of((0, 100, 100, 700, 100, 0, 200, 400), (1000, 100, 1100, 900, 100, 80, 0, 720)),
        window_s=500,
        points=0,
    )
    assert found.at_s.tolist()[-1] == 2000
    assert at(found, 600) == (round(400 / 600, 6), 0.8, round(400 / 600, 6))
    assert at(found, 800) == (0.5, 0.6, 0.5)
    assert at(found, 1000) == (0.5, round(100 / 300, 6), 0.4)
    assert at(found, 1200)[0] == 0.4
    assert at(found, 2000) == (round(1120 / 1800, 6), 0.9, 0.56)


def test_checkpoints_are_spread_evenly_and_lost_work_is_the_last() -> None:
    found = ettr_over_time(run_of((0, 0, 0, 1000, 0, 100, 450, 450)), points=0)
    assert at(found, 500) == (0.9, 0.9, 0.9)
    assert at(found, 1000)[0] == 0.45


def test_a_pause_between_submissions_is_no_time_of_the_run() -> None:
    found = ettr_over_time(
        run_of((0, 0, 0, 100, 0, 0, 0, 100), (10_000, 0, 10_000, 100, 0, 0, 0, 100)),
        window_s=200,
        points=0,
    )
    assert np.nanmin(found.cumulative[1:]) == 1.0
    assert np.isnan(at(found, 10_000)[1])
    assert found.elapsed[-1] == pytest.approx(200 / 10_100)


def test_attempts_that_never_started_count_as_waited() -> None:
    found = ettr_over_time(
        run_of((0, 300, np.nan, 0, 0, 0, 0, 0), (300, 100, 400, 400, 0, 0, 0, 400)), points=0
    )
    assert found.cumulative[-1] == 0.5


def test_without_an_attempt_there_is_nothing() -> None:
    found = ettr_over_time(run_of(), points=0)
    assert np.isnan(found.cumulative).all()


@given(runs(), st.integers(1, 20_000), st.integers(0, 50))
def test_every_ratio_lies_in_0_1_and_the_last_is_the_runs(
    attempts: pd.DataFrame, window_s: int, points: int
) -> None:
    found = ettr_over_time(attempts, window_s=window_s, points=points)
    for curve in (found.cumulative, found.sliding, found.elapsed):
        known = curve[~np.isnan(curve)]
        assert ((known >= 0) & (known <= 1)).all()
    available = attempts["waited_s"].sum() + attempts["ran_s"].sum()
    if available:
        expected = attempts["productive_s"].sum() / available
        assert found.cumulative[-1] == pytest.approx(expected, abs=1e-9)
    assert (np.diff(found.at_s) > 0).all()


@given(runs())
def test_a_window_longer_than_the_run_is_the_cumulative_ettr(attempts: pd.DataFrame) -> None:
    found = ettr_over_time(attempts, window_s=10_000_000)
    np.testing.assert_allclose(found.sliding, found.cumulative, atol=1e-12)


@given(runs())
def test_the_definition_by_elapsed_time_never_says_more(attempts: pd.DataFrame) -> None:
    found = ettr_over_time(attempts)
    known = ~np.isnan(found.cumulative)
    assert (found.elapsed[known] <= found.cumulative[known] + 1e-9).all()


@given(runs(), st.integers(1, 3_000))
def test_the_breakpoints_are_exact_against_a_sum_over_seconds(
    attempts: pd.DataFrame, window_s: int
) -> None:
    """Where nothing is spread (no checkpoints), every second is in one part as a whole."""
    attempts = attempts.assign(
        productive_s=attempts["productive_s"] + attempts["checkpoint_s"], checkpoint_s=0
    )
    attempts[["eligible_s", "start_s"]] -= attempts["eligible_s"].min()
    end = int((attempts["start_s"] + attempts["ran_s"]).max())
    productive, available = np.zeros(end + 1), np.zeros(end + 1)
    for row in attempts.astype(int).itertuples():
        available[row.eligible_s : row.start_s + row.ran_s] += 1
        first = row.start_s + row.startup_s
        productive[first : first + row.productive_s] += 1
    done, had = (np.concatenate([[0], np.cumsum(each)]) for each in (productive, available))
    found = ettr_over_time(attempts, window_s=window_s, points=0)
    place = found.at_s.astype(int)
    before = np.maximum(place - window_s, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        np.testing.assert_allclose(found.cumulative, done[place] / had[place], atol=1e-9)
        inside = (done[place] - done[before]) / (had[place] - had[before])
    np.testing.assert_allclose(found.sliding, inside, atol=1e-9)


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(OutOfRangeError):
        ettr_over_time(run_of(), window_s=0)
    with pytest.raises(OutOfRangeError):
        ettr_over_time(run_of(), points=-1)
    with pytest.raises(ShapeError):
        ettr_over_time(run_of().drop(columns="lost_s"))
