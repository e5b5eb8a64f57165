"""Runs of another make than `generated_runs`: a loss in closed form, four shapes of a spike."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
SHAPES = ("hat", "sawtooth", "tent", "step")


@dataclass(frozen=True)
class PlainRun:
    """A run, row by row, and the first and last step of its spike; none where there is none."""

    step: NDArray[np.int64]
    loss: Floats
    grad_norm: Floats
    spike: tuple[int, int] | None


def plain_run(seed: int, shape: str | None = None) -> PlainRun:
    """A run with warm-up, two changes of the schedule and restarts, with a spike or without."""
    rng = np.random.default_rng((77, seed))
    n = int(rng.integers(3_000, 9_000))
    rows = np.arange(n)
    scale = rng.choice([0.4, 1.0, 3.0])
    course = scale * (2.1 + 4.5 * np.exp(-rows / (0.12 * n)) + 1.2 / np.sqrt(1 + rows / 60))
    for at in rng.uniform(0.3, 0.9, 2) * n:  # the learning rate falls, the loss follows
        course -= 0.03 * scale * (1 - np.exp(-np.maximum(rows - at, 0.0) / 25)) * (rows >= at)
    sigma = rng.uniform(0.004, 0.02) * np.where(rows > rng.uniform(0.2, 0.8) * n, 0.6, 1.0)
    drawn = rng.normal(size=n) if rng.random() < 0.7 else rng.standard_t(6, size=n) * 0.82
    for row in range(1, n if rng.random() < 0.4 else 0):
        drawn[row] = 0.5 * drawn[row - 1] + 0.87 * drawn[row]
    warm = 1 + 3 * np.exp(-rows / 90)
    norm = rng.uniform(0.2, 2.0) * warm * np.exp(rng.uniform(0.05, 0.25) * rng.normal(size=n))
    excess, spike = _excess(rng, n, shape)
    loss = course * np.exp(sigma * drawn) * (1 + excess)
    norm *= 1 + rng.uniform(4, 20) * excess
    order = [rows]
    for _ in range(int(rng.integers(0, 4))):
        end = int(rng.integers(n // 4, n))
        if spike is None or not spike[0] - 60 < end < spike[1] + 400:
            order.append(np.arange(max(end - int(rng.integers(20, 300)), 0), end))
    ends = sorted((int(part[-1]) + 1, part) for part in order[1:])
    logged, behind = [], 0
    for end, part in ends:
        logged += [rows[behind:end], part]
        behind = end
    at = np.concatenate([*logged, rows[behind:]])
    return PlainRun(at + 1, loss[at], norm[at], spike)


def _excess(
    rng: np.random.Generator, n: int, shape: str | None
) -> tuple[Floats, tuple[int, int] | None]:
    """Relative rise of the loss a row."""
    excess = np.zeros(n)
    if shape is None:
        return excess, None
    at, width = int(rng.uniform(0.2, 0.85) * n), int(rng.integers(2, 120))
    height = float(np.exp(rng.uniform(np.log(0.2), np.log(2.0))))
    if shape == "step":
        width = n - at
    inside = np.arange(width)
    course = {
        "hat": np.ones(width),
        "sawtooth": 1 - inside / width,
        "tent": 1 - np.abs(2 * (inside + 0.5) / width - 1),
        "step": np.minimum((inside + 1) / 6, 1.0),
    }[shape]
    excess[at : at + width] = height * course
    return excess, (at + 1, min(at + width, n - 1) + 1)
