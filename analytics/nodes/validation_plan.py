"""Which nodes to test next, and with what: the cost of an incident against that of a test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Floats

OWN_WEIGHT: Final = 3.0
"""Incidents of a node that weigh as much as what the fleet's benchmarks usually find."""
SHAPES: Final = (0.05, 4.0)
"""Least and largest shape of the prior of rates; 4 assumes that nodes differ by half at least."""
DEFECTIVE: Final = 0.1036
"""Share of nodes that SuperBench found defective."""


@dataclass(frozen=True)
class Benchmark:
    """A test, what it finds and what it takes."""

    name: str
    minutes: float
    """Running time, an assumption that a site replaces by its own."""
    found_ratio: float
    """Share of defective nodes that it finds: shares of nodes in SuperBench over 10.36 %."""
    causes: tuple[str, ...]
    """Causes of incidents whose defect it shows."""


BENCHMARKS: Final = (
    Benchmark("ib-loopback", 5, 0.0604 / DEFECTIVE, ("ib_link", "nic", "network", "ethernet_link")),
    Benchmark("mem-bw (H2D, D2H)", 3, 0.0203 / DEFECTIVE, ("pcie",)),
    Benchmark("bert-models", 15, 0.0159 / DEFECTIVE,
              ("gpu_thermal", "gpu_unavailable", "gpu_driver", "gpu_fault")),
    Benchmark("cpu-memory-bw-latency", 5, 0.0133 / DEFECTIVE, ("cpu", "host_memory")),
    Benchmark("nccl-bw (IB all-reduce)", 10, 0.0110 / DEFECTIVE,
              ("nccl_error", "nccl_timeout", "nccl_remote_error", "nvlink")),
    Benchmark("gemm-flops", 5, 0.0023 / DEFECTIVE, ("gpu_memory", "gpu_sram", "silent_corruption",
              "cuda_error")),
)  # fmt: skip
"""Shares of nodes as reported (arXiv 2402.06194); minutes and causes are ours."""


@dataclass(frozen=True)
class NodeRecord:
    """What records say of a node."""

    cluster: str
    node: str
    exposure_node_days: float
    """Time in jobs."""
    n_incidents: int
    """Incidents of hardware or system software that name it."""
    causes: Mapping[str, int]
    """Cause -> incidents."""
    n_gpus: float
    regressed: bool = False
    """Whether results of benchmarks show it regressed."""


@dataclass(frozen=True)
class NodeTest:
    """A node, how likely it fails, and the tests that are worth their time."""

    record: NodeRecord
    rate: Estimate
    """Incidents per 1,000 node-days, drawn towards the fleet's; n = its incidents."""
    p_incident: float
    """Chance of an incident in the horizon, if it runs all the time."""
    tests: tuple[str, ...]
    """Worth their time, the best first; empty where none is."""
    minutes: float
    cost_gpu_hours: float
    at_stake_gpu_hours: Estimate
    """GPU-hours that incidents would cost whose defect the tests find; an upper bound of what is
    saved, for a defect may come later than the test."""

    @property
    def net_gpu_hours(self) -> float:
        """What is at stake less what the tests cost."""
        return (self.at_stake_gpu_hours.value or 0.0) - self.cost_gpu_hours


@dataclass(frozen=True)
class ValidationPlan:
    """Nodes in the order in which to test them."""

    tests: tuple[NodeTest, ...]
    """Regressed nodes first, then by net GPU-hours."""
    rate_per_1000_node_days: float
    """Of the fleet."""
    shape: float
    """Of the prior of rates: small where nodes differ much."""
    gpu_hours_per_incident: float
    horizon_days: float

    @property
    def worthwhile(self) -> tuple[NodeTest, ...]:
        """Nodes with a test that is worth its time."""
        return tuple(test for test in self.tests if test.tests)


def validation_plan(
    records: Sequence[NodeRecord],
    *,
    gpu_hours_per_incident: float,
    horizon_days: float = 28.0,
    benchmarks: Sequence[Benchmark] = BENCHMARKS,
    conf_level: float = CONF_LEVEL,
) -> ValidationPlan:
    """Nodes and tests by GPU-hours at stake less GPU-hours of testing.

    .. math:: \\lambda_i \\sim \\Gamma(a + n_i,\\; a / \\mu + T_i), \\quad
        p_i = 1 - \\left(\\frac{a / \\mu + T_i}{a / \\mu + T_i + H}\\right)^{a + n_i}

    with n_i incidents in T_i node-days, mu the fleet's rate, a the shape of the prior by moments,
    H the horizon in days. At stake: p_i x L x c_i, with L the GPU-hours of an incident and
    c_i = 1 - prod(1 - s_bi) the share of defects that the tests find; s_bi is the share that
    benchmark b finds, drawn towards the causes of the node's own incidents that a test can show, as
    if the fleet's were three. Tests are added while they find more than they cost.

    Parameters
    ----------
    records
        One a node.
    gpu_hours_per_incident : float
        L >= 0.
    horizon_days : float
        H > 0.
    benchmarks
        What can be run.
    conf_level : float
        In (0, 1), of the intervals of rate and GPU-hours at stake.

    Raises
    ------
    OutOfRangeError
        For a horizon of 0 or less, GPU-hours below 0 or a level outside (0, 1).

    References
    ----------
    Xiong, Y. et al. (2024). SuperBench. arXiv 2402.06194: its Selector weighs the time of a
    subset of benchmarks against the chance of an incident; nodes fail the sooner the more
    incidents they had (719 h to the first, 152 h to the 20th).
    """
    validate.conf_level(conf_level)
    validate.positive("horizon_days", horizon_days, "pass e.g. 28")
    validate.nonnegative("gpu_hours_per_incident", gpu_hours_per_incident, "pass e.g. 100")
    n = np.array([record.n_incidents for record in records], dtype=np.float64)
    days = np.array([record.exposure_node_days for record in records], dtype=np.float64)
    mean = float(n.sum() / days.sum()) if days.sum() > 0 else 0.0
    shape = _shape(n, days, mean)
    tests = [
        _tested(
            record,
            mean,
            shape,
            gpu_hours_per_incident,
            horizon=horizon_days,
            benchmarks=benchmarks,
            conf_level=conf_level,
        )
        for record in records
    ]
    tests.sort(key=lambda test: (not test.record.regressed, -test.net_gpu_hours, test.record.node))
    return ValidationPlan(tuple(tests), 1000 * mean, shape, gpu_hours_per_incident, horizon_days)


def _shape(n: Floats, days: Floats, mean: float) -> float:
    """Shape of the gamma prior: excess of the variance of counts over Poisson's, by moments."""
    least, most = SHAPES
    if mean <= 0:
        return most
    expected = mean * days
    excess, among = np.sum((n - expected) ** 2 - expected), np.sum(expected**2)
    return float(np.clip(among / excess, least, most)) if excess > 0 else most


def _tested(
    record: NodeRecord,
    mean: float,
    shape: float,
    loss: float,
    *,
    horizon: float,
    benchmarks: Sequence[Benchmark],
    conf_level: float,
) -> NodeTest:
    """Rate and chance of one node, and the tests that are worth their time."""
    if mean <= 0:
        nothing = Estimate(0.0, 0.0, None, conf_level, 0)
        return NodeTest(record, nothing, 0.0, (), 0.0, 0.0, nothing)
    a, b = shape + record.n_incidents, shape / mean + record.exposure_node_days
    tails = (1 - conf_level) / 2, (1 + conf_level) / 2
    lower, upper = (float(special.gammaincinv(a, tail)) / b for tail in tails)
    rate = Estimate(a / b, lower, upper, conf_level, record.n_incidents)
    chance = 1 - (b / (b + horizon)) ** a
    tests, found = _worthwhile(record, chance * loss, benchmarks)
    minutes = sum(benchmark.minutes for benchmark in tests)
    bounds = (found * loss * (1 - np.exp(-bound * horizon)) for bound in (lower, upper))
    low, high = (float(bound) for bound in bounds)
    value = float(found * loss * chance)  # beyond a bound where an incident is all but certain
    stake = Estimate(value, min(low, value), max(high, value), conf_level, record.n_incidents)
    return NodeTest(
        record,
        rate.scaled(1000),
        float(chance),
        tuple(benchmark.name for benchmark in tests),
        minutes,
        minutes / 60 * record.n_gpus,
        stake,
    )


def _worthwhile(
    record: NodeRecord, at_stake: float, benchmarks: Sequence[Benchmark]
) -> tuple[list[Benchmark], float]:
    """Tests that find more GPU-hours than they cost, the best first, and the share they find."""
    told = {cause for benchmark in benchmarks for cause in benchmark.causes}
    known = sum(n for cause, n in record.causes.items() if cause in told)
    share = {
        benchmark.name: (
            OWN_WEIGHT * benchmark.found_ratio
            + sum(record.causes.get(c, 0) for c in benchmark.causes)
        )
        / (OWN_WEIGHT + known)
        for benchmark in benchmarks
    }
    chosen: list[Benchmark] = []
    left, unfound = list(benchmarks), 1.0
    while left:
        best = max(left, key=lambda benchmark: share[benchmark.name] / benchmark.minutes)
        left.remove(best)
        cost = best.minutes / 60 * record.n_gpus
        if record.regressed or at_stake * unfound * share[best.name] > cost:
            chosen.append(best)
            unfound *= 1 - share[best.name]
    return chosen, 1 - unfound
