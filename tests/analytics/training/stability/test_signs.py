"""NaN, loss scale, slow divergence, plateau, step times, and what stood beside an episode."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.errors import ShapeError
from analytics.training.stability.coincidence import LEAD_S, coincidence
from analytics.training.stability.course import Course, Logged
from analytics.training.stability.judged import stability
from analytics.training.stability.outline import outline
from analytics.training.stability.published import alarms, zclip
from analytics.training.stability.shifts import paced, shifts
from analytics.training.stability.signs import collapses, diverged, plateau

N = 4_000


def course(value: np.ndarray, at: np.ndarray | None = None) -> Course:
    return Course.of(
        np.arange(len(value)), np.full(len(value), np.nan) if at is None else at, value
    )


def of(**values: np.ndarray) -> Logged:
    n = len(next(iter(values.values())))
    return Logged(np.arange(n), np.full(n, np.nan), values)


def noise(seed: int = 0, n: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=n)


def test_nan_from_the_first_step_on_is_told_and_one_that_is_not_logged_is_not() -> None:
    (episode,) = stability(of(loss=np.full(500, np.inf))).episodes
    assert (episode.kind, episode.start_step, episode.end_step) == ("nan", 0, None)
    assert not stability(of(loss=np.full(500, np.nan))).series
    loss = 2 + 0.01 * noise(n=500)
    loss[300:302] = np.inf
    (episode,) = stability(of(loss=loss)).episodes
    assert (episode.kind, episode.last_step, episode.end_step) == ("nan", 301, 302)


def test_an_overflow_that_halves_the_loss_scale_is_no_episode() -> None:
    norm = 1 + 0.1 * np.abs(noise(n=1_000))
    norm[600] = np.inf
    scale = np.where(np.arange(1_000) < 601, 65_536.0, 32_768.0)
    found = stability(of(grad_norm=norm, loss_scale=scale))
    assert not found.episodes
    assert [(event.kind, event.start_step) for event in found.notes] == [("overflow", 600)]
    assert [e.kind for e in stability(of(grad_norm=norm)).episodes] == ["nan"]


def test_a_loss_scale_collapses_in_many_halvings_not_in_one_or_while_it_is_searched_for() -> None:
    scale = np.full(3_000, 65_536.0)
    scale[:40] = 2.0 ** np.linspace(32, 16, 40).round()
    scale[1_000:2_000] /= 2
    assert not collapses(course(scale))
    scale[2_500:] = 65_536.0 / 2.0 ** np.minimum(1 + np.arange(500) // 3, 12)
    (found,) = collapses(course(scale))
    assert found.first == 2_500
    assert not collapses(course(np.full(50, 1.0)))


def test_a_slow_rise_diverges_and_a_wandering_loss_does_not() -> None:
    rows = np.arange(N)
    loss = 2 + np.maximum(rows - 2_500, 0) * 4e-4 + 0.02 * noise()
    (found,) = diverged(course(loss))
    assert 2_000 <= found.first <= 2_700
    assert "divergence" in [each.kind for each in stability(of(loss=loss)).episodes]
    assert not diverged(course(3 - rows * 2e-4 + 0.02 * noise()))
    walk = 2 + 0.01 * np.cumsum(noise(3)) / np.sqrt(1 + rows / 50)
    assert not diverged(course(walk))


def test_a_plateau_needs_a_fall_before_it() -> None:
    rows = np.arange(3 * N)
    flat = np.maximum(4 - rows * 2e-4, 2.4) + 0.01 * noise(n=3 * N)
    found = plateau(course(flat))
    assert found is not None
    assert found.lower <= found.fell_ratio <= found.upper < 0.005
    assert plateau(course(4 - rows * 2e-4 + 0.01 * noise(n=3 * N))) is None
    assert plateau(course(np.full(3 * N, 2.0))) is None
    assert plateau(course(flat[:1_000])) is None


def test_evaluation_checkpoints_and_heavy_tails_of_step_times_are_no_shift() -> None:
    rng = np.random.default_rng(0)
    for seed in range(5):
        seconds = 10 * np.exp(0.02 * np.random.default_rng(seed).standard_t(3, size=5_000))
        seconds[::100] *= 3
        seconds[::250] += 20
        seconds[rng.integers(0, 5_000, 20)] *= 2
        assert not shifts(course(seconds))


@pytest.mark.parametrize("ratio", [1.05, 1.3, 0.9])
def test_a_level_within_the_noise_is_found_and_so_is_its_end(ratio: float) -> None:
    seconds = 10 * np.exp(0.02 * noise(7, 3_000))
    seconds[1_000:2_000] *= ratio
    (found,) = shifts(course(seconds))
    assert found.first == pytest.approx(1_000, abs=15)
    assert found.back == pytest.approx(2_000, abs=70)
    assert found.ratio == pytest.approx(ratio, rel=0.01)


def test_steps_that_hold_more_work_are_told_from_slow_ones() -> None:
    seconds = np.where(np.arange(N) < 2_000, 1.0, 1.5) * np.exp(0.01 * noise())
    tokens = np.full(N, 1e6) * np.exp(0.01 * noise(1))
    (longer,) = stability(of(step_time_s=seconds, throughput=tokens)).notes
    assert "steps hold more work" in longer.context[0]
    slower = tokens * np.where(np.arange(N) < 2_000, 1.0, 1 / 1.5)
    (slow,) = stability(of(step_time_s=seconds, throughput=slower)).notes
    assert slow.context == ()


def test_step_times_follow_from_the_times_of_rows() -> None:
    at = np.cumsum(np.where(np.arange(N) < 2_000, 2.0, 2.4) * np.exp(0.01 * noise()))
    step = 10 * np.arange(N)
    logged = Logged(step, at, {"loss": 2 + 0.01 * noise(1)})
    (event,) = stability(logged).notes
    assert (event.series, event.kind) == ("pace", "shift")
    assert event.start_step == pytest.approx(20_000, abs=20)
    assert np.isnan(paced(logged.course("loss")).value[0])


def test_a_constant_series_and_one_of_few_rows_say_so() -> None:
    found = stability(of(loss=np.full(900, 3.0)))
    assert (found.episodes, found.series[0].is_constant) == ((), True)
    few = stability(of(loss=np.array([3.0, 2.0, 9.0])))
    assert (few.episodes, few.n_judged) == ((), 0)
    nothing = stability(of(loss=np.zeros(0)))
    assert (nothing.last_step, nothing.series) == (None, ())
    assert set(nothing.not_logged) == {"loss", "grad_norm", "step_time_s", "loss_scale"}


def test_columns_of_other_lengths_are_refused() -> None:
    with pytest.raises(ShapeError, match="loss must have a value a step, got 2 and 3"):
        Logged(np.arange(3), np.zeros(3), {"loss": np.zeros(2)})


def test_rows_out_of_order_are_no_restarts_and_late_ones_find_their_place() -> None:
    value = np.arange(100.0)
    late = np.arange(100)
    late[[40, 41, 42]] = 41, 42, 40
    found = Course.of(late, np.full(100, np.nan), value[late])
    assert found.starts.tolist() == [0]
    assert found.value.tolist() == value.tolist()
    mixed = np.random.default_rng(0).permutation(100)
    shuffled = Course.of(mixed, np.full(100, np.nan), value[mixed])
    assert shuffled.is_sorted
    assert shuffled.value.tolist() == value.tolist()
    at = np.arange(100.0)
    by_time = Course.of(mixed, at[mixed], value[mixed])
    assert not by_time.is_sorted
    assert by_time.value.tolist() == value.tolist()


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(0, 50))
def test_each_restart_is_a_segment_whose_path_leads_to_it(lengths: list[int], back: int) -> None:
    parts, end = [], 0
    for length in lengths:
        first = max(end - back, 0) if end else 0
        parts.append(np.arange(first, first + back + length))
        end = first + back + length
    step = np.concatenate(parts)
    found = Course.of(step, np.full(len(step), np.nan), step.astype(float))
    assert found.n_rows <= len(step)
    for segment in found.segments(20):
        own = found.step[segment.first : segment.last]
        assert (np.diff(own) > 0).all()
        path = found.step[segment.path_rows]
        assert len(path) <= 20
        assert (path < own[0]).all()
        assert (np.diff(path) > 0).all()


@given(st.integers(1, 400), st.integers(1, 50))
def test_an_outline_loses_no_peak(n: int, most: int) -> None:
    value = np.random.default_rng(n).normal(size=n)
    drawn = outline(course(value), np.arange(n, dtype=float), most)
    assert np.nanmax(drawn.high) == value.max()
    assert np.nanmin(drawn.low) == value.min()
    assert len(drawn.x) <= most + 1


def test_chance_is_the_share_of_windows_that_would_hold_an_event() -> None:
    spans = [(0.0, 50_000.0), (60_000.0, 100_000.0)]
    events = np.sort(np.random.default_rng(0).uniform(0, 100_000, 30))
    window = (20_000.0, 20_400.0)
    found = coincidence(window, events, spans)
    length = window[1] - window[0] + LEAD_S
    begins = np.arange(0.0, 100_000.0, 5.0)
    begins = begins[(begins < 50_000) | (begins >= 60_000)]
    held = [bool(((events >= t) & (events <= t + length)).any()) for t in begins]
    assert found.chance == pytest.approx(np.mean(held), abs=0.01)
    assert coincidence(window, events, []).chance is None
    assert coincidence(window, np.zeros(0), spans).chance == 0.0


def test_zclip_alarms_on_noise_as_its_threshold_says() -> None:
    norm = 1 + 0.01 * noise(2, 20_000)
    per_100k = zclip(norm).sum() * 5
    assert 500 < per_100k < 1_500
    assert alarms(course(norm), "jump") == 0


def test_two_writers_of_one_series_are_told_and_a_clock_that_jumps_is_no_restart() -> None:
    step = np.repeat(np.arange(500), 2)
    loss = np.where(np.arange(1_000) % 2 == 0, 2.0, 7.0) + 0.01 * noise(n=1_000)
    found = stability(Logged(step, np.full(1_000, np.nan), {"loss": loss}))
    assert found.n_contradicting == 500
    at = 60.0 * np.arange(500)
    at[300] = -1e9
    jumped = stability(Logged(np.arange(500), at, {"loss": 2 + 0.01 * noise(n=500)}))
    assert (jumped.restarts, jumped.n_contradicting) == ((), 0)


def test_rows_whose_norm_is_not_logged_are_passed_over() -> None:
    norm = np.where(np.arange(5_000) % 10 == 0, 1 + 0.1 * np.abs(noise(n=5_000)), 0.0)
    norm[3_000] = 30.0
    (episode,) = stability(of(grad_norm=norm)).episodes
    assert (episode.kind, episode.last_step, episode.end_step) == ("spike", 3_000, 3_010)


def test_a_rise_that_lasts_longer_than_any_window_goes_on_to_the_end_of_the_log() -> None:
    loss = np.where(np.arange(12_000) < 3_000, 2.0, 8.0) + 0.01 * noise(n=12_000)
    (episode,) = stability(of(loss=loss)).episodes
    assert (episode.kind, episode.last_step, episode.ended) == ("divergence", 11_999, "end of log")


def test_episodes_of_two_attempts_are_two_and_each_lost_its_own_steps() -> None:
    rng = np.random.default_rng(4)
    parts = [np.arange(1_001), np.arange(500, 701), np.arange(550, 900)]
    step = np.concatenate(parts)
    loss = 2 + 0.01 * rng.normal(size=len(step))
    second = len(parts[0])
    loss[second + 100 : second + 201] = np.inf  # of the second attempt, from step 600 on
    loss[-80:] += 1.0
    found = stability(Logged(step, np.full(len(step), np.nan), {"loss": loss}))
    nan, last = found.episodes
    assert (nan.kind, nan.ended, nan.lost_steps) == ("nan", "restart", 700 - 550 + 1)
    assert (last.start_step, last.ended, last.rewind_step) == (820, "end of log", 720)


def test_a_divergence_through_many_restarts_is_one() -> None:
    rng = np.random.default_rng(6)
    starts = range(0, 4_800, 350)
    step = np.concatenate([np.arange(start, start + 400) for start in starts])
    loss = 2 + np.maximum(step - 1_200, 0) * 8e-4 + 0.02 * rng.normal(size=len(step))
    found = [each for each in stability(Logged(step, np.full(len(step), np.nan), {"loss": loss}))
             .episodes if each.kind == "divergence"]  # fmt: skip
    assert len(found) == 1
    assert found[0].ended == "end of log"


def test_a_spike_behind_a_steep_fall_of_a_short_log_is_found() -> None:
    rows = np.arange(300)
    loss = 1.8 + 4 * np.exp(-rows / 20) + 0.003 * noise(8, 300)
    loss[200:203] += 1.0
    found = stability(Logged(100 * rows, np.full(300, np.nan), {"loss": loss}))
    (episode,) = found.episodes
    assert (episode.start_step, episode.end_step) == (20_000, 20_300)
    assert found.n_judged == 268
