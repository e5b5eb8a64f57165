"""What would a failure right now cost, and which job should give up nodes?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

from analytics import validate
from analytics.failures.taxonomy import taxonomy
from analytics.frames import GPUS_PER_NODE
from analytics.recovery.reconfiguration import ACTIONS, RECONFIGURE, Hit, Task, action, if_hit
from app.answers.content import Answer, Missing, composed
from app.answers.described import Rows, field
from app.answers.efficiency import ettr
from app.answers.recovery import sites
from app.answers.reliability import availability, mttf
from app.words import numbers
from app.words.cells import Column
from app.words.glossary import of_recovery
from data.errors import DataError
from data.ingest.readers.tables.running_jobs import read_running_jobs
from data.queries import running

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    rate_per_1000_node_days: float
    gpus_per_node: float
    transition_min: float
    repair_hours: float | None
    said: tuple[str, ...]


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
        tasks, rate, GPUS_PER_NODE if gpus_per_node is None else gpus_per_node,
        TRANSITION_MIN if transition_min is None else transition_min, repair_hours, tuple(said),
    )  # fmt: skip


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
    measured = ettr.failure_rate(ask, selection)
    known = measured.value if rate is None else rate
    if not known:
        why = sites.NONE_SEEN if measured.upper is not None else sites.UNKNOWN_RATE
        return replace(NO_RATE, finding=f"{CANNOT}: {why}")
    usual = ettr.job_like_runs(ask, selection)
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
    if repair_hours is None:
        repair_hours = ask(availability.measured, selection).repairs.mean_hours.value
    return Running(
        tasks, known, per_node, change if transition_min is None else transition_min,
        repair_hours, said,
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


def answer(
    known: Running | Missing,
    *,
    faulted: str | None = None,
    cause: str | None = None,
    lost_gpus: int | None = None,
    idle_gpus: int = 0,
) -> Answer:
    """The plan for the loss of a node of one job, else of that which would cost most.

    Raises
    ------
    DataError
        For a job that is not among them, a cause that is none, or lost GPUs of a failure that
        takes none.
    """
    if isinstance(known, Missing):
        return _unknown(known)
    named = {task.job: task for task in known.tasks}
    if faulted is not None and faulted not in named:
        raise DataError(
            f"no job {faulted!r} runs: there are {', '.join([*named][:MOST_NAMED])} ..."
        )
    validate.positive("gpus_per_node", known.gpus_per_node, "pass the GPUs of one node, e.g. 8")
    if cause is not None and cause not in taxonomy().causes:
        raise DataError(f"no cause {cause!r}: `faultline terms` lists them")
    lost = max(1, round(known.gpus_per_node)) if lost_gpus is None else lost_gpus
    severity = None if cause is None else action(cause)
    transition = known.transition_min
    if severity is not None and severity[0] > 1:
        if lost_gpus:
            raise DataError(f"a failure by {cause} takes no GPU: leave out --lost-gpus")
        lost, transition = 0, 0.0 if severity[0] == len(ACTIONS) else transition
    in_use = sum(task.gpus for task in known.tasks) + idle_gpus
    if lost_gpus is None and lost >= in_use and known.repair_hours is None:
        return _unknown(ALL_LOST)
    hits = if_hit(
        known.tasks,
        lost_gpus=lost,
        idle_gpus=idle_gpus,
        rate_per_gpu_hour=known.rate_per_1000_node_days / 1000.0 / 24.0 / known.gpus_per_node,
        transition_hours=transition / 60.0,
        repair_hours=inf if known.repair_hours is None else known.repair_hours,
    )
    hit = next((each for each in hits if each.job == faulted), hits[0])
    plan = Rows(
        PLAN,
        [
            {"job": task.job, "gpus_before": task.gpus, "gpus_after": after,
             "least_gpus": task.least_gpus, "weight": task.weight}
            for task, after in zip(hit.plan.tasks, hit.plan.gpus, strict=True)
        ],
    )  # fmt: skip
    costs = Rows(HITS, [_row(each) for each in hits])
    return Answer(
        _sentence(hit, lost, severity),
        tuple(_headlines(hits)),
        tuple(_blocks(plan, costs, hit)),
        notes=tuple(_notes(known, lost, idle_gpus, transition, cause)),
        record={
            "faulted": hit.job,
            "lost_gpus": lost,
            "jobs": plan.records(),
            "weighted_flops": hit.plan.weighted_flops,
            "action": RECONFIGURE if severity is None else severity[1],
            "severity": None if severity is None else severity[0],
            "cost_hours": hit.cost_hours,
            "expected_cost_hours": _expected(hits),
            "if_hit": costs.records(),
        },
        sheet=plan.sheet(),
    )


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
    Column("cost_hours", "Costs, of all jobs' work (h)", "number"),
    Column("gives", "Who gives up GPUs"),
)


def _or_back(known: Running) -> str:
    """The repair, where it is known."""
    if known.repair_hours is None:
        return ""
    return f", or until a node is back after {numbers.duration(known.repair_hours)},"


def _row(hit: Hit) -> dict[str, object]:
    """What the loss in one job would cost."""
    after = {task.job: size for task, size in zip(hit.plan.tasks, hit.plan.gpus, strict=True)}
    gives = [
        f"{job}: {gpus:,}" if after[job] else f"{job}: stopped" for job, gpus in hit.plan.gives
    ]
    more = f" and {len(gives) - MOST_NAMED} more" if len(gives) > MOST_NAMED else ""
    return {
        "job": hit.job, "chance": hit.chance, "cost_hours": hit.cost_hours,
        "gives": ", ".join(gives[:MOST_NAMED]) + more or "nobody",
    }  # fmt: skip


def _expected(hits: tuple[Hit, ...]) -> float:
    """Mean over which job is hit, by its GPUs."""
    return sum(hit.chance * hit.cost_hours for hit in hits)


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


def _headlines(hits: tuple[Hit, ...]) -> Iterator[Number]:
    mean, worst = _expected(hits), hits[0]
    of = numbers.counted(len(hits), "job")
    yield composed(
        of_recovery.COST_NOW, numbers.duration(mean), f"{of}, each hit by its GPUs",
        exact=mean, unit="h",
    )  # fmt: skip
    yield composed(
        of_recovery.COST_WORST, numbers.duration(worst.cost_hours), f"job {worst.job}",
        exact=worst.cost_hours, unit="h",
    )  # fmt: skip


def _blocks(plan: Rows, costs: Rows, hit: Hit) -> Iterator[Block]:
    changed = replace(
        plan, items=[each for each in plan.items if each["gpus_before"] != each["gpus_after"]]
    )
    yield changed.table(
        "plan", f"What changes if job {hit.job} is hit", empty="Every job keeps its GPUs."
    )
    yield costs.table("if_hit", "What a failure right now would cost")


def _notes(
    known: Running, lost: int, idle: int, transition: float, cause: str | None
) -> Iterator[str]:
    yield from known.said
    yield (
        f"A failure takes {numbers.counted(lost, 'GPU')}; {idle:,} are taken to be idle. A job "
        f"that is hit or changes stands for {numbers.number(transition)} min."
    )
    yield (
        f"Until the next failure at {numbers.number(known.rate_per_1000_node_days)} per 1,000 "
        f"node-days{_or_back(known)} the plan makes most of the weighted "
        "throughput (Unicron's dynamic program)."
    )
    if cause is not None and action(cause) is None:
        yield f"No class of severity is published for {cause}: the plan is that of a lost node."
