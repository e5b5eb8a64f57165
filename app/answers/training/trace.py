"""Who slows one traced run, by how much, and how far is that to be trusted?"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from analytics.training.stragglers.analysis import analysis_of_record
from analytics.training.stragglers.causes import node_concentration
from analytics.training.stragglers.fixes import daily_gpu_hours, slowdown_estimate, wasted_estimate
from analytics.training.stragglers.slowdown import ranked
from app.answers.columns import columns
from app.answers.content import Answer, Chart, Number, Part, Table, composed, estimated
from app.answers.described import Rows
from app.answers.training import causes
from app.answers.training.causes import doubts
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_training
from data.hostlist import HostListError, expand
from data.queries import fleet as fleet_queries
from data.queries import stragglers
from data.queries import stragglers as straggler_queries

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from analytics.estimate import Estimate
    from analytics.training.stragglers.analysis import StragglerAnalysis
    from analytics.training.stragglers.causes import Concentration
    from app.ask import Ask
    from app.words.terms import Term
    from data.store import Store

LEAST_ERROR = 0.001
"""Simulation error below which its digits mean nothing."""
MOST_NAMED = 3
"""Steps left out that are named."""
PARTS_NOTE = (
    "A stage or rank below 1 is faster than the mean of its types, which slower ones raise. What "
    "parts take alone does not add up."
)
GPUS_UNKNOWN = "the job's GPUs are unknown"
STEPS = (
    Column("step", "Step", "count"),
    Column("slowdown", "Slowdown", "number"),
    Column("traced_seconds", "Traced (s)", "number"),
)
WORKERS = (
    Column("dp_rank", "Data-parallel rank", "count"),
    Column("stage", "Pipeline stage", "count"),
    *columns("node"),
    Column(
        "slowdown_exact",
        "By one worker, exact",
        "decimal",
        help=of_training.WORKER_SLOWDOWN.definition,
    ),
    Column(
        "slowdown_min",
        "By one worker, approximate",
        "decimal",
        help=of_training.WORKER_SLOWDOWN.definition,
    ),
    *columns(hidden=("cluster",)),
)
RECOVERED = (
    Column("fixed", "Fixed"),
    Column("recovered_ratio", "Recovered", "decimal", none="unknown: nothing is lost",
           help=of_training.RECOVERED.definition),
)  # fmt: skip


@dataclass(frozen=True)
class StragglerTrace:
    """One stored trace with its results."""

    facts: dict[str, Any]
    """Columns of `straggler_traces`."""
    analysis: StragglerAnalysis
    slowdown: Estimate
    """S; n = steps."""
    wasted: Estimate
    """Share of the job's GPU-hours that stragglers waste."""
    nodes: WorkerNodes

    @property
    def n_gpus(self) -> int | None:
        """GPUs of the job; None where no meta file states them."""
        n: int | None = self.facts["n_gpus"]
        return n

    @property
    def wasted_gpu_hours_per_day(self) -> Estimate | None:
        """GPU-hours wasted in a day of training; None where the job's GPUs are unknown."""
        return None if self.n_gpus is None else daily_gpu_hours(self.wasted, self.n_gpus)

    @property
    def node_concentration(self) -> tuple[str, Concentration] | None:
        """The node whose workers cost most by themselves, and how unevenly nodes do.

        None where nodes are unknown.
        """
        return node_concentration(self.analysis.slowdowns, self.nodes.node_of)


def measured(store: Store, trace_id: str, *, conf_level: float = 0.90) -> StragglerTrace:
    """One stored trace with its results and the nodes of its workers.

    Raises
    ------
    DataError
        Where the store has no such trace.
    """
    facts = stragglers.trace(store, trace_id)
    analysis = analysis_of_record(facts.pop("results"))
    slow = analysis.slowdowns
    slowdown = slowdown_estimate(
        slow.original_seconds, slow.ideal_seconds, slow.steps, conf_level=conf_level
    )
    return StragglerTrace(
        facts, analysis, slowdown, wasted_estimate(slowdown), worker_nodes(store, facts)
    )


def answer(found: StragglerTrace) -> Answer:
    """Who slows this run, what would fixing it give, and what does that rest on?"""
    slow = found.analysis.slowdowns
    ranks = {f"dp {at}": value for at, value in ranked(slow.by_dp).items()}
    stages = {f"stage {at}": value for at, value in ranked(slow.by_stage).items()}
    return Answer(
        causes.sentence(found.analysis, found.nodes.node_of),
        _headlines(found),
        (
            workers_chart(found, "exact"),
            causes.table(found),
            _by_part("type", slow.by_type),
            _by_part("stage", stages),
            _by_part("dp_rank", ranks),
            _chart(
                "step_slowdown",
                "How slow was each traced step?",
                slow,
                rows=Rows.of(
                    ("step", "slowdown", "traced_seconds"),
                    zip(slow.steps, slow.step_slowdown, slow.traced_seconds, strict=True),
                ),
            ),
            _chart(
                "worker_curve",
                "What does fixing the slowest workers recover?",
                slow.slowest,
                rows=Rows.of(
                    ("workers_fixed", "recovered_ratio"), slow.slowest.fixed_ratio.items()
                ),
            ),
        ),
        notes=(*doubts(found.analysis), *_left_out(found)),
        about=_about(found),
    )


def workers_chart(found: StragglerTrace, way: str) -> Chart:
    """Which worker is slow: stage by data-parallel rank; `way` is exact or min, as S_w names it."""
    shown = _chart(
        "worker_heat_map",
        "Which worker is slow?",
        found.analysis.slowdowns,
        found.nodes.node_of,
    )
    return replace(shown, options={"way": way, "name": found.facts["name"]}, opens="node")


def basis_of_nodes(found: StragglerTrace) -> str:
    """How workers were laid on nodes, as a sentence."""
    basis = found.nodes.basis
    return f"{basis[:1].upper()}{basis[1:]}."


def doubt(found: StragglerTrace) -> str:
    """Why the results are not to be relied on; empty where the simulation is near the trace."""
    slow = found.analysis.slowdowns
    if not slow.inaccurate:
        return ""
    return (
        f"The simulated step is {numbers.percent(slow.simulation_error)} off the traced one: the "
        "paper leaves out traces above 5 %. Long waits for data or launches make it so."
    )


def per_day(term: Term, hours: Estimate | None, opens: Part | None = None) -> Number:
    """GPU-hours of a day of training; unknown where the job's GPUs are."""
    if hours is None:
        return Number(term, numbers.UNKNOWN, GPUS_UNKNOWN, opens=opens)
    return replace(estimated(term, "rate", hours, opens=opens), unit="GPU-hours per day")


def _headlines(found: StragglerTrace) -> tuple[Number, ...]:
    """How slow, what it wastes, who does it, and how far to trust it."""
    slow, n = found.analysis.slowdowns, f"n = {found.slowdown.n:,}"
    steps, workers, recovered = (
        Part(title, rows, (found.facts["trace_id"],))
        for title, rows in (
            ("Steps behind the number", _steps),
            ("Workers behind the number", _workers),
            ("What fixing workers and stages recovers", _recovered),
        )
    )
    error = slow.simulation_error
    off = numbers.percent(error) if error >= LEAST_ERROR else "below 0.1 %"
    alone = ": one step has no interval" if found.slowdown.n == 1 else ""
    fixed = f"{numbers.counted(len(slow.slowest.workers), 'worker')} fixed, {n}"
    last = f"stage {len(slow.stages) - 1} fixed, {n}"
    return (
        estimated(of_training.SLOWDOWN, "rate", found.slowdown, more=alone, opens=steps),
        estimated(of_training.WASTED_SHARE, "share", found.wasted, more=alone, opens=steps),
        per_day(of_training.WASTED_HOURS, found.wasted_gpu_hours_per_day, steps),
        _share(of_training.SLOWEST_WORKERS, slow.slowest.contribution.fixed_ratio, fixed, workers),
        _share(of_training.LAST_STAGE, slow.stages[-1].fixed_ratio, last, recovered),
        composed(
            of_training.LAUNCH_SLOWDOWN,
            numbers.decimals(slow.launch_slowdown),
            f"simulation error {off}",
            exact=slow.launch_slowdown,
            unit="ratio",
            opens=steps,
        ),
    )


def _share(term: Term, value: float | None, parts: str, opens: Part) -> Number:
    """A share without an interval."""
    return composed(term, numbers.percent(value), parts, exact=value, unit="ratio", opens=opens)


def _steps(ask: Ask, trace_id: str, *, limit: int) -> Table:
    """S and traced time of each step."""
    slow = ask(measured, trace_id).analysis.slowdowns
    rows = zip(slow.steps, slow.step_slowdown, slow.traced_seconds, strict=True)
    return Table("straggler_steps", "Steps", STEPS, list(rows)[:limit])


def _workers(ask: Ask, trace_id: str, *, limit: int) -> Table:
    """All workers, slowest first."""
    found = ask(measured, trace_id)
    slow, node_of = found.analysis.slowdowns, found.nodes.node_of
    exact, paper, cluster = slow.by_worker_exact, slow.by_worker, found.facts["cluster"]
    rows = [
        (*at, node_of.get(at), float(exact[at]), float(paper[at]), cluster)
        for at in slow.workers[:limit]
    ]
    return Table("straggler_workers", "Workers", WORKERS, rows)


def _recovered(ask: Ask, trace_id: str, *, limit: int) -> Table:
    """M_W by number of workers and M_S of every stage."""
    slow = ask(measured, trace_id).analysis.slowdowns
    workers = [
        (numbers.counted(k, "worker"), ratio) for k, ratio in slow.slowest.fixed_ratio.items()
    ]
    stages = [(f"stage {at}", each.fixed_ratio) for at, each in enumerate(slow.stages)]
    return Table("recovered", "Recovered", RECOVERED, (workers + stages)[:limit])


def _by_part(part: str, slowdown: Mapping[str, float]) -> Chart:
    """What each part of a kind costs alone, slowest first."""
    rows = Rows.of((part, "slowdown"), slowdown.items())
    shown = _chart("slowdown_bars", f"What does each {part} cost alone?", slowdown, part, rows=rows)
    return replace(shown, key=f"slowdown_by_{part}")


def _chart(name: str, title: str, *data: Any, rows: Rows | None = None) -> Chart:
    """A chart of the whole trace, whatever the filters."""
    return Chart(f"training.{name}", title, title, data, whole=True, rows=rows)


def _left_out(found: StragglerTrace) -> Iterable[str]:
    """Steps that were not analysed, the first by name."""
    dropped = found.analysis.slowdowns.dropped_steps
    for each in dropped[:MOST_NAMED]:
        yield f"Step {each.step} left out: {each.reason}"
    if len(dropped) > MOST_NAMED:
        yield f"{len(dropped) - MOST_NAMED:,} more steps left out."


def _about(found: StragglerTrace) -> str:
    """What was traced."""
    facts = found.facts
    chunks = f" x {facts['vpp']:,} chunks" if facts["vpp"] > 1 else ""
    parts = [
        str(facts["name"]),
        f"cluster {facts['cluster']}" if facts["cluster"] else "",
        numbers.gpu_count(found.n_gpus),
        f"{facts['dp']:,} ranks x {facts['pp']:,} stages{chunks}",
        numbers.counted(facts["n_steps"], "step"),
        f"{facts['n_dropped_steps']:,} left out" if facts["n_dropped_steps"] else "",
    ]
    return " · ".join(part for part in parts if part)


@dataclass(frozen=True)
class WorkerNodes:
    """Nodes of workers, and what that takes for granted, or why they are unknown."""

    basis: str
    node_of: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """By (dp_rank, stage): the node of the rank that was traced."""
    attempt: int | None = None
    """Attempt of the job that was traced; None where unknown."""


def worker_nodes(store: Store, trace: Mapping[str, Any]) -> WorkerNodes:
    """The node of each worker: its rank / GPUs of a node, in the order of the job's node list.

    Unknown where the trace states no job or ranks, the store has not the job with nodes and GPUs,
    it cannot be told which attempt was traced, or sizes disagree.
    """
    if trace["job_id"] is None or trace["cluster"] is None:
        return WorkerNodes("the trace names no job that the store knows, so nodes are unknown")
    job = f"job {trace['job_id']}"
    attempts = straggler_queries.attempts(store, trace["cluster"], trace["job_id"])
    traced = _traced(attempts, trace["traced_at"])
    if traced is None:
        why = "it has no record of it" if not attempts else "which attempt was traced is unknown"
        return WorkerNodes(f"nodes of {job} are unknown: {why}")
    hosts, n_gpus, attempt = hosts_of(traced["node_list"]), traced["n_gpus"], traced["attempt"]
    if not hosts or not n_gpus or n_gpus % len(hosts):
        why = "its record says no nodes, or no GPUs that divide evenly over them"
        return WorkerNodes(f"nodes of {job} are unknown: {why}", attempt=attempt)
    if trace["n_gpus"] not in (None, n_gpus):
        why = f"the trace is of {trace['n_gpus']:,} GPUs, the job had {n_gpus:,}"
        return WorkerNodes(f"nodes of {job} are unknown: {why}", attempt=attempt)
    ranks = straggler_queries.ranks(store, trace["path"])
    if ranks is None or not _are_places(ranks, n_gpus):
        why = f"the trace does not number its workers within 0 to {n_gpus - 1:,}"
        return WorkerNodes(f"nodes of {job} are unknown: {why}", attempt=attempt)
    own_name = fleet_queries.own_names(store, trace["cluster"])
    per_node = n_gpus // len(hosts)
    return WorkerNodes(
        f"a worker's node is its rank divided by {per_node:,} GPUs a node, in the order of the "
        f"node list of {job}: right where ranks were laid out in that order, as is usual",
        {
            worker: own_name.get(hosts[rank // per_node], hosts[rank // per_node])
            for worker, rank in ranks.items()
        },
        attempt,
    )


def _traced(
    attempts: Sequence[Mapping[str, Any]], traced_at: datetime | None
) -> Mapping[str, Any] | None:
    """The attempt during which the trace began, or the only one that it can be."""
    if traced_at is not None:
        during = [
            each
            for each in attempts
            if each["start_at"] <= traced_at
            and (each["end_at"] is None or traced_at <= each["end_at"])
        ]
        return during[0] if len(during) == 1 else None
    alike = {(each["node_list"], each["n_gpus"]) for each in attempts}
    return attempts[-1] if len(alike) == 1 else None


def hosts_of(node_list: str | None) -> list[str]:
    """Hosts in the order of the record; none where it cannot be read, or names one twice."""
    try:
        hosts = expand(node_list or "")
    except HostListError:
        return []
    return hosts if len(set(hosts)) == len(hosts) else []


def _are_places(ranks: Mapping[tuple[int, int], int], n_gpus: int) -> bool:
    """Whether each worker has a rank of its own within the job."""
    numbers = set(ranks.values())
    return len(numbers) == len(ranks) and min(numbers) >= 0 and max(numbers) < n_gpus
