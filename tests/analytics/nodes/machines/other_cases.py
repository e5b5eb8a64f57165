"""A second family of cases, held out: made otherwise than the first and never tuned on.

Random walks and heavy tails in place of Gaussian noise, whole numbers, other names and units, two
kinds of hardware, stages that take turns, and faults that are additions in the fleet's own spread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tests.analytics.nodes.machines.cases import Case

if TYPE_CHECKING:
    from collections.abc import Iterator

    Array = np.ndarray[Any, np.dtype[np.float64]]

METRICS = ("net_pause_frames", "node_cpu", "gpu_busy_ratio", "gpu_milliwatts", "sm_active", "tensor_pipe", "nvlink_gbps")  # fmt: skip
SCALE = dict(zip(METRICS, (1e3, 64.0, 1.0, 4e5, 1.0, 0.5, 200.0), strict=True))
SHOWN = {
    "cpu_stall": (1,), "congestion": (0,), "slow_network": (0, 6), "gpu_gone": (2, 3, 4, 5),
    "half_speed": (3, 5), "link_lost": (6,), "process_hang": (1, 2, 4, 5), "busy_loop": (1, 2),
    "power_brake": (3,), "storage": (1, 2, 3), "driver": (2, 4), "all_metrics": (0, 1, 2, 3, 4, 5, 6),
}  # fmt: skip
HEALTHY = (
    "steady",
    "constant_metric",
    "blip",
    "job_ends",
    "job_starts",
    "two_kinds",
    "pipelined",
    "offsets",
    "dead",
)


def cases(seed: int, n: int, *, most_machines: int = 256) -> Iterator[Case]:
    """Half with a fault, half healthy; the surroundings of both are drawn alike."""
    for i in range(n):
        chance = np.random.default_rng([seed, i, 7])
        n_machines = int(chance.choice([32, 40, 64, 100, 128, most_machines]))
        fault = list(SHOWN)[i // 2 % len(SHOWN)] if i % 2 else None
        around = HEALTHY[i // 2 % len(HEALTHY)] if fault is None else str(chance.choice(HEALTHY))
        yield case(chance, n_machines, around, fault)


def case(
    chance: np.random.Generator, n: int, around: str, fault: str | None, seconds: int = 900
) -> Case:
    """One pull: what is around the fault, and the fault."""
    values, spread = {}, {}
    load = _load(chance, seconds, n, around)
    kinds = np.where(
        np.arange(n) < max(2, int(n * chance.choice([0.06, 0.25, 0.5]))),
        chance.uniform(0.4, 0.8),
        1.0,
    )
    for name in METRICS:
        noise = 0.02 * chance.standard_t(4, (seconds, n))
        walk = np.cumsum(0.0015 * chance.standard_t(5, (seconds, n)), axis=0)
        walk -= walk.mean(axis=0)
        offset = (0.08 if around == "offsets" else 0.01) * chance.standard_t(6, n)
        base = np.full((seconds, n), 0.02) if name == METRICS[0] else 0.1 + 0.7 * load
        if around == "two_kinds" and name != METRICS[0]:
            base = base * kinds
        values[name] = base + noise + 0.5 * walk + offset
        spread[name] = float(np.std(noise + 0.5 * walk + offset))
    if around == "pipelined":
        spread = {name: max(value, 0.18) for name, value in spread.items()}
    machine = since = None
    shown: tuple[str, ...] = ()
    if fault is not None:
        machine, since = int(chance.integers(n)), int(chance.integers(120, seconds - 300))
        shown = tuple(METRICS[k] for k in SHOWN[fault])
        for name in shown:
            size = spread[name] * chance.uniform(7.0, 16.0)
            down = name != METRICS[0] and chance.random() < 0.7
            values[name][since:, machine] += -size if down else size
    elif around == "blip":
        at, who = int(chance.integers(100, 700)), int(chance.integers(n))
        for name in chance.choice(METRICS, 2, replace=False):
            values[name][at : at + 60, who] += 0.5
    return Case(fault or around, _measured(chance, values, around), machine, since, shown)


def _load(chance: np.random.Generator, seconds: int, n: int, around: str) -> Array:
    """Load between 0 and 1 by second and machine."""
    at = np.arange(seconds)[:, None] + chance.integers(-1, 2, n)
    period = chance.uniform(6.0, 90.0)
    load = 0.8 + 0.2 * np.sign(np.sin(2 * np.pi * at / period))
    if around == "pipelined":  # two stages take turns
        turn = np.where(np.arange(n) % 2, 0.0, np.pi)
        load = 0.8 + 0.2 * np.sign(np.sin(2 * np.pi * at / period + turn))
    if around == "job_ends":
        load = np.where(at > chance.uniform(200, 700) + chance.uniform(0, 20, n), 0.0, load)
    if around == "job_starts":
        load = np.where(at < chance.uniform(100, 500) + chance.uniform(0, 90, n), 0.0, load)
    return load


def _measured(
    chance: np.random.Generator, values: dict[str, Array], around: str
) -> dict[str, Array]:
    """In the units of the metric, not below 0, some as whole numbers, with holes."""
    found = {}
    for name, array in values.items():
        measured = np.maximum(array, 0.0) * SCALE[name]
        if name in ("net_pause_frames", "node_cpu", "gpu_milliwatts"):
            measured = np.round(measured)
        measured[chance.random(array.shape) < 0.01] = np.nan
        found[name] = measured
    if around == "constant_metric":
        found["gpu_busy_ratio"] = (
            np.full_like(found["gpu_busy_ratio"], 1.0)
            if chance.random() < 0.5
            else found["gpu_busy_ratio"]
        )
    if around == "dead":
        found["node_cpu"][:, int(chance.integers(array.shape[1]))] = 0.0
        found["sm_active"][:, int(chance.integers(array.shape[1]))] = np.nan
    return found
