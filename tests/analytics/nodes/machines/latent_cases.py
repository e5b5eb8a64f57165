"""A fourth family of cases: no training job, but hidden loads that drive all metrics.

Two hidden loads, one that jumps between levels at random and one that wanders, drive each metric
through a gain and an exponent of its own; a machine answers with its own gain and a lag. Noise is
Laplace's or Poisson's, counters are bursty, percents saturate. Faults are what an instrument would
see: a gain lost, a level added, a rest, a limit, a slow drift, one that comes and goes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.signal import lfilter

from tests.analytics.nodes.machines.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[np.float64]]

# name: largest value, share of the first load, exponent, relative noise, whole numbers
METRICS = {
    "rx_pause_rate": (200.0, 0.2, 1.0, 0.0, True),
    "cpu_percent": (100.0, 0.5, 0.7, 0.05, False),
    "gpu_duty_cycle": (100.0, 0.9, 0.3, 0.01, True),
    "power_watts": (5600.0, 0.9, 0.6, 0.02, True),
    "graphics_engine_active": (1.0, 0.9, 0.4, 0.015, False),
    "tensor_active": (0.6, 1.0, 1.0, 0.03, False),
    "nvlink_gigabytes": (300.0, 0.6, 1.2, 0.08, False),
}
PAUSES, CPU, *GPU, LINK = METRICS
FAULTS = {
    "all_gpus_rest": GPU, "half_of_gpus_rest": GPU, "clock_limit": ["power_watts", "tensor_active"],
    "slow_links": [LINK], "pauses": [PAUSES], "pauses_and_links": [PAUSES, LINK],
    "busy_cpu": [CPU], "idle_cpu": [CPU, "gpu_duty_cycle"], "slow_drift": ["power_watts", "tensor_active"],
    "comes_and_goes": [CPU, *GPU], "capped": ["power_watts"], "all_rests": [CPU, *GPU, LINK],
}  # fmt: skip
HEALTHY = ("quiet", "jumpy", "minute", "begins", "ends", "half_differs", "dead", "holes", "lagging")


def cases(seed: int, n: int, *, most_machines: int = 256) -> Iterator[Case]:
    """Half with a fault of each kind in turn, half healthy."""
    for i in range(n):
        chance = np.random.default_rng([seed, i, 4])
        n_machines = int(32 * (most_machines / 32) ** chance.random())
        kinds = list(FAULTS) if i % 2 else HEALTHY
        yield case(kinds[i // 2 % len(kinds)], chance, n_machines)


def case(  # noqa: C901 - one branch a thing that differs
    kind: str, chance: np.random.Generator, n: int = 64, *, seconds: int = 900
) -> Case:
    """One pull of a kind of `FAULTS` or `HEALTHY`."""
    around = str(chance.choice([k for k in HEALTHY if k != "ends"])) if kind in FAULTS else kind
    loads = [_jumping(chance, seconds, around), _wandering(chance, seconds)]
    on = np.ones((seconds, n))
    if around == "begins":
        on *= np.arange(seconds)[:, None] > chance.uniform(60, 400) + chance.uniform(0, 30, n)
    if around == "ends":
        on *= np.arange(seconds)[:, None] < chance.uniform(250, 750) + chance.uniform(0, 30, n)
    memory = chance.uniform(0.3, 0.9 if around == "lagging" else 0.6, n)
    values = {}
    machine, since = int(chance.integers(n)), int(chance.integers(100, seconds - 320))
    for name, (most, share, exponent, noise, whole) in METRICS.items():
        load = (share * loads[0] + (1.0 - share) * loads[1])[:, None] * on
        load = np.stack(
            [lfilter([1 - m], [1, -m], load[:, i]) for i, m in enumerate(memory)], axis=1
        )
        gain = 1.0 + 0.03 * chance.laplace(0.0, 0.7, n)
        if around == "half_differs":
            gain[: n // 2] *= 0.7
        level = 0.9 * most * gain * np.clip(load, 0.0, 1.2) ** exponent
        if name == PAUSES:
            level = 0.02 * level * chance.gamma(0.3, 3.0, (seconds, n))
        if kind in FAULTS and name in FAULTS[kind]:
            _spoil(chance, kind, level[since:, machine], most, name)
        if around == "minute" and chance.random() < 0.4:
            at, who = int(chance.integers(50, 800)), machine if kind == around else machine - 1
            level[at : at + 60, who] *= chance.uniform(0.1, 2.0)
        if name == PAUSES:
            read = chance.poisson(level).astype(float)
        else:
            read = np.clip(
                level * (1.0 + noise * chance.laplace(0.0, 1.0, (seconds, n))), 0.0, most
            )
        values[name] = np.round(read) if whole else read
    for name, array in values.items():
        array[chance.random(array.shape) < (0.05 if around == "holes" else 0.01)] = np.nan
        if around == "dead" and name in (CPU, LINK):
            who = (machine + 1 + list(METRICS).index(name)) % n
            array[int(chance.integers(2, 500)) :, who] = chance.choice([0.0, np.nan, array[1, who]])
    if kind not in FAULTS:
        return Case(kind, values)
    return Case(kind, values, machine, since, tuple(FAULTS[kind]))


def _spoil(chance: np.random.Generator, kind: str, level: Array, most: float, name: str) -> None:
    """Changes the readings of the faulty machine in place."""
    n = len(level)
    if name == PAUSES:
        level += most * chance.uniform(1.0, 20.0)
    elif kind in ("all_gpus_rest", "all_rests"):
        level *= 0.13 if name == "power_watts" else 0.0
    elif kind == "busy_cpu":
        level += most * chance.uniform(0.25, 0.6)
    elif kind == "slow_drift":
        level *= np.maximum(1.0 - np.arange(n) / 120.0, chance.uniform(0.4, 0.6))
    elif kind == "comes_and_goes":
        level *= np.where(np.arange(n) % 30 < 22, chance.uniform(0.2, 0.5), 1.0)
    elif kind == "capped":
        np.minimum(level, most * chance.uniform(0.3, 0.5), out=level)
    else:
        level *= chance.uniform(0.3, 0.65)


def _jumping(chance: np.random.Generator, seconds: int, around: str) -> Array:
    """A load that stays for a while at each of a few levels."""
    stays = 8.0 if around == "jumpy" else 25.0
    levels, load = chance.uniform(0.45, 1.0, 3), np.empty(seconds)
    at = 0
    while at < seconds:
        until = at + 2 + int(chance.exponential(stays))
        load[at:until] = chance.choice(levels)
        at = until
    return load


def _wandering(chance: np.random.Generator, seconds: int) -> Array:
    """A load that moves slowly."""
    walk = lfilter([0.02], [1.0, -0.99], chance.normal(size=seconds))
    return np.clip(0.7 + walk, 0.2, 1.0)
