"""The demo cluster: everything generated from one spec, tables and truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import TYPE_CHECKING

import numpy as np

from data.synthetic.columns import CLUSTER, constant, sluids
from data.synthetic.fleet import Faults, fleet, planned_outages
from data.synthetic.schedule import schedule, verdicts
from data.synthetic.scheduler import Scheduler
from data.synthetic.traces import PlantedTrace, planted_traces
from data.synthetic.truth import DemoTruth, demo_truth
from data.synthetic.workload import workload
from data.tables import tables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from data.synthetic.fleet import Fleet, PlannedOutages
    from data.synthetic.schedule import Schedule, Verdicts
    from data.synthetic.spec import DemoSpec

_STREAMS = (
    *("workload", "fleet", "outages", "faults", "scheduler", "rows"),
    *("causes", "jobs", "health", "tickets", "logs", "training", "traces"),
)
"""What draws by chance, each from its own stream: a change to one leaves the others alone.
Further tables draw from one of their own name."""


@dataclass(frozen=True)
class DemoCluster:
    """A synthetic cluster.

    Attributes
    ----------
    tables
        Arrow tables by the name of the store's table they belong to, columns named as there. Text
        that repeats is dictionary-encoded; times are UTC, in microseconds.
    traces
        Straggler traces of up to three jobs.
    truth
        What was planted.
    """

    tables: dict[str, pa.Table]
    traces: list[PlantedTrace]
    truth: DemoTruth


@dataclass(frozen=True)
class Played:
    """A period that was played: what tables and truth are written from."""

    spec: DemoSpec
    schedule: Schedule
    nodes: Fleet
    planned: PlannedOutages
    chance: Mapping[str, np.random.Generator]
    """By the names of `_STREAMS` and of tables."""

    @cached_property
    def keys(self) -> pa.Array:
        """Identifiers of the attempts."""
        return sluids(self.schedule.submit_s)

    @cached_property
    def verdicts(self) -> Verdicts:
        """Why attempts failed."""
        return verdicts(self.schedule, self.chance["causes"])

    @cached_property
    def traces(self) -> list[PlantedTrace]:
        """Straggler traces of a few jobs."""
        return planted_traces(self)

    @cached_property
    def truth(self) -> DemoTruth:
        """What was planted."""
        return demo_truth(self)


def demo_cluster(spec: DemoSpec, progress: Callable[[str], None] = lambda _: None) -> DemoCluster:
    """A synthetic GPU cluster: jobs, nodes, allocations, failures, repairs, and their truth.

    Jobs are submitted, scheduled and preempted second by second. Hardware failures strike nodes
    as a Poisson process over running time, at RSC-1's 6.50 per 1,000 node-days on average, ten
    times as often on a few lemons. Each ends all jobs on the node, NODE_FAIL or FAILED, most with a
    critical or fatal health event within a minute before to 200 s after, so that the rule
    "NODE_FAIL, or FAILED with such an event from 10 min before to 5 min after the end" counts it
    exactly once per job. A quarter of the lost mounts end jobs FAILED while no check sees them:
    the job's log and the operator's drain tell.

    Parameters
    ----------
    spec
        Size, length and seed.
    progress
        Called with a short text as work goes on.

    Returns
    -------
    DemoCluster
        Tables for the store, and the truth.

    Notes
    -----
    Sizes, states, utilisation and failure rate follow the published figures of `published`, but
    NODE_FAIL: its share of attempts (0.1 % in the paper) follows from the failure rate and the
    mean length of jobs, about 0.03 %. The published mix needs clusters that jobs of 256 GPUs fit
    into: below 64 nodes, three quarters of the cluster are the largest job. Below about 2,000
    jobs, or where jobs are too few to fill the period within the 7 days that one may run,
    utilisation stays below 83 %. Everything is deterministic for a spec, on one version of NumPy.

    References
    ----------
    Kokolis et al., Revisiting Reliability in Large-Scale ML Research Clusters, arXiv 2410.21680.

    Examples
    --------
    >>> from data.synthetic.spec import DemoSpec
    >>> demo = demo_cluster(DemoSpec.of(n_jobs=500, n_nodes=64))
    >>> demo.tables["jobs"].num_rows
    500
    >>> sum(demo.truth.ledger.values()) == DemoSpec.of(n_jobs=500, n_nodes=64).capacity_gpu_s
    True
    """
    streams = _streams(spec.seed)
    progress(f"generating {spec.n_jobs} jobs on {spec.n_nodes} nodes over {spec.days:g} days")
    jobs = workload(spec, streams["workload"])
    nodes = fleet(spec, streams["fleet"])
    planned = planned_outages(spec, nodes, streams["outages"])
    faults = Faults(nodes, streams["faults"])
    played = Scheduler(spec, jobs, (nodes, planned, faults), rng=streams["scheduler"])
    played.run(progress)
    rows = schedule(spec, jobs, played, rng=streams["rows"])
    del jobs, played
    progress("writing tables")
    demo = Played(spec, rows, nodes, planned, streams)
    written = {
        name: rows.add_column(0, "cluster", constant(CLUSTER, len(rows)))
        for name, rows in ((name, write(demo)) for name, write in _writers().items())
    }
    return DemoCluster(written, demo.traces, demo.truth)


def _streams(seed: int) -> dict[str, np.random.Generator]:
    """Chance, by the names of `_STREAMS` and of tables."""
    seeds = {name: np.random.SeedSequence([seed, *name.encode()]) for name in tables()}
    seeds |= zip(_STREAMS, np.random.SeedSequence(seed).spawn(len(_STREAMS)), strict=True)
    return {name: np.random.default_rng(each) for name, each in seeds.items()}


def _writers() -> dict[str, Callable[[Played], pa.Table]]:
    """Table of the store -> the function `<table>_table` here that writes it, without cluster."""
    modules = [
        import_module(f"data.synthetic.{info.name}")
        for info in iter_modules([str(Path(__file__).parent)])
    ]
    return {
        name: getattr(module, f"{name}_table")
        for name in tables()
        for module in modules
        if hasattr(module, f"{name}_table")
    }
