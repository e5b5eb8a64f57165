"""The demo cluster: everything generated from one spec, tables and truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from data.synthetic.columns import cluster_column, sluids
from data.synthetic.faults import Faults
from data.synthetic.fleet import fleet, planned_outages
from data.synthetic.health import health_events_table
from data.synthetic.inventory import clusters_table, node_facts_table, nodes_table
from data.synthetic.jobs import job_nodes_table, jobs_table
from data.synthetic.logs import job_logs_table
from data.synthetic.repairs import node_events_table, tickets_table
from data.synthetic.schedule import schedule
from data.synthetic.scheduler import Scheduler
from data.synthetic.traces import PlantedTrace, planted_traces
from data.synthetic.training import training_metrics_table
from data.synthetic.truth import DemoTruth, demo_truth
from data.synthetic.verdicts import verdicts
from data.synthetic.workload import workload

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from data.synthetic.fleet import Fleet, PlannedOutages
    from data.synthetic.schedule import Schedule
    from data.synthetic.spec import DemoSpec

_STREAMS = (
    *("workload", "fleet", "outages", "faults", "scheduler", "rows"),
    *("causes", "jobs", "health", "tickets", "logs", "training", "traces"),
)
"""What draws by chance, each from its own stream: a change to one leaves the others alone.
A new one stands last."""


@dataclass(frozen=True)
class DemoCluster:
    """A synthetic cluster.

    Attributes
    ----------
    tables
        Arrow tables by the name of the store's table they belong to, columns named as there:
        clusters, nodes, node_facts, jobs, job_nodes, node_events, health_events, tickets,
        job_logs, training_metrics, planted_causes. Text that repeats is dictionary-encoded; times
        are UTC, in microseconds.
    traces
        Straggler traces of up to three jobs.
    truth
        What was planted.
    """

    tables: dict[str, pa.Table]
    traces: list[PlantedTrace]
    truth: DemoTruth


def demo_cluster(spec: DemoSpec, progress: Callable[[str], None] = lambda _: None) -> DemoCluster:
    """A synthetic GPU cluster: jobs, nodes, allocations, failures, repairs, and their truth.

    Jobs are submitted, scheduled and preempted second by second. Hardware failures strike nodes
    as a Poisson process over running time, at RSC-1's 6.50 per 1,000 node-days on average, ten
    times as often on a few lemons. Each ends all jobs on the node, NODE_FAIL or FAILED with a
    critical or fatal health event within a minute before to 200 s after, so that the rule
    "NODE_FAIL, or FAILED with such an event from 10 min before to 5 min after the end" counts it
    exactly once per job.

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
    Sizes, states, utilisation and failure rate follow the published figures of `calibration`, but
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
    seeds = np.random.SeedSequence(spec.seed).spawn(len(_STREAMS))
    streams = dict(zip(_STREAMS, map(np.random.default_rng, seeds), strict=True))
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
    return _written(spec, rows, (nodes, planned), streams=streams)


def _written(
    spec: DemoSpec,
    rows: Schedule,
    fleet_and_outages: tuple[Fleet, PlannedOutages],
    *,
    streams: dict[str, np.random.Generator],
) -> DemoCluster:
    nodes, planned = fleet_and_outages
    keys = sluids(rows.submit_s)
    why = verdicts(rows, streams["causes"])
    jobs = jobs_table(rows, keys, nodes, rng=streams["jobs"])
    tables = {
        "clusters": clusters_table(),
        "nodes": nodes_table(nodes, spec.period_s),
        "node_facts": node_facts_table(nodes, rows),
        "jobs": jobs,
        "job_nodes": job_nodes_table(jobs, rows, nodes),
        "node_events": node_events_table(rows, nodes),
        "health_events": health_events_table(
            rows, why, nodes, planned=planned, rng=streams["health"]
        ),
        "tickets": tickets_table(rows, nodes, streams["tickets"]),
        "job_logs": job_logs_table(rows, why, keys, nodes=nodes, rng=streams["logs"]),
        "training_metrics": training_metrics_table(rows, keys, streams["training"]),
    }
    traces = planted_traces(rows, nodes, streams["traces"])
    truth = demo_truth(spec, rows, nodes, verdicts=why, keys=keys, traces=traces)
    planted = truth.attempts.drop_columns("job_id")
    tables["planted_causes"] = planted.add_column(0, "cluster", cluster_column(len(planted)))
    return DemoCluster(tables, traces, truth)
