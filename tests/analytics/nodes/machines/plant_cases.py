"""Training jobs as a team's own collector records them, every 1 to 10 seconds, 20 to 90 minutes.

A job is a clock of iterations: load data, compute, wait for the slowest, communicate. It is stopped
by its start, by checkpoints, by evaluations and by hangs. Every machine follows that clock in the
part of its stage, so that a slow machine slows all of them: it computes while the others spin in
their collective. A fault is a cause (a cap, a hot heat sink, a bad cable) whose consequences for
clocks, power, temperature, traffic and the job's pace follow from it. On top come racks, the air of
the room, differences between machines, autocorrelated noise with heavy tails, short bursts of other
work on the host, rounding as the collector rounds, and lost samples.

Use ``cases(seed, n)``: every other case has one or two faulty machines, the rest have none.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[np.float64]]

FAULTS = (
    "power_cap",
    "disk_stall",
    "thermal_throttle",
    "network_link",
    "ecc_retries",
    "pcie_downgrade",
    "cpu_contention",
    "gpu_fell_off",
)
CLEAN = (
    "nothing_wrong",
    "idle_spares",
    "dead_exporter",
    "miscalibrated_sensor",
    "role_of_its_own",
    "whole_job_slow",
)
SHIFTS = (0, 3, 5, 0, 1, 6, 2, 0, 7, 4, 0, 5, 2)
"""How far the kind of a second fault is from that of the first, in turn: 0 is the same kind."""

SHOWN_BY = {
    "power_cap": ("gpu_power_draw", "gpu_sm_clock", "gpu_temperature", "gpu_mem_temperature"),
    "disk_stall": ("disk_io_wait", "disk_read_throughput", "gpu_duty_cycle", "gpu_power_draw"),
    "thermal_throttle": ("gpu_temperature", "gpu_mem_temperature", "gpu_sm_clock", "gpu_power_draw"),
    "network_link": ("rdma_retransmit_rate", "nic_error_rate", "rdma_tx_throughput", "rdma_rx_throughput", "pfc_tx_packet_rate"),
    "ecc_retries": ("ecc_corrected_rate", "gpu_power_draw", "gpu_sm_active"),
    "pcie_downgrade": ("pcie_rx_throughput", "pcie_tx_throughput", "pfc_tx_packet_rate", "rdma_rx_throughput"),
    "cpu_contention": ("cpu_usage", "cpu_load_1m", "gpu_duty_cycle"),
    "gpu_fell_off": ("gpu_duty_cycle", "gpu_power_draw", "gpu_sm_clock", "gpu_temperature", "gpu_mem_used"),
}  # fmt: skip
"""Metrics that a fault of a kind moves most on its machine."""

DT = 0.5
BEFORE = 120.0
COMP, COMM, WAIT, LOAD, CKPT, EVAL, IDLE = range(7)


class Metric(NamedTuple):
    """How a metric is read: noise, differences between machines, rounding, limits, exporter."""

    unit: str
    gain: float
    """Spread of machines' factors."""
    relative: float
    """Noise as a share of the level."""
    added: float
    """Noise in the metric's unit."""
    lasting: float
    """Seconds over which noise is correlated."""
    quantum: float
    most: float
    exporter: str
    rate: bool
    """Whether it is a counter's rate over the whole step, or a gauge."""
    kept: float
    """How often a collector has it."""


METRICS = {
    "cpu_usage": Metric("%", 0.06, 0.05, 0.5, 8, 0.1, 100, "node", True, 1.0),
    "cpu_load_1m": Metric("", 0.06, 0.03, 0.3, 40, 0.01, 1e9, "node", False, 0.35),
    "host_mem_usage": Metric("%", 0.04, 0.002, 0.05, 60, 0.1, 100, "node", False, 0.6),
    "disk_io_wait": Metric("%", 0.25, 0.25, 0.1, 6, 0.01, 100, "node", True, 1.0),
    "disk_read_throughput": Metric("MB/s", 0.08, 0.2, 2.0, 5, 0.1, 1e9, "node", True, 0.7),
    "node_inlet_temperature": Metric("C", 0.01, 0.002, 0.15, 60, 1.0, 100, "node", False, 0.4),
    "gpu_duty_cycle": Metric("%", 0.004, 0.01, 0.6, 4, 1.0, 100, "gpu", False, 1.0),
    "gpu_sm_active": Metric("%", 0.015, 0.025, 0.3, 4, 0.1, 100, "gpu", False, 0.75),
    "gpu_tensor_active": Metric("%", 0.015, 0.03, 0.1, 4, 0.1, 100, "gpu", False, 0.55),
    "gpu_mem_bandwidth_util": Metric("%", 0.02, 0.04, 0.3, 4, 1.0, 100, "gpu", False, 0.6),
    "gpu_power_draw": Metric("W", 0.025, 0.018, 2.0, 5, 0.1, 1e9, "gpu", False, 1.0),
    "gpu_sm_clock": Metric("MHz", 0.008, 0.005, 1.0, 8, 1.0, 1e9, "gpu", False, 1.0),
    "gpu_temperature": Metric("C", 0.02, 0.002, 0.25, 40, 0.125, 120, "gpu", False, 1.0),
    "gpu_mem_temperature": Metric("C", 0.025, 0.002, 0.3, 40, 0.125, 120, "gpu", False, 0.5),
    "gpu_mem_used": Metric("GiB", 0.004, 0.0005, 0.01, 60, 0.01, 1e9, "gpu", False, 0.7),
    "ecc_corrected_rate": Metric("1/s", 0.0, 0.0, 0.0, 1, 0.0, 1e9, "gpu", True, 0.7),
    "nvlink_throughput": Metric("GB/s", 0.012, 0.03, 0.5, 4, 0.1, 1e9, "gpu", True, 0.5),
    "pcie_tx_throughput": Metric("GB/s", 0.03, 0.05, 0.05, 4, 0.01, 1e9, "gpu", True, 0.6),
    "pcie_rx_throughput": Metric("GB/s", 0.03, 0.05, 0.05, 4, 0.01, 1e9, "gpu", True, 1.0),
    "rdma_tx_throughput": Metric("Gbit/s", 0.01, 0.03, 0.2, 4, 0.01, 1e9, "net", True, 1.0),
    "rdma_rx_throughput": Metric("Gbit/s", 0.01, 0.03, 0.2, 4, 0.01, 1e9, "net", True, 0.8),
    "pfc_tx_packet_rate": Metric("1/s", 0.45, 0.7, 0.0, 6, 0.1, 1e9, "net", True, 1.0),
    "pfc_rx_packet_rate": Metric("1/s", 0.45, 0.7, 0.0, 6, 0.1, 1e9, "net", True, 0.5),
    "rdma_cnp_rate": Metric("1/s", 0.4, 0.6, 0.0, 6, 0.1, 1e9, "net", True, 0.4),
    "rdma_retransmit_rate": Metric("1/s", 0.0, 0.0, 0.0, 1, 0.0, 1e9, "net", True, 0.75),
    "nic_error_rate": Metric("1/s", 0.0, 0.0, 0.0, 1, 0.0, 1e9, "net", True, 0.6),
}
BURSTY = ("pfc_tx_packet_rate", "pfc_rx_packet_rate", "rdma_cnp_rate")
RARE = {"ecc_corrected_rate": 2e-4, "rdma_retransmit_rate": 0.02, "nic_error_rate": 1e-4}
"""Counters that are nearly always zero, and the share of samples where a healthy one is not."""

ONE_OF_A_CASE = {"ecc_retries": "ecc_corrected_rate", "network_link": "rdma_retransmit_rate"}
"""A metric that a collector has for certain where a fault of the kind is."""

CARDS = (
    (300.0, 1530.0, 45.0, 31.5, 32.0),
    (400.0, 1410.0, 58.0, 79.0, 64.0),
    (700.0, 1980.0, 78.0, 79.6, 128.0),
)
"""Limit in W, highest clock in MHz, W at rest, memory in GiB, PCIe in GB/s."""


@dataclass(frozen=True)
class Fault:
    """A machine that is faulty from a second on, and until the end."""

    machine: int
    since: float
    kind: str
    metrics: tuple[str, ...] = ()


@dataclass(frozen=True)
class Case:
    """Samples by metric, (sample, machine), NaN where missing; and what is true of them."""

    kind: str
    names: tuple[str, ...]
    step: float
    """Seconds between samples; the first is at 0."""
    values: dict[str, Array]
    faults: tuple[Fault, ...] = field(default=())


@dataclass
class _Group:
    """Machines that do the same: a stage's, or one machine that is special."""

    stage: int = 0
    writes: bool = False
    idle: bool = False
    role: str = ""
    faults: list[_Plan] = field(default_factory=list)
    part: int = -1
    """Group of the one card of eight that differs from this machine's others."""


@dataclass
class _Plan:
    """A fault's cause over time, and what it does to the machine and to the job."""

    kind: str
    machine: int
    since: float
    stretch: Any = 1.0
    """Factor of the time to compute."""
    load: Any = 0.0
    """Time to load data that is added, in iterations."""
    comm: Any = 1.0
    """Factor of the time to communicate, for all."""
    clock: Any = 1.0
    capped: float = 0.0
    """Share of the power while computing that is left; 0 where there is no cap."""
    heat: Any = None
    limit: float = 0.0
    outage: Any = None
    hang: tuple[float, float, float] = (np.inf, np.inf, np.inf)
    """When the job hangs, when it is ended, when it begins anew."""
    dead: bool = False
    times: dict[str, Any] = field(default_factory=dict)
    plus: dict[str, Any] = field(default_factory=dict)


def cases(seed: int, n: int) -> Iterator[Case]:
    """Half clean, half with faulty machines, of each kind in turn; every third of those has two."""
    for i in range(n):
        chance = np.random.default_rng([seed, i])
        j = i // 2
        if i % 2:
            kinds = [FAULTS[j % 8]]
            if j % 3 == 0:
                kinds.append(FAULTS[(j + SHIFTS[j // 24 % len(SHIFTS)]) % 8])
            yield case(tuple(kinds), "", chance)
        else:
            yield case((), CLEAN[j % len(CLEAN)], chance)


def case(kinds: tuple[str, ...], clean: str, chance: np.random.Generator) -> Case:
    """One case with faults of these kinds, or with none and of this clean kind."""
    n = round(8 * (300 / 8) ** chance.random())
    length = float(chance.uniform(1200, 5400))
    steps = [1.0, 2.0, 5.0, 10.0]
    step = float(chance.choice(steps, p=[0.36, 0.26, 0.2, 0.18]))
    while length / step * n > 140_000 and step < 10:
        step = steps[steps.index(step) + 1]
    samples = int(length // step)
    job = _Job(chance, n, samples, step, kinds, clean)
    values = job.read()
    _short_bursts(chance, values, step)
    if clean == "miscalibrated_sensor":
        _miscalibrate(chance, values, step)
    for name, metric in METRICS.items():
        if name in values:
            x = values[name]
            np.clip(x, 0, metric.most, out=x)
            quantum = metric.quantum
            if quantum:
                x /= quantum
                np.rint(x, out=x)
                x *= quantum
    _lose(chance, values, step)
    if clean == "dead_exporter":
        _end_exporter(chance, values, step)
    faults = tuple(
        Fault(p.machine, p.since, p.kind, tuple(m for m in SHOWN_BY[p.kind] if m in values))
        for p in job.plans
    )
    rack = int(chance.choice([4, 6, 8]))
    row = chance.choice(list("abcdefgh"))
    names = tuple(f"trn-{row}{i // rack:02d}-{i % rack:02d}" for i in range(n))
    return Case("+".join(kinds) or clean, names, step, values, faults)


class _Job:
    """A job with its machines, as it goes over time."""

    def __init__(
        self,
        chance: np.random.Generator,
        n: int,
        samples: int,
        step: float,
        kinds: tuple[str, ...],
        clean: str,
    ) -> None:
        """Draw the job, its faults and its groups of machines."""
        self.chance, self.n, self.samples, self.step, self.clean = chance, n, samples, step, clean
        self.length = samples * step
        self.t = np.arange(-BEFORE, self.length + 2 * step, DT)
        self.card = CARDS[int(chance.choice(3, p=[0.15, 0.4, 0.45]))]
        self.iteration = float(np.exp(chance.uniform(np.log(2.0), np.log(35.0))))
        self.comm = float(chance.uniform(0.1, 0.35))
        self.begins = float(chance.uniform(60, 220)) if chance.random() < 0.2 else -BEFORE
        self.spins = chance.random() < 0.75
        self.draw = float(chance.uniform(0.72, 0.94))
        self.boost = float(chance.uniform(0.86, 0.98))
        self.air = float(chance.uniform(20, 27))
        self.usual = float(chance.uniform(45, 68))
        """Degrees of a card that computes."""
        self.plans: list[_Plan] = []
        self._stages()
        special = list(chance.permutation(n))
        self._faulty(kinds, special)
        self._others(special)
        self._go()

    def _stages(self) -> None:
        chance, n = self.chance, self.n
        stages = 1
        if chance.random() < 0.45:
            fits = [s for s in (2, 4, 6, 8) if n >= 4 * s]
            stages = int(chance.choice(fits)) if fits else 1
        self.stages = stages
        self.work = chance.uniform(0.9, 1.0, stages)
        self.work[0] *= chance.uniform(0.88, 1.05)
        self.work[-1] *= chance.uniform(0.92, 1.1)
        self.work *= (0.96 - self.comm) / self.work.max()
        if stages == 1:
            self.work[:] = 0.96 - self.comm
        self.traffic = np.ones(stages)
        self.memory = np.ones(stages) * chance.uniform(0.6, 0.94)
        if stages > 1:
            self.traffic = chance.uniform(0.8, 1.05, stages)
            self.traffic[[0, -1]] *= chance.uniform(0.7, 0.95)
            self.memory *= np.linspace(1.0, chance.uniform(0.7, 0.95), stages)
        self.stage_of = np.arange(n) * stages // n
        one_writes = chance.random() < 0.4
        writers = np.ones(n, dtype=bool)
        if one_writes:
            writers = np.append(True, np.diff(self.stage_of) > 0)
        self.groups = [_Group(s, w) for s in range(stages) for w in (False, True)]
        self.group_of = self.stage_of * 2 + writers

    def _special(self, machine: int) -> _Group:
        """Give a machine a group of its own."""
        like = self.groups[self.group_of[machine]]
        group = _Group(like.stage, like.writes)
        self.group_of[machine] = len(self.groups)
        self.groups.append(group)
        return group

    def _faulty(self, kinds: tuple[str, ...], special: list[int]) -> None:  # noqa: C901 - a branch a kind
        chance = self.chance
        if not kinds:
            return
        first = max(self.begins + 120, 0.12 * self.length, 150)
        last = self.length - max(420, 40 * self.step, 0.2 * self.length)
        last = max(last, first + 60)
        when = [float(chance.uniform(first, last)) for _ in kinds]
        if len(kinds) == 2:
            a, b = (k == "gpu_fell_off" for k in kinds)
            if (a and b) or (not a and not b and chance.random() < 0.3):
                when[1] = when[0] + float(chance.uniform(0, 30))
            elif a or b:
                early = float(chance.uniform(first, first + 0.5 * (last - first)))
                late = float(max(chance.uniform(early, last), early + max(300, 30 * self.step)))
                late = min(late, self.length - 240)
                when = [late, early] if a else [early, late]
        for i, (kind, since) in enumerate(zip(kinds, when, strict=True)):
            machine = int(special.pop())
            if i and kind == kinds[0] and chance.random() < 0.5:
                near = self.plans[0].machine
                beside = [m for m in special if abs(m - near) <= 3]
                if beside:
                    special.append(machine)
                    machine = int(chance.choice(beside))
                    special.remove(machine)
            plan = _cause(chance, kind, machine, round(since, 1), self)
            self.plans.append(plan)
            self._special(machine).faults.append(plan)
        if kinds == ("gpu_fell_off", "gpu_fell_off"):
            hang, ended, anew = self.plans[0].hang
            anew = anew if all(p.dead for p in self.plans) else np.inf
            for plan in self.plans:
                plan.hang = (hang, ended, anew)
        for group in list(self.groups):
            for plan in group.faults:
                if plan.kind in ("ecc_retries", "gpu_fell_off"):
                    group.part = len(self.groups)
                    self.groups.append(_Group(group.stage, group.writes, faults=[plan]))

    def _others(self, special: list[int]) -> None:
        chance = self.chance
        spares = 0
        if self.clean == "idle_spares":
            spares = int(chance.integers(1, max(2, min(8, self.n // 10) + 1)))
        elif not self.clean and self.n >= 12 and chance.random() < 0.12:
            spares = 1 + int(chance.random() < 0.3)
        for _ in range(spares):
            self._special(int(special.pop())).idle = True
        if self.clean == "role_of_its_own":
            role = str(chance.choice(["embedding", "loss", "server", "loader"]))
            machine = {"embedding": 0, "loss": self.n - 1}.get(role, int(special.pop()))
            self._special(machine).role = role

    def _waves(self, on: tuple[float, float], off: tuple[float, float]) -> Array:
        """One while on, zero while off, by turns of random length."""
        chance, turns = self.chance, int(len(self.t) * DT / (on[0] + off[0])) + 4
        lengths = np.empty(2 * turns)
        lengths[::2] = chance.uniform(*on, turns)
        lengths[1::2] = chance.uniform(*off, turns)
        ends = np.cumsum(lengths) - chance.uniform(0, on[0]) - BEFORE
        return (np.searchsorted(ends, self.t) % 2 == 0).astype(float)

    def _wander(self, size: float, every: float) -> Array:
        """A slow wandering about zero."""
        knots = np.arange(-BEFORE, self.t[-1] + 2 * every, every)
        return np.interp(self.t, knots, self.chance.normal(0, size, len(knots)))

    def _go(self) -> None:  # noqa: C901
        """Let the job run: what every group does at every moment."""
        chance, t, groups = self.chance, self.t, self.groups
        size, width = len(groups), len(t)
        mode = np.full(width, -1)
        if chance.random() < 0.85:
            every, lasts = chance.uniform(240, 1500), chance.uniform(6, 50)
            at = chance.uniform(0, every)
            while at < self.length:
                mode[(t >= at) & (t < at + lasts * chance.uniform(0.8, 1.3))] = CKPT
                at += every
        if chance.random() < 0.4:
            every, lasts = chance.uniform(900, 2700), chance.uniform(25, 140)
            at = chance.uniform(0, every)
            while at < self.length:
                mode[(t >= at) & (t < at + lasts)] = EVAL
                at += every
        starts = [(-BEFORE, self.begins)] if self.begins > 0 else []
        if self.clean and self.clean != "dead_exporter" and chance.random() < 0.12:
            at = chance.uniform(0.2, 0.8) * self.length
            starts.append((at, at + chance.uniform(90, 300)))
        for begin, end in starts:
            quiet = begin + 0.4 * (end - begin)
            mode[(t >= begin) & (t < quiet)] = IDLE
            mode[(t >= quiet) & (t < end)] = CKPT
        for plan in self.plans:
            if plan.outage is not None:
                mode[(plan.outage > 0) & (mode < 0)] = WAIT
            hang, ended, anew = plan.hang
            if hang < np.inf:
                mode[t >= hang] = WAIT
                mode[t >= ended] = IDLE
                mode[(t >= anew - 60) & (t < anew)] = CKPT
                mode[t >= anew] = -1
        stretch, load, pace = np.ones((size, width)), np.full((size, width), 0.04), np.ones(width)
        parts = {g.part for g in groups if g.part >= 0}
        away = np.zeros((size, width), dtype=bool)
        for i, g in enumerate(groups):
            for p in g.faults:
                if p.kind != "ecc_retries" or i in parts:
                    stretch[i] *= p.stretch
                load[i] += p.load
                pace = np.maximum(pace, p.comm)
                if p.kind == "gpu_fell_off" and (p.dead or i in parts):
                    away[i] = t >= p.since
            away[i] |= g.idle
        if self.clean == "whole_job_slow":
            load += self._shared(t)
        if chance.random() < 0.3:
            load += chance.uniform(0.01, 0.05) * np.abs(self._wander(1.0, 45))
        work = np.array([self.work[g.stage] for g in groups])
        for i, g in enumerate(groups):
            work[i] *= {"embedding": chance.uniform(0.4, 0.8), "server": 0.03, "loader": 0.02}.get(
                g.role, 1.0
            )
            if g.role == "loss":
                work[i] *= (
                    chance.uniform(0.6, 0.85)
                    if chance.random() < 0.5
                    else chance.uniform(1.05, 1.15)
                )
        ready = load + work[:, None] * stretch
        sync = np.where(away, 0, ready).max(0)
        whole = sync + self.comm * pace
        uneven = np.exp(self._wander(0.02, max(self.iteration, 5.0)))
        ahead = np.where(mode < 0, DT / (self.iteration * whole * uneven), 0)
        phase = np.cumsum(ahead) + chance.random()
        shift = np.array([g.stage for g in groups]) * chance.uniform(0, 0.06)
        into = ((phase + shift[:, None]) % 1.0) * whole
        state = np.where(
            into < load,
            LOAD,
            np.where(into < ready, COMP, np.where(into < sync, WAIT, COMM)),
        )
        state = np.where(mode >= 0, mode, state)
        state[away] = IDLE
        self.state, self.pace, self.stretch, self.away, self.load = state, pace, stretch, away, load

    def _shared(self, t: Array) -> Array:
        """The shared file system is slow for all: much time to load, in waves or all the time."""
        chance = self.chance
        since = chance.uniform(0.0, 0.6) * self.length if chance.random() < 0.75 else -BEFORE
        on = self._waves((40, 200), (20, 120)) if chance.random() < 0.6 else np.ones(len(t))
        self.slow = (t >= since) * on * np.clip(1 + self._wander(0.25, 30), 0.2, 2)
        return chance.uniform(0.2, 1.2) * self.slow

    def _levels(self) -> dict[str, Array]:  # noqa: C901
        """What each metric would be on a machine of each group, without noise."""
        chance, groups, state, t = self.chance, self.groups, self.state, self.t
        limit, clock, rest, memory, bus = self.card
        size = len(groups)
        stage = np.array([g.stage for g in groups])
        spread = np.where(
            state == COMP, self.stretch, np.where(state == LOAD, np.maximum(self.load / 0.04, 1), 1)
        )
        share = self.work[stage] / self.work.max()
        role = np.array([g.role for g in groups])
        rows = np.arange(size)[:, None]

        def of(*levels: Any, doing: Any = state) -> Array:
            table = np.empty((size, 7))
            for k, level in enumerate(levels):
                table[:, k] = level
            return table[rows, doing]

        no_cards = (role == "server") | (role == "loader")
        cards = np.where(no_cards[:, None], IDLE, state)

        busy = (state == COMP) | (state == EVAL)
        spin = 99.0 if self.spins else 22.0
        out: dict[str, Array] = {}
        gap = np.ones(state.shape)
        for i, g in enumerate(groups):
            for p in g.faults:
                if p.kind == "cpu_contention":
                    gap[i] = np.where(busy[i], np.power(p.stretch, -0.8), 1)
        parts = {g.part for g in groups if g.part >= 0}
        dense = share**0.3
        out["gpu_duty_cycle"] = (
            of(chance.uniform(94, 99.5), 97, spin, 8, 3, 90, 0, doing=cards) * gap
        )
        out["gpu_sm_active"] = (
            of(
                chance.uniform(65, 88) * dense,
                26,
                12 if self.spins else 3,
                3,
                1,
                66,
                0,
                doing=cards,
            )
            * gap
        )
        out["gpu_tensor_active"] = (
            of(chance.uniform(35, 60) * dense, 1, 0, 0, 0, 40, 0, doing=cards) * gap
        )
        out["gpu_mem_bandwidth_util"] = of(
            chance.uniform(30, 60), 16, 3, 2, 2, 40, 0, doing=cards
        ) / np.where(state == COMP, self.stretch, 1)
        top = self.draw * limit
        power = of(
            top * dense,
            (0.46 + chance.uniform(-0.05, 0.06)) * limit,
            (0.38 if self.spins else 0.24) * limit,
            0.22 * limit,
            0.19 * limit,
            0.82 * top,
            rest,
            doing=cards,
        )
        low = clock * chance.uniform(0.1, 0.25) if chance.random() < 0.7 else clock
        speed = of(
            self.boost * clock,
            0.99 * clock,
            clock,
            clock,
            clock,
            (0.5 + 0.5 * self.boost) * clock,
            low,
            doing=cards,
        )
        healthy = t < min([p.since for p in self.plans], default=np.inf)
        runs = healthy & np.isin(state[0], (LOAD, COMP, WAIT, COMM))
        resists = (self.usual - self.air) / (power[0][runs].mean() if runs.any() else 0.6 * top)
        for i, g in enumerate(groups):
            for p in g.faults:
                if p.capped:
                    most = np.where(t >= p.since, p.capped * top, np.inf)
                    over = power[i] > most
                    slower = np.where(
                        over,
                        np.power(np.maximum(most - rest, 1) / np.maximum(power[i] - rest, 1), 0.45),
                        1,
                    )
                    power[i] = np.minimum(power[i], most)
                    speed[i] *= slower
                elif p.kind == "thermal_throttle":
                    speed[i] *= p.clock
                    power[i] = rest + (power[i] - rest) * np.power(p.clock, 2.0)
                elif p.kind == "cpu_contention":
                    power[i] = rest + (power[i] - rest) * np.power(gap[i], 0.9)
                elif p.kind == "ecc_retries" and i in parts:
                    weaker = np.where(busy[i], 1 / self.stretch[i], 1)
                    out["gpu_tensor_active"][i] *= weaker
                    power[i] = rest + (power[i] - rest) * weaker
                elif p.kind == "gpu_fell_off" and i in parts:
                    gone = t >= p.since
                    power[i][gone] = 0
                    speed[i][gone] = 0
        for i, g in enumerate(groups):
            if g.role == "embedding":
                out["gpu_mem_bandwidth_util"][i] *= 1.5
                out["gpu_tensor_active"][i] *= 0.6
            elif g.role == "loss":
                out["gpu_mem_bandwidth_util"][i] *= 1.2
                power[i] *= 1 + chance.uniform(-0.08, 0.06)
        out["gpu_power_draw"], out["gpu_sm_clock"] = power, speed
        held = memory * np.minimum(
            self.memory[stage] * np.where(role == "embedding", 1.2, 1.0), 0.97
        )
        held = np.where(no_cards, 3.0, held)
        out["gpu_mem_used"] = of(held, held, held, held, held, held, 0.5)
        for i in parts:
            for g in groups:
                if g.part == i:
                    j = groups.index(g)
                    for x in out.values():
                        x[j] = 0.875 * x[j] + 0.125 * x[i]
        lag = chance.uniform(15, 45)
        heat = resists * power
        keep = np.exp(-DT / lag)
        warm, _ = lfilter(
            [1 - keep], [1, -keep], heat, axis=1, zi=keep * heat[:, :60].mean(1, keepdims=True)
        )
        day = 1.5 * np.sin(2 * np.pi * (t / 86400 + chance.random())) + chance.uniform(
            0.1, 0.8
        ) * np.sin(2 * np.pi * t / chance.uniform(500, 1500))
        inlet = np.tile(self.air + day, (size, 1))
        warm = warm + inlet
        hotter = warm + chance.uniform(4, 12)
        for i, g in enumerate(groups):
            for p in g.faults:
                if p.heat is not None:
                    more = p.heat * np.clip(
                        (warm[i] - inlet[i]) / max(self.usual - self.air, 1), 0, 1.1
                    )
                    edge = p.limit + self.chance.uniform(0, 1.0) + 0.6 * self._wander(1.0, 20)
                    more = np.minimum(warm[i] + more, np.maximum(edge, warm[i])) - warm[i]
                    warm[i] += more
                    hotter[i] += 1.05 * more
        out["gpu_temperature"], out["gpu_mem_temperature"] = warm, hotter
        out["node_inlet_temperature"] = inlet
        writes = np.array([g.writes for g in groups])
        base = chance.uniform(9, 28)
        cpu = of(
            base,
            base * 1.05,
            base * (1.1 if self.spins else 0.7),
            base * 1.8,
            np.where(writes, base * 1.9, base * 0.5),
            base * 1.3,
            chance.uniform(0.8, 2.5),
        )
        cpu = np.where(state == LOAD, cpu * (0.4 + 0.6 / spread), cpu)
        cpu[role == "embedding"] *= 1.4
        cpu[no_cards] *= chance.uniform(2.0, 3.2)
        out["cpu_usage"] = cpu
        out["host_mem_usage"] = of(*[chance.uniform(25, 60)] * 6, 6) + np.clip(
            t / 3600, 0, 2
        ) * chance.uniform(0, 2)
        wait = of(0.25, 0.2, 0.2, 1.2, np.where(writes, chance.uniform(3, 12), 0.4), 0.8, 0.08)
        if self.clean == "whole_job_slow":
            wait += self.slow * chance.uniform(5, 30) * ~np.array([g.idle for g in groups])[:, None]
        out["disk_io_wait"] = wait
        read = chance.uniform(30, 400)
        out["disk_read_throughput"] = of(
            read, read * 0.8, read * 0.3, read * 1.6, read * 0.2, read * 1.1, 0.3
        )
        if self.clean == "whole_job_slow":
            out["disk_read_throughput"] *= 1 - 0.5 * np.clip(self.slow, 0, 1)
        net = chance.uniform(40, 340) * self.traffic[stage]
        net = np.where(role == "server", net * 1.6, np.where(role == "loader", net * 0.2, net))
        lap = chance.uniform(0.1, 0.6)
        rdma = of(net * lap, net, net * 0.01, 0.05, 0.1, net * 0.15, 0.02) / np.where(
            state == COMM, self.pace, spread
        )
        out["rdma_tx_throughput"] = rdma
        out["rdma_rx_throughput"] = rdma * (1 + 0.1 * (stage / max(stage.max(), 1) - 0.5))[:, None]
        inside = chance.uniform(60, 280)
        out["nvlink_throughput"] = (
            of(inside * share, inside * 0.7, 1, 0.2, 0.1, inside * 0.5, 0, doing=cards) / spread
        )
        feed = chance.uniform(0.02, 0.08) * bus
        out["pcie_rx_throughput"] = (
            rdma / 8 * 0.9 + of(feed, feed * 0.3, 0.05, feed * 3, 0.1, feed, 0.02) / spread
        )
        out["pcie_tx_throughput"] = (
            rdma / 8 * 0.9
            + of(
                feed * 0.3, feed * 0.2, 0.05, 0.1, np.where(writes, feed * 4, 0.1), feed * 0.3, 0.02
            )
            / spread
        )
        paused = np.exp(chance.uniform(np.log(1.0), np.log(250.0)))
        out["pfc_tx_packet_rate"] = of(
            paused * lap, paused, 0.02 * paused, 0, 0.05 * paused, 0.1 * paused, 0
        )
        out["pfc_rx_packet_rate"] = 1.4 * out["pfc_tx_packet_rate"]
        out["rdma_cnp_rate"] = 0.6 * out["pfc_tx_packet_rate"] + 0.01 * rdma
        for name in RARE:
            out[name] = np.zeros((size, len(t)))
        for i, g in enumerate(groups):
            for p in g.faults:
                talks = np.isin(state[i], (COMP, COMM, WAIT))
                for name, factor in p.times.items():
                    out[name][i] *= np.where(t >= p.since, factor, 1)
                for name, more in p.plus.items():
                    net_only = METRICS[name].exporter == "net" and p.outage is None
                    scale = paused if name.startswith("pfc") or name == "rdma_cnp_rate" else 1.0
                    out[name][i] += (
                        np.where((t >= p.since) & (talks | (not net_only)), more, 0) * scale
                    )
        minute = np.exp(-DT / 60)
        load = out["cpu_usage"] * 1.28 + (out["disk_io_wait"] * 0.6)
        out["cpu_load_1m"], _ = lfilter(
            [1 - minute], [1, -minute], load, axis=1, zi=minute * load[:, :1]
        )
        return out

    def read(self) -> dict[str, Array]:
        """Sample every metric on every machine, with what tells machines and samples apart."""
        chance, n, samples, step = self.chance, self.n, self.samples, self.step
        levels = self._levels()
        kinds = {p.kind for p in self.plans}
        certain = {ONE_OF_A_CASE[k] for k in kinds if k in ONE_OF_A_CASE}
        whole_step = chance.random() < 0.5
        aligned = chance.random() < 0.5
        late = chance.uniform(0, 0.5 if aligned else step, n)
        late = np.round(late / DT).astype(int)
        first = int(BEFORE / DT)
        stride = int(step / DT)
        combos, column = np.unique(self.group_of * 1000 + late, return_inverse=True)
        which, by = combos // 1000, combos % 1000
        end = first + by[:, None] + stride * np.arange(samples)
        rack = np.arange(n) // int(chance.choice([4, 8]))
        racks = chance.normal(0, 1, rack.max() + 1)[rack]
        knots = max(3, int(self.length / 400))
        at = np.linspace(0, knots - 1.001, samples)
        left = at.astype(int)
        weight = (at - left)[:, None]
        own = chance.standard_normal((samples, n), dtype=np.float32)
        keep = np.exp(-step / 15)
        own = lfilter(np.float32([np.sqrt(1 - keep**2)]), np.float32([1, -keep]), own, axis=0)
        noisier = np.exp(chance.normal(0, 0.2, n)) * chance.uniform(0.7, 1.4)
        values: dict[str, Array] = {}
        for name, metric in METRICS.items():
            if name not in certain and chance.random() > metric.kept:
                continue
            window = stride if metric.rate or whole_step else max(1, int(min(1.0, step) / DT))
            total = np.cumsum(levels[name], axis=1)
            mean = (total[which[:, None], end] - total[which[:, None], end - window]) / window
            x = mean.T[:, column]
            if name in RARE:
                values[name] = self._rare(name, x)
                continue
            gain = np.exp(chance.normal(0, metric.gain, n))
            noise = chance.standard_normal((samples, n), dtype=np.float32)
            keep = np.exp(-step / metric.lasting)
            noise = lfilter(
                np.float32([np.sqrt(1 - keep**2)]), np.float32([1, -keep]), noise, axis=0
            )
            some = chance.integers(0, noise.size, max(1, int(0.003 * noise.size)))
            noise.reshape(-1)[some] += 2.0 * chance.standard_t(3, len(some))
            if name in BURSTY:
                spread = metric.relative
                noise *= spread * 1.3
                np.minimum(noise, 3.5, out=noise)
                values[name] = x * gain * np.exp(noise - 0.5 * spread**2)
                continue
            if name.endswith("temperature"):
                x += (1.2 * racks + chance.normal(0, 1.2, n)) * (1.0 if "gpu" in name else 0.5)
                x += 0.4 * (own if "gpu" in name else 0)
            elif METRICS[name].exporter == "gpu" and name not in ("gpu_mem_used", "gpu_sm_clock"):
                noise = 0.85 * noise + 0.5 * own
            bends = chance.normal(0, 0.25 * metric.relative, (knots, n))
            slow = bends[left] * (1 - weight) + bends[left + 1] * weight
            noise *= noisier
            x = x * (gain + slow + metric.relative * noise)
            if metric.added:
                x += metric.added * noise[::-1]
            values[name] = x
        return values

    def _rare(self, name: str, mean: Array) -> Array:
        """Counts of what seldom happens, as rates over the step."""
        chance, step = self.chance, self.step
        x = np.zeros(mean.shape)
        hot = np.flatnonzero(mean.max(0) > 0)
        for m in hot:
            uneven = chance.gamma(1.5, 1 / 1.5, len(mean))
            x[:, m] = chance.poisson(mean[:, m] * step * uneven) / step
        k = chance.poisson(RARE[name] * x.size)
        some = chance.integers(0, x.size, k)
        x.reshape(-1)[some] += chance.geometric(0.5, k) / step
        if name == "rdma_retransmit_rate":
            k = chance.poisson(0.001 * x.size)
            some = chance.integers(0, x.size, k)
            x.reshape(-1)[some] += np.rint(chance.exponential(6, k)) / step
        return x


def _cause(  # noqa: C901 - a branch a kind
    chance: np.random.Generator, kind: str, machine: int, since: float, job: _Job
) -> _Plan:
    """Draw a fault of a kind: how bad it is, and how it goes over time."""
    t = job.t
    on = (t >= since).astype(float)
    after = np.maximum(t - since, 0)
    bad = float(chance.random() ** 1.2)
    """How bad, from modest to severe."""
    plan = _Plan(kind, machine, since)
    if kind == "power_cap":
        plan.capped = 0.86 - 0.4 * bad
        rest = job.card[2]
        top = job.draw * job.card[0]
        slower = ((plan.capped * top - rest) / (top - rest)) ** 0.45
        plan.stretch = 1 + on * (1 / slower - 1) * 0.9
    elif kind == "thermal_throttle":
        takes = chance.uniform(40, 140)
        warm = 1 - np.exp(-after / takes)
        starts = chance.uniform(0.4, 0.7)
        plan.limit = chance.uniform(82, 88)
        plan.heat = on * warm * (plan.limit - job.usual) / starts
        down = (0.08 + 0.42 * bad) * np.clip((warm - starts) / (0.95 - starts), 0, 1)
        hunts = 1 + np.clip(job._wander(0.15, chance.uniform(8, 40)), -0.5, 0.5)
        plan.clock = 1 - np.clip(down * hunts, 0, 0.7)
        plan.stretch = 1 + (1 / plan.clock - 1) * 0.9
    elif kind == "disk_stall":
        if chance.random() < 0.7:
            waves = job._waves((30, 150), (15, 100))
            waves = np.maximum(waves, after < 25)
        else:
            waves = np.ones(len(t))
        stall = on * waves * np.clip(1 + job._wander(0.3, 12), 0.2, 2)
        plan.load = (0.15 + 0.9 * bad) * stall
        plan.plus["disk_io_wait"] = (3 + 38 * bad) * stall
        plan.times["disk_read_throughput"] = 1 - np.clip((0.3 + 0.5 * bad) * stall, 0, 0.95)
    elif kind == "network_link":
        if chance.random() < 0.5:
            down = job._waves((4, 10 + 30 * bad), (30, 200 - 100 * bad)) * on
            down = np.maximum(down, on * (after < 8))
            plan.outage = down
            plan.comm = 1 + on * chance.uniform(0.05, 0.3)
            part = 1 - 0.3 * bad - 0.06
            plan.times["rdma_tx_throughput"] = part * (1 - down)
            plan.times["rdma_rx_throughput"] = part * (1 - down)
            plan.plus["rdma_retransmit_rate"] = on * (1 + 100 * bad**2) * (0.1 + down)
            plan.plus["nic_error_rate"] = on * (0.05 + chance.uniform(1, 20) * down)
            plan.plus["pfc_tx_packet_rate"] = on * (1 + 8 * bad) * (0.5 + down)
        else:
            uneven = np.clip(1 + job._wander(0.2, 20), 0.4, 1.6)
            plan.comm = 1 + on * (0.25 + 2.0 * bad) * uneven
            part = 0.88 - 0.4 * bad
            plan.times["rdma_tx_throughput"] = part
            plan.times["rdma_rx_throughput"] = part if chance.random() < 0.7 else 0.97
            plan.plus["rdma_retransmit_rate"] = on * (1.5 + 120 * bad**2) * uneven
            plan.plus["nic_error_rate"] = on * chance.uniform(0.05, 5) * uneven
            plan.plus["pfc_tx_packet_rate"] = on * (3 + 15 * bad) * uneven
        plan.plus["rdma_cnp_rate"] = on * (1 + 4 * bad)
    elif kind == "ecc_retries":
        storms = 0.3 + 0.7 * job._waves((20, 120), (10, 90))
        storms = np.maximum(storms, after < 15)
        plan.stretch = 1 + on * (0.1 + 0.5 * bad) * storms
        plan.plus["ecc_corrected_rate"] = (
            on * np.exp(chance.uniform(np.log(0.2), np.log(40))) * storms
        )
    elif kind == "pcie_downgrade":
        plan.comm = 1 + on * (0.15 + 0.9 * bad)
        plan.load = on * (0.03 + 0.25 * bad)
        for name in ("pcie_rx_throughput", "pcie_tx_throughput"):
            plan.times[name] = 0.85 - 0.55 * bad
        plan.times["rdma_rx_throughput"] = 0.97 - 0.2 * bad
        plan.times["rdma_tx_throughput"] = 0.98 - 0.15 * bad
        plan.plus["pfc_tx_packet_rate"] = on * (4 + 25 * bad)
    elif kind == "cpu_contention":
        uneven = np.clip(1 + job._wander(0.1, 25), 0.5, 1.5)
        plan.stretch = 1 + on * (0.04 + 0.35 * bad) * uneven
        plan.plus["cpu_usage"] = on * (6 + 55 * bad) * uneven
        if chance.random() < 0.3:
            plan.plus["disk_io_wait"] = on * chance.uniform(1, 6) * uneven
        if chance.random() < 0.4:
            plan.plus["host_mem_usage"] = np.minimum(after / 300, 1) * chance.uniform(3, 20)
    else:
        plan.dead = bool(chance.random() < 0.55)
        hang = since + chance.uniform(0, 6)
        ended = hang + chance.uniform(300, 1800)
        anew = np.inf
        if plan.dead and chance.random() < 0.3:
            ended = hang + chance.uniform(60, 240)
            anew = ended + chance.uniform(90, 240)
        plan.hang = (hang, ended, anew)
    return plan


def _short_bursts(chance: np.random.Generator, values: dict[str, Array], step: float) -> None:
    """Other work on the host for half a minute, or a burst of pauses, on any machine: no fault."""
    samples, n = values["cpu_usage"].shape
    for _ in range(int(chance.poisson(1.5 + n * samples * step / 1e6))):
        m, at = int(chance.integers(n)), int(chance.integers(samples))
        until = at + max(1, int(chance.uniform(8, 45) / step))
        what = chance.random()
        if what < 0.5:
            values["cpu_usage"][at:until, m] += chance.uniform(5, 30)
            values["disk_io_wait"][at:until, m] += chance.uniform(0, 3)
        elif what < 0.8:
            values["pfc_tx_packet_rate"][at:until, m] *= chance.uniform(3, 15)
        else:
            values["disk_io_wait"][at:until, m] += chance.uniform(1, 12)


def _miscalibrate(chance: np.random.Generator, values: dict[str, Array], step: float) -> None:
    """One metric of one machine is off by a constant or a factor; nothing else is."""
    some = ["gpu_temperature", "gpu_mem_temperature", "gpu_power_draw", "gpu_power_draw", "node_inlet_temperature", "rdma_tx_throughput", "pcie_rx_throughput", "disk_read_throughput"]  # fmt: skip
    name = str(chance.choice([m for m in some if m in values]))
    x = values[name]
    m = int(chance.integers(x.shape[1]))
    since = 0
    sensor = name.endswith(("temperature", "draw"))
    if sensor and chance.random() < 0.15:
        since = int(chance.uniform(0.2, 0.7) * len(x))
    if name.endswith("temperature"):
        x[since:, m] += chance.choice([-1, 1]) * chance.uniform(6, 18)
    elif name == "gpu_power_draw" and chance.random() < 0.4:
        x[since:, m] += chance.choice([-1, 1]) * chance.uniform(30, 90)
    elif name == "gpu_power_draw":
        x[since:, m] *= chance.choice([chance.uniform(0.7, 0.9), chance.uniform(1.1, 1.3)])
    else:
        x[since:, m] *= chance.choice(
            [0.5, 2.0, chance.uniform(0.7, 0.9), chance.uniform(1.1, 1.4)]
        )


def _lose(chance: np.random.Generator, values: dict[str, Array], step: float) -> None:
    """Samples get lost: one by one, for a while on a machine, or everywhere at once."""
    samples, n = values["cpu_usage"].shape
    share = float(chance.choice([0.001, 0.005, 0.02, 0.05], p=[0.35, 0.3, 0.25, 0.1]))
    everywhere = None
    if chance.random() < 0.12:
        at = int(chance.integers(samples))
        everywhere = slice(at, at + max(1, int(chance.uniform(10, 60) / step)))
    for exporter in ("node", "gpu", "net"):
        gone = np.zeros((samples, n), dtype=bool)
        k = int(chance.poisson(share * samples * n))
        gone.reshape(-1)[chance.integers(0, gone.size, k)] = True
        for _ in range(int(chance.poisson(0.02 * n))):
            at = int(chance.integers(samples))
            gone[at : at + max(1, int(chance.uniform(15, 120) / step)), chance.integers(n)] = True
        if everywhere is not None:
            gone[everywhere] = True
        for name, x in values.items():
            if METRICS[name].exporter == exporter:
                x[gone] = np.nan


def _end_exporter(chance: np.random.Generator, values: dict[str, Array], step: float) -> None:
    """An exporter of a machine, or all of them, stops or repeats its last value; no fault."""
    samples, n = values["cpu_usage"].shape
    machines = chance.choice(n, 1 + int(chance.random() < 0.25), replace=False)
    for m in machines:
        which = (("gpu",), ("node",), ("net",), ("gpu", "node", "net"))[
            int(chance.choice(4, p=[0.35, 0.15, 0.1, 0.4]))
        ]
        freezes = chance.random() < 0.5
        at = int(chance.uniform(0.05, 0.75) * samples)
        until = samples
        if chance.random() < 0.25:
            until = at + max(3, int(chance.uniform(300, 1200) / step))
        if not freezes and chance.random() < 0.15:
            at = 0
        for name, x in values.items():
            if METRICS[name].exporter in which:
                if freezes:
                    seen = x[:at, m][~np.isnan(x[:at, m])]
                    x[at:until, m] = seen[-1] if len(seen) else np.nan
                else:
                    x[at:until, m] = np.nan
