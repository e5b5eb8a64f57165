"""What would a failure right now cost, and which job should give up nodes?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.failures.taxonomy import taxonomy
from analytics.frames import GPUS_PER_NODE
from analytics.recovery.reconfiguration import REATTEMPT, RECONFIGURE, Hit, Task, action, if_hit
from app.answers.content import Answer, Missing, ranged
from app.answers.described import Rows, field
from app.answers.efficiency import usual_job
from app.answers.failures.taxonomy import cause_titles
from app.answers.recovery import sites
from app.answers.reliability import availability, mttf
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_recovery
from data.errors import DataError
from data.ingest.readers.tables.running_jobs import read_running_jobs
from data.queries import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from app.answers.content import Block, Number
    from app.ask import Ask
    from data.filters import Selection

LEAST_RATIO = 0.5
"""Of its GPUs on which a job can run, where nobody says how many."""
MOST_NAMED = 3


@dataclass(frozen=True)
class Running:
    """Jobs that run, and what is known of their failures."""

    tasks: tuple[Task, ...]
    rate_per_1000_node_days: Estimate
    gpus_per_node: float
    transition_min: float
    repair_hours: Estimate
    """Until lost GPUs are back; without a value where that is not known."""
    causes: frozenset[str]
    """That a failure may have."""
    said: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """What fails; what nobody says is None."""

    faulted: str | None = None
    """The job that is hit: that whose loss would cost most."""
    cause: str | None = None
    lost_gpus: int | None = None
    """Those of a node."""
    idle_gpus: int = 0


def of_file(
    name: str,
    *,
    rate: float | None,
    transition_min: float | None,
    gpus_per_node: float | None,
    repair_hours: float | None = None,
    least_ratio: float = LEAST_RATIO,
) -> Running:
    """Jobs of a file, of which the rate must be stated.

    Raises
    ------
    DataError
        Without a rate, or for a file that holds none.
    """
    if rate is None:
        raise DataError("of jobs of a file the rate must be stated: --rate-per-1000-node-days")
    listed, left_out = read_running_jobs(name)
    tasks = tuple(
        Task(
            each.job,
            each.gpus,
            each.least_gpus or _least(each.gpus, least_ratio),
            1.0 if each.weight is None else each.weight,
            each.flops,
            1.0 if each.scaling is None else each.scaling,
            each.most_gpus,
        )
        for each in listed
    )
    said = [] if all(each.least_gpus for each in listed) else [_assumed(least_ratio)]
    if left_out:
        said.append(
            f"{numbers.counted(len(left_out), 'row')} left out, the first of line {left_out[0]}."
        )
    return Running(
        tasks, stated(rate), GPUS_PER_NODE if gpus_per_node is None else gpus_per_node,
        TRANSITION_MIN if transition_min is None else transition_min, stated(repair_hours),
        frozenset(taxonomy().causes), tuple(said),
    )  # fmt: skip


def stated(value: float | None) -> Estimate:
    """What somebody states has no interval."""
    return Estimate(value, None, None, CONF_LEVEL, 0)


TRANSITION_MIN = 15.0
"""That a job takes to change, where nobody says it: environment and recomputation."""


def of_store(
    ask: Ask,
    selection: Selection,
    *,
    rate: float | None = None,
    transition_min: float | None = None,
    repair_hours: float | None = None,
    least_ratio: float = LEAST_RATIO,
) -> Running | Missing:
    """Jobs that ran when the records end; what is missing where there are none, or no rate."""
    rows = ask(running.running_jobs, selection)
    if not len(rows):
        return NOBODY_RUNS
    if rows["cluster"].nunique() > 1:
        return _choose(rows["cluster"].unique().tolist())
    known = usual_job.failure_rate(ask, selection) if rate is None else stated(rate)
    if not known.value:
        return replace(NO_RATE, finding=f"{CANNOT}: {sites.why_not(known)}")
    usual = usual_job.job_like_runs(ask, selection)
    tasks = tuple(
        Task(str(job), int(gpus), _least(int(gpus), least_ratio))
        for job, gpus in zip(rows["job_id"], rows["n_gpus"], strict=True)
    )
    change = usual.restart_min + usual.checkpoint_min / 2
    every = int(rows["n_running"].iloc[0])
    jobs = numbers.counted(every, "job")
    said = (
        f"{jobs} ran when the records end; the largest {len(tasks)} are planned."
        if every > len(tasks)
        else f"{jobs} ran when the records end.",
        _assumed(least_ratio),
    )
    per_node = ask(mttf.measured, selection).gpus_per_node or GPUS_PER_NODE
    repair = stated(repair_hours)
    if repair_hours is None:
        repair = ask(availability.measured, selection).repairs.mean_hours
    return Running(
        tasks, known, per_node, change if transition_min is None else transition_min,
        repair, frozenset(ask(cause_titles)), said,
    )  # fmt: skip


def _choose(clusters: list[str]) -> Missing:
    """That nodes do not move between clusters."""
    named = ", ".join(map(str, clusters[:MOST_NAMED]))
    return Missing(
        "running", f"{CANNOT} of several clusters at once, between which no node moves ({named}).",
        "Choose one:", (f"faultline reconfigure --cluster {clusters[0]}",),
    )  # fmt: skip


def _least(gpus: int, least_ratio: float) -> int:
    """Fewest GPUs of a job."""
    return max(1, round(gpus * least_ratio))


def _assumed(least_ratio: float) -> str:
    return (
        f"Jobs are taken to be able to run on {numbers.percent(least_ratio)} of their GPUs, with "
        "throughput in proportion and all of one weight."
    )


CANNOT = "What a failure right now would cost cannot be judged"
NOBODY_RUNS = Missing(
    "running", f"{CANNOT}: no job of this selection runs when the records end.",
    "Collect again, or give the jobs:",
    ("faultline reconfigure --jobs jobs.csv --rate-per-1000-node-days 6.5",),
)  # fmt: skip
NO_RATE = Missing(
    "running", f"{CANNOT}: {sites.UNKNOWN_RATE}", "State a rate:",
    ("faultline reconfigure --rate-per-1000-node-days 6.5",),
)  # fmt: skip


def answer(known: Running | Missing, failure: Failure | None = None) -> Answer:
    """The plan for the loss of a node of one job, else of that which would cost most.

    Raises
    ------
    DataError
        For a job that is not among them, a cause that is none, or lost GPUs of a failure that
        takes none.
    """
    if isinstance(known, Missing):
        return _unknown(known)
    failure = failure or Failure()
    _check(known, failure)
    severity = None if failure.cause is None else action(failure.cause)
    lost, transition_min = _taken(known, failure, severity)
    in_use = sum(task.gpus for task in known.tasks) + failure.idle_gpus
    if failure.lost_gpus is None and lost >= in_use and known.repair_hours.value is None:
        return _unknown(ALL_LOST)
    hits, costs = _hits(known, failure, lost, transition_min)
    hit = next((each for each in hits if each.job == failure.faulted), hits[0])
    plan = Rows(
        PLAN,
        [
            {"job": task.job, "gpus_before": task.gpus, "gpus_after": after,
             "least_gpus": task.least_gpus, "weight": task.weight}
            for task, after in zip(hit.plan.tasks, hit.plan.gpus, strict=True)
        ],
    )  # fmt: skip
    of_each = Rows(HITS, [_row(each, costs[each.job]) for each in hits])
    expected = _expected(hits, costs)
    return Answer(
        _sentence(hit, lost, severity),
        tuple(_headlines(hits, costs, expected)),
        tuple(_blocks(plan, of_each, hit)),
        notes=tuple(_notes(known, failure, lost, transition_min)),
        record={
            "faulted": hit.job,
            "lost_gpus": lost,
            "jobs": plan.records(),
            "weighted_flops": hit.plan.weighted_flops,
            "action": RECONFIGURE if severity is None else severity[1],
            "severity": None if severity is None else severity[0],
            "cost_hours": costs[hit.job],
            "expected_cost_hours": expected,
            "if_hit": of_each.records(),
        },
        sheet=plan.sheet(),
    )


def _check(known: Running, failure: Failure) -> None:
    """Raises where a failure is of no job or no cause."""
    validate.positive("gpus_per_node", known.gpus_per_node, "pass the GPUs of one node, e.g. 8")
    names = [task.job for task in known.tasks]
    if failure.faulted is not None and failure.faulted not in names:
        there = ", ".join(names[:MOST_NAMED])
        raise DataError(f"no job {failure.faulted!r} runs: there are {there} ...")
    if failure.cause is not None and failure.cause not in known.causes:
        raise DataError(f"no cause {failure.cause!r}: `faultline terms` lists them")


def _taken(known: Running, failure: Failure, severity: tuple[int, str] | None) -> tuple[int, float]:
    """GPUs that a failure takes, and minutes for which a job that it hits stands."""
    if severity is None or severity[1] == RECONFIGURE:
        node = max(1, round(known.gpus_per_node))
        return (node if failure.lost_gpus is None else failure.lost_gpus), known.transition_min
    if failure.lost_gpus:
        raise DataError(f"a failure by {failure.cause} takes no GPU: leave out --lost-gpus")
    return 0, 0.0 if severity[1] == REATTEMPT else known.transition_min


def _hits(
    known: Running, failure: Failure, lost: int, transition_min: float
) -> tuple[tuple[Hit, ...], dict[str, Estimate]]:
    """What the loss in each job would cost, and with the interval that rate and repair leave open:
    it costs less where the next failure, or the return, is sooner."""

    def at(rate: float, repair_hours: float | None) -> tuple[Hit, ...]:
        """The same at one rate, failures per 1,000 node-days, and one time to return."""
        return if_hit(
            known.tasks,
            lost_gpus=lost,
            idle_gpus=failure.idle_gpus,
            rate_per_gpu_hour=rate / 24_000.0 / known.gpus_per_node,
            transition_hours=transition_min / 60.0,
            repair_hours=inf if repair_hours is None else repair_hours,
        )

    rate, repair = known.rate_per_1000_node_days, known.repair_hours
    hits = at(rate.value or 0.0, repair.value)
    ends = ((rate.upper, repair.lower), (rate.lower, repair.upper))
    bounds = [
        {each.job: each.cost_hours for each in at(bound, returned or repair.value)}
        for bound, returned in ends
        if bound
    ]
    costs = {}
    for hit in hits:
        low, high = [of[hit.job] for of in bounds] if len(bounds) == 2 else (None, None)
        costs[hit.job] = Estimate(hit.cost_hours, low, high, rate.conf_level, rate.n)
    return hits, costs


ALL_LOST = Missing(
    "running", f"{CANNOT}: one node holds all GPUs in use, and when it is back is not known.",
    "State a repair time:", ("faultline reconfigure --repair-hours 24",),
)  # fmt: skip


def _unknown(why: Missing) -> Answer:
    """Where nothing can be planned."""
    return Answer(
        why.finding,
        blocks=(why,),
        record={"jobs": [], "weighted_flops": None, "action": None, "if_hit": []},
        sheet=Rows(PLAN, []).sheet(),
    )


PLAN = (
    field("job", "Job", link=None),
    Column("gpus_before", "GPUs now", "count"),
    Column("gpus_after", "GPUs after", "count"),
    Column("least_gpus", "Can run on", "count"),
    field("weight", on=("json", "csv")),
)
HITS = (
    Column("job", "If it is hit"),
    Column("chance", "Chance", "ratio"),
    Column("cost_hours", "Costs, of all jobs' work (h)", "mttf"),
    Column("gives", "Who gives up GPUs"),
)


def _or_back(known: Running) -> str:
    """The repair, where it is known."""
    if known.repair_hours.value is None:
        return ""
    return f", or until a node is back after {numbers.duration(known.repair_hours.value)},"


def _row(hit: Hit, cost: Estimate) -> dict[str, object]:
    """What the loss in one job would cost."""
    after = {task.job: size for task, size in zip(hit.plan.tasks, hit.plan.gpus, strict=True)}
    gives = [
        f"{job}: {gpus:,}" if after[job] else f"{job}: stopped" for job, gpus in hit.plan.gives
    ]
    more = f" and {len(gives) - MOST_NAMED} more" if len(gives) > MOST_NAMED else ""
    return {
        "job": hit.job, "chance": hit.chance, "cost_hours": cost,
        "gives": ", ".join(gives[:MOST_NAMED]) + more or "nobody",
    }  # fmt: skip


def _expected(hits: tuple[Hit, ...], costs: Mapping[str, Estimate]) -> Estimate:
    """Mean over which job is hit, by its GPUs."""

    def mean(bound: Callable[[Estimate], float | None]) -> float | None:
        """Of the values, or of one bound; None where it is not known."""
        known = [(hit.chance, bound(costs[hit.job])) for hit in hits]
        return (
            sum(chance * (cost or 0.0) for chance, cost in known)
            if None not in (cost for _, cost in known)
            else None
        )

    first = costs[hits[0].job]
    return Estimate(
        mean(lambda cost: cost.value), mean(lambda cost: cost.lower),
        mean(lambda cost: cost.upper), first.conf_level, first.n,
    )  # fmt: skip


def _sentence(hit: Hit, lost: int, severity: tuple[int, str] | None) -> str:
    if severity is not None and severity[0] > 1:
        return f"If job {hit.job} is hit, {severity[1]}: it costs {_hours(hit)}."
    gives = hit.plan.gives
    if not gives:
        return f"If job {hit.job} loses {lost} GPUs now, idle ones replace them: {_hours(hit)}."
    if [job for job, _ in gives] == [hit.job]:
        left = hit.plan.gpus[[task.job for task in hit.plan.tasks].index(hit.job)]
        then = f"it goes on with {left:,}" if left else "it is stopped"
        return f"If job {hit.job} loses {lost} GPUs now, {then}: {_hours(hit)}."
    after = {task.job: size for task, size in zip(hit.plan.tasks, hit.plan.gpus, strict=True)}
    who = " and ".join(
        f"job {job} gives up {gpus:,}" if after[job] else f"job {job} is stopped"
        for job, gpus in gives[:MOST_NAMED]
    )
    return f"If job {hit.job} loses {lost} GPUs now, {who}: it costs {_hours(hit)}."


def _hours(hit: Hit) -> str:
    return f"{numbers.duration(hit.cost_hours)} of all jobs' work"


def _headlines(
    hits: tuple[Hit, ...], costs: Mapping[str, Estimate], expected: Estimate
) -> Iterator[Number]:
    of, worst = numbers.counted(len(hits), "job"), hits[0].job
    yield ranged(
        of_recovery.COST_NOW, expected, f"{of}, each hit by its GPUs", unit="h", hours=True
    )
    yield ranged(of_recovery.COST_WORST, costs[worst], f"job {worst}", unit="h", hours=True)


def _blocks(plan: Rows, costs: Rows, hit: Hit) -> Iterator[Block]:
    changed = replace(
        plan, items=[each for each in plan.items if each["gpus_before"] != each["gpus_after"]]
    )
    yield changed.table(
        "plan", f"What changes if job {hit.job} is hit", empty="Every job keeps its GPUs."
    )
    yield costs.table("if_hit", "What a failure right now would cost")


def _notes(known: Running, failure: Failure, lost: int, transition_min: float) -> Iterator[str]:
    yield from known.said
    yield (
        f"A failure takes {numbers.counted(lost, 'GPU')}; {failure.idle_gpus:,} are taken to be "
        f"idle. A job that is hit or changes stands for {numbers.number(transition_min)} min."
    )
    rate = numbers.number(known.rate_per_1000_node_days.value)
    yield (
        f"Until the next failure at {rate} per 1,000 node-days{_or_back(known)} the plan makes "
        "most of the weighted throughput (Unicron's dynamic program)."
    )
    if failure.cause is not None and action(failure.cause) is None:
        yield (
            f"No class of severity is published for {failure.cause}: the plan is that of a lost "
            "node."
        )
