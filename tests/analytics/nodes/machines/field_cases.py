"""A third family of cases: a synchronous job as DCGM's fields and reports of incidents tell it.

Here the job itself reacts: where a machine dies, the others spin in their collective until the
watchdog; where a machine is slow, all wait for it, so that it is the busiest of all and not the
idlest. Pause frames come in bursts, utilisation is whole percents averaged over eight GPUs, stages
of the pipeline take turns, racks run hotter, clocks of collectors jitter, 5 % of samples are lost.
Sizes of effects are those of data sheets (idle, spinning and training power; clocks under a brake),
not shares of any spread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.analytics.nodes.machines.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[np.float64]]

PAUSE, CPU, UTIL, POWER, SM, TENSOR, NVLINK = METRICS = (
    "pfc_tx_pause_packets", "node_cpu_utilisation", "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_POWER_USAGE", "DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
    "DCGM_FI_PROF_NVLINK_TX_BYTES",
)  # fmt: skip
# What a machine does: it computes, talks to others, waits in a collective, loads data, rests.
COMPUTES, TALKS, SPINS, LOADS, RESTS = range(5)
LEVELS = {
    CPU: (14.0, 17.0, 12.0, 30.0, 1.5),
    UTIL: (99.0, 97.0, 100.0, 25.0, 0.0),
    POWER: (610.0, 400.0, 190.0, 130.0, 72.0),
    SM: (0.78, 0.42, 0.93, 0.05, 0.0),
    TENSOR: (0.52, 0.10, 0.0, 0.0, 0.0),
    NVLINK: (9e9, 6.5e10, 2e6, 1e8, 0.0),
}
MOST = {CPU: 100.0, UTIL: 100.0, POWER: 720.0, SM: 1.0, TENSOR: 1.0, NVLINK: 4.5e11}
FAULTS = (
    "fell_off_bus", "process_died", "power_brake", "hot", "row_remap", "pcie_width", "nic_errors",
    "nvlink_lanes", "cpu_hog", "slow_storage", "hung_driver", "host_gone",
)  # fmt: skip
HEALTHY = (
    "steady", "blip", "start_up", "job_ends", "long_checkpoint", "restart", "dead_sensors",
    "rack_unseen", "two_kinds", "pipeline", "evaluation", "congestion",
)  # fmt: skip
AROUND = ("steady", "steady", "start_up", "two_kinds", "pipeline", "congestion", "long_checkpoint")
"""What is around a fault; every fourth case has dead sensors besides."""
TOTAL = ("fell_off_bus", "process_died", "hung_driver", "host_gone")
"""Faults that stop the job: the others spin."""


def cases(seed: int, n: int, *, most_machines: int = 256) -> Iterator[Case]:
    """Half with a fault of each kind in turn, half healthy."""
    for i in range(n):
        chance = np.random.default_rng([seed, i, 3])
        n_machines = int(32 * (most_machines / 32) ** chance.random())
        kinds = FAULTS if i % 2 else HEALTHY
        yield case(kinds[i // 2 % len(kinds)], chance, n_machines)


def case(kind: str, chance: np.random.Generator, n: int = 64, *, seconds: int = 900) -> Case:
    """One pull of a kind of `FAULTS` or `HEALTHY`."""
    faulty = kind in FAULTS
    around = str(chance.choice(AROUND)) if faulty else kind
    machine, since = int(chance.integers(n)), int(chance.integers(90, seconds - 330))
    doing = _doing(chance, seconds, n, around)
    if faulty and kind in TOTAL:
        doing[since + 2 :] = SPINS
        doing[since:, machine] = RESTS
    values = _readings(chance, doing, around)
    shown: tuple[str, ...] = ()
    if faulty:
        shown = _spoil(chance, kind, values, doing, machine, since)
    elif kind == "blip":
        _blip(chance, values, machine)
    if kind == "dead_sensors" or (faulty and chance.random() < 0.25):
        _dead(chance, values, [i for i in range(n) if i != machine])
    if kind == "rack_unseen":
        first, at = int(chance.integers(n - 2)), int(chance.integers(100, 600))
        for array in values.values():
            array[at : at + int(chance.integers(60, 240)), first : first + max(2, n // 16)] = np.nan
    for array in values.values():
        array[chance.random(array.shape) < 0.05] = np.nan
    if kind == "host_gone":
        for array in values.values():
            array[since:, machine] = np.nan
    return Case(kind, values, machine if faulty else None, since if faulty else None, shown)


def _doing(chance: np.random.Generator, seconds: int, n: int, around: str) -> Array:
    """What each machine does in each second, seen by clocks that are not quite those of others."""
    at = np.arange(seconds)[:, None] + chance.uniform(-0.5, 0.5, n)
    at = at + chance.normal(0.0, 0.15, (seconds, n))
    period = float(chance.choice([chance.uniform(2.0, 9.0), chance.uniform(9.0, 35.0)]))
    if around == "pipeline":
        stages = int(chance.choice([2, 4, 8]))
        at = at + (np.arange(n) // max(1, n // stages)) * period / stages
    doing = np.where(at % period < chance.uniform(0.55, 0.9) * period, COMPUTES, TALKS)
    every, stall = chance.uniform(180.0, 600.0), chance.uniform(3.0, 25.0)
    if around == "long_checkpoint":
        stall = chance.uniform(40.0, 120.0)
    begun = chance.uniform(0.0, every)
    doing[(at + begun) % every < stall] = SPINS
    writer = int(chance.integers(n))  # one rank writes on while the others train again
    doing[(at[:, writer] + begun) % every < min(55.0, 2 * stall), writer] = SPINS
    if around == "evaluation":
        start = chance.uniform(60.0, 400.0)
        inside = (at > start) & (at < start + chance.uniform(100.0, 350.0))
        doing[inside] = np.where(at % 5.0 < 2.5, TALKS, LOADS)[inside]
    if around in ("start_up", "restart"):
        stop = 0.0 if around == "start_up" else chance.uniform(100.0, 400.0)
        ready = stop + chance.uniform(60.0, 300.0) + chance.exponential(15.0, n).clip(0, 90)
        doing[(at > stop) & (at < ready)] = LOADS
        doing[(at > ready) & (at < ready.max())] = SPINS
        doing[(at > stop) & (at < stop + 20.0)] = RESTS
    if around == "job_ends":
        doing[at > chance.uniform(200.0, 750.0) + chance.exponential(5.0, n).clip(0, 40)] = RESTS
    return doing.astype(np.int64)


def _readings(chance: np.random.Generator, doing: Array, around: str) -> dict[str, Array]:
    """What sensors read: eight GPUs' mean, each machine with its own silicon and place."""
    seconds, n = doing.shape
    values = {}
    kind = np.ones(n)
    if around == "two_kinds":
        kind[: max(3, int(n * chance.uniform(0.05, 0.5)))] = chance.uniform(0.55, 0.85)
        kind = chance.permutation(kind) if chance.random() < 0.5 else kind
    rack = np.repeat(chance.normal(0.0, 0.015, n // 8 + 1), 8)[:n]
    for name, levels in LEVELS.items():
        level = np.array(levels)[doing]
        own = 1.0 + chance.normal(0.0, 0.12 if name == CPU else 0.025, n)
        if name in (POWER, NVLINK, TENSOR):
            own = own * kind
        if name == POWER:
            own = own * (1.0 + rack)
            drift = np.cumsum(chance.normal(0.0, 0.0006, (seconds, n)), axis=0)
            level = level * (1.0 + drift)
        noise = 0.06 if name in (CPU, NVLINK) else 0.02
        read = level * own * (1.0 + noise * chance.standard_t(6, (seconds, n)))
        values[name] = np.clip(read, 0.0, MOST[name])
    values[UTIL] = np.round(values[UTIL] * 8) / 8
    often = 0.03 if around != "congestion" else 0.3
    bursts = chance.random((seconds, n)) < often * (doing == TALKS)
    values[PAUSE] = np.round(bursts * chance.lognormal(4.0, 1.2, (seconds, n)))
    return values


def _spoil(  # noqa: C901 - one branch a kind
    chance: np.random.Generator,
    kind: str,
    values: dict[str, Array],
    doing: Array,
    machine: int,
    since: int,
) -> tuple[str, ...]:
    """What the fault does to its machine's readings; the metrics that show it."""

    def times(factor: float, *names: str, ramp: float = 1.0) -> None:
        """Readings of some metrics, from now on so many times what they were."""
        grown = np.minimum(1.0, np.arange(1, len(doing) - since + 1) / ramp)
        for name in names:
            values[name][since:, machine] *= 1.0 + (factor - 1.0) * grown

    lasting = len(doing) - since
    if kind == "fell_off_bus":  # seven of eight GPUs are left, and nobody uses them
        return (UTIL, POWER, SM)
    if kind == "process_died":
        return (CPU, UTIL, POWER, SM)
    if kind == "hung_driver":  # D state: the GPU says 100 %, the processor does nothing
        values[UTIL][since:, machine] = 100.0
        values[CPU][since:, machine] = 0.4 * values[CPU][since:, machine]
        return (POWER, SM, CPU)
    if kind == "host_gone":
        return METRICS
    if kind == "power_brake":  # clocks fall to a quarter or a half
        times(chance.uniform(0.35, 0.6), POWER)
        times(chance.uniform(0.3, 0.55), TENSOR)
        return (POWER, TENSOR)
    if kind == "hot":
        times(chance.uniform(0.65, 0.82), POWER, ramp=chance.uniform(10.0, 60.0))
        times(chance.uniform(0.7, 0.85), TENSOR, ramp=60.0)
        return (POWER, TENSOR)
    if kind == "row_remap":
        times(chance.uniform(0.5, 0.8), POWER, TENSOR, SM)
        return (POWER, TENSOR, SM)
    if kind in ("pcie_width", "nic_errors"):  # its neighbours' traffic is paused without end
        often = chance.uniform(0.5, 1.0)
        paused = chance.random(lasting) < often
        values[PAUSE][since:, machine] += np.round(
            paused * chance.lognormal(chance.uniform(5.5, 8.0), 0.6, lasting)
        )
        if kind == "nic_errors":
            times(chance.uniform(0.4, 0.8), NVLINK)
            return (PAUSE, NVLINK)
        return (PAUSE,)
    if kind == "nvlink_lanes":
        times(chance.uniform(0.3, 0.7), NVLINK)
        return (NVLINK,)
    if kind == "cpu_hog":
        values[CPU][since:, machine] += chance.uniform(20.0, 60.0)
        values[CPU][since:, machine] = values[CPU][since:, machine].clip(0.0, 100.0)
        return (CPU,)
    # Slow storage: the machine waits for its input more than half of the time.
    waits = (np.arange(lasting) % int(chance.integers(8, 25))) < 6
    for name in (UTIL, POWER, SM, TENSOR):
        values[name][since:, machine] *= np.where(waits, 0.3, 0.85)
    values[CPU][since:, machine] *= chance.uniform(1.5, 2.5)
    return (CPU, UTIL, POWER, SM, TENSOR)


def _blip(chance: np.random.Generator, values: dict[str, Array], machine: int) -> None:
    """A minute in which one machine is elsewhere."""
    at = int(chance.integers(60, 780))
    for name in chance.choice(METRICS, 3, replace=False):
        level = values[name][at : at + 60, machine]
        values[name][at : at + 60, machine] = level * chance.uniform(0.0, 0.6)
    values[PAUSE][at : at + 60, machine] += chance.uniform(100.0, 4000.0)


def _dead(chance: np.random.Generator, values: dict[str, Array], others: list[int]) -> None:
    """Sensors of healthy machines that read nothing, zero, their last value, or nonsense."""
    one, two, three = chance.choice(others, 3, replace=False)
    names = chance.choice(METRICS[1:], 3, replace=False)
    values[names[0]][:, one] = np.nan
    values[names[1]][:, two] = 0.0
    stopped = int(chance.integers(1, 600))
    values[names[2]][stopped:, three] = values[names[2]][stopped, three]
