"""Which nodes to test next, and with what: the cost of an incident against that of a test."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.incidents_ahead import (
    Past,
    Shares,
    ahead,
    expected_costs,
    kind_shares,
    rates,
)  # fmt: skip

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Bools, Floats

UNKNOWN: Final = "unknown"
"""Cause of an incident that nobody knows."""
DEFECTIVE: Final = 0.1036
"""Share of nodes that SuperBench found defective."""
A_SECOND: Final = 1.0 / 86_400.0
"""Node-days of jobs below which there is no rate."""


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
class PastIncident:
    """An incident of hardware or system software that names a node."""

    day: float
    """When it began, days since the window of its cluster began."""
    gpu_hours: float
    """What it cost, of one that names several nodes the node's part."""
    cause: str
    """`unknown` where nobody knows it."""


@dataclass(frozen=True)
class NodeRecord:
    """What records say of a node."""

    cluster: str
    node: str
    exposure_node_days: float
    """Time in jobs."""
    window_days: float
    """Length of the records of its cluster."""
    incidents: tuple[PastIncident, ...]
    n_gpus: float
    regressed: bool = False
    """Whether results of benchmarks show it regressed."""

    @property
    def n_incidents(self) -> int:
        """Incidents that name it."""
        return len(self.incidents)

    @property
    def causes(self) -> Counter[str]:
        """Cause -> incidents."""
        return Counter(each.cause for each in self.incidents)


@dataclass(frozen=True)
class NodeTest:
    """A node, what its incidents will cost, and the tests that are worth their time."""

    record: NodeRecord
    rate: Estimate
    """Incidents per 1,000 node-days, drawn towards the fleet's; n = its incidents."""
    p_incident: float
    """Chance of an incident in the horizon, if it is in jobs as much as before."""
    tests: tuple[str, ...]
    """Worth their time, the best first; empty where none is."""
    minutes: float
    cost_gpu_hours: float
    loss_gpu_hours: Estimate
    """GPU-hours that its incidents of the horizon will cost; the interval is of the prediction."""
    at_stake_gpu_hours: Estimate
    """Of these, of incidents of a kind that the tests find. Not all of it is saved, for a defect
    may come later than its test."""

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
    gpu_hours_per_incident: float | None
    """Mean cost on a node; None where there is no incident."""
    horizon_days: float
    loss_gpu_hours: Estimate
    """What incidents of the nodes worth testing will cost; the interval is of the prediction."""
    at_stake_gpu_hours: Estimate
    """Of these, what their tests find."""

    @property
    def worthwhile(self) -> tuple[NodeTest, ...]:
        """Nodes with a test that is worth its time."""
        return tuple(test for test in self.tests if test.tests)


def validation_plan(
    records: Sequence[NodeRecord],
    *,
    horizon_days: float = 28.0,
    benchmarks: Sequence[Benchmark] = BENCHMARKS,
    conf_level: float = CONF_LEVEL,
) -> ValidationPlan:
    """Nodes and tests by GPU-hours at stake less GPU-hours of testing.

    .. math:: \\lambda_i \\sim \\Gamma(a + n_i / \\phi,\\; a / \\mu + T_i / \\phi), \\quad
        L_i = \\bar\\lambda_i u_i H \\, \\ell_i, \\quad S_i = L_i \\sum_{k \\in B_i} s_{ik}

    with n_i incidents in T_i node-days, mu the fleet's rate, a the shape of the prior and phi the
    scatter over time by moments (`incidents_ahead.rates`), u_i the share of the window that the
    node was in jobs, H the horizon in days, l_i the cost of an incident. At stake is S_i: s_ik is
    the share of its incidents that benchmark k finds, drawn towards the fleet's, and these towards
    SuperBench's, each as if that were three incidents. Of an incident whose cause no benchmark
    shows nothing is found; one without a cause counts for no kind. Tests are added while they find
    more than they cost. Intervals are of what will come (`incidents_ahead.ahead`).

    Parameters
    ----------
    records
        One a node.
    horizon_days : float
        H > 0.
    benchmarks
        What can be run.
    conf_level : float
        In (0, 1), of the intervals.

    Raises
    ------
    OutOfRangeError
        For a horizon of 0 or less, or a level outside (0, 1).

    References
    ----------
    Xiong, Y. et al. (2024). SuperBench. arXiv 2402.06194: its Selector weighs the time of a
    subset of benchmarks against the chance of an incident; nodes fail the sooner the more
    incidents they had (719 h to the first, 152 h to the 20th).
    """
    validate.conf_level(conf_level)
    validate.positive("horizon_days", horizon_days, "pass e.g. 28")
    past = _past(records)
    if not len(past.place) or past.exposure.sum() < A_SECOND:
        return _without_incidents(records, horizon_days, benchmarks, conf_level)
    of_fleet = rates(past, horizon_days)
    losses = of_fleet.expected * past.busy_ratio * horizon_days * expected_costs(past)
    elsewhere, counts = _kinds(records, benchmarks)
    shares = kind_shares(elsewhere, counts)
    chosen = [
        _worthwhile(
            record, float(loss), dict(zip(_names(benchmarks), share[:-1], strict=True)), benchmarks
        )
        for record, loss, share in zip(records, losses, shares.tolist(), strict=True)
    ]
    found = np.array([[each in tests for each in (*benchmarks, None)] for tests in chosen])
    drawn = ahead(
        past, Shares(elsewhere, counts, found.astype(np.float64)), horizon_days=horizon_days
    )
    stakes = losses * (shares * found).sum(axis=1)
    n = past.n.astype(int).tolist()
    worth = np.array([bool(tests) for tests in chosen])
    loss = _predicted(losses, drawn.gpu_hours, n, worth, conf_level)
    stake = _predicted(stakes, drawn.found_gpu_hours, n, worth, conf_level)
    lower, upper = of_fleet.bounds(conf_level)
    estimates = zip(of_fleet.expected.tolist(), lower.tolist(), upper.tolist(), n, strict=True)
    tests = [
        _tested(record, Estimate(value, low, high, conf_level, of).scaled(1000), p, chosen[at],
                loss[at], stake[at])
        for at, (record, (value, low, high, of), p) in enumerate(
            zip(records, estimates, (drawn.numbers > 0).mean(axis=0).tolist(), strict=True)
        )
    ]  # fmt: skip
    tests.sort(key=lambda test: (not test.record.regressed, -test.net_gpu_hours, test.record.node))
    return ValidationPlan(
        tuple(tests),
        1000 * of_fleet.mean,
        float(past.gpu_hours.mean()),
        horizon_days,
        loss[-1],
        stake[-1],
    )


def _past(records: Sequence[NodeRecord]) -> Past:
    """The incidents of the records as arrays."""
    rows = [
        (at, min(each.day / record.window_days, 1.0) if record.window_days else 0.0, each.gpu_hours)
        for at, record in enumerate(records)
        for each in record.incidents
    ]
    place, when, gpu_hours = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    exposure = np.array([record.exposure_node_days for record in records], dtype=np.float64)
    windows = np.array([record.window_days for record in records], dtype=np.float64)
    busy = np.divide(exposure, windows, out=np.zeros_like(exposure), where=windows > 0)
    whole = float(windows.sum())
    usual = min(float(exposure.sum()) / whole, 1.0) if whole else 1.0
    most = max([0.5 * sum(record.n_gpus for record in records), *gpu_hours.tolist()])
    return Past(
        exposure,
        np.where(busy > 0, np.minimum(busy, 1.0), usual),
        place.astype(np.int64),
        when,
        gpu_hours,
        float(windows.max(initial=0.0)),
        most,
    )


def _names(benchmarks: Sequence[Benchmark]) -> list[str]:
    return [benchmark.name for benchmark in benchmarks]


def _kinds(records: Sequence[NodeRecord], benchmarks: Sequence[Benchmark]) -> tuple[Floats, Floats]:
    """Share of each kind in SuperBench's fleet, and incidents of each node by kind.

    A kind is what one benchmark shows, the last what none does, of which SuperBench says nothing.
    """
    elsewhere = np.array([*(benchmark.found_ratio for benchmark in benchmarks), 0.0])
    kind = {cause: at for at, benchmark in enumerate(benchmarks) for cause in benchmark.causes}
    counts = np.zeros((len(records), len(elsewhere)))
    for at, record in enumerate(records):
        for cause, n in record.causes.items():
            if cause != UNKNOWN:
                counts[at, kind.get(cause, -1)] += n
    return elsewhere / elsewhere.sum(), counts


def _predicted(
    values: Floats, draws: Floats, n: Sequence[int], worth: Bools, conf_level: float
) -> list[Estimate]:
    """Expected value of each node with the quantiles of its draws; last, of those worth testing."""
    values = np.append(values, values[worth].sum())
    draws = np.column_stack([draws, draws[:, worth].sum(axis=1)])
    counts = [*n, sum(of for of, one in zip(n, worth.tolist(), strict=True) if one)]
    lower, upper = np.quantile(draws, [(1 - conf_level) / 2, (1 + conf_level) / 2], axis=0)
    return [
        Estimate(value, min(low, value), max(high, value), conf_level, of)
        for value, low, high, of in zip(
            values.tolist(), lower.tolist(), upper.tolist(), counts, strict=True
        )
    ]


def _tested(
    record: NodeRecord,
    rate: Estimate,
    p_incident: float,
    tests: Sequence[Benchmark],
    loss: Estimate,
    stake: Estimate,
) -> NodeTest:
    """A node with its tests and what they take."""
    minutes = sum(benchmark.minutes for benchmark in tests)
    names = tuple(_names(tests))
    cost = minutes / 60 * record.n_gpus
    return NodeTest(record, rate, p_incident, names, minutes, cost, loss, stake)


def _without_incidents(
    records: Sequence[NodeRecord],
    horizon_days: float,
    benchmarks: Sequence[Benchmark],
    conf_level: float,
) -> ValidationPlan:
    """Where nothing is known of rates: regressed nodes alone are tested."""
    nothing = Estimate(0.0, 0.0, None, conf_level, 0)
    tests = [
        _tested(record, nothing, 0.0, benchmarks if record.regressed else (), nothing, nothing)
        for record in records
    ]
    tests.sort(key=lambda test: (not test.record.regressed, test.record.node))
    return ValidationPlan(tuple(tests), 0.0, None, horizon_days, nothing, nothing)


def _worthwhile(
    record: NodeRecord, loss: float, share: Mapping[str, float], benchmarks: Sequence[Benchmark]
) -> list[Benchmark]:
    """Tests that find more GPU-hours than they cost, the best first."""
    ranked = sorted(benchmarks, key=lambda each: -share[each.name] / each.minutes)
    return [
        each
        for each in ranked
        if record.regressed or loss * share[each.name] > each.minutes / 60 * record.n_gpus
    ]
