"""Rows of BLOOM's diary within a generated baseline of their level and noise."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from analytics.training.stability.course import Course, Logged
from analytics.training.stability.judged import stability
from analytics.training.stability.shifts import shifts

DIARY = Path(__file__).resolve().parents[5] / "shared/data/chronicles/megatron_iteration_lines.csv"
BLOOM = "bigscience_tr11-176B-ml_chronicles.md"


@pytest.fixture(scope="module")
def bloom() -> list[dict[str, str]]:
    if not DIARY.exists():
        pytest.skip("../shared/data/chronicles is absent")
    with DIARY.open(encoding="utf-8") as stream:
        return [row for row in csv.DictReader(stream) if row["source"] == BLOOM]


@pytest.mark.parametrize("seed", range(3))
def test_the_loss_spike_begins_peaks_and_ends_where_the_diary_shows(
    bloom: list[dict[str, str]], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    rows = [row for row in bloom if 31_214 <= int(row["iteration"]) <= 31_251]
    before, after = np.arange(30_200, 31_214), np.arange(31_252, 31_900)
    step = np.concatenate([before, [int(row["iteration"]) for row in rows], after])
    n, m = len(before), len(after)
    loss = [2.2 + 0.02 * rng.normal(size=n), [float(row["lm_loss"]) for row in rows],
            2.2 + 0.02 * rng.normal(size=m)]  # fmt: skip
    norm = [0.22 * np.exp(0.2 * rng.normal(size=n)), [float(row["grad_norm"]) for row in rows],
            0.22 * np.exp(0.2 * rng.normal(size=m))]  # fmt: skip
    values = {"loss": np.concatenate(loss), "grad_norm": np.concatenate(norm)}
    found = stability(Logged(step, np.full(len(step), np.nan), values))
    (episode,) = found.episodes
    assert 31_215 <= episode.start_step <= 31_217
    assert all(event.peak_step == 31_219 for event in episode.events)
    assert (episode.last_step, episode.end_step) == (31_222, 31_250)
    assert all(event.absent_steps == ((31_223, 31_249),) for event in episode.events)
    assert found.absent_steps == ((31_223, 31_249),)
    assert episode.rewind_step is None
    assert all(event.is_jump for event in episode.events if event.series == "grad_norm")


def slow_gpu(bloom: list[dict[str, str]], n_after: int, seed: int) -> Course:
    rng = np.random.default_rng(seed)
    rows = [row for row in bloom if 42_780 <= int(row["iteration"]) <= 42_784]
    seconds = np.concatenate([
        105.2 + 0.4 * rng.normal(size=400), [float(row["elapsed_s"]) for row in rows],
        111.0 + 0.4 * rng.normal(size=n_after),
    ])  # fmt: skip
    step = np.arange(42_380, 42_380 + len(seconds))
    return Course.of(step, np.full(len(step), np.nan), seconds)


@pytest.mark.parametrize("n_after", [8, 30, 100, 800])
def test_the_slow_gpu_is_a_shift_from_its_first_slow_step(
    bloom: list[dict[str, str]], n_after: int
) -> None:
    course = slow_gpu(bloom, n_after, n_after)
    (shift,) = shifts(course)
    assert course.step[shift.first] == 42_783
    assert shift.back is None
    assert (shift.before, shift.after) == pytest.approx((105.2, 111.0), abs=0.3)


def test_two_slow_steps_are_none(bloom: list[dict[str, str]]) -> None:
    assert not shifts(slow_gpu(bloom, 0, 1))
    course = slow_gpu(bloom, 0, 2)
    back = np.concatenate([course.value, 105.2 + 0.4 * np.random.default_rng(3).normal(size=300)])
    step = np.arange(len(back))
    assert not shifts(Course.of(step, np.full(len(step), np.nan), back))
