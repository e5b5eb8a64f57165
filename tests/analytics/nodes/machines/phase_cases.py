"""A family of cases: jobs of many shapes on a research cluster, scraped every 15 to 60 seconds.

What is simulated is time: in each sample a machine works, spins in a collective, or waits for
input, and its gauges follow from that. In a synchronous job a slow machine slows all, so that the
amount of work says nothing and only what the machine does with its lost time, its clock, its heat
and its counters tell it apart; in a sweep or among rollout workers each machine stands alone.
GPU readings are the mean over a machine's GPUs. Truth may hold two machines.

A case is a `Case` as in the other families, with a sampling period and the list of its faults:
`values[metric]` is (sample, machine), row i was taken at i * step seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from tests.analytics.nodes.machines.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[np.float64]]

UTIL = "DCGM_FI_DEV_GPU_UTIL"  # percent
POWER = "DCGM_FI_DEV_POWER_USAGE"  # W
CLOCK = "DCGM_FI_DEV_SM_CLOCK"  # MHz
TEMP = "DCGM_FI_DEV_GPU_TEMP"  # degrees C
MEMTEMP = "DCGM_FI_DEV_MEMORY_TEMP"  # degrees C
GRAPHICS = "DCGM_FI_PROF_GR_ENGINE_ACTIVE"  # share of time
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"  # share of cycles
DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"  # share of cycles
PCIE = "DCGM_FI_PROF_PCIE_RX_BYTES"  # bytes a second
NVLINK = "DCGM_FI_PROF_NVLINK_TX_BYTES"  # bytes a second
REPLAY = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER_per_minute"  # replays a minute
ECC = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL_per_minute"  # corrected errors a minute
CPU = "node_cpu_usage"  # percent
IOWAIT = "node_cpu_iowait"  # percent
DISK = "node_disk_read_bytes_per_second"
NET = "node_infiniband_transmit_bytes_per_second"
RETRANSMITS = "node_network_retransmits_per_second"
INLET = "node_inlet_temperature"  # degrees C

PROFILED = (GRAPHICS, TENSOR, DRAM, PCIE, NVLINK)
GPU_METRICS = (UTIL, POWER, CLOCK, TEMP, MEMTEMP, *PROFILED, REPLAY, ECC)
HOST_METRICS = (CPU, IOWAIT, DISK, NET, RETRANSMITS, INLET)

FAULTS = (
    "power_cap",
    "disk_stall",
    "thermal_throttling",
    "bad_link",
    "memory_retries",
    "pcie_downgrade",
    "stray_process",
    "gpu_fell_off",
)
CLEAN = ("steady", "idle_spares", "dead_exporter", "bad_sensor", "own_role", "all_slow")

STARTS, STEPS, SAVES, EVALUATES, RESTS, SPINS = range(6)

# Share of the level at steps, in each phase: starts, steps, saves, evaluates, rests, spins.
SHAPE_OF = {
    UTIL: (0.10, 1.0, 0.25, 0.84, 0.0, 1.02),
    POWER: (0.06, 1.0, 0.22, 0.62, 0.0, 0.33),
    CLOCK: (1.08, 1.0, 1.08, 1.03, 0.25, 1.07),
    GRAPHICS: (0.05, 1.0, 0.20, 0.85, 0.0, 1.04),
    TENSOR: (0.0, 1.0, 0.0, 0.60, 0.0, 0.0),
    DRAM: (0.02, 1.0, 0.12, 0.75, 0.0, 0.03),
    PCIE: (0.9, 1.0, 1.6, 0.7, 0.002, 0.03),
    NVLINK: (0.01, 1.0, 0.05, 0.35, 0.0, 0.004),
    CPU: (1.3, 1.0, 0.8, 0.8, 0.06, 0.65),
    DISK: (5.0, 1.0, 0.5, 1.2, 0.01, 0.02),
    NET: (0.1, 1.0, 1.4, 0.25, 0.0005, 0.002),
}
SPIN_POWER, STARVED_POWER = 0.33, 0.10


class Gpu(NamedTuple):
    """A model of GPU: idle and training power, clock while training, heat, bandwidths."""

    idle: float
    training: float
    clock: float
    degrees_per_watt: float
    pcie: float
    nvlink: float
    net: float
    inlet: float


GPUS = {
    "v100": Gpu(45.0, 245.0, 1420.0, 0.125, 2.5e9, 1.8e10, 6e9, 22.0),
    "a100": Gpu(58.0, 340.0, 1365.0, 0.095, 4e9, 4.5e10, 3.5e10, 23.0),
    "h100": Gpu(72.0, 590.0, 1700.0, 0.064, 6e9, 8e10, 1.1e11, 24.0),
    "h100_liquid": Gpu(70.0, 610.0, 1755.0, 0.036, 6e9, 8e10, 1.1e11, 26.0),
    "l40s": Gpu(34.0, 270.0, 2250.0, 0.130, 9e9, 0.0, 1.2e10, 23.0),
}


class Shape(NamedTuple):
    """A kind of job: how it is coupled, how long its phases last, what it asks of the host."""

    coupled: float
    most: int
    minutes_to_save: tuple[float, float]
    minutes_to_evaluate: tuple[float, float]
    dips: float
    tensor: float
    dram: float
    cpu: float
    disk: float
    communication: float


SHAPES = {
    "pretraining": Shape(1.0, 300, (15.0, 60.0), (60.0, 240.0), 0.03, 0.48, 0.38, 14.0, 4e7, 0.20),
    "pipeline": Shape(1.0, 300, (20.0, 90.0), (90.0, 300.0), 0.06, 0.42, 0.34, 12.0, 3e7, 0.15),
    "experts": Shape(1.0, 256, (20.0, 60.0), (60.0, 240.0), 0.10, 0.30, 0.40, 15.0, 4e7, 0.35),
    "finetuning": Shape(1.0, 48, (20.0, 40.0), (15.0, 40.0), 0.05, 0.38, 0.45, 10.0, 2e7, 0.20),
    "vision": Shape(1.0, 96, (25.0, 50.0), (25.0, 60.0), 0.12, 0.25, 0.52, 48.0, 9e8, 0.10),
    "rollouts": Shape(0.9, 200, (20.0, 60.0), (60.0, 200.0), 0.15, 0.28, 0.48, 30.0, 5e7, 0.15),
    "sweep": Shape(0.0, 128, (10.0, 40.0), (12.0, 50.0), 0.06, 0.32, 0.42, 22.0, 2e8, 0.05),
}

# What a role of its own asks, as a share of what the other machines are asked.
ROLES: dict[str, dict[str, float]] = {
    "embedding": {TENSOR: 0.62, DRAM: 1.30, POWER: 0.84, NET: 0.75, CPU: 1.25, UTIL: 0.97},
    "loss": {TENSOR: 1.18, DRAM: 1.15, POWER: 1.07, CLOCK: 0.985, NET: 0.70, NVLINK: 1.25},
    "parameter_server": {
        UTIL: 0.04,
        TENSOR: 0.0,
        DRAM: 0.05,
        POWER: 0.10,
        GRAPHICS: 0.03,
        CLOCK: 1.08,
        NET: 2.8,
        CPU: 2.4,
        PCIE: 0.2,
        NVLINK: 0.02,
        DISK: 0.3,
    },
    "data_server": {
        UTIL: 0.0,
        TENSOR: 0.0,
        DRAM: 0.0,
        POWER: 0.0,
        GRAPHICS: 0.0,
        CLOCK: 0.25,
        NET: 0.6,
        CPU: 4.0,
        PCIE: 0.02,
        NVLINK: 0.0,
        DISK: 9.0,
    },
    "evaluator": {
        UTIL: 0.72,
        TENSOR: 0.5,
        DRAM: 0.9,
        POWER: 0.58,
        GRAPHICS: 0.7,
        CLOCK: 1.04,
        NET: 0.06,
        CPU: 0.8,
        NVLINK: 0.4,
        DISK: 1.8,
    },
    "first_rank": {CPU: 1.7, DISK: 1.5, NET: 1.12, PCIE: 1.2, UTIL: 0.99},
}


class Fault(NamedTuple):
    """What is true of a faulty machine."""

    machine: int
    since: float
    """Seconds after the first row."""
    kind: str
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class JobCase(Case):
    """A case with its sampling period (s) and every fault; `machine`, `since`: the earliest."""

    step: float = 30.0
    faults: tuple[Fault, ...] = ()
    shape: str = ""
    gpu: str = ""
    odd: tuple[int, ...] = field(default=())
    """Machines that differ and are well: spares, roles, dead exporters, bad sensors."""

    @property
    def machines(self) -> tuple[int, ...]:
        """Every faulty machine."""
        return tuple(fault.machine for fault in self.faults)


@dataclass
class Job:
    """A job under way: what each machine does, by (sample, machine)."""

    chance: np.random.Generator
    shape: str
    gpu: str
    step: float
    gpus: int
    codes: np.ndarray[Any, np.dtype[np.uint8]]
    """Phase at three moments of each sampling interval, (3, sample, machine)."""
    group: np.ndarray[Any, np.dtype[np.int64]]
    """Machines of one group wait for each other."""
    levels: dict[str, Array]
    """By metric, level while stepping relative to the usual, (machine,)."""
    clock: Array
    starved: Array
    busy_loss: Array
    own_loss: Array
    own_spins: Array
    """Part of its own loss that a faulty machine spins away, like those who wait for it."""
    heat: Array
    add: dict[str, Array]
    times: dict[str, Array]

    @property
    def size(self) -> tuple[int, int]:
        """Samples and machines."""
        return self.codes.shape[1], self.codes.shape[2]


def cases(seed: int, n: int, *, most_machines: int = 300) -> Iterator[JobCase]:
    """Half faulty, half clean; every third faulty one holds two faulty machines."""
    for i in range(n):
        chance = np.random.default_rng([seed, i, 6])
        j = i // 2
        if i % 2 == 0:
            kinds: tuple[str, ...] = (CLEAN[j % 6],)
        elif j % 3 < 2:
            kinds = (FAULTS[(j - j // 3) % 8],)
        else:
            kinds = (FAULTS[j // 3 % 8], FAULTS[(j // 3 + j // 24) % 8])
        yield case("+".join(kinds), chance, most_machines=most_machines)


def case(  # noqa: C901 - one branch a kind
    kind: str, chance: np.random.Generator, n: int | None = None, *, most_machines: int = 300
) -> JobCase:
    """One pull of a kind of `CLEAN` or `FAULTS`, or of two faults joined by a plus sign."""
    job = _job(chance, n, most_machines)
    kinds = kind.split("+")
    faults: tuple[Fault, ...] = ()
    odd: tuple[int, ...] = ()
    if kinds[0] in FAULTS:
        if job.size[1] >= 12 and chance.random() < 0.15:
            odd = _spares(job)
        faults = _break(job, kinds, odd)
    elif kind == "idle_spares":
        odd = _spares(job)
    elif kind == "own_role":
        odd = _own_role(job)
    elif kind == "all_slow":
        _all_slow(job)
    values = _readings(job)
    if kind == "bad_sensor":
        odd = _bad_sensor(job, values)
    for fault in faults:
        row = int(fault.since / job.step)
        resting = job.codes[0] == RESTS
        died = bool(resting[row:, fault.machine].all() and not resting[-1].all())
        if fault.kind == "gpu_fell_off" and died and chance.random() < 0.25:
            for (
                metric
            ) in GPU_METRICS:  # the exporter hangs on the lost GPU, the host shows its rest
                if metric in values:
                    values[metric][row:, fault.machine] = np.nan
    _lose(job, values)
    if kind == "dead_exporter":
        odd = _dead_exporter(job, values)
    faults = tuple(
        fault._replace(metrics=tuple(m for m in fault.metrics if m in values)) for fault in faults
    )
    first = min(faults, key=lambda fault: fault.since) if faults else None
    return JobCase(
        kind,
        values,
        first.machine if first else None,
        int(first.since) if first else None,
        first.metrics if first else (),
        step=job.step,
        faults=faults,
        shape=job.shape,
        gpu=job.gpu,
        odd=odd,
    )


def _job(chance: np.random.Generator, n: int | None, most_machines: int) -> Job:
    """A healthy job of some shape, size, hardware and sampling period."""
    name = str(chance.choice(list(SHAPES), p=(0.24, 0.16, 0.1, 0.16, 0.12, 0.1, 0.12)))
    shape = SHAPES[name]
    if n is None:
        n = int(8 * (min(shape.most, most_machines) / 8) ** chance.random())
    gpu = str(chance.choice(list(GPUS), p=(0.12, 0.34, 0.3, 0.14, 0.1)))
    step = float(chance.choice((15.0, 20.0, 30.0, 60.0), p=(0.3, 0.1, 0.4, 0.2)))
    samples = int(np.clip(120 * 4.0 ** chance.random(), max(120, 3600 / step), 480))
    levels = {
        metric: np.exp(chance.normal(0.0, spread, n))
        for metric, spread in (
            *((UTIL, 0.004), (POWER, 0.025), (CLOCK, 0.006), (GRAPHICS, 0.01), (TENSOR, 0.015)),
            *((DRAM, 0.015), (PCIE, 0.03), (NVLINK, 0.01), (CPU, 0.06), (DISK, 0.10), (NET, 0.02)),
        )
    }
    levels[POWER] *= levels[CLOCK] ** -1.0
    group = np.zeros(n, dtype=np.int64)
    if name == "pipeline":
        _stages(chance, levels, n)
    elif name == "rollouts":
        group = _actors(chance, levels, n)
    elif name == "sweep":
        group = np.arange(n)
        for metric in (TENSOR, DRAM, POWER, CPU, DISK, PCIE, NET):
            levels[metric] = levels[metric] * np.exp(chance.normal(0.0, 0.05, n))
    zero = np.zeros((samples, n))
    return Job(
        chance,
        name,
        gpu,
        step,
        4 if gpu == "v100" and chance.random() < 0.5 else 8,
        _phases(chance, shape, samples, n, step, alone=name == "sweep"),
        group,
        levels,
        np.ones((samples, n)),
        *(zero.copy() for _ in range(5)),
        {},
        {},
    )


def _stages(chance: np.random.Generator, levels: dict[str, Array], n: int) -> None:
    """Machines of a pipeline: stages of several machines, in which the ends differ."""
    k = int(chance.integers(2, max(3, min(8, n // 4) + 1)))
    stage = np.arange(n) * k // n if chance.random() < 0.6 else np.arange(n) % k
    for metric, spread in ((POWER, 0.02), (TENSOR, 0.05), (DRAM, 0.05), (NET, 0.10), (CPU, 0.05)):
        levels[metric] = levels[metric] * np.exp(chance.normal(0.0, spread, k))[stage]
    for end, role in ((0, "embedding"), (k - 1, "loss")):
        strength = chance.uniform(0.3, 0.9)
        for metric, share in ROLES[role].items():
            levels[metric] = levels[metric] * np.where(stage == end, share**strength, 1.0)


def _actors(
    chance: np.random.Generator, levels: dict[str, Array], n: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Trainers, who wait for each other (group 0), and workers, each a group of its own."""
    acts = np.arange(n) >= max(3, int(n * chance.uniform(0.3, 0.6)))
    if chance.random() < 0.5:
        chance.shuffle(acts)
    shares = {TENSOR: 0.35, DRAM: 1.35, POWER: 0.72, CPU: 1.6, NET: 0.15, NVLINK: 0.4, UTIL: 0.93}
    for metric, share in shares.items():
        levels[metric] = levels[metric] * np.where(acts, share, 1.0)
    return np.where(acts, 1 + np.arange(n), 0)


def _phases(
    chance: np.random.Generator, shape: Shape, samples: int, n: int, step: float, *, alone: bool
) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """What each machine does at three moments of each sampling interval."""
    tick = 5.0
    length = int(samples * step / tick) + 40
    line = np.full(length, STEPS, dtype=np.uint8)
    for phase, every, lasts in (
        (EVALUATES, shape.minutes_to_evaluate, (60.0, 300.0)),
        (SAVES, shape.minutes_to_save, (15.0, 120.0)),
    ):
        period = chance.uniform(*every) * 60.0
        takes = chance.uniform(*lasts)
        at = chance.uniform(0.0, period)
        while at < length * tick:
            took = takes * np.exp(chance.normal(0.0, 0.12))
            line[int(at / tick) : int((at + took) / tick) + 1] = phase
            at += period * np.exp(chance.normal(0.0, 0.03)) + took
    if chance.random() < 0.25:
        line[: int(chance.uniform(2.0, 12.0) * 60.0 / tick)] = STARTS
    elif chance.random() < 0.12:  # a restart of the whole job, by its owner
        at = int(chance.uniform(0.1, 0.8) * length)
        line[at : at + int(chance.uniform(0.5, 3.0) * 12)] = RESTS
        line[at + 12 : at + int(chance.uniform(3.0, 8.0) * 12)] = STARTS
    late = chance.uniform(0.0, step / tick, n)
    if alone:
        late = late + chance.uniform(0.0, length, n)
    moments = np.arange(samples)[:, None] * (step / tick) + late
    third = step / tick / 3.0
    return np.stack([line[((moments + k * third) % length).astype(np.int64)] for k in range(3)])


def _spares(job: Job) -> tuple[int, ...]:
    """Machines of the node list that rest all the time, but for a check of their health."""
    samples, n = job.size
    most = max(1, min(4, n // 6))
    spares = job.chance.choice(n, int(job.chance.integers(1, most + 1)), replace=False)
    for spare in spares:
        job.codes[:, :, spare] = RESTS
        job.group[spare] = 10_000 + spare
        if job.chance.random() < 0.4:
            at = int(job.chance.integers(0, samples))
            job.codes[:, at : at + max(1, int(90 / job.step)), spare] = EVALUATES
    return tuple(int(spare) for spare in spares)


def _own_role(job: Job) -> tuple[int, ...]:
    """One machine with a role that no other has, all the time."""
    machine = int(job.chance.integers(0, job.size[1]))
    role = str(job.chance.choice(list(ROLES)))
    for metric, share in ROLES[role].items():
        usual = float(np.median(job.levels[metric]))
        job.levels[metric][machine] = usual * share * np.exp(job.chance.normal(0.0, 0.05))
    return (machine,)


def _all_slow(job: Job) -> None:
    """The shared file system is slow for all machines, for a while or to the end."""
    samples, n = job.size
    chance = job.chance
    begin = int(chance.uniform(0.1, 0.6) * samples)
    end = samples if chance.random() < 0.5 else begin + int(chance.uniform(0.15, 0.5) * samples)
    wave = _waves(chance, samples, job.step, chance.uniform(0.4, 0.8))
    wave[:begin] = 0.0
    wave[end:] = 0.0
    share = np.exp(chance.normal(0.0, 0.12, n))
    job.starved += np.clip(wave[:, None] * chance.uniform(0.3, 0.8) * share, 0.0, 0.95)
    iowait = wave[:, None] * chance.uniform(6.0, 25.0) * np.exp(chance.normal(0.0, 0.2, n))
    job.add[IOWAIT] = iowait
    job.times[DISK] = 1.0 - wave[:, None] * chance.uniform(0.3, 0.7)


def _waves(chance: np.random.Generator, samples: int, step: float, duty: float) -> Array:
    """A stall that comes and goes, between 0 and 1, as a scraper sees it by (sample,)."""
    period = chance.uniform(80.0, 420.0)
    count = int(samples * step / period * 1.6) + 8
    lengths = period * np.stack([1.0 - duty, duty]) * chance.gamma(6.0, 1 / 6.0, (count, 2))
    edges = np.cumsum(lengths.ravel())
    moments = (np.arange(samples)[:, None] + np.arange(6) / 6.0) * step
    return (np.searchsorted(edges, moments) % 2).mean(axis=1)


def _break(job: Job, kinds: list[str], odd: tuple[int, ...]) -> tuple[Fault, ...]:
    """Breaks a machine for each kind; the machines that wait for it lose the time that it loses."""
    samples, n = job.size
    chance = job.chance
    able = [i for i in range(n) if i not in odd]
    victims = chance.choice(able, len(kinds), replace=False)
    latest = samples - max(20, int(np.ceil(900.0 / job.step)))
    rows = chance.integers(int(0.15 * samples), latest, len(kinds))
    if len(kinds) == 2 and chance.random() < 0.2:  # one cause: a rack, a switch, a shared feed
        rows[1] = rows[0]
    faults = []
    for victim, row, kind in sorted(zip(victims, rows, kinds, strict=True), key=lambda x: x[1]):
        loss, metrics = BREAKS[kind](job, int(victim), int(row), len(kinds) == 2)
        job.own_loss[:, victim] = loss
        for other in np.flatnonzero(job.group == job.group[victim]):
            if other != victim:
                job.busy_loss[:, other] = np.maximum(job.busy_loss[:, other], loss)
        faults.append(Fault(int(victim), float(row * job.step), kind, metrics))
    job.busy_loss *= SHAPES[job.shape].coupled
    return tuple(faults)


def _ramp(samples: int, row: int, rows: float) -> Array:
    """From 0 before the row to 1, within some rows."""
    return np.clip((np.arange(samples) - row + 1) / max(rows, 1.0), 0.0, 1.0)


def _bound(chance: np.random.Generator) -> float:
    """How much of a step's time a lower clock lengthens."""
    return float(chance.uniform(0.55, 0.95))


def _power_cap(job: Job, victim: int, row: int, _two: bool) -> tuple[Array, tuple[str, ...]]:
    """A limit far below the usual: a brake by the power shelf, or a setting left behind."""
    samples = job.size[0]
    clock = job.chance.uniform(0.45, 0.88)
    slow = 1.0 - (1.0 - clock) * _ramp(samples, row, 1.0)
    if job.chance.random() < 0.25:  # the brake is let go from time to time
        slow = np.where(_waves(job.chance, samples, job.step, 0.8) > 0.2, slow, 1.0)
    job.clock[:, victim] *= slow
    return _bound(job.chance) * (1.0 - slow), (CLOCK, POWER, TEMP, TENSOR)


def _disk_stall(job: Job, victim: int, row: int, _two: bool) -> tuple[Array, tuple[str, ...]]:
    """A local disk or mount that answers late: the loader runs dry, in waves."""
    samples = job.size[0]
    wave = _waves(job.chance, samples, job.step, job.chance.uniform(0.35, 0.75))
    wave *= _ramp(samples, row, 1.0)
    loss = wave * job.chance.uniform(0.25, 0.9)
    job.starved[:, victim] += loss
    _plus(job, IOWAIT, victim, wave * job.chance.uniform(6.0, 35.0))
    _by(job, DISK, victim, 1.0 - wave * job.chance.uniform(0.4, 0.9))
    return loss, (IOWAIT, DISK, UTIL, POWER, GRAPHICS)


def _thermal(job: Job, victim: int, row: int, _two: bool) -> tuple[Array, tuple[str, ...]]:
    """A fan or a pump that fails: heat climbs, then the clock gives way and hunts."""
    samples = job.size[0]
    chance = job.chance
    minutes = chance.uniform(2.0, 10.0)
    since = np.maximum(np.arange(samples) - row + 1, 0) * job.step / 60.0
    climb = 1.0 - np.exp(-since / minutes)
    job.heat[:, victim] = climb * chance.uniform(1.05, 1.4)
    hunting = 1.0 + 0.22 * _noise(chance, samples, 1, 0.6)[:, 0]
    deep = (1.0 - chance.uniform(0.55, 0.93)) * np.clip((climb - 0.5) / 0.4, 0.0, 1.0)
    slow = 1.0 - np.clip(deep * hunting, 0.0, 0.55)
    job.clock[:, victim] *= slow
    return _bound(chance) * (1.0 - slow), (TEMP, MEMTEMP, CLOCK, POWER)


def _bad_link(job: Job, victim: int, row: int, _two: bool) -> tuple[Array, tuple[str, ...]]:
    """A link at a part of its speed with errors, or one that goes down and comes back."""
    samples = job.size[0]
    chance = job.chance
    on = _ramp(samples, row, 1.0)
    exposed = SHAPES[job.shape].communication
    if chance.random() < 0.5:
        speed = chance.uniform(0.15, 0.6)
        longer = exposed * (1.0 / speed - 1.0)
        loss = on * longer / (1.0 + longer)
        _by(job, NET, victim, 1.0 - on * chance.uniform(0.15, 0.5))
        errors = on
    else:
        down = on * _waves(chance, samples, job.step, chance.uniform(0.2, 0.45))
        loss = 0.9 * down if exposed > 0.08 else 0.3 * down
        _by(job, NET, victim, 1.0 - down * chance.uniform(0.6, 0.97))
        errors = on * (0.15 + down)
    rate = chance.uniform(3.0, 5.5)
    bursts = np.exp(rate + chance.normal(0.0, 0.7, samples))
    _plus(job, RETRANSMITS, victim, errors * bursts)
    job.own_spins[:, victim] += loss
    return loss, (RETRANSMITS, NET)


def _retries(job: Job, victim: int, row: int, _two: bool) -> tuple[Array, tuple[str, ...]]:
    """One GPU's memory corrects and retries; its neighbours in the machine wait for it."""
    samples = job.size[0]
    chance = job.chance
    on = _ramp(samples, row, chance.uniform(1.0, 10.0))
    counts = chance.poisson(on * chance.gamma(0.8, np.exp(chance.uniform(1.5, 6.0)), samples))
    _plus(job, ECC, victim, counts.astype(np.float64))
    loss = on * chance.uniform(0.10, 0.5)
    one = 1.0 / job.gpus
    _by(job, DRAM, victim, 1.0 - on * one * chance.uniform(0.3, 0.8))
    _by(job, POWER, victim, 1.0 - 0.25 * loss * one)
    job.own_spins[:, victim] += loss * (1.0 - one)
    return loss, (ECC, DRAM, POWER)


def _pcie(job: Job, victim: int, row: int, _two: bool) -> tuple[Array, tuple[str, ...]]:
    """A link trains down to fewer lanes or an older generation, after replays."""
    samples = job.size[0]
    chance = job.chance
    on = _ramp(samples, row, 1.0)
    hit = chance.choice((1, 2, 4, job.gpus)) / job.gpus
    width = chance.choice((0.5, 0.25, 0.125))
    _by(job, PCIE, victim, 1.0 - on * hit * (1.0 - width) * chance.uniform(0.6, 0.95))
    replays = chance.gamma(0.5, np.exp(chance.uniform(2.0, 5.0)), samples)
    _plus(job, REPLAY, victim, np.floor(on * replays))
    loss = on * (1.0 - width) * chance.uniform(0.08, 0.40) * (0.6 + 0.4 * hit)
    loss = loss * np.clip(1.0 + 0.25 * _noise(chance, samples, 1, 0.4)[:, 0], 0.3, 1.7)
    job.starved[:, victim] += loss
    return loss, (PCIE, REPLAY, UTIL, GRAPHICS, POWER)


def _stray(job: Job, victim: int, row: int, _two: bool) -> tuple[Array, tuple[str, ...]]:
    """A process that is not the job's takes cores: an orphan, a scan, a user's compile."""
    samples = job.size[0]
    chance = job.chance
    on = _ramp(samples, row, 1.0)
    if chance.random() < 0.35:
        on = on * (0.35 + 0.65 * _waves(chance, samples, job.step * 2, 0.65))
    takes = chance.uniform(0.2, 0.95)
    free = 95.0 - SHAPES[job.shape].cpu
    _plus(job, CPU, victim, on * takes * free)
    loss = on * takes * chance.uniform(0.1, 0.45)
    loss = loss * np.clip(1.0 + 0.4 * _noise(chance, samples, 1, 0.3)[:, 0], 0.2, 2.0)
    job.starved[:, victim] += np.clip(loss, 0.0, 0.9)
    return np.clip(loss, 0.0, 0.9), (CPU, UTIL, POWER, GRAPHICS)


def _fell_off(job: Job, victim: int, row: int, two: bool) -> tuple[Array, tuple[str, ...]]:
    """A GPU leaves the bus: its process dies, who waits for it spins until a watchdog ends it."""
    samples = job.size[0]
    chance = job.chance
    mates = np.flatnonzero(job.group == job.group[victim])
    fallen = (job.codes[0, row:] == RESTS).all(axis=0)  # spares and those that fell before
    mates = mates[(mates != victim) & ~fallen[mates]]
    gpu = (UTIL, POWER, GRAPHICS, TENSOR, DRAM, NVLINK, PCIE)
    if not len(mates) and chance.random() < 0.5:  # the others of the machine go on alone
        share = 1.0 - _ramp(samples, row, 1.0) / job.gpus * chance.choice((1, 1, 2))
        for metric in gpu:
            _by(job, metric, victim, share)
        _by(job, CLOCK, victim, share)
        return np.zeros(samples), (*gpu, CLOCK)
    if len(mates):
        hang = row + int(chance.uniform(10.0, 30.0) * 60.0 / job.step)
        job.codes[:, row:hang, mates] = SPINS
        load = hang + int(chance.uniform(3.0, 9.0) * 60.0 / job.step)
        if two or chance.random() < 0.75:  # starts again without the machine
            job.codes[:, hang:load, mates] = STARTS
        else:
            job.codes[:, hang:, mates] = RESTS
    job.codes[:, row:, victim] = RESTS
    return np.zeros(samples), (*gpu, CPU, NET)


BREAKS = dict(
    zip(
        FAULTS,
        (_power_cap, _disk_stall, _thermal, _bad_link, _retries, _pcie, _stray, _fell_off),
        strict=True,
    )
)


def _plus(job: Job, metric: str, victim: int, what: Array) -> None:
    job.add.setdefault(metric, np.zeros(job.size))[:, victim] += what


def _by(job: Job, metric: str, victim: int, what: Array) -> None:
    job.times.setdefault(metric, np.ones(job.size))[:, victim] *= what


def _noise(chance: np.random.Generator, samples: int, n: int, memory: float) -> Array:
    """Autocorrelated noise of unit variance with slow wander and a few far values."""
    drawn = chance.standard_normal((n, samples))
    far = chance.poisson(0.003 * n * samples)
    drawn[chance.integers(0, n, far), chance.integers(0, samples, far)] *= chance.gamma(2, 2.5, far)
    keep = np.sqrt(1.0 - memory**2)
    drawn[:, 0] /= keep
    quick: Array = lfilter([keep], [1.0, -memory], drawn, axis=1).T
    knots = np.linspace(0.0, samples, 7)
    hats = np.clip(1 - abs(np.arange(samples)[:, None] - knots) / knots[1], 0.0, 1.0)
    return 0.9 * quick + 0.5 * hats @ chance.standard_normal((7, n))


def _readings(job: Job) -> dict[str, Array]:
    """What the sensors of each machine read."""
    samples, n = job.size
    chance = job.chance
    gpu, shape = GPUS[job.gpu], SHAPES[job.shape]
    averaged = chance.random() < 0.4  # a recording rule averages the gauges

    def usual(metric: str, *, mean: bool) -> Array:
        table = np.array(SHAPE_OF[metric])
        seen = table[job.codes].mean(axis=0) if mean else table[job.codes[0]]
        return np.asarray(seen * job.levels[metric])

    def noise(memory: float = 0.3) -> Array:
        return _noise(chance, samples, n, memory)

    # Time lost: by the fault itself, by waiting for others, by an empty input queue.
    lost = np.maximum(job.own_loss, np.maximum(job.busy_loss, job.starved))
    spins = np.maximum(0.0, job.busy_loss - np.maximum(job.own_loss, job.starved)) + job.own_spins
    work = 1.0 - np.clip(lost, 0.0, 0.97)
    starved = np.clip(job.starved, 0.0, 0.97)
    dips = (chance.random((samples, n)) < shape.dips) * chance.beta(1.2, 2.0, (samples, n))
    if averaged:
        dips *= 0.3
    full = (1.0 - starved) * (1.0 - 0.6 * dips)

    values: dict[str, Array] = {}
    jitter = abs(0.8 * noise(0.2))
    values[UTIL] = (chance.uniform(94.0, 99.5) - jitter) * usual(UTIL, mean=averaged) * full
    busy = 1.0 - (1.0 - SPIN_POWER) * spins - (1.0 - STARVED_POWER) * starved
    draw = usual(POWER, mean=averaged) * busy * (1.0 - 0.55 * dips) * job.clock**2.1
    draw = draw * (1.0 + 0.022 * noise(0.4)) * chance.uniform(0.82, 1.05)
    if POWER in job.times:
        draw = draw * job.times.pop(POWER)
    idle = gpu.idle * np.exp(chance.normal(0.0, 0.05, n))
    values[POWER] = idle + (gpu.training - gpu.idle) * draw
    values[CLOCK] = gpu.clock * usual(CLOCK, mean=averaged) * job.clock
    values[CLOCK] *= 1.0 + 0.05 * spins + 0.006 * noise(0.5)
    values[INLET], values[TEMP] = _heat(job, gpu, values[POWER])
    values[MEMTEMP] = values[TEMP] + chance.uniform(3.0, 12.0) + chance.normal(0.0, 1.5, n)
    values[MEMTEMP] += 0.8 * noise(0.7)
    values[GRAPHICS] = chance.uniform(0.85, 0.97) * usual(GRAPHICS, mean=averaged) * full
    values[GRAPHICS] *= 1.0 + 0.012 * noise(0.2)
    cycles = work / job.clock * (1.0 - 0.8 * dips)
    values[TENSOR] = shape.tensor * usual(TENSOR, mean=averaged) * cycles * (1 + 0.04 * noise())
    values[DRAM] = shape.dram * usual(DRAM, mean=averaged) * work * (1 - 0.7 * dips)
    values[DRAM] *= 1.0 + 0.035 * noise()
    for metric, level, spread in ((PCIE, gpu.pcie, 0.12), (NVLINK, gpu.nvlink, 0.06)):
        values[metric] = level * usual(metric, mean=averaged) * work * np.exp(spread * noise())
    values[CPU] = shape.cpu * usual(CPU, mean=True) * (0.35 + 0.65 * work)
    values[CPU] = values[CPU] * np.exp(0.07 * noise(0.6)) + chance.gamma(2.0, 0.3, (samples, n))
    values[IOWAIT] = np.exp(chance.normal(-1.3, 0.4, n) + 0.6 * np.minimum(noise(0.4), 4.0))
    values[IOWAIT] *= 1.0 + 6.0 * (job.codes[0] == STARTS) + 3.0 * (job.codes[0] == SAVES)
    values[DISK] = shape.disk * usual(DISK, mean=True) * work * np.exp(0.3 * noise(0.4)) + 2e4
    values[NET] = gpu.net * 0.4 * shape.communication / 0.2 * usual(NET, mean=True) * work
    values[NET] = values[NET] * np.exp(0.05 * noise()) + 1e4
    crowd = np.exp(0.9 * _noise(chance, samples, 1, 0.85)) * (chance.random((samples, 1)) < 0.97)
    crowd = crowd * np.where(job.codes[0] == RESTS, 0.05, 1.0)
    values[RETRANSMITS] = chance.poisson(chance.gamma(0.7, 1.5, (samples, n)) * crowd) * 1.0
    for metric, few in ((REPLAY, 0.04), (ECC, 0.05)):  # some machines always count a little
        chronic = np.where(chance.random(n) < few, chance.gamma(1.0, 1.5, n), 0.004)
        values[metric] = chance.poisson(chronic, (samples, n)).astype(np.float64)
    for metric, what in job.add.items():
        values[metric] = values[metric] + what
    for metric, what in job.times.items():
        values[metric] = values[metric] * what
    return _rounded(job, values)


def _heat(job: Job, gpu: Gpu, power: Array) -> tuple[Array, Array]:
    """Temperatures of the inlet and of the GPUs: the day, racks, places, and lagging power."""
    samples, n = job.size
    chance = job.chance
    hours = np.arange(samples) * job.step / 3600.0 + chance.uniform(0.0, 24.0)
    day = chance.uniform(0.5, 2.5) * np.sin(2.0 * np.pi * hours / 24.0)
    racks = np.arange(n) // int(chance.choice((2, 4, 8, 16)))
    warm = chance.normal(0.0, 1.2, racks.max() + 1)[racks]
    inlet = gpu.inlet + day[:, None] + warm + 0.25 * _noise(chance, samples, n, 0.9)
    keep = np.exp(-job.step / chance.uniform(40.0, 90.0))
    lagging = lfilter([1 - keep], [1, -keep], power, axis=0, zi=keep * power[:1])[0]
    slope = gpu.degrees_per_watt * np.exp(chance.normal(0.0, 0.05, n))
    temperature = inlet + 3.0 + chance.normal(0.0, 1.0, n) + slope * lagging
    temperature += 0.6 * _noise(chance, samples, n, 0.5)
    hottest = chance.uniform(84.0, 90.0)  # where the clock is taken back
    loaded = np.isin(job.codes[0], (STEPS, EVALUATES, SPINS)).astype(np.float64)
    loaded = lfilter([1 - keep], [1, -keep], loaded, axis=0, zi=keep * loaded[:1])[0]
    short = np.maximum(hottest - temperature, 0.0)
    hot = temperature + np.minimum(job.heat, 1.0) * loaded * short
    hot += 0.7 * chance.standard_normal((samples, n))
    return inlet, np.where(job.heat > 0, hot, temperature)


def _rounded(job: Job, values: dict[str, Array]) -> dict[str, Array]:
    """Within their limits, as coarse as the sensors, and only what this site collects."""
    chance = job.chance
    for metric, most in ((UTIL, 100.0), (CPU, 100.0), (IOWAIT, 100.0)):
        values[metric] = np.clip(values[metric], 0.0, most)
    for metric in (GRAPHICS, TENSOR, DRAM):
        values[metric] = np.clip(values[metric], 0.0, 1.0)
    for metric in (UTIL, TEMP, MEMTEMP):  # whole numbers of each GPU, then their mean
        values[metric] = np.round(values[metric] * job.gpus) / job.gpus
    values[CLOCK] = np.round(values[CLOCK] / 15.0 * job.gpus) * 15.0 / job.gpus
    values[INLET] = np.round(values[INLET])
    drop = {NVLINK} if GPUS[job.gpu].nvlink == 0.0 else set()
    if chance.random() < 0.2:
        drop |= set(PROFILED)
    for metric, share in ((MEMTEMP, 0.4), (INLET, 0.5)):
        if chance.random() < share:
            drop.add(metric)
    return {metric: np.maximum(x, 0.0) for metric, x in values.items() if metric not in drop}


def _lose(job: Job, values: dict[str, Array]) -> None:
    """Samples that are missing, and an exporter that is scraped half as often as the other."""
    samples, n = job.size
    chance = job.chance
    slow = None
    if chance.random() < 0.25:
        slow = GPU_METRICS if chance.random() < 0.5 else HOST_METRICS
    held = chance.random() < 0.5
    share = chance.uniform(0.001, 0.03)
    for metrics in (GPU_METRICS, HOST_METRICS):
        gone = chance.random((samples, n)) < share
        for _ in range(chance.poisson(0.05 * n)):
            at = int(chance.integers(0, samples))
            gone[at : at + int(chance.geometric(0.25)), int(chance.integers(0, n))] = True
        for metric in metrics:
            if metric not in values:
                continue
            if metrics is slow and held:
                values[metric] = values[metric][np.arange(samples) // 2 * 2]
            elif metrics is slow:
                values[metric][1::2] = np.nan
            values[metric][gone] = np.nan


def _dead_exporter(job: Job, values: dict[str, Array]) -> tuple[int, ...]:
    """An exporter stops or repeats its last values, on a machine that is well."""
    samples, n = job.size
    chance = job.chance
    machines = chance.choice(n, int(chance.choice((1, 1, 1, 2, 3))), replace=False)
    which = (GPU_METRICS, HOST_METRICS, GPU_METRICS + HOST_METRICS)
    metrics = which[int(chance.choice(3, p=(0.55, 0.25, 0.2)))]
    freezes = chance.random() < 0.5
    for machine in machines:
        begin = int(chance.uniform(0.1, 0.8) * samples)
        end = samples if chance.random() < 0.7 else begin + int(chance.uniform(0.1, 0.5) * samples)
        for metric in metrics:
            if metric in values:
                before = values[metric][:begin, machine]
                known = before[np.isfinite(before)]
                last = known[-1] if freezes and len(known) else np.nan
                values[metric][begin:end, machine] = last
    return tuple(int(machine) for machine in machines)


def _bad_sensor(job: Job, values: dict[str, Array]) -> tuple[int, ...]:
    """One metric of one machine is off by a factor or a constant, the machine is well."""
    samples, n = job.size
    chance = job.chance
    machine = int(chance.integers(0, n))
    able = [
        m for m in (TEMP, POWER, MEMTEMP, INLET, NET, CPU, DISK, TENSOR, DRAM, PCIE) if m in values
    ]
    metric = str(chance.choice(able))
    begin = 0
    if metric in (TEMP, POWER, MEMTEMP, INLET) and chance.random() < 0.25:
        begin = int(chance.uniform(0.1, 0.8) * samples)  # since its collector began again
    column = values[metric][begin:, machine]
    if metric in (TEMP, MEMTEMP, INLET):
        column += chance.choice((-1.0, 1.0)) * chance.uniform(6.0, 20.0)
    elif metric in (CPU, NET, DISK, PCIE):
        column *= chance.choice((0.5, 2.0, chance.uniform(0.6, 0.8), chance.uniform(1.25, 1.6)))
    else:
        column *= chance.choice((chance.uniform(0.6, 0.88), chance.uniform(1.12, 1.4)))
    if metric in (CPU, TENSOR, DRAM):
        np.clip(column, 0.0, 100.0 if metric == CPU else 1.0, out=column)
    values[metric][begin:, machine] = np.maximum(column, 0.0)
    return (machine,)
