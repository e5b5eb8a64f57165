"""Metrics of a training job, a sample a second, with one fault or none: what is true is known.

Written from what Minder (arXiv 2411.01791) says of faults and metrics and what the fields of DCGM
mean, before the detector was. A job steps through compute and communication, saves checkpoints,
starts or stops; machines differ by offsets, noise is autocorrelated, samples are missing, sensors
die. A fault moves some metrics of one machine, by an odd amount, at once or slowly.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[np.float64]]


class Metric(NamedTuple):
    """Levels of a healthy machine: at rest, while it communicates, while it computes; noise."""

    idle: float
    communicating: float
    computing: float
    noise: float
    most: float


METRICS = {
    "pfc_tx_packet_rate": Metric(2.0, 60.0, 20.0, 12.0, 1e7),
    "cpu_usage": Metric(3.0, 34.0, 28.0, 2.0, 100.0),
    "DCGM_FI_DEV_GPU_UTIL": Metric(0.5, 88.0, 97.0, 2.0, 100.0),
    "DCGM_FI_DEV_POWER_USAGE": Metric(75.0, 330.0, 480.0, 14.0, 720.0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": Metric(0.01, 0.86, 0.95, 0.02, 1.0),
    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE": Metric(0.0, 0.22, 0.46, 0.025, 1.0),
    "nvlink_bytes_per_second": Metric(1e5, 2.6e10, 9e9, 1.2e9, 4.5e11),
}
PFC, CPU, UTIL, POWER, GRAPHICS, TENSOR, NVLINK = METRICS


class Effect(NamedTuple):
    """What a fault does to a metric: how probable it shows, and its factor or addition."""

    chance: float
    factor: tuple[float, float] = (1.0, 1.0)
    added: tuple[float, float] = (0.0, 0.0)


_GPU_LOST = {
    UTIL: Effect(0.9, (0.0, 0.5)), POWER: Effect(0.9, (0.25, 0.7)),
    GRAPHICS: Effect(0.9, (0.0, 0.5)), TENSOR: Effect(0.9, (0.0, 0.5)),
}  # fmt: skip
FAULTS: dict[str, dict[str, Effect]] = {
    "ecc_error": {CPU: Effect(0.8, (0.1, 0.6)), **{m: Effect(0.66, (0.2, 0.75)) for m in _GPU_LOST}},
    "pcie_downgrade": {PFC: Effect(1.0, added=(400.0, 9000.0)), NVLINK: Effect(0.3, (0.6, 0.85))},
    "nic_dropout": {PFC: Effect(0.7, added=(200.0, 4000.0)), CPU: Effect(0.6, (0.3, 0.7)), NVLINK: Effect(0.6, (0.0, 0.4)), UTIL: Effect(0.4, (0.2, 0.7))},
    "gpu_card_drop": {**_GPU_LOST, CPU: Effect(0.5, (0.4, 0.8))},
    "nvlink_error": {NVLINK: Effect(1.0, (0.1, 0.6)), TENSOR: Effect(0.5, (0.5, 0.8)), PFC: Effect(0.3, added=(150.0, 900.0))},
    "aoc_error": {PFC: Effect(0.9, added=(150.0, 3000.0)), CPU: Effect(0.2, (0.6, 0.8))},
    "cuda_error": {CPU: Effect(0.7, (0.05, 0.5)), **{m: Effect(0.75, (0.0, 0.6)) for m in _GPU_LOST}},
    "gpu_execution_error": {CPU: Effect(0.5, (0.3, 0.7)), **{m: Effect(0.8, (0.0, 0.6)) for m in _GPU_LOST}},
    "hdfs_error": {CPU: Effect(0.9, (1.4, 2.6)), UTIL: Effect(0.4, (0.5, 0.85))},
    "unreachable": {},
    "thermal_throttle": {POWER: Effect(1.0, (0.6, 0.82)), TENSOR: Effect(0.8, (0.6, 0.85)), GRAPHICS: Effect(0.4, (0.85, 0.95))},
    "cpu_overload": {CPU: Effect(1.0, added=(20.0, 60.0))},
}  # fmt: skip
HEALTHY = (
    "plain",
    "blip",
    "start_up",
    "whole_stop",
    "dead_sensor",
    "gaps",
    "long_phase",
    "stages",
    "kinds",
)

"""What is around a case without a fault."""
AROUND = ("plain", "plain", "start_up", "long_phase", "stages", "kinds")
"""What is around a fault."""


@dataclass(frozen=True)
class Case:
    """Samples by metric, (second, machine), NaN where missing; and what is true of them."""

    kind: str
    values: dict[str, Array]
    machine: int | None = None
    since: int | None = None
    """Second from which on the machine is faulty."""
    metrics: tuple[str, ...] = ()
    names: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        n = next(iter(self.values.values())).shape[1]
        object.__setattr__(self, "names", tuple(f"gpu-{i:04d}" for i in range(n)))


def cases(seed: int, n: int, *, most_machines: int = 256) -> Iterator[Case]:
    """Half with a fault of each kind in turn, half healthy, of 32 machines and more."""
    for i in range(n):
        chance = np.random.default_rng([seed, i])
        kinds = tuple(FAULTS) if i % 2 else HEALTHY
        n_machines = int(32 * (most_machines / 32) ** chance.random())
        yield case(kinds[i // 2 % len(kinds)], chance, n_machines)


def case(kind: str, chance: np.random.Generator, n: int = 64, *, seconds: int = 900) -> Case:
    """One pull of a kind of `FAULTS` or `HEALTHY`."""
    around = str(chance.choice(AROUND)) if kind in FAULTS else kind
    activity = _activity(chance, seconds, n, around)
    own = (
        np.where(chance.random(n) < chance.uniform(0.05, 0.5), chance.uniform(0.6, 0.9), 1.0)
        if around == "kinds"
        else 1.0
    )
    spread = chance.choice([0.01, 0.03, 0.06])
    values = {
        name: _samples(chance, metric, activity, spread, own) for name, metric in METRICS.items()
    }
    machine = int(chance.integers(n))
    if kind in FAULTS:
        since = int(chance.integers(60, seconds - 360))
        until = (
            seconds
            if chance.random() < 0.7
            else min(seconds, since + int(chance.integers(300, 600)))
        )
        shown = _fault(chance, values, kind, machine, slice(since, until))
        found = Case(kind, values, machine, since, shown)
    else:
        if kind == "blip":
            at = int(chance.integers(60, seconds - 120))
            _fault(
                chance,
                values,
                str(chance.choice(["gpu_card_drop", "cpu_overload", "pcie_downgrade"])),
                machine,
                slice(at, at + 60),
            )
        if kind == "dead_sensor":
            _dead(chance, values, n)
        found = Case(kind, values)
    _missing(chance, values, much=kind == "gaps")
    return found


def _activity(chance: np.random.Generator, seconds: int, n: int, kind: str) -> Array:
    """What each machine does at each second: 0 rests, 1 communicates, 2 computes; in between."""
    skew = chance.normal(0.0, 0.4, n)
    at = np.arange(seconds)[:, None] + skew
    period, share = chance.uniform(4.0, 40.0), chance.uniform(0.5, 0.85)
    late = np.arange(n) * 4 // n * period / 4 if kind == "stages" else 0.0
    doing = 1.0 + ((at + late) % period < share * period)
    every, length = chance.uniform(150.0, 400.0), chance.uniform(5.0, 40.0)
    doing[(at + chance.uniform(0, every)) % every < length] = 0.35
    if kind == "long_phase":  # an evaluation, say
        start = chance.uniform(100.0, 500.0)
        doing[(at > start) & (at < start + chance.uniform(100.0, 400.0))] = 1.0
    if kind == "start_up":
        doing[at < chance.uniform(60.0, 500.0) + chance.uniform(0.0, 60.0, n)] = 0.0
    if kind == "whole_stop":
        doing[at > chance.uniform(200.0, 700.0) + chance.exponential(6.0, n)] = 0.0
    return doing


def _samples(
    chance: np.random.Generator, metric: Metric, doing: Array, spread: float, kind: Array | float
) -> Array:
    """Levels by activity, times the machine's own factor, plus noise that remembers itself."""
    seconds, n = doing.shape
    level = np.interp(doing, [0.0, 1.0, 2.0], [metric.idle, metric.communicating, metric.computing])
    memory = chance.uniform(0.0, 0.9)
    white = chance.normal(0.0, metric.noise * chance.uniform(0.5, 1.5), (seconds, n))
    noise = lfilter([np.sqrt(1 - memory**2)], [1.0, -memory], white, axis=0)
    own = kind * (1.0 + spread * chance.normal(size=n))
    quiet = 0.3 + 0.7 * np.minimum(doing, 1.0)
    return np.clip(level * own + noise * quiet, 0.0, metric.most)


def _fault(
    chance: np.random.Generator, values: dict[str, Array], kind: str, machine: int, when: slice
) -> tuple[str, ...]:
    """Moves the metrics of one machine; which ones it moved."""
    if kind == "unreachable":
        for array in values.values():
            array[when, machine] = np.nan
        return tuple(values)
    effects = FAULTS[kind]
    shown = [m for m, effect in effects.items() if chance.random() < effect.chance] or list(
        effects
    )[:1]
    ramp = np.minimum(1.0, np.arange(when.stop - when.start) / chance.choice([1.0, 20.0, 60.0]))
    for name in shown:
        effect, before = effects[name], values[name][when, machine]
        after = before * chance.uniform(*effect.factor) + chance.uniform(*effect.added)
        values[name][when, machine] = np.clip(
            before + ramp * (after - before), 0, METRICS[name].most
        )
    return tuple(shown)


def _dead(chance: np.random.Generator, values: dict[str, Array], n: int) -> None:
    """Sensors that say nothing, 0, or their last value for ever; each of another machine."""
    machines = chance.choice(n, 3, replace=False)
    names = chance.choice(list(METRICS), 3)
    from_second = int(chance.integers(1, 400))
    values[names[0]][:, machines[0]] = np.nan
    values[names[1]][:, machines[1]] = 0.0
    values[names[2]][from_second:, machines[2]] = values[names[2]][from_second - 1, machines[2]]


def _missing(chance: np.random.Generator, values: dict[str, Array], *, much: bool) -> None:
    """Samples that were lost: one by one, and in gaps of up to two minutes."""
    for array in values.values():
        seconds, n = array.shape
        array[chance.random(array.shape) < (0.05 if much else 0.003)] = np.nan
        for _ in range(n // 2 if much else 2):
            start, i = int(chance.integers(seconds)), int(chance.integers(n))
            array[start : start + int(chance.integers(5, 120 if much else 30)), i] = np.nan
