"""Cases as a cloud provider's Prometheus tells them: DCGM exporter and node exporter, 15 to 60 s.

A synchronous job is simulated on a grid of 5 s: start-up, steps, checkpoints, evaluations. The
time of a step is that of the slowest machine, so that where one is slow all make fewer steps: the
others spin in their collective (utilisation stays at 100 %, power falls to about half, tensor
activity falls), the slow one computes, or has gaps where nothing is launched. Bytes of a step are
the same whoever is slow. Levels are those of data sheets and of common fleets (A100, H100, H200,
B200), not shares of any spread.

What is handed over is what a range query and a mean over the GPUs and ports of a machine give:
gauges as they were at the last scrape, counters as rates a second (the first one unknown), some
recording rules over a minute or five. Each machine is scraped at a moment of its own. Some
counters of DCGM whose name does not tell that they are counters stay sums.

`cases(seed, n)` gives faulty and clean cases in turn. `Case.values` maps a metric to an array of
(samples, machines), NaN where missing; `Case.faults` holds the truth, with `since` in seconds from
the first sample.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.signal import lfilter

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[Any]]

FAULTS = (
    "power_cap",
    "disk_stall",
    "thermal_throttle",
    "slow_link",
    "ecc_retries",
    "pcie_downgrade",
    "cpu_contention",
    "gpu_fell_off",
)
CLEAN = (
    "healthy",
    "idle_spares",
    "dead_exporter",
    "miscalibrated",
    "own_role",
    "whole_job_slow",
)

FINE = 5.0
"""Seconds of the grid on which the job is simulated."""
BEFORE = 600.0
"""Seconds simulated before the first sample."""
START, STEPS, CHECKPOINT, EVALUATION, DOWN, HANG = range(6)


class Fault(NamedTuple):
    """A machine that is faulty from a second on."""

    machine: int
    since: float
    kind: str


@dataclass(frozen=True)
class Case:
    """Samples by metric, (samples, machines), NaN where missing; and what is true of them."""

    kind: str
    names: tuple[str, ...]
    step: float
    values: dict[str, Array]
    faults: tuple[Fault, ...] = ()
    notes: dict[str, Any] = field(default_factory=dict)
    """What was drawn, for whoever looks at a case."""


class Hardware(NamedTuple):
    """A GPU and its machine: watts, megahertz, mebibytes, bytes a second."""

    name: str
    idle: float
    ready: float
    train: tuple[float, float]
    clock: tuple[float, float]
    most_clock: float
    idle_clock: float
    memory_clock: float
    memory: float
    hot: float
    nvlink: float
    port: float
    cpus: int
    ram: float
    pcie: int


HARDWARE = (
    Hardware("a100", 58, 82, (290, 385), (1240, 1410), 1410, 210, 1593, 81920, 83, 9e10, 25e9, 96,
             1.0e12, 4),
    Hardware("h100", 72, 118, (470, 670), (1400, 1900), 1980, 345, 2619, 81559, 86, 16e10, 50e9,
             208, 1.9e12, 5),
    Hardware("h200", 78, 125, (480, 680), (1450, 1900), 1980, 345, 3201, 143771, 86, 16e10, 50e9,
             208, 2.0e12, 5),
    Hardware("b200", 140, 190, (700, 960), (1500, 1860), 1965, 120, 3996, 183359, 87, 30e10, 50e9,
             224, 2.3e12, 5),
)  # fmt: skip


class Spec(NamedTuple):
    """How a metric is measured."""

    name: str
    window: float
    """Seconds it is averaged over: 0 at the moment of the scrape, -1 between two scrapes."""
    offset: float
    """Relative spread between machines that lasts."""
    shared: float
    """Share of the machine's own wandering load."""
    noise: float
    """Relative noise of a sample."""
    tau: float
    """Seconds over which noise is alike."""
    most: float = np.inf
    grain: float = 0.0
    host: bool = False


SPECS = {
    "util": Spec("DCGM_FI_DEV_GPU_UTIL", 0, 0.002, 0.004, 0.006, 20, 100, 1 / 8),
    "power": Spec("DCGM_FI_DEV_POWER_USAGE", 0, 0.018, 0.012, 0.02, 20),
    "energy": Spec("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", -1, 0.018, 0.012, 0.006, 60),
    "temp": Spec("DCGM_FI_DEV_GPU_TEMP", 0, 0.02, 0.006, 0.006, 90, np.inf, 1 / 8),
    "memtemp": Spec("DCGM_FI_DEV_MEMORY_TEMP", 0, 0.025, 0.006, 0.006, 120, np.inf, 1 / 8),
    "clock": Spec("DCGM_FI_DEV_SM_CLOCK", 0, 0.006, 0.004, 0.008, 20, np.inf, 15 / 8),
    "memclock": Spec("DCGM_FI_DEV_MEM_CLOCK", 0, 0, 0, 0, 60),
    "memcopy": Spec("DCGM_FI_DEV_MEM_COPY_UTIL", 0, 0.01, 0.01, 0.05, 20, 100, 1 / 8),
    "fb": Spec("DCGM_FI_DEV_FB_USED", 0, 0.004, 0, 0.0004, 600, np.inf, 1 / 8),
    "tensor": Spec("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", 30, 0.006, 0.012, 0.015, 40, 1),
    "sm": Spec("DCGM_FI_PROF_SM_ACTIVE", 30, 0.006, 0.012, 0.012, 40, 1),
    "dram": Spec("DCGM_FI_PROF_DRAM_ACTIVE", 30, 0.008, 0.012, 0.015, 40, 1),
    "engine": Spec("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 30, 0.002, 0.003, 0.004, 40, 1),
    "nvlink": Spec("DCGM_FI_PROF_NVLINK_TX_BYTES", 30, 0.01, 0.015, 0.03, 40),
    "pcietx": Spec("DCGM_FI_PROF_PCIE_TX_BYTES", 30, 0.03, 0.02, 0.06, 40),
    "pcierx": Spec("DCGM_FI_PROF_PCIE_RX_BYTES", 30, 0.03, 0.02, 0.06, 40),
    "width": Spec("DCGM_FI_DEV_PCIE_LINK_WIDTH", 0, 0, 0, 0, 60),
    "gen": Spec("DCGM_FI_DEV_PCIE_LINK_GEN", 0, 0, 0, 0, 60),
    "replay": Spec("DCGM_FI_DEV_PCIE_REPLAY_COUNTER", -1, 0, 0, 0, 60),
    "ecc": Spec("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", 0, 0, 0, 0, 60),
    "cpu": Spec("instance:node_cpu_utilisation:rate1m", 60, 0.05, 0.04, 0.05, 60, 1, 0, True),
    "iowait": Spec("instance:node_cpu_iowait:rate1m", 60, 0.25, 0, 0.5, 90, 1, 0, True),
    "load": Spec("node_load1", 0, 0.06, 0.04, 0.05, 60, np.inf, 0.01, True),
    "running": Spec("node_procs_running", 0, 0.05, 0.04, 0.2, 5, np.inf, 1, True),
    "blocked": Spec("node_procs_blocked", 0, 0.1, 0, 0.8, 5, np.inf, 1, True),
    "psicpu": Spec("node_pressure_cpu_waiting_seconds_total", -1, 0.2, 0.1, 0.3, 60, 1, 0, True),
    "psiio": Spec("node_pressure_io_waiting_seconds_total", -1, 0.2, 0, 0.5, 60, 1, 0, True),
    "diskread": Spec("node_disk_read_bytes_total", -1, 0.08, 0, 0.25, 40, np.inf, 0, True),
    "diskbusy": Spec("node_disk_io_time_seconds_total", -1, 0.1, 0, 0.2, 40, 1, 0, True),
    "available": Spec("node_memory_MemAvailable_bytes", 0, 0.02, 0, 0.004, 900, np.inf, 0, True),
    "inlet": Spec("node_hwmon_temp_celsius", 0, 0.02, 0, 0.006, 300, np.inf, 1, True),
    "tx": Spec("", -1, 0.008, 0.015, 0.03, 40, np.inf, 0, True),
    "rx": Spec("", -1, 0.008, 0.015, 0.03, 40, np.inf, 0, True),
    "rate": Spec("", 0, 0, 0, 0, 60, np.inf, 0, True),
    "errors": Spec("", -1, 0, 0, 0, 60, np.inf, 0, True),
    "wait": Spec("", -1, 0.35, 0.1, 0.45, 60, np.inf, 0, True),
}
NETWORK = {
    "infiniband": {
        "tx": "node_infiniband_port_data_transmitted_bytes_total",
        "rx": "node_infiniband_port_data_received_bytes_total",
        "rate": "node_infiniband_rate_bytes_per_second",
        "errors": "node_infiniband_symbol_error_total",
        "wait": "node_infiniband_port_transmit_wait_total",
    },
    "roce": {
        "tx": "node_network_transmit_bytes_total",
        "rx": "node_network_receive_bytes_total",
        "rate": "node_network_speed_bytes",
        "errors": "node_ethtool_roce_adp_retrans_total",
        "wait": "node_ethtool_tx_prio3_pause_total",
    },
}
CORE = ("util", "power", "temp", "clock", "fb", "cpu", "tx")
NEEDED = {
    "power_cap": ("power", "clock", "temp"),
    "disk_stall": ("iowait", "util", "diskbusy"),
    "thermal_throttle": ("temp", "clock", "power"),
    "slow_link": ("errors", "wait"),
    "ecc_retries": ("ecc", "sm", "dram"),
    "pcie_downgrade": ("pcierx", "replay", "width"),
    "cpu_contention": ("cpu", "load", "util"),
    "gpu_fell_off": ("util", "power", "fb"),
}
"""Metrics a fault of the kind is seen by; every site of the fleet lacks some others."""
MICRO = ("util", "power", "memcopy", "clock")
"""Gauges that catch a moment within a step."""
COUNTED = ("replay", "errors", "ecc")


def cases(seed: int, n: int) -> Iterator[Case]:
    """Faulty and clean cases in turn, of each kind in turn; a third of the faulty with two."""
    for i in range(n):
        chance = np.random.default_rng([seed, i])
        k = i // 2
        if i % 2 == 0:
            kind = FAULTS[k % len(FAULTS)]
            yield case(kind, chance, two=(k // len(FAULTS) + k % len(FAULTS)) % 3 == 0)
        else:
            yield case(CLEAN[k % len(CLEAN)], chance)


def case(kind: str, chance: np.random.Generator, *, two: bool = False) -> Case:
    """One case of a kind of `FAULTS` or `CLEAN`."""
    job = Job(chance, kind)
    plans = job.plan(kind, two=two) if kind in FAULTS else []
    job.arrange(kind)
    faults = tuple(Fault(m, float(s), k) for k, m, s in plans)
    for fault in faults:
        job.spoil(fault)
    if kind == "whole_job_slow":
        job.slow_down()
    values = job.measured()
    job.afflict(kind, values)
    named = {job.name(key): np.ascontiguousarray(v.T) for key, v in values.items()}
    order = sorted(named) if chance.random() < 0.5 else list(named)
    return Case(
        kind,
        job.names,
        job.step,
        {name: named[name] for name in order},
        faults,
        {"hardware": job.hw.name, "network": job.network, "hours": job.seconds / 3600} | job.notes,
    )


class Job:
    """A job on its machines: what is drawn once, its phases, and what each group of it does."""

    def __init__(self, chance: np.random.Generator, kind: str) -> None:
        self.chance = chance
        self.notes: dict[str, Any] = {}
        self.hw = HARDWARE[chance.choice(4, p=(0.3, 0.4, 0.2, 0.1))]
        self.network = "infiniband" if chance.random() < 0.55 else "roce"
        self.step = float(chance.choice((15.0, 30.0, 60.0), p=(0.3, 0.4, 0.3)))
        least = 1.0 if self.step < 60 else 1.5
        self.seconds = 3600 * least * (8 / least) ** chance.random()
        self.n = int(self.seconds / self.step)
        self.seconds = self.n * self.step
        self.size = int(8 * (300 / 8) ** chance.random() ** 1.1)
        self.fine = int((self.seconds + BEFORE) / FINE) + 1
        self.t = np.arange(self.fine) * FINE - BEFORE
        self.names = self._names()
        u = chance.uniform
        self.comm = u(0.06, 0.3)
        self.train = u(*self.hw.train)
        self.spin = self.train * u(0.38, 0.55)
        self.clock = u(*self.hw.clock)
        self.resistance = u(0.75, 1.0) * 36 / self.hw.train[1]
        self.levels = {
            "tensor": u(0.35, 0.65),
            "sm": u(0.75, 0.92),
            "dram": u(0.2, 0.5),
            "memcopy": u(25, 60),
            "fb": u(0.55, 0.93),
            "cpu": u(0.05, 0.22),
            "disk": 10 ** u(5.5, 8),
            "pcie": 10 ** u(8.3, 9.7),
            "nvlink": self.hw.nvlink * u(0.2, 0.7),
            "port": self.hw.port * u(0.05, 0.4),
            "ram": u(0.15, 0.45),
        }
        self.waits_spinning = chance.random() < 0.5
        self.micro = u(0.1, 0.8)
        self.phase = self._phases(kind)
        self.hall = self._hall()
        self.site = self._site(kind)
        # Groups: stages of the pipeline, then machines of their own.
        self.groups: list[dict[str, Any]] = []
        self.group = np.zeros(self.size, dtype=int)
        stages = 1 if chance.random() < 0.6 else int(chance.choice((2, 4, 8)))
        stages = min(stages, self.size // 4)
        for k in range(stages):
            load = 1.0 if k == stages // 2 else u(0.82, 1.0)
            self._add(load=load, fb=u(0.88, 1.05), net=u(0.8, 1.1))
        if chance.random() < 0.5:
            self.group = np.arange(self.size) * stages // self.size
        else:
            self.group = np.arange(self.size) % stages
        self.stages = stages
        if chance.random() < 0.4:
            # The first rank writes the logs and gathers what is saved.
            self._own(0, cpu=u(1.1, 1.5), disk=u(1.5, 4))
        self.stretch = np.zeros(self.fine)
        self.silent: list[tuple[int, float]] = []
        self.off = chance.integers(0, int(self.step / FINE), self.size)

    def _names(self) -> tuple[str, ...]:
        c = self.chance
        pool = "".join(c.choice(list("0123456789abcdef"), 6))
        forms = (
            lambda k: f"gke-a3-pool-{pool}-{k:04d}",
            lambda k: f"ip-10-{int(pool[:2], 16)}-{k // 250}-{k % 250 + 2}",
            lambda k: f"aks-gpu-{pool}-vmss{k:06x}",
            lambda k: f"r{k // 4:02d}-g{k % 4}",
        )
        form = forms[c.integers(len(forms))]
        start = int(c.integers(0, 400))
        picked = np.sort(c.choice(int(self.size * 1.4) + 4, self.size, replace=False)) + start
        return tuple(form(int(k)) for k in picked)

    def _phases(self, kind: str) -> Array:
        """What the job does at each moment of the fine grid."""
        c = self.chance
        phase = np.full(self.fine, STEPS)
        every, lasts = c.uniform(600, 4500), c.uniform(10, 150)
        at = c.uniform(-every, 0)
        evaluates = c.uniform(1800, 7200) if c.random() < 0.35 else np.inf
        next_evaluation = c.uniform(0, 1) * 3600 if np.isfinite(evaluates) else np.inf
        while at < self.seconds:
            long = lasts * c.lognormal(0, 0.2)
            phase[(self.t >= at) & (self.t < at + long)] = CHECKPOINT
            if at > next_evaluation:
                paused = c.uniform(60, 420)
                phase[(self.t >= at + long) & (self.t < at + long + paused)] = EVALUATION
                next_evaluation = at + evaluates
            at += every * c.lognormal(0, 0.05)
        self.began = 0.0
        if c.random() < 0.25:
            waits = c.uniform(0, 240)
            self.began = waits + c.uniform(90, 480)
            phase[self.t < self.began] = START
            phase[self.t < waits] = DOWN
        elif c.random() < 0.08 and kind in ("healthy", "idle_spares", "own_role"):
            at = c.uniform(0.3, 0.9) * self.seconds
            pause = c.uniform(60, 300)
            phase[(self.t >= at) & (self.t < at + pause)] = DOWN
            phase[(self.t >= at + pause) & (self.t < at + pause + c.uniform(90, 400))] = START
        return phase

    def _hall(self) -> Array:
        """Degrees of the air at the inlet over the time of day."""
        c = self.chance
        day = np.sin(2 * np.pi * (self.t + c.uniform(0, 86400)) / 86400)
        cycle = np.sin(2 * np.pi * self.t / c.uniform(600, 1800)) * c.uniform(0, 0.4)
        return c.uniform(20, 29) + c.uniform(0.3, 2.5) * day + cycle

    def _site(self, kind: str) -> list[str]:
        """Metrics the site keeps; those that some kind is seen by stand in clean cases as well."""
        c = self.chance
        kept = set(CORE) | set(NEEDED[kind if kind in FAULTS else str(c.choice(FAULTS))])
        share = c.uniform(0.15, 0.6)
        kept |= {key for key in SPECS if c.random() < share}
        self.raw_ecc = bool(c.random() < 0.5)
        return [key for key in SPECS if key in kept]

    def name(self, key: str) -> str:
        """The metric's name at this site."""
        if key == "ecc" and not self.raw_ecc:
            return "instance:dcgm_ecc_sbe:rate5m"
        return NETWORK[self.network].get(key) or SPECS[key].name

    def _add(self, **own: Any) -> int:
        self.groups.append(own)
        return len(self.groups) - 1

    def _own(self, machine: int, **own: Any) -> dict[str, Any]:
        """A group of one machine, like the one it was in but for what is given."""
        was = self.groups[self.group[machine]]
        self.group[machine] = self._add(**(was | own | {"only": machine}))
        return self.groups[-1]

    def plan(self, kind: str, *, two: bool) -> list[tuple[str, int, float]]:
        """Kinds, machines and onsets of the faults."""
        c = self.chance
        kinds = [kind, str(c.choice(FAULTS))] if two else [kind]
        machines = [int(m) for m in c.choice(self.size, len(kinds), replace=False)]
        first = self.began + max(300.0, 0.08 * self.seconds)
        last = self.seconds - max(900.0, 0.2 * self.seconds)
        since = [c.uniform(first, last) for _ in kinds]
        if two and c.random() < 0.2:
            since[1] = since[0]
        if "gpu_fell_off" in kinds:
            # The job hangs: what else is faulty was seen before.
            fell = self.seconds - c.uniform(720, 720 + 0.35 * (self.seconds - 900))
            fell = max(fell, first + 1260)
            for k, of in enumerate(kinds):
                if of == "gpu_fell_off":
                    since[k] = fell + (c.uniform(5, 120) if k and kinds[0] == of else 0.0)
                else:
                    since[k] = first + c.random() * max(fell - 1200 - first, 0)
        for of in set(kinds):
            self.site += [key for key in NEEDED[of] if key not in self.site]
        return [(k, m, round(s)) for k, m, s in zip(kinds, machines, since, strict=True)]

    def arrange(self, kind: str) -> None:
        """Machines that differ all the time: spares, a role of its own."""
        c = self.chance
        also = kind in FAULTS and c.random() < 0.06
        if kind == "idle_spares" or also:
            few = 1 if c.random() < 0.5 else int(c.integers(1, max(2, self.size // 12) + 1))
            few = min(few, 8, self.size // 4)
            self.notes["spares"] = sorted(int(m) for m in c.permutation(self.size)[:few])
        if kind == "own_role":
            machine = int(c.choice((0, self.size - 1, c.integers(self.size))))
            role = str(c.choice(("embedding", "loss", "server", "coordinator")))
            self.notes["role"] = (role, machine)
            u = c.uniform
            if role == "embedding":
                own = {"load": u(0.5, 0.8), "fb": u(1.02, 1.07), "dram": u(1.2, 1.7),
                       "tensor": u(0.6, 0.9), "net": u(0.5, 0.9)}  # fmt: skip
            elif role == "loss":
                own = {"load": u(1.03, 1.15), "fb": u(1.02, 1.07), "tensor": u(1.03, 1.15),
                       "power": u(1.01, 1.06), "net": u(0.4, 0.8)}  # fmt: skip
            elif role == "server":
                own = {"idle": True, "cpu": u(2, 4), "net": u(1.3, 2.2), "fb": u(0.01, 0.2),
                       "ram": u(1.3, 1.8)}  # fmt: skip
            else:
                own = {"cpu": u(1.8, 3.5), "disk": u(3, 20), "ram": u(1.2, 1.6),
                       "load": u(0.75, 0.95), "net": u(1.05, 1.3)}  # fmt: skip
            self._own(machine, **own)

    def _course(self, since: float, ramp: float, comes_and_goes: float = 0.0) -> Array:
        """From 0 to 1 after the onset, at once or slowly, lasting or coming and going."""
        c = self.chance
        e = np.clip((self.t - since) / max(ramp, 1.0), 0, 1)
        if comes_and_goes:
            lengths = c.exponential(c.uniform(90, 400), self.fine // 6 + 4)
            lengths[::2] *= comes_and_goes / (1 - comes_and_goes)
            edges = since + np.cumsum(np.maximum(lengths, 15))
            e = e * (np.searchsorted(edges, self.t) % 2 == 0)
        return e

    def spoil(self, fault: Fault) -> None:  # noqa: C901 - one branch a kind
        """Let a fault act on its machine, and on the job where that waits for it."""
        c, u, kind = self.chance, self.chance.uniform, fault.kind
        spares = self.notes.get("spares", [])
        if fault.machine in spares:
            spares.remove(fault.machine)
        one = self._own(fault.machine, faulty=True)
        hard = c.beta(1.3, 1.7)  # how severe, mostly in the lower half
        since = fault.since
        if kind == "power_cap":
            e = self._course(since, c.choice((5.0, 60.0)), 0 if c.random() < 0.85 else u(0.5, 0.8))
            clock = 0.88 - 0.4 * hard
            one["clock"] = 1 - e * (1 - clock)
            one["power"] = 1 - e * (1 - max(clock ** u(1.5, 2.2), 0.25))
            one["slow"] = 1 + e * u(0.7, 1) * (1 / clock - 1)
            one["of"] = 8 if c.random() < 0.8 else 4
        elif kind == "thermal_throttle":
            of = int(c.choice((1, 2, 4, 8), p=(0.25, 0.2, 0.2, 0.35)))
            e = self._course(since, u(120, 1500), 0 if c.random() < 0.7 else u(0.5, 0.85))
            clock = (0.9 - 0.4 * hard) * (0.85 if of < 3 else 1.0)
            saw = 1 + 0.04 * np.sin(2 * np.pi * self.t / u(40, 200)) * e
            one["clock"] = (1 - e * (1 - clock)) * saw
            one["power"] = 1 - e * (1 - clock ** u(1.2, 2))
            one["slow"] = 1 + e * u(0.7, 1) * (1 / clock - 1)
            a = FINE / u(60, 180)
            one["hot"] = lfilter([a], [1, a - 1], e) * u(0.75, 1.0)
            one["of"] = of
        elif kind == "disk_stall":
            e = self._course(since, u(10, 400))
            period, duty = u(45, 600), 0.15 + 0.5 * hard
            turn = (self.t / period + np.cumsum(c.normal(0, 0.01, self.fine))) % 1
            stalled = lfilter([0.6], [1, -0.4], (turn < duty).astype(float))
            one["gap"] = e * stalled * u(1.0, 8) * (0.5 + hard)
            one["iowait"] = e * (0.2 + 0.8 * stalled) * u(0.02, 0.12) * (0.7 + hard)
            one["blocked"] = e * stalled * u(4, 30)
            one["diskbusy"] = e * (0.5 + 0.5 * stalled) * u(0.4, 0.9)
            one["diskread"] = 1 - e * stalled * u(0.4, 0.9)
        elif kind == "slow_link":
            flaps = c.random() < 0.5
            e = self._course(since, 5, u(0.2, 0.7) if flaps else 0)
            self.stretch = np.maximum(self.stretch, e * self.comm * (0.3 + 3 * hard))
            one["errors"] = e * (
                10 ** u(-1, 1.7) if self.network == "infiniband" else 10 ** u(0.5, 2.7)
            )
            one["wait"] = 1 + e * (1.5 + 10 * hard)
            if c.random() < 0.5:
                one["rate"] = 1 - e * c.choice((1, 1, 2, 4)) / 8 * c.choice((0.5, 0.75, 1.0))
            if c.random() < 0.5:
                one["less"] = 1 - e * u(0.08, 0.4)
        elif kind == "ecc_retries":
            e = self._course(since, u(5, 900), 0 if c.random() < 0.6 else u(0.5, 0.85))
            one["slow"] = 1 + e * (0.12 + 0.7 * hard)
            one["dram_more"] = 1 + e * u(0.1, 0.4)
            one["power"] = 1 - e * u(0.05, 0.2)
            one["memhot"] = e * u(0, 6)
            one["ecc"] = e * 10 ** u(-1, 1.3)
            one["of"] = 1
        elif kind == "pcie_downgrade":
            of = int(c.choice((1, 2, 4), p=(0.5, 0.3, 0.2)))
            e = self._course(since, 5)
            one["gap"] = e * (0.08 + 0.6 * hard)
            one["replay"] = e * 10 ** u(-1.3, 1.0) * of / 8
            one["width"] = 1 - e * (1 - c.choice((0.5, 0.5, 0.25)))
            if c.random() < 0.4:
                one["width"], one["gen"] = 1.0, 1 - e * (1 - c.choice((1, 2, 3)) / self.hw.pcie)
            one["wait"] = 1 + e * (2 + 15 * hard)
            one["pcie"] = 1 - e * u(0.1, 0.45)
            one["of"] = of
        elif kind == "cpu_contention":
            e = self._course(since, u(5, 60), 0 if c.random() < 0.65 else u(0.4, 0.8))
            share = 0.15 + 0.75 * hard
            one["cpu_more"] = e * share
            one["psicpu"] = e * u(0.1, 0.6) * (0.4 + hard)
            one["gap"] = e * (0.06 + 0.5 * hard) * u(0.7, 1.3)
            one["ram_more"] = e * u(0, 0.3)
        else:
            self._fall_off(fault, one)

    def _fall_off(self, fault: Fault, one: dict[str, Any]) -> None:
        """The job hangs in its collective; the machine's processes die, or its driver hangs."""
        c, since = self.chance, fault.since
        mode = str(c.choice(("dead", "stuck", "silent"), p=(0.55, 0.25, 0.2)))
        if (self.phase == HANG).any():
            mode = "dead"
        gone = self.t >= since
        one["gone"] = gone
        one["mode"] = mode
        if mode == "silent":
            self.silent.append((fault.machine, since))
            one["blocked"] = gone * 8.0
        if not (self.phase == HANG).any():
            watchdog = float(c.choice((600, 900, 1800))) if mode == "dead" else np.inf
            self.phase[gone] = HANG
            if since + watchdog < self.seconds - 300:
                # Elastic: the job goes on without the machine.
                again = since + watchdog + c.uniform(60, 200)
                runs = again + c.uniform(90, 400)
                self.phase[self.t >= since + watchdog] = DOWN
                self.phase[self.t >= again] = START
                self.phase[self.t >= runs] = STEPS
        self.notes["fell_off"] = mode

    def slow_down(self) -> None:
        """The shared filesystem answers slowly: every machine waits alike."""
        c, u = self.chance, self.chance.uniform
        since = u(self.began, 0.7 * self.seconds)
        e = self._course(since, u(5, 900))
        period, duty = u(60, 900), u(0.2, 0.7)
        turn = (self.t / period + np.cumsum(c.normal(0, 0.01, self.fine))) % 1
        stalled = lfilter([0.6], [1, -0.4], (turn < duty).astype(float))
        if c.random() < 0.4:
            stalled = np.full(self.fine, u(0.2, 0.6))
        for one in self.groups:
            one["gap"] = e * stalled * u(1, 1.1) * 1.5
            one["iowait"] = e * stalled * 0.03
            one["blocked"] = e * stalled * 5
        self.notes["slow_since"] = since

    def _signals(self, one: dict[str, Any], step_time: Array) -> dict[str, Array]:
        """Each metric on the fine grid for the machines of a group."""
        hw, phase, full = self.hw, self.phase, np.ones(self.fine)
        lv = self.levels

        def get(key: str, otherwise: float) -> Any:
            return one.get(key, otherwise)

        steps, evaluates = phase == STEPS, phase == EVALUATION
        saves, starts, hangs = phase == CHECKPOINT, phase == START, phase == HANG
        down = phase == DOWN
        rate = (steps + 0.4 * evaluates) / step_time
        gone = one.get("gone")
        out = bool(one.get("spare"))
        idle = bool(one.get("idle"))

        def gpu(affected: bool) -> dict[str, Array]:
            slow = get("slow", 1.0) if affected else 1.0
            gap = get("gap", 0.0) if affected else 0.0
            clock = get("clock", 1.0) if affected else 1.0
            draw = get("power", 1.0) if affected or "of" not in one else 1.0
            comp = (1 - self.comm) * get("load", 1.0) * slow * full / step_time
            rest = np.clip(gap * full / step_time, 0, 1)
            comp = np.where(steps, comp, np.where(evaluates, 0.65 * comp, 0.03 * starts))
            comp = np.minimum(comp, 1 - rest)
            rest = np.where(steps, rest, np.where(evaluates, 0.25, 0.0))
            rest = np.where(saves & (not self.waits_spinning), 1.0, np.where(starts, 0.97, rest))
            spin = np.clip(1 - comp - rest, 0, 1)
            off = down * 1.0
            if out or idle:
                comp, spin, rest = 0 * full, 0 * full, full * idle * ~down
                off = 1 - rest
            if gone is not None and (affected or one["mode"] != "stuck"):
                comp, spin, rest = (np.where(gone, 0.0, each) for each in (comp, spin, rest))
                off = np.where(gone, 1.0, off)
            comp, spin, rest = comp * (1 - off), spin * (1 - off), rest * (1 - off)
            power = comp * self.train * draw + spin * self.spin * np.sqrt(draw)
            power = power + rest * hw.ready + off * hw.idle
            quick = min(self.clock * 1.06, hw.most_clock)
            sm_clock = (comp * self.clock + (spin + rest) * quick) * clock + off * hw.idle_clock
            busy = comp + spin
            mem = np.where(starts, np.clip((self.t + 200) / 400, 0.05, 0.9), 1.0) * (1 - off)
            keeps = 0.0 if idle or out else 1.0
            warm = lfilter([FINE / 70], [1, FINE / 70 - 1], power, zi=[power[0] * (1 - FINE / 70)])
            temp = self.hall + 4 + self.resistance * warm[0]
            temp = temp + (get("hot", 0.0) if affected else 0.0) * np.maximum(hw.hot - temp, 4)
            traffic = rate * (1 - off) * keeps
            dram = comp / np.maximum(slow, 1) * (get("dram_more", 1.0) if affected else 1.0)
            return {
                "util": 99.4 * comp + 100 * spin + 1.0 * rest,
                "power": power,
                "energy": power * 1000,
                "temp": temp,
                "memtemp": temp * 1.05 + 4 + (get("memhot", 0.0) if affected else 0.0),
                "clock": sm_clock,
                "memclock": full * hw.memory_clock,
                "memcopy": comp * lv["memcopy"] + spin * 3,
                "fb": hw.memory * np.clip(lv["fb"] * get("fb", 1.0), 0, 0.985) * mem + 450,
                "tensor": comp * lv["tensor"] * get("tensor", 1.0),
                "sm": comp * lv["sm"] + spin * 0.16,
                "dram": dram * lv["dram"] * get("dram", 1.0) + spin * 0.02,
                "engine": comp * 0.995 + spin + rest * 0.01,
                "nvlink": traffic * lv["nvlink"],
                "pcietx": traffic * lv["pcie"] * 0.8 * (get("pcie", 1.0) if affected else 1.0),
                "pcierx": traffic * lv["pcie"] * (get("pcie", 1.0) if affected else 1.0),
                "width": 16 * full * (get("width", 1.0) if affected else 1.0),
                "gen": hw.pcie * full * (get("gen", 1.0) if affected else 1.0),
                "busy": comp / np.maximum(busy, 1e-9),
                "spins": spin,
            }

        of = int(get("of", 1 if get("mode", "") == "stuck" else 8))
        made = gpu(affected=True)
        if of < 8:
            # Its neighbours in the machine wait as all others do.
            others = gpu(affected=False)
            made = {key: (of * made[key] + (8 - of) * others[key]) / 8 for key in made}
        if get("mode", "") == "stuck":
            # A GPU that fell off is read as zeros.
            for key in ("power", "energy", "temp", "memtemp", "clock", "memclock", "fb", "width",
                        "gen"):  # fmt: skip
                made[key] = np.where(gone, others[key] * 7 / 8, made[key])
        here = np.ones(self.fine) if not out else np.zeros(self.fine)
        if gone is not None and one["mode"] != "stuck":
            here = np.where(gone, 0.0, here)
        works = here * ~down
        cpu = lv["cpu"] * get("cpu", 1.0)
        cpu = works * cpu * (0.6 * (steps | evaluates | hangs) + 0.4 * rate + 1.3 * saves)
        cpu = cpu + works * starts * 0.25 + 0.006 + get("cpu_more", 0.0)
        iowait = 0.0008 + works * (0.004 * saves + 0.01 * starts) + get("iowait", 0.0)
        load = cpu * hw.cpus + get("blocked", 0.0) + get("psicpu", 0.0) * hw.cpus * 0.5
        disk = lv["disk"] * get("disk", 1.0) * (0.03 + works * (rate + 0.5 * saves + 3 * starts))
        traffic = works * rate * lv["port"] * get("net", 1.0) * get("less", 1.0) + 2e5
        traffic = traffic + works * saves * lv["port"] * 0.3
        a = FINE / 60
        made |= {
            "cpu": cpu,
            "iowait": iowait * full,
            "load": lfilter([a], [1, a - 1], load, zi=[load[0] * (1 - a)])[0],
            "running": cpu * hw.cpus * 0.9 + 1 + get("psicpu", 0.0) * hw.cpus * 0.3,
            "blocked": 0.15 + get("blocked", 0.0) + works * (2 * saves),
            "psicpu": 0.004 + 0.02 * cpu + get("psicpu", 0.0),
            "psiio": np.clip(iowait * 5 + 0.001, 0, 0.95) * full,
            "diskread": disk * get("diskread", 1.0),
            "diskbusy": np.clip(0.01 + works * (0.06 * rate + 0.3 * saves + 0.2 * starts), 0, 1)
            + get("diskbusy", 0.0),
            "available": hw.ram
            * np.clip(0.97 - works * lv["ram"] * get("ram", 1.0) - get("ram_more", 0.0), 0.02, 1),
            "inlet": self.hall,
            "tx": traffic,
            "rx": traffic * 0.99,
            "rate": hw.port * full * get("rate", 1.0),
            "wait": (3 + works * rate * 400) * get("wait", 1.0),
        }
        return {key: np.broadcast_to(each, self.fine) for key, each in made.items()}

    def _step_time(self) -> Array:
        """Time of a step on the fine grid, in that of a job without fault."""
        c = self.chance
        need = np.full(self.fine, 1 - self.comm)
        for k, one in enumerate(self.groups):
            if one.get("spare") or one.get("idle") or not (self.group == k).any():
                continue
            own = (1 - self.comm) * one.get("load", 1.0) * one.get("slow", 1.0)
            own = own + one.get("gap", 0.0)
            if "gone" in one:
                own = np.where(one["gone"], 0.0, own)
            need = np.maximum(need, own)
        wander = lfilter([0.006], [1, -0.99], c.standard_normal(self.fine))
        hiccups = np.zeros(self.fine)
        some = c.poisson(self.seconds / 5400)
        hiccups[c.integers(0, self.fine, some)] = c.exponential(1.5, some)
        return np.asarray((need + self.comm + self.stretch) * np.exp(wander) + hiccups)

    def measured(self) -> dict[str, Array]:  # noqa: C901 - one step a metric
        """What the exporters say: (machines, samples) by key."""
        c = self.chance
        for machine in self.notes.get("spares", []):
            self._own(machine, spare=True)
        step_time = self._step_time()
        used = np.unique(self.group)
        signals = [self._signals(self.groups[k], step_time) for k in used]
        group = np.searchsorted(used, self.group)
        lags = int(self.step / FINE)
        first = int(BEFORE / FINE)
        at = first + np.arange(self.n)[:, None] * lags - np.arange(lags)[None, :]

        def sampled(key: str, window: float) -> Array:
            grid = np.stack([each[key] for each in signals])
            if window:
                w = int((self.step if window < 0 else max(window, FINE)) / FINE)
                total = np.cumsum(grid, axis=1)
                read = (total[:, at] - total[:, at - w]) / w
            else:
                read = grid[:, at]
            return np.ascontiguousarray(read[group, :, self.off])

        def wandering(tau: float) -> Array:
            white = c.standard_normal((self.size, self.n), dtype=np.float32)
            rho = float(np.exp(-self.step / tau))
            if rho < 0.02:
                return white
            white[:, 1:] *= np.float32(np.sqrt(1 - rho**2))
            return np.asarray(lfilter(*(np.array(x, np.float32) for x in ([1], [1, -rho])), white))

        common = wandering(c.uniform(120, 900))
        racks = c.normal(0, 1.3, self.size // 4 + 1)[np.arange(self.size) // 4]
        warmth = racks + c.normal(0, 0.8, self.size)
        spins = sampled("spins", 0)
        busy = sampled("busy", 0)
        moment = None
        if any(key in MICRO for key in self.site):
            within = c.random((self.size, self.n), dtype=np.float32) < busy
            moment = np.where((spins > 0.01) & (busy > 0.01), within - busy, 0.0)
        values: dict[str, Array] = {}
        for key in self.site:
            spec = SPECS[key]
            if key in COUNTED:
                values[key] = self._counted(key, group)
                continue
            read = sampled(key, spec.window)
            if spec.offset:
                read *= np.exp(c.normal(0, spec.offset, self.size))[:, None]
            if key == "power" and moment is not None:
                spread = self.train - self.spin
                read += moment * np.minimum(spins * 2, 1) * (self.micro * spread * 0.6)
            elif key == "clock" and moment is not None:
                read -= moment * (self.micro * 0.03 * self.clock)
            elif key == "memcopy" and moment is not None:
                read += moment * (self.micro * self.levels["memcopy"] * 0.7)
            if key in ("temp", "memtemp", "inlet"):
                read += warmth[:, None]
            if spec.noise:
                own = wandering(spec.tau)
                own *= 1 + np.float32(0.1) * own * own  # heavier tails than a Gaussian's
                own *= np.float32(spec.noise * 0.7)
                if spec.shared:
                    own += np.float32(spec.shared) * common
                if spec.noise > 0.15:
                    np.exp(own, out=own)
                    read *= own
                else:
                    read *= 1 + own
            values[key] = read
        self._little_things(values)
        for key, read in values.items():
            spec = SPECS[key]
            np.clip(read, 0, spec.most, out=read)
        return values

    def _counted(self, key: str, group: Array) -> Array:
        """Events that are counted: rare on most machines, always some on a few."""
        c = self.chance
        few = {"replay": 0.04, "errors": 0.08, "ecc": 0.03}[key]
        usual = {"replay": 2e-5, "errors": 3e-4, "ecc": 5e-6}[key]
        if key == "errors" and self.network == "roce":
            usual *= 100
        often = usual * c.lognormal(0, 1.0, self.size)
        often[c.random(self.size) < few] *= c.uniform(20, 300) if key == "ecc" else c.uniform(5, 40)
        counts = c.poisson(np.broadcast_to(often[:, None] * self.step, (self.size, self.n)))
        counts = counts.astype(float)
        used = np.unique(self.group)
        lags, first = int(self.step / FINE), int(BEFORE / FINE)
        for k, which in enumerate(used):
            more = self.groups[which].get(key)
            if more is None:
                continue
            for machine in np.flatnonzero(group == k):
                at = first + np.arange(self.n) * lags - self.off[machine]
                total = np.cumsum(np.broadcast_to(more, self.fine))
                mean = np.maximum(total[at] - total[at - lags], 0) * FINE
                counts[machine] += c.poisson(mean * c.gamma(2, 0.5, self.n))
        if key != "ecc":
            return np.asarray(counts / self.step)
        if self.raw_ecc:
            start = np.where(c.random(self.size) < 0.1, c.integers(1, 400, self.size), 0)
            return np.asarray((np.cumsum(counts, axis=1) + start[:, None]) / 8)
        w = max(int(300 / self.step), 1)
        total = np.cumsum(np.pad(counts, ((0, 0), (w, 0))), axis=1)
        return np.asarray((total[:, w:] - total[:, :-w]) / (w * self.step) / 8)

    def _little_things(self, values: dict[str, Array]) -> None:
        """What happens to machines that are well: a cron job, a scrape in an odd moment."""
        c = self.chance
        for _ in range(min(c.poisson(0.02 * self.size * self.seconds / 3600), 60)):
            m = int(c.integers(self.size))
            at = int(c.integers(self.n))
            long = slice(at, at + max(1, int(c.uniform(20, 180) / self.step)))
            what = c.integers(4)
            if what == 0 and "cpu" in values:
                values["cpu"][m, long] += c.uniform(0.01, 0.2)
                if "load" in values:
                    values["load"][m, long] += c.uniform(1, 12)
            elif what == 1 and "diskread" in values:
                values["diskread"][m, long] += 10 ** c.uniform(6, 8.5)
            elif what == 2 and "errors" in values:
                values["errors"][m, at] += c.integers(1, 30) / self.step
            elif what == 3 and "power" in values:
                values["power"][m, at] *= c.uniform(0.5, 0.9)

    def afflict(self, kind: str, values: dict[str, Array]) -> None:  # noqa: C901
        """Sensors and exporters that are wrong, whole numbers, and samples that are missing."""
        c = self.chance
        if kind == "miscalibrated":
            self._miscalibrate(values)
        for key, read in values.items():
            if SPECS[key].grain and key != "load":
                np.divide(np.round(read / SPECS[key].grain), 1 / SPECS[key].grain, out=read)
        also = kind in FAULTS and c.random() < 0.06
        if kind == "dead_exporter" or also:
            self._dead(values, stops_only=also)
        for machine, since in self.silent:
            for key, read in values.items():
                if not SPECS[key].host:
                    read[machine, int(since / self.step) + 1 :] = np.nan
        lost = c.choice((0.0, 0.002, 0.01, 0.03), p=(0.35, 0.3, 0.25, 0.1))
        for host in (False, True):
            # A scrape that fails takes all metrics of its exporter with it.
            keys = [key for key in values if SPECS[key].host == host]
            n_lost = c.poisson(lost * self.size * self.n)
            some = (c.integers(0, self.size, n_lost), c.integers(0, self.n, n_lost))
            gaps = []
            for _ in range(c.poisson(0.01 * self.size)):
                at = int(c.integers(self.n))
                gaps.append(
                    (int(c.integers(self.size)), at, at + int(c.uniform(60, 900) / self.step))
                )
            for key in keys:
                values[key][some] = np.nan
                for m, begin, end in gaps:
                    values[key][m, begin:end] = np.nan
        if c.random() < 0.15:
            # Prometheus itself was started again.
            at = int(c.integers(self.n))
            again = at + int(c.uniform(30, 240) / self.step) + 1
            for read in values.values():
                read[:, at:again] = np.nan
        for key, read in values.items():
            if SPECS[key].window == -1:
                read[:, 0] = np.nan

    def _miscalibrate(self, values: dict[str, Array]) -> None:
        """One metric of one machine is off by a factor or by a constant, all the time."""
        c = self.chance
        may = [k for k in ("power", "energy", "temp", "memtemp", "inlet", "clock") if k in values]
        key = str(c.choice(may))
        m = int(c.integers(self.size))
        sign = c.choice((-1, 1))
        if key in ("temp", "memtemp", "inlet"):
            values[key][m] += sign * c.uniform(7, 22)
        elif key == "clock":
            values[key][m] *= c.uniform(0.8, 0.94)
        elif c.random() < 0.6:
            values[key][m] *= c.choice((c.uniform(0.5, 0.88), c.uniform(1.12, 1.5)))
        else:
            values[key][m] += sign * c.uniform(0.12, 0.3) * np.nanmedian(values[key][m])
        np.maximum(values[key][m], 0, out=values[key][m])
        self.notes["miscalibrated"] = (key, m)

    def _dead(self, values: dict[str, Array], *, stops_only: bool) -> None:
        """An exporter stops or says its last values for ever; the machine works on."""
        c = self.chance
        well = np.array([k for k in range(self.size) if not self._is_faulty(k)])
        few = 1 if c.random() < 0.8 else min(3, well.size)
        machines = c.choice(well, few, replace=False)
        at = int(c.uniform(0.05, 0.85) * self.n)
        freezes = not stops_only and c.random() < 0.5
        back = self.n if c.random() < 0.7 else int(at + c.uniform(0.1, 0.6) * self.n)
        exporter = str(c.choice(("dcgm", "node", "both"), p=(0.6, 0.15, 0.25)))
        if freezes:
            exporter = "dcgm" if c.random() < 0.75 else "both"
        for key, read in values.items():
            if exporter != "both" and SPECS[key].host != (exporter == "node"):
                continue
            for m in machines:
                if not freezes:
                    read[m, at:back] = np.nan
                elif SPECS[key].window == -1:
                    read[m, at:back] = 0.0  # a counter that no longer counts
                else:
                    read[m, at:back] = read[m, max(at - 1, 0)]
        how = "freezes" if freezes else "stops"
        self.notes["dead"] = (exporter, how, sorted(int(m) for m in machines))

    def _is_faulty(self, machine: int) -> bool:
        return bool(self.groups[self.group[machine]].get("faulty"))
