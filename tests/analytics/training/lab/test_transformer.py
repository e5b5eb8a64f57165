"""The transformer of the lab: its loss, its gradient, its optimizer, and that runs share nothing."""

from __future__ import annotations

import numpy as np
import pytest

from analytics.training.lab.training import MITIGATIONS, Recipe, State, Task, smooth, step
from analytics.training.lab.transformer import Pass, Shape

SMALL = Shape(n_tokens=5, length=4, width=4, n_heads=2, n_layers=2, hidden=6)


def tokens(shape: Shape, *sizes: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, shape.n_tokens, (*sizes, shape.length + 1))


def test_what_knows_nothing_guesses_evenly_and_attends_evenly() -> None:
    shape = Shape()
    seen = Pass(shape, np.zeros((1, shape.n_parameters), np.float32), tokens(shape, 1, 3)).seen
    assert seen.loss[0] == pytest.approx(np.log(shape.n_tokens), rel=1e-6)
    entropy = np.mean(np.log(np.arange(1, shape.length + 1)))
    assert seen.attention_entropy[0] == pytest.approx(entropy, rel=1e-6)
    assert (seen.query_norm[0], seen.key_norm[0]) == (0, 0)


@pytest.mark.parametrize("qk_norm", [False, True])
def test_the_gradient_is_that_of_finite_differences(qk_norm: bool) -> None:
    shape = Shape(**{**vars(SMALL), "qk_norm": qk_norm})
    rng = np.random.default_rng(1)
    start = shape.initial(rng).astype(np.float64) * 3
    given, reach = tokens(shape, 1, 3), 1e-5
    told = Pass(shape, start[None], given).gradient()[0]
    eye = reach * np.eye(shape.n_parameters)
    many = np.broadcast_to(given, (shape.n_parameters, *given.shape[1:]))
    above, below = (Pass(shape, start + sign * eye, many).seen.loss for sign in (1, -1))
    np.testing.assert_allclose(told, (above - below) / (2 * reach), atol=2e-6, rtol=2e-4)
    assert np.abs(told).max() > 0.05


def test_a_token_is_not_seen_before_its_turn() -> None:
    rng = np.random.default_rng(2)
    parameters, given = SMALL.initial(rng)[None], tokens(SMALL, 1, 1)
    other = given.copy()
    other[..., -2] = (other[..., -2] + 1) % SMALL.n_tokens
    one, two = Pass(SMALL, parameters, given), Pass(SMALL, parameters, other)
    np.testing.assert_array_equal(one.chance[:, :-1], two.chance[:, :-1])
    assert not np.array_equal(one.chance[:, -1], two.chance[:, -1])


def test_the_first_update_of_adam_is_the_learning_rate_in_each_direction() -> None:
    recipe = Recipe(shape=SMALL, replicas=2, warmup=1, learning_rate=0.01)
    state = State.initial(recipe, [[0]])
    before = state.parameters.copy()
    given = tokens(SMALL, 1, 2, 2)
    gradient = Pass(SMALL, before[0], given[0]).gradient().mean(axis=0)
    step(recipe, state, 0, given)
    moved = (before - state.parameters)[0, 0] - 0.01 * 0.01 * before[0, 0]
    clear = np.abs(gradient) > 1e-4
    np.testing.assert_allclose(moved[clear], 0.01 * np.sign(gradient[clear]), rtol=2e-3)


def test_runs_side_by_side_are_those_that_run_alone_bit_for_bit() -> None:
    recipe = Recipe(shape=SMALL, replicas=2)
    task = Task.drawn(SMALL.n_tokens, np.random.default_rng(3))
    given = task.sequences(np.random.default_rng(4), 3 * 5 * 4, SMALL.length).reshape(
        5, 3, 2, 2, -1
    )
    together, alone = State.initial(recipe, [[1], [2], [3]]), State.initial(recipe, [[2]])
    for at in range(5):
        shown = step(recipe, together, at, given[at])
        step(recipe, alone, at, given[at, 1:2])
        assert not shown.replicas_differ.any()
    np.testing.assert_array_equal(together.parameters[1:2], alone.parameters)


def test_a_run_learns_the_task() -> None:
    recipe = Recipe(shape=Shape(n_tokens=8, length=6, width=8, hidden=16), replicas=2, sequences=8)
    task = Task.drawn(8, np.random.default_rng(5))
    given = task.sequences(np.random.default_rng(6), 60 * 16, 6).reshape(60, 1, 2, 8, -1)
    state = State.initial(recipe, [[1]])
    losses = [step(recipe, state, at, given[at]).loss.mean() for at in range(60)]
    assert np.mean(losses[-10:]) < losses[0] - 0.3


def test_clipping_bounds_the_gradient_that_is_used() -> None:
    recipe = MITIGATIONS["gradient_clipping"](Recipe(shape=SMALL, replicas=1))
    state = State.initial(recipe, [[0]])
    state.parameters *= 30
    shown = step(recipe, state, 0, tokens(SMALL, 1, 1, 2))
    assert shown.gradient_norm[0] > 1
    used = state.first / np.float32(0.1)
    assert np.linalg.norm(used) == pytest.approx(1.0, rel=1e-3)


def test_smoothing_caps_a_singular_value_that_sticks_out_and_nothing_else() -> None:
    recipe = MITIGATIONS["singularity_smoothing"](Recipe())
    rng = np.random.default_rng(7)
    flat = np.stack([recipe.shape.initial(rng)] * 3)
    flat[2, -1] = np.nan
    whole = flat[0].copy()
    recipe.shape.views(flat)["hidden_0"][1, 3, 5] = 1000.0
    smooth(recipe, flat)
    np.testing.assert_array_equal(flat[0], whole)
    assert np.isnan(flat[2, -1])
    spectrum = np.linalg.svd(recipe.shape.views(flat)["hidden_0"][1], compute_uv=False)
    assert spectrum[0] / np.median(spectrum) == pytest.approx(recipe.smooth_ratio, rel=1e-4)
