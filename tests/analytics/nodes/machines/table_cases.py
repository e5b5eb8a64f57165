"""A fifth family of cases: faults as Minder's table has them, on a plain periodic load.

All machines follow one wave of iterations, each metric with a share of it, each machine with a gain
of its own; noise is normal. Twelve faults move some of the metrics that they are said to move, by a
share of their usual level, at once or within a minute or two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.analytics.nodes.machines.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[np.float64]]

# name: level, share of it that follows the wave, relative noise
METRICS = {
    "pfc_tx_packets": (40.0, 0.3, 0.25),
    "cpu_usage": (35.0, 0.2, 0.06),
    "gpu_duty_cycle": (88.0, 0.15, 0.03),
    "gpu_power_draw": (520.0, 0.2, 0.03),
    "gpu_graphics_engine_activity": (0.82, 0.2, 0.03),
    "gpu_tensor_activity": (0.45, 0.3, 0.05),
    "gpu_nvlink_bandwidth": (140.0, 0.4, 0.08),
}
PFC, CPU, DUTY, POWER, GRAPHICS, TENSOR, NVLINK = METRICS
ENGINES = (DUTY, POWER, GRAPHICS, TENSOR)
# fault: metrics that may move, with the chance that each does; least and most factor
FAULTS = {
    "ecc": ({CPU: 0.8, DUTY: 0.7, POWER: 0.6, GRAPHICS: 0.5, TENSOR: 0.5}, (0.1, 0.7)),
    "pcie_downgrade": ({PFC: 1.0, NVLINK: 0.3}, (3.0, 8.0)),
    "nic_dropout": ({CPU: 1.0, DUTY: 0.9, TENSOR: 0.9, PFC: 0.5}, (0.05, 0.5)),
    "gpu_drop": ({CPU: 0.7, **dict.fromkeys(ENGINES, 0.9)}, (0.02, 0.4)),
    "nvlink_error": ({NVLINK: 0.8, CPU: 0.7, DUTY: 0.6}, (0.1, 0.6)),
    "aoc_error": ({CPU: 0.5, PFC: 1.0}, (2.5, 6.0)),
    "cuda_error": ({CPU: 0.8, **dict.fromkeys(ENGINES, 0.7)}, (0.1, 0.6)),
    "gpu_error": ({DUTY: 0.9, POWER: 0.8, TENSOR: 0.8}, (0.2, 0.7)),
    "hdfs_error": ({CPU: 0.9}, (1.5, 2.6)),
    "unreachable": ({}, (1.0, 1.0)),
    "throttled": ({POWER: 1.0, TENSOR: 1.0}, (0.5, 0.75)),
    "busy_host": ({CPU: 1.0, DUTY: 0.4}, (1.7, 2.8)),
}
HEALTHY = ("plain", "noisy", "gaps", "phases", "start_up", "dead", "blip", "all_stop")


def cases(seed: int, n: int, *, most_machines: int = 256) -> Iterator[Case]:
    """Half with a fault of each kind in turn, half healthy."""
    for i in range(n):
        chance = np.random.default_rng([seed, i, 5])
        kinds = list(FAULTS) if i % 2 else HEALTHY
        n_machines = int(32 * (most_machines / 32) ** chance.random())
        yield case(kinds[i // 2 % len(kinds)], chance, n_machines)


def case(kind: str, chance: np.random.Generator, n: int = 64, *, seconds: int = 900) -> Case:
    """One pull of a kind of `FAULTS` or `HEALTHY`."""
    around = str(chance.choice(HEALTHY[:6])) if kind in FAULTS else kind
    time = np.arange(seconds)[:, None]
    period = chance.uniform(6, 45)
    wave = np.sin(2 * np.pi * (time / period + chance.normal(0, 0.02, n)))
    on = _on(chance, around, seconds, n)
    louder = 2.0 if around == "noisy" else 1.0
    values = {}
    for name, (level, share, noise) in METRICS.items():
        gain = chance.normal(1.0, 0.03, n)
        readings = level * gain * on * (1 + share * wave)
        readings += level * noise * louder * chance.normal(size=(seconds, n))
        values[name] = np.maximum(readings, 0.0)
    machine = int(chance.integers(n))
    since, metrics = None, ()
    if kind in FAULTS:
        since = int(chance.integers(60, seconds - 400))
        metrics = _spoil(kind, chance, values, machine, since)
    if around == "blip":
        begin, name = int(chance.integers(100, 700)), str(chance.choice(list(METRICS)))
        values[name][begin : begin + 60, int(chance.integers(n))] *= chance.uniform(0.1, 0.5)
    if around == "dead":
        for _ in range(int(chance.integers(1, 4))):
            other, name = int(chance.integers(n)), str(chance.choice(list(METRICS)))
            if other != machine:
                values[name][:, other] = chance.choice([0.0, np.nan, values[name][0, other]])
    missing = 0.05 if around == "gaps" else 0.002
    for readings in values.values():
        readings[chance.random(readings.shape) < missing] = np.nan
    if kind not in FAULTS:
        return Case(kind, values)
    return Case(kind, values, machine, since, metrics)


def _on(chance: np.random.Generator, around: str, seconds: int, n: int) -> Array:
    """How much of its usual load each machine has, by second."""
    time = np.arange(seconds)[:, None]
    on = np.ones((seconds, n))
    if around == "phases":  # evaluation now and then, by all machines at once
        on[(time[:, 0] % int(chance.integers(200, 400))) < 40] = 0.35
    if around == "start_up":
        on *= np.clip((time - chance.uniform(0, 90) - chance.uniform(0, 8, n)) / 40, 0.05, 1)
    if around == "all_stop":
        on[int(chance.integers(200, 700)) :] = 0.05
    return on


def _spoil(
    kind: str, chance: np.random.Generator, values: dict[str, Array], machine: int, since: int
) -> tuple[str, ...]:
    """Puts a fault into a machine's samples; the metrics that it moves."""
    may, (least, most) = FAULTS[kind]
    if kind == "unreachable":
        for readings in values.values():
            readings[since:, machine] = np.nan
        return tuple(values)
    moved = [name for name, p in may.items() if chance.random() < p] or [next(iter(may))]
    slowly = max(1, int(chance.choice([1, 1, 30, 90])))
    for name in moved:
        factor = chance.uniform(least, most)
        after = np.clip(np.arange(len(values[name]) - since) / slowly, 0, 1)
        values[name][since:, machine] *= 1 + (factor - 1) * after
    return tuple(moved)
