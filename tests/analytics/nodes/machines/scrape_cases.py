"""A family of cases: pipeline-parallel jobs of a production cluster, as its scrapers saw them.

A job has pipeline stages of unlike load, loads data, steps, saves checkpoints, evaluates and is
sometimes requeued. Where it is synchronous, all machines wait for the slowest: waiting for a
collective spins the GPUs (busy, at a third of their power), waiting for data rests them. Racks are
cooled by air or by liquid, inlets follow the day. Exporters are scraped every 10 to 60 s, each
machine at its own moment, so that a gauge shows whatever the step did in that second; scrapes are
lost, one by one, in runs, and for the whole cluster at once. Counters are rates over a scrape.

A row of `values` is a scrape, `step` seconds apart: give `Samples(case.names, 0.0, case.step,
case.values)`. All times of the truth are seconds since the first row. `faults` states the whole
truth; `machine`, `since`, `metrics` are those of the fault that began first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

from tests.analytics.nodes.machines.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[Any]]

UTIL = "DCGM_FI_DEV_GPU_UTIL"  # %, mean of the machine's GPUs, a lost one as 0
POWER = "DCGM_FI_DEV_POWER_USAGE"  # W, mean of the machine's GPUs, a lost one as 0
CLOCK = "DCGM_FI_DEV_SM_CLOCK"  # MHz, mean of the GPUs present
TEMPERATURE = "DCGM_FI_DEV_GPU_TEMP"  # degrees Celsius, the hottest GPU
TENSOR = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"  # share of cycles
DRAM = "DCGM_FI_PROF_DRAM_ACTIVE"  # share of cycles
PCIE = "DCGM_FI_PROF_PCIE_RX_BYTES"  # bytes a second
REPLAYS = "DCGM_FI_DEV_PCIE_REPLAY_COUNTER"  # a second
ECC = "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL"  # corrected errors a second
LINK = "node_infiniband_port_data_transmitted_bytes_total"  # bytes a second, the slowest port
RETRANSMITS = "node_infiniband_out_of_sequence_total"  # packets a second
CPU = "node_cpu_busy_percent"
IOWAIT = "node_cpu_iowait_percent"
DISK = "node_disk_read_bytes_total"  # bytes a second
CHASSIS = "ipmi_dcmi_power_consumption_watts"

EXPORTERS = {
    "dcgm": (UTIL, POWER, CLOCK, TEMPERATURE, TENSOR, DRAM, PCIE, REPLAYS, ECC),
    "node": (LINK, RETRANSMITS, CPU, IOWAIT, DISK),
    "ipmi": (CHASSIS,),
}
RATES = (REPLAYS, ECC, LINK, RETRANSMITS, DISK)

FAULTS: dict[str, tuple[str, ...]] = {
    "power_cap": (POWER, CLOCK, TEMPERATURE, CHASSIS),
    "disk_stall": (IOWAIT, DISK, UTIL, POWER, TENSOR),
    "thermal_throttle": (TEMPERATURE, CLOCK, POWER),
    "slow_link": (RETRANSMITS, LINK, TENSOR),
    "memory_retries": (ECC, DRAM, TENSOR, POWER),
    "pcie_downgrade": (PCIE, REPLAYS, UTIL, POWER),
    "cpu_contention": (CPU, UTIL, POWER),
    "gpu_off": (UTIL, POWER, TENSOR, DRAM, TEMPERATURE, CHASSIS, LINK),
}
HEALTHY = ("nothing", "spares", "dead_exporter", "miscalibrated", "own_role", "whole_job_slow")

STEPS = (10.0, 10.0, 10.0, 15.0, 15.0, 20.0, 30.0, 30.0, 45.0, 60.0)
"""Seconds between scrapes; each is as frequent as it stands here."""

STOPPED, LOADING, STEPPING, SAVING, EVALUATING, HUNG = range(6)
LEAD = 130  # seconds before the first row, which the first rates look back on


class Fault(NamedTuple):
    """One faulty machine: from `since` (seconds) on, to be seen in some of `metrics`."""

    kind: str
    machine: int
    since: int
    metrics: tuple[str, ...]


@dataclass(frozen=True)
class ScrapedCase(Case):
    """A case whose rows are `step` seconds apart, with every fault there is."""

    step: float = 10.0
    faults: tuple[Fault, ...] = ()
    odd: tuple[int, ...] = ()
    """Machines that differ but are well."""
    oddity: str = ""


@dataclass
class Job:
    """What a job does each second, and how much slower than usual its slowest part makes it."""

    phase: Array
    step_s: float
    computing: float
    together: bool
    data_wait: Array
    slow: Array = field(default_factory=lambda: np.ones(0))
    net: Array = field(default_factory=lambda: np.ones(0))


@dataclass
class Fleet:
    """What machines are: stage, rack, cooling, and a gain of their own."""

    stage: Array
    work: Array
    rack: Array
    liquid: Array
    spare: Array
    role: dict[int, str]


@dataclass
class Harm:
    """What a fault does to its machine each second."""

    machine: int
    gpu_slow: Array
    starved: Array
    net_slow: Array
    clock: Array
    power: Array
    heat: Array
    iowait: Array
    cpu: Array
    disk: Array
    port: Array
    retransmits: Array
    replays: Array
    ecc: Array
    dram: Array
    gpus: Array
    rests: Array
    ceiling: Array
    share: float = 1.0


def cases(seed: int, n: int, *, most_machines: int = 300) -> Iterator[ScrapedCase]:
    """Half faulty, every third of these twice; half healthy; kinds in turn. 8 machines and more."""
    names = tuple(FAULTS)
    for i in range(n):
        chance = np.random.default_rng([seed, i, 7])
        machines = int(8 * ((most_machines + 1) / 8) ** chance.random())
        step = STEPS[int(chance.integers(len(STEPS)))]
        turn = i // 2
        if i % 2 == 0:
            yield case(HEALTHY[turn % len(HEALTHY)], chance, machines, step=step)
        elif turn % 3 == 2:
            pair = turn // 3
            second = names[(pair + pair // 8) % 8]
            yield case(names[pair % 8], chance, machines, second=second, step=step)
        else:
            single = turn // 3 * 2 + turn % 3
            yield case(names[single % 8], chance, machines, step=step)


def case(
    kind: str,
    chance: np.random.Generator,
    n: int = 64,
    *,
    second: str | None = None,
    step: float = 10.0,
) -> ScrapedCase:
    """One window of a kind of `FAULTS` or `HEALTHY`, or of two kinds of `FAULTS` at once."""
    rows = int(chance.integers(180, 440))
    seconds = LEAD + int(rows * step) + 70
    faulty = kind in FAULTS
    oddity = kind
    if faulty:
        oddity = "nothing"
        if chance.random() < 0.2:
            oddity = str(chance.choice(["spares", "own_role", "miscalibrated", "dead_exporter"]))
    fleet = _fleet(chance, n, oddity)
    well = [i for i in range(n) if not fleet.spare[i] and i not in fleet.role]
    job = _job(chance, seconds, slow=oddity == "whole_job_slow")
    kinds = [] if not faulty else [kind] if second is None else [kind, second]
    victims = chance.choice(well, len(kinds), replace=False)
    began = _onsets(chance, len(kinds), int(rows * step))
    harms = []
    for name, machine, at in zip(kinds, victims, began, strict=True):
        hang = second is None and job.together and chance.random() < 0.5
        harms.append(_harm(chance, name, int(machine), LEAD + at, job, hang=hang))
    at_second = _moments(chance, rows, n, step)
    values, usual = _measured(chance, fleet, job, harms, at_second, step)
    others = [i for i in well if i not in victims]
    _blips(chance, values, usual, others, step)
    odd = [*np.flatnonzero(fleet.spare).tolist(), *fleet.role]
    if oddity == "miscalibrated":
        odd.append(_miscalibrated(chance, values, others))
    _collected(chance, values, step)
    if oddity == "dead_exporter":
        odd.append(_dead(chance, values, others, step))
    faults = sorted(
        (
            Fault(name, int(machine), at, FAULTS[name])
            for name, machine, at in zip(kinds, victims, began, strict=True)
        ),
        key=lambda fault: fault.since,
    )
    first = faults[0] if faults else None
    return ScrapedCase(
        kind if not faulty else "+".join(fault.kind for fault in faults),
        {name: np.asarray(value, dtype=np.float64) for name, value in values.items()},
        first.machine if first else None,
        first.since if first else None,
        first.metrics if first else (),
        step=step,
        faults=tuple(faults),
        odd=tuple(odd),
        oddity=oddity,
    )


def _onsets(chance: np.random.Generator, count: int, window: int) -> list[int]:
    """Seconds at which faults begin; every third pair shares its cause and its time."""
    began = [int(window * chance.uniform(0.15, 0.65)) for _ in range(count)]
    if count == 2 and chance.random() < 0.33:
        began[1] = began[0] + int(chance.integers(0, 120))
    return began


def _fleet(chance: np.random.Generator, n: int, oddity: str) -> Fleet:
    """Stages in blocks or in turns, racks of 4 to 8, cooled by air, by liquid or by either."""
    deep = [p for p in (1, 2, 4, 8, 16) if n / p >= 3]
    stages = int(chance.choice(deep))
    in_turns = chance.random() < 0.5
    stage = np.arange(n) % stages if in_turns else np.arange(n) * stages // n
    load = 1.0 - np.abs(chance.normal(0.0, 0.05, stages))
    if stages > 1:
        load[-1], load[0] = 1.0, chance.uniform(0.85, 1.0)
        load[:-1] *= chance.uniform(0.82, 0.97)
    rack = np.arange(n) // int(chance.integers(4, 9))
    wet = float(chance.choice([0.0, 1.0, 0.3, 0.5, 0.7]))
    liquid = (chance.random(rack[-1] + 1) < wet)[rack]
    spare = np.zeros(n, dtype=bool)
    role: dict[int, str] = {}
    if oddity == "spares":
        most = max(1, min(6, n // 12))
        spare[chance.choice(n, int(chance.integers(1, most + 1)), replace=False)] = True
    if oddity == "own_role":
        where = int(chance.choice([0, n - 1, int(chance.integers(n))]))
        role[where] = str(chance.choice(["embedding", "loss", "parameters", "logging"]))
    work = np.minimum(load[stage] * np.exp(chance.normal(0.0, 0.008, n)), 1.0)
    return Fleet(stage, work, rack, liquid, spare, role)


def _job(chance: np.random.Generator, seconds: int, *, slow: bool) -> Job:
    """Phases of each second: steps, with checkpoints, evaluations, perhaps a start or a requeue."""
    phase = np.full(seconds, STEPPING, dtype=np.int8)
    every = int(chance.uniform(600, 3000))
    lasts = int(chance.uniform(8, 90))
    for at in range(int(chance.integers(every)), seconds, every):
        phase[at : at + int(lasts * chance.uniform(0.8, 1.4))] = SAVING
    if chance.random() < 0.5:
        every, lasts = int(chance.uniform(1500, 5400)), int(chance.uniform(40, 240))
        for at in range(int(chance.integers(every)), seconds, every):
            phase[at : at + lasts] = EVALUATING
    if chance.random() < 0.15:  # the job starts within the window
        start = LEAD + int(chance.uniform(0.0, 0.08) * seconds)
        phase[:start] = STOPPED
        phase[start : start + int(chance.uniform(60, 300))] = LOADING
    if chance.random() < 0.15:  # it is requeued
        at = int(chance.uniform(0.1, 0.9) * seconds)
        rests, loads = int(chance.uniform(60, 420)), int(chance.uniform(40, 240))
        phase[at : at + rests] = STOPPED
        phase[at + rests : at + rests + loads] = LOADING
    data_wait = np.zeros(seconds)
    if slow:
        at = LEAD + int((seconds - LEAD) * chance.uniform(0.0, 0.6))
        data_wait[at:] = chance.uniform(0.25, 2.0) * _waves(chance, seconds - at)
    return Job(
        phase,
        float(np.exp(chance.uniform(np.log(1.5), np.log(30.0)))),
        chance.uniform(0.55, 0.85),
        bool(chance.random() < 0.7),
        data_wait,
    )


def _waves(chance: np.random.Generator, seconds: int) -> Array:
    """Stalls and recoveries by turns, 0 to 1: lengths are drawn anew each time."""
    mean = chance.uniform(25, 160)
    duty = chance.uniform(0.35, 0.75)
    turns = int(seconds / mean) + 8
    stalled = chance.gamma(2.5, mean * duty / 2.5, turns)
    free = chance.gamma(2.5, mean * (1 - duty) / 2.5, turns)
    ends = np.cumsum(np.stack([stalled, free], axis=1).ravel())
    which = np.searchsorted(ends, np.arange(seconds))
    height = chance.uniform(0.5, 1.0, 2 * turns + 1)
    return np.where(which % 2 == 0, height[which], 0.06)


def _harm(  # noqa: C901 - one branch a kind
    chance: np.random.Generator, kind: str, machine: int, at: int, job: Job, *, hang: bool
) -> Harm:
    """What a fault of a kind does from second `at` on; one that hangs the job also changes it."""
    seconds = job.phase.size
    names = ["gpu_slow", "net_slow", "clock", "power", "disk", "port", "gpus", "dram"]
    level = {name: np.ones(seconds) for name in names}
    more = ["starved", "heat", "iowait", "cpu", "retransmits", "replays", "ecc", "rests"]
    level |= {name: np.zeros(seconds) for name in more}
    level["ceiling"] = np.full(seconds, np.inf)
    left = seconds - at
    share = 1.0
    if kind == "power_cap":
        cap = chance.uniform(0.42, 0.8)
        level["power"][at:] = cap
        level["clock"][at:] = cap ** chance.uniform(0.45, 0.65)
        level["gpu_slow"][at:] = level["clock"][at:] ** -chance.uniform(0.7, 1.0)
    elif kind == "thermal_throttle":
        lag = chance.uniform(60, 300)
        rise = 1.0 - np.exp(-np.arange(left) / lag)
        level["heat"][at:] = chance.uniform(11, 26) * rise
        lowest = chance.uniform(0.55, 0.9)
        period = chance.uniform(40, 300)
        saw = 0.75 + 0.25 * np.abs(2 * ((np.arange(left) / period) % 1) - 1)
        loss = (1 - lowest) * np.clip((rise - 0.35) / 0.4, 0, 1) * saw
        level["clock"][at:] = 1 - loss
        level["power"][at:] = (1 - loss) ** chance.uniform(1.1, 1.8)
        level["gpu_slow"][at:] = (1 - loss) ** -0.9
    elif kind == "disk_stall":
        waves = _waves(chance, left)
        level["starved"][at:] = chance.uniform(0.4, 3.0) * waves
        level["iowait"][at:] = chance.uniform(5, 40) * waves
        level["disk"][at:] = 1 - chance.uniform(0.4, 0.9) * waves
        level["cpu"][at:] = -4 * waves
    elif kind == "slow_link":
        on = np.ones(left)
        if chance.random() < 0.5:  # it flaps
            on = (_waves(chance, left) > 0.1).astype(float)
        slower = chance.uniform(1.3, 3.5)
        level["net_slow"][at:] = 1 + (slower - 1) * on
        level["retransmits"][at:] = np.exp(chance.uniform(np.log(30), np.log(3000))) * on
        if chance.random() < 0.6:  # the other ports carry what this one does not
            level["port"][at:] = 1 - chance.uniform(0.2, 0.7) * on
    elif kind == "memory_retries":
        on = np.maximum(_waves(chance, left), chance.uniform(0.1, 0.6))
        level["gpu_slow"][at:] = 1 + chance.uniform(0.12, 0.9) * on
        level["ecc"][at:] = np.exp(chance.uniform(np.log(0.3), np.log(40))) * on
        level["dram"][at:] = 1 + chance.uniform(0.02, 0.12) * on
        share = 1 / 8
    elif kind == "pcie_downgrade":
        share = float(chance.choice([0.25, 0.5, 1.0]))
        level["starved"][at:] = chance.uniform(0.3, 1.2) / np.sqrt(share)
        level["ceiling"][at:] = chance.uniform(0.2, 0.6)
        if chance.random() < 0.6:
            level["replays"][at:] = np.exp(chance.uniform(np.log(0.2), np.log(30)))
        level["cpu"][at:] = chance.uniform(0, 4)
    elif kind == "cpu_contention":
        bursts = 1.0 if chance.random() < 0.6 else np.maximum(_waves(chance, left), 0.4)
        stolen = chance.uniform(18, 65)
        level["cpu"][at:] = stolen * bursts
        level["starved"][at:] = stolen / 100 * chance.uniform(0.25, 1.2) * bursts
    elif hang:  # a GPU is gone: all others spin till the watchdog ends the job, which is requeued
        watchdog, rests = int(chance.uniform(500, 1500)), int(chance.uniform(60, 300))
        loads = int(chance.uniform(40, 200))
        job.phase[at : at + watchdog] = HUNG
        job.phase[at + watchdog : at + watchdog + rests] = STOPPED
        job.phase[at + watchdog + rests : at + watchdog + rests + loads] = LOADING
        level["rests"][at:] = 1.0
        level["gpus"][at:] = 7 / 8
    else:  # a GPU is gone: the machine's other seven go on, or the job goes on without the machine
        level["gpus"][at:] = 7 / 8
        if job.together or chance.random() < 0.4:
            level["rests"][at:] = 1.0
    return Harm(machine, **level, share=share)


def _moments(chance: np.random.Generator, rows: int, n: int, step: float) -> Array:
    """Second of each scrape, (row, machine): a machine's own moment, and collectors are late."""
    own = chance.integers(0, int(step), n) if chance.random() < 0.85 else np.zeros(n)
    late = chance.random((rows, n), dtype=np.float32) ** 6 * min(4.0, step / 4)
    return (LEAD + np.arange(rows)[:, None] * step + own + late).astype(np.int64)


def _share(below: Array | float, start: Array, end: Array) -> Array:
    """Share of the time from `start` to `end`, in steps, that lies in the step's first part."""

    def passed(x: Array) -> Array:
        whole = np.floor(x)
        return whole * below + np.minimum(x - whole, below)

    return np.clip((passed(end) - passed(start)) / np.maximum(end - start, 1e-9), 0.0, 1.0)


def _wander(chance: np.random.Generator, shape: tuple[int, int], step: float, lag: float) -> Array:
    """Noise of unit spread, heavy in its tails, that forgets itself within `lag` seconds."""
    z = chance.standard_normal(shape, dtype=np.float32)
    z += 0.09 * z**3
    keep = float(np.exp(-step / lag))
    return lfilter([np.sqrt(1 - keep**2) / 1.34], [1.0, -keep], z, axis=0).astype(np.float32)


def _measured(  # noqa: C901 - one paragraph a metric
    chance: np.random.Generator,
    fleet: Fleet,
    job: Job,
    harms: list[Harm],
    at: Array,
    step: float,
) -> tuple[dict[str, Array], dict[str, float]]:
    """All metrics at the moments of the scrapes, and what each usually is in this job."""
    rows, n = at.shape
    before = at - 1
    back = np.maximum(at - int(step), 0)
    phase = job.phase[np.maximum(at - chance.integers(0, 3, n), 0)]

    # How long each part of a step takes, and how far the job is.
    c, seconds = job.computing, job.phase.size
    slowest, net = 1.0 + job.data_wait, np.ones(seconds)
    if job.together:
        for harm in harms:
            alive = 1.0 - harm.rests
            own = fleet.work[harm.machine] * (harm.gpu_slow + harm.starved)
            slowest = np.maximum(slowest, np.where(alive > 0, own, 1.0))
            net = np.maximum(net, np.where(alive > 0, harm.net_slow, 1.0))
    whole = c * slowest + (1 - c) * net
    stepping = job.phase == STEPPING
    uneven = np.exp(lfilter([0.03], [1, -0.995], chance.normal(0, 0.12, seconds)))
    done = np.cumsum(stepping / (job.step_s * whole * uneven))

    gpu_slow, starved = np.ones((rows, n)), job.data_wait[at]
    slowest_of, whole_of = slowest[at], whole[at]
    start, end, early = done[before], done[at], done[back]
    for harm in harms:
        m, t = harm.machine, at[:, harm.machine]
        gpu_slow[:, m] = harm.gpu_slow[t]
        starved[:, m] += harm.starved[t]
        if not job.together:
            own_slow = fleet.work[m] * (harm.gpu_slow + harm.starved)
            own = c * np.maximum(own_slow, 1.0) + (1 - c) * harm.net_slow
            far = np.cumsum(stepping / (job.step_s * own * uneven))
            slowest_of[:, m], whole_of[:, m] = np.maximum(own_slow, 1.0)[t], own[t]
            start[:, m], end[:, m], early[:, m] = far[t - 1], far[t], far[back[:, m]]

    # What the GPUs do in the second of the scrape: compute, starve, wait for others, communicate.
    first = np.minimum(c * fleet.work * gpu_slow / whole_of, 1.0)
    until_fed = np.minimum(c * fleet.work * (gpu_slow + starved) / whole_of, 1.0)
    until_all = np.minimum(c * slowest_of / whole_of, 1.0)
    run = phase == STEPPING
    computes = _share(first, start, end) * run
    fed = np.maximum(_share(until_fed, start, end) * run, computes)
    waited = np.maximum(_share(until_all, start, end) * run, fed)
    starves, waits, talks = fed - computes, waited - fed, (run - waited)
    for harm in harms:  # of the machine's GPUs only some are slow; the others wait for them
        if harm.share < 1:
            m = harm.machine
            usual = np.minimum(computes[:, m], computes[:, m] / gpu_slow[:, m])
            moved = (1 - harm.share) * (computes[:, m] - usual + starves[:, m])
            starves[:, m] *= harm.share
            computes[:, m] = usual + harm.share * (computes[:, m] - usual)
            waits[:, m] += moved
    useful = computes / gpu_slow  # what a step needs stays the same, however long it takes
    for harm in harms:
        if harm.share < 1:
            m = harm.machine
            useful[:, m] = computes[:, m] / (1 + harm.share * (gpu_slow[:, m] - 1))
    speed = (end - early) / step * job.step_s  # 1 where all is as usual, over the whole scrape

    # A machine that rests, spares, roles.
    present = np.ones((rows, n))
    rests = np.zeros((rows, n), dtype=bool)
    rests[:, fleet.spare] = True
    for harm in harms:
        present[:, harm.machine] = harm.gpus[at[:, harm.machine]]
        rests[:, harm.machine] |= harm.rests[at[:, harm.machine]] > 0
    gpu_role, cpu_role, link_role, disk_role, dram_role = (np.ones(n) for _ in range(5))
    for m, role in fleet.role.items():
        if role == "embedding":
            gpu_role[m], dram_role[m] = chance.uniform(0.6, 0.85), chance.uniform(1.2, 1.8)
        elif role == "loss":
            gpu_role[m], dram_role[m] = chance.uniform(1.05, 1.15), chance.uniform(1.05, 1.3)
        elif role == "parameters":
            gpu_role[m], cpu_role[m] = chance.uniform(0.0, 0.3), chance.uniform(1.6, 3.0)
            link_role[m] = chance.uniform(1.5, 5.0)
        else:
            gpu_role[m], cpu_role[m] = chance.uniform(0.7, 0.95), chance.uniform(1.2, 2.2)
            disk_role[m] = chance.uniform(1.5, 6.0)
    awake = ~rests
    for part in (computes, useful, starves, waits, talks):
        part *= awake
    speed = speed * awake
    hung = (phase == HUNG) & awake
    loads = (phase == LOADING) & awake
    saves = (phase == SAVING) & awake
    evaluates = (phase == EVALUATING) & awake

    def noise(lag: float) -> Array:
        return _wander(chance, (rows, n), step, lag)

    def gains(spread: float) -> Array:
        return np.exp(spread * chance.standard_t(6, n))

    def harmed(name: str, value: Array, how: str = "times") -> None:
        for harm in harms:
            effect = getattr(harm, name)[at[:, harm.machine]]
            if how == "times":
                value[:, harm.machine] *= effect
            else:
                value[:, harm.machine] += effect

    spread = float(chance.choice([0.008, 0.015, 0.03]))
    tdp, boost = ((400.0, 1410.0), (700.0, 1980.0), (1000.0, 1965.0))[int(chance.integers(3))]
    values: dict[str, Array] = {}

    util = 100 * (computes * chance.uniform(0.96, 1.0) + waits + talks + hung)
    util += 8 * starves + 92 * evaluates + 12 * saves + 3 * loads
    util = np.where(gpu_role < 0.4, util * gpu_role, util)
    util += np.where(util > 3, chance.uniform(0.4, 1.8) * noise(20), 0)
    values[UTIL] = np.clip(util, 0, 100) * present

    draw = chance.uniform(0.82, 0.97)
    low, resting = chance.uniform(0.3, 0.45), chance.uniform(0.1, 0.18)
    stage_power = 1 + 0.05 * (fleet.work - 1)
    active = computes * draw * stage_power + talks * (0.45 * draw + 0.1) + (waits + hung) * low
    active += starves * 0.22 + evaluates * 0.6 * draw + saves * 0.2 + loads * 0.15
    idle = np.maximum(1 - computes - talks - waits - starves - hung - evaluates - saves - loads, 0)
    power = np.maximum(active * np.where(gpu_role < 1, gpu_role, 1.0), resting * (active > 0))
    power = (power + idle * resting) * gains(spread)
    limit = np.ones((rows, n))
    harmed("power", limit)
    working = (computes + talks > 0.05) | evaluates
    unlimited = power
    power = np.where(working, np.minimum(power, limit * draw), power)
    power = tdp * np.clip(power * (1 + chance.uniform(0.006, 0.02) * noise(30)), 0.06, 1.03)
    values[POWER] = power * present

    hour = chance.uniform(0, 24) + at / 3600
    day = np.sin(2 * np.pi * (hour - 9) / 24)
    rack_warmth = chance.normal(0, 1, fleet.rack[-1] + 1)[fleet.rack]
    inlet = np.where(fleet.liquid, 31 + 0.6 * day + 0.5 * rack_warmth, 24 + 2.2 * day + rack_warmth)
    warm = np.where(fleet.liquid, 17, 42) * gains(0.05)
    keep = np.exp(-step / np.where(fleet.liquid, 25, 70))
    heat = np.zeros((rows, n))
    harmed("heat", heat, "plus")
    heat *= 0.25 + 0.75 * np.minimum(unlimited, 1)
    # A clock that is throttled holds the temperature where it is; it does not lower it.
    heated = warm * np.where(heat > 0, unlimited, power / tdp)
    for wet in (False, True):
        these = fleet.liquid == wet
        if these.any():
            k = float(keep[these][0])
            begin = heated[:1, these] * k
            heated[:, these] = lfilter([1 - k], [1, -k], heated[:, these], axis=0, zi=begin)[0]
    hottest = inlet + heated + heat + chance.normal(2.5, 1.2, n) + 0.5 * noise(120)
    values[TEMPERATURE] = np.round(hottest)

    silicon = np.abs(chance.normal(0.03, 0.02, n))
    clock = boost * (1 - (silicon + 0.012 * np.abs(noise(90))) * (computes + 0.3 * talks))
    limit = np.ones((rows, n))
    harmed("clock", limit)
    clock *= np.where(working, limit, 1.0)
    if chance.random() < 0.6:  # clocks fall where nothing runs
        clock = np.where((util < 1) & ~loads, 345.0, clock)
    values[CLOCK] = 15 * np.round(clock / 15)

    own = gains(spread)
    tensor = chance.uniform(0.35, 0.6) * useful * own + 0.2 * evaluates
    values[TENSOR] = np.clip(tensor * gpu_role * (1 + 0.04 * noise(25)), 0, 1) * present
    dram = chance.uniform(0.3, 0.5) * useful + 0.12 * talks + 0.25 * evaluates + 0.03 * waits
    dram = dram * dram_role * gains(spread) * (1 + 0.04 * noise(25))
    harmed("dram", dram)
    values[DRAM] = np.clip(dram, 0, 1) * present

    bytes_in = np.exp(chance.uniform(np.log(2e9), np.log(1.5e10)))
    pcie = (useful + 0.5 * talks + 0.2 * starves + 0.5 * evaluates) * gains(2 * spread)
    pcie *= np.exp(chance.uniform(0.1, 0.4) * noise(5))
    pcie += 0.3 * loads + 0.05 * saves
    for harm in harms:
        pcie[:, harm.machine] = np.minimum(pcie[:, harm.machine], harm.ceiling[at[:, harm.machine]])
    values[PCIE] = bytes_in * (np.maximum(pcie, 0) * gpu_role + 2e-4)

    def counts(mean: Array) -> Array:
        return chance.poisson(np.minimum(mean * step, 1e8)) / step

    rare = (chance.random(n) < 0.05) * chance.uniform(1e-4, 5e-3, n)
    replays = np.zeros((rows, n)) + rare
    harmed("replays", replays, "plus")
    values[REPLAYS] = counts(replays * chance.gamma(2, 0.5, (rows, n)))
    errors = np.zeros((rows, n)) + rare[::-1]
    harmed("ecc", errors, "plus")
    values[ECC] = counts(errors * chance.gamma(1.2, 1 / 1.2, (rows, n)))

    stage_bytes = np.exp(chance.normal(0, 0.25, fleet.stage.max() + 1))[fleet.stage]
    port = chance.uniform(3e9, 2.2e10) * (speed * stage_bytes * link_role + 0.15 * saves)
    port *= gains(spread) * np.exp(chance.uniform(0.02, 0.08) * noise(30))
    harmed("port", port)
    values[LINK] = port * np.where(present < 1, 7 / 8, 1) + 2e5
    usual_errors = np.exp(chance.normal(chance.uniform(-3, 1), 0.8, n))
    bursts = chance.gamma(0.5, 2.0, (rows, n))
    errors = usual_errors * bursts * (0.1 + speed)
    sent = np.zeros((rows, n))
    harmed("retransmits", sent, "plus")
    values[RETRANSMITS] = counts(errors + sent * bursts**0.5 * (0.1 + speed))

    def averaged(code: int) -> Array:
        passed = np.cumsum(job.phase == code)
        return (passed[at] - passed[back]) / step

    base = chance.uniform(8, 25)
    feeding = averaged(STEPPING) * awake
    cpu = 1.5 + base * (0.5 * feeding + 0.5 * np.minimum(speed, 1.3)) * cpu_role * gains(2 * spread)
    cpu += base * (0.6 * averaged(HUNG) + 0.5 * averaged(SAVING) + 0.8 * averaged(LOADING)) * awake
    cpu += base * 0.6 * averaged(EVALUATING) * awake + 0.06 * base * np.abs(noise(60))
    harmed("cpu", cpu, "plus")
    values[CPU] = np.clip(cpu + 0.3 * noise(60), 0.2, 100)
    iowait = chance.uniform(0.05, 0.6) * np.exp(0.7 * noise(40)) * (0.2 + feeding) * gains(0.2)
    iowait += chance.uniform(1, 6) * (averaged(SAVING) + averaged(LOADING)) * awake
    iowait += chance.uniform(4, 20) * np.minimum(job.data_wait[at], 1) * gains(0.15) * awake
    harmed("iowait", iowait, "plus")
    values[IOWAIT] = np.clip(iowait, 0, 100 - values[CPU])
    reads = np.exp(chance.uniform(np.log(3e7), np.log(1e9)))
    disk = (speed * disk_role + 4 * averaged(LOADING) * awake) * gains(3 * spread)
    disk *= np.exp(chance.uniform(0.1, 0.5) * noise(45))
    harmed("disk", disk)
    values[DISK] = reads * disk + 1e4 * np.abs(noise(30))

    fans = np.where(fleet.liquid, 120, 350 + 900 * np.clip((hottest - 40) / 45, 0, 1.2) ** 2)
    chassis = 8 * values[POWER] + tdp * 1.3 + 9 * values[CPU] + fans * tdp / 700
    values[CHASSIS] = 8 * np.round(chassis * gains(0.012) / 8)

    usual = {name: float(np.median(value)) for name, value in values.items()}
    dropped = [CHASSIS] if chance.random() < 0.4 else []
    dropped += [CLOCK] if chance.random() < 0.12 else []
    dropped += [TENSOR, DRAM] if chance.random() < 0.2 else []
    return {name: v for name, v in values.items() if name not in dropped}, usual


def _blips(
    chance: np.random.Generator,
    values: dict[str, Array],
    usual: dict[str, float],
    others: list[int],
    step: float,
) -> None:
    """Short things that happen to machines that are well: cron jobs, checks, lost packets."""
    rows = next(iter(values.values())).shape[0]
    for _ in range(chance.poisson(1.2)):
        machine = int(chance.choice(others))
        at = int(chance.integers(rows))
        until = at + max(1, round(chance.uniform(15, 110) / step))
        what = chance.choice([CPU, DISK, RETRANSMITS, IOWAIT])
        part = values[what][at:until, machine]
        if what == CPU:
            part[:] = np.minimum(part + chance.uniform(8, 40), 100)
        elif what == IOWAIT:
            part[:] = np.minimum(part + chance.uniform(3, 15), 100)
        elif what == DISK:
            part += usual[DISK] * chance.uniform(2, 8)
        else:
            part += np.round(np.exp(chance.uniform(2, 6)))


def _miscalibrated(chance: np.random.Generator, values: dict[str, Array], others: list[int]) -> int:
    """One metric of one machine is read wrongly, mostly all the time; the machine is well."""
    machine = int(chance.choice(others))
    name = str(
        chance.choice(
            [m for m in (POWER, TEMPERATURE, CHASSIS, CPU, LINK, DISK, CLOCK) if m in values]
        )
    )
    value = values[name]
    since = 0
    if chance.random() < 0.25:  # since its firmware was changed
        since = int(chance.uniform(0.1, 0.8) * value.shape[0])
    if name == TEMPERATURE:
        value[since:, machine] += chance.choice([-1, 1]) * round(chance.uniform(6, 18))
    elif name in (LINK, DISK):  # counted in words or in sectors
        value[since:, machine] *= chance.choice([0.25, 4.0, 0.125, 2.0])
    elif name == CPU:
        value[since:, machine] = np.minimum(value[since:, machine] * 2, 100)
    else:
        value[since:, machine] *= chance.choice([-1, 1]) * chance.uniform(0.06, 0.3) + 1
    return machine


def _collected(chance: np.random.Generator, values: dict[str, Array], step: float) -> None:
    """Scrapes that were lost; slow exporters; and what a range query holds over from before."""
    rows, n = next(iter(values.values())).shape
    lost_share = float(chance.choice([0.002, 0.01, 0.03, 0.06]))
    all_lost = np.zeros(rows, dtype=bool)
    if chance.random() < 0.35:  # the server itself restarted
        at = int(chance.integers(rows))
        all_lost[at : at + max(1, round(chance.uniform(30, 240) / step))] = True
    held = chance.random() < 0.5
    slow = {"node": 1, "ipmi": 1, "dcgm": 1}
    if step <= 30:
        slow["ipmi"] = int(chance.choice([1, 2, 3]))
        slow["node"] = int(chance.choice([1, 1, 2]))
    for exporter, names in EXPORTERS.items():
        lost = chance.random((rows, n), dtype=np.float32) < lost_share
        for _ in range(chance.poisson(0.04 * n) + chance.poisson(0.5)):
            at, machine = int(chance.integers(rows)), int(chance.integers(n))
            lost[at : at + max(2, round(chance.exponential(120) / step)), machine] = True
        lost[all_lost] = True
        if slow[exporter] > 1:
            turn = np.arange(rows)[:, None] + chance.integers(0, slow[exporter], n)
            lost |= turn % slow[exporter] != 0
        for name in names:
            if name in values:
                values[name] = np.where(lost, np.nan, values[name])
                if held:
                    values[name] = _held(values[name], round(300 / step))


def _held(value: Array, most: int) -> Array:
    """Each gap filled with the sample before it, for at most so many rows."""
    rows = np.arange(value.shape[0])[:, None]
    last = np.maximum.accumulate(np.where(np.isnan(value), -1, rows), axis=0)
    filled = np.take_along_axis(value, np.maximum(last, 0), axis=0)
    return np.where((last >= 0) & (rows - last <= most), filled, np.nan)


def _dead(
    chance: np.random.Generator, values: dict[str, Array], others: list[int], step: float
) -> int:
    """An exporter, or the agent of all, stops or repeats itself; the machine is well."""
    machine = int(chance.choice(others))
    rows = next(iter(values.values())).shape[0]
    at = int(chance.uniform(0.1, 0.75) * rows)
    until = rows
    if chance.random() < 0.3:
        until = min(rows, at + int(chance.uniform(900, 3600) / step))
    which = str(chance.choice(["dcgm", "dcgm", "node", "node", "all"]))
    names = [m for e, ms in EXPORTERS.items() if which in (e, "all") for m in ms if m in values]
    stops = chance.random() < 0.5
    counters_stand = chance.random() < 0.5  # the rate of a counter that stands still is nought
    for name in names:
        value = values[name]
        seen = value[:at, machine]
        seen = seen[~np.isnan(seen)]
        last = np.nan if stops or not seen.size else seen[-1]
        if not stops and counters_stand and name in RATES:
            last = 0.0
        value[at:until, machine] = last
    return machine
