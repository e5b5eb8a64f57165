"""Spikes of runs that two generators make, and none of runs without."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.training.stability.course import Course, Logged
from analytics.training.stability.excursions import excursions
from analytics.training.stability.judged import Episode, Stability, stability
from analytics.training.stability.published import RULES
from tests.analytics.training.stability import generated_runs, plain_runs

NEAR = 5
"""Rows by which an episode may miss the steps of a spike."""


def judged(run: generated_runs.Run | plain_runs.PlainRun) -> Stability:
    at = getattr(run, "at", np.full(len(run.step), np.nan))
    return stability(Logged(run.step, at, {"loss": run.loss, "grad_norm": run.grad_norm}))


def hits(found: Stability, first: int, last: int, every: int) -> list[Episode]:
    near = NEAR * every
    return [
        each
        for each in found.episodes
        if each.start_step <= last + near and each.last_step >= first - near
    ]


def spiked(make: str, seed: int) -> tuple[generated_runs.Run | plain_runs.PlainRun, int, int]:
    if make == "plain":
        plain = plain_runs.plain_run(seed, plain_runs.SHAPES[seed % 4])
        assert plain.spike is not None
        return plain, *plain.spike
    run = generated_runs.spiked_run(seed, generated_runs.SHAPES[seed % 4])
    return run, run.spikes[0].start_step, run.spikes[0].last_step


def clean(make: str, seed: int) -> generated_runs.Run | plain_runs.PlainRun:
    return plain_runs.plain_run(seed) if make == "plain" else generated_runs.clean_run(seed)


def counted(make: str, seeds: range) -> tuple[int, int, int]:
    """Spikes found, false episodes, and rows in which there could be some."""
    n_found = n_false = n_rows = 0
    for seed in seeds:
        run, first, last = spiked(make, seed)
        found = judged(run)
        every = found.series[0].every
        n_found += bool(right := hits(found, first, last, every))
        n_false += len(found.episodes) - len(right)
        without = clean(make, seed)
        n_false += len(judged(without).episodes)
        n_rows += len(run.step) + len(without.step)
    return n_found, n_false, n_rows


@pytest.mark.parametrize("make", ["plain", "generated"])
def test_spikes_of_each_shape_are_found_and_no_others(make: str) -> None:
    n_found, n_false, _ = counted(make, range(4))
    assert (n_found, n_false) == (4, 0)


@pytest.mark.slow
@pytest.mark.parametrize("make", ["plain", "generated"])
def test_of_200_spikes_19_in_20_are_found_with_a_false_alarm_in_100_000_rows_at_most(
    make: str,
) -> None:
    n_found, n_false, n_rows = counted(make, range(1000, 1200))
    print(f"{make}: {n_found} of 200 found, {n_false} false in {n_rows:,} rows")
    assert n_found >= 190
    assert n_false <= n_rows / 100_000
    rules = dict.fromkeys(RULES, 0)
    for seed in range(1000, 1200):
        run = clean(make, seed)
        course = Course.of(run.step, np.full(len(run.step), np.nan), run.grad_norm)
        for rule, alarmed in RULES.items():
            rules[rule] += int(alarmed(course.value).sum())
    print(f"{make}, published rules on the gradient norm of runs without a spike: {rules}")
    assert rules["zclip"] > 100 * max(n_false, 1)


NOISE = {
    "Gaussian": lambda rng, n: rng.normal(size=n),
    "of heavy tails": lambda rng, n: rng.standard_t(4, size=n),
    "skewed": lambda rng, n: rng.exponential(size=n),
    "correlated": lambda rng, n: np.convolve(rng.normal(size=n + 40), np.ones(40) / 6, "valid")[:n],
    "doubled half way": lambda rng, n: rng.normal(size=n) * np.where(np.arange(n) < n / 2, 1, 2),
}


@pytest.mark.parametrize("name", NOISE)
def test_noise_is_no_spike_whatever_its_kind(name: str) -> None:
    rng = np.random.default_rng(5)
    value = 2 + 9 / np.sqrt(1 + np.arange(20_000) / 50) + 0.02 * NOISE[name](rng, 20_000)
    for printed in (value, np.round(value, 2)):
        course = Course.of(np.arange(20_000), np.full(20_000, np.nan), printed)
        assert not excursions(course, printed)[0]


def test_a_rise_that_lasts_is_a_divergence_and_one_that_ends_a_spike() -> None:
    rng = np.random.default_rng(0)
    loss = 2 + 0.01 * rng.normal(size=2_000)
    brief, lasting = loss.copy(), loss.copy()
    brief[1_500:1_560] += 0.5
    lasting[1_500:] += 0.5
    step, at = np.arange(2_000), np.full(2_000, np.nan)
    (spike,) = stability(Logged(step, at, {"loss": brief})).episodes
    assert (spike.kind, spike.start_step, spike.last_step) == ("spike", 1_500, 1_559)
    assert (spike.end_step, spike.ended, spike.rewind_step) == (1_560, "recovered", None)
    (divergence,) = stability(Logged(step, at, {"loss": lasting})).episodes
    assert (divergence.kind, divergence.end_step) == ("divergence", None)
    assert divergence.rewind_step == 1_400
    assert not divergence.is_saved
    assert divergence.skip_steps is not None
    assert divergence.skip_steps[0] == 1_401
    assert 1_600 <= divergence.skip_steps[1] <= 1_900


def test_a_restart_from_a_save_shows_what_was_lost_and_where_to_go_back_to() -> None:
    rng = np.random.default_rng(1)
    first = 2 + 0.01 * rng.normal(size=1_200)
    first[1_000:] += np.linspace(0.0, 3.0, 200)
    again = 2 + 0.01 * rng.normal(size=700)
    step = np.concatenate([np.arange(1_200), np.arange(900, 1_600)])
    event = np.zeros(len(step), dtype=np.int8)
    loss = np.concatenate([first, again])
    saves = np.flatnonzero((step % 300 == 0) & (np.arange(len(step)) < 1_200))
    step = np.insert(step, saves, step[saves])
    event, loss = np.insert(event, saves, 1), np.insert(loss, saves, np.nan)
    found = stability(Logged(step, np.full(len(step), np.nan), {"loss": loss}, event))
    (episode,) = found.episodes
    assert 1_000 <= episode.start_step <= 1_010
    assert (episode.ended, episode.last_step) == ("restart", 1_199)
    assert (episode.lost_steps, episode.rewind_step, episode.is_saved) == (300, 900, True)
    assert found.restarts == ((1_199, 900),)
    assert found.repeated_steps == 300
