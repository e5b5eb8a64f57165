"""Sources that stopped or were never read, and runs that straggle."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from analytics.fleet.silent_sources import silent_sources
from analytics.training.stragglers.slowdown import STRAGGLING
from app.answers.failures import verdicts
from app.answers.fleet import coverage, names
from app.answers.fleet.actions.action import Action, recorded, target
from app.answers.fleet.collected import STALE_HOURS
from app.answers.training import fleet
from app.words import numbers
from data.filters import Selection
from data.queries import collected

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from app.ask import Ask

NOT_KNOWN = "not known: nobody sees what it hides"
HIDDEN = {
    "health_events.kernel": ("kernel logs", "which failures are of GPUs, links and hosts"),
    "health_events.health_check": ("health checks", "which nodes failed one"),
    "job_logs": ("logs of jobs", "why attempts failed that no node explains"),
    "node_events": ("events of nodes", "which nodes are out of service, and for how long"),
    "training_metrics": (
        "training metrics",
        "checkpoints and lost work, which are assumed",
    ),
}
"""Sources that any cluster with jobs can have: what they are, and what is hidden without them."""
EXPLAINS = ("health_events.kernel", "health_events.health_check", "job_logs")
"""Of them, those that say why attempts failed."""


def of_sources(ask: Ask, selection: Selection, now: datetime) -> Iterator[Action]:
    """Sources that stopped, cannot be collected, or were never read."""
    whole = Selection(selection.cluster)
    known = ask(coverage.held, whole)
    yield from _not_collected(ask, whole, now)
    for row in silent_sources(known).to_dict("records"):
        name, hides = HIDDEN.get(row["source"], (row["source"], "all that it would show since"))
        yield _source(
            (row["cluster"], row["source"]),
            what=f"No {name} since {numbers.day(row['last_day'])}",
            why=f"{row['cluster']}: other sources go on for "
            f"{numbers.counted(int(row['days_silent']), 'day')}; hidden: {hides}",
            hides=(1, row["days_silent"]),
        )
    if "jobs" not in known.with_records:
        return
    counts = ask(verdicts.summarised, selection)
    unexplained = counts.counted.unexplained
    homeless = {records.table for records in ask(names.without_cluster)}
    for source, (name, hides) in HIDDEN.items():
        if source not in (*known.with_records, *known.silent):
            of_cluster = " of a known cluster" if source.partition(".")[0] in homeless else ""
            many = numbers.counted(unexplained, "unexplained failure")
            failures = f" ({many})" if source in EXPLAINS and unexplained else ""
            yield _source(
                ("", source),
                what=f"No {name}{of_cluster} were ever read",
                why=f"hidden: {hides}{failures}",
                hides=(0, unexplained if source in EXPLAINS else 0.0),
            )


def _not_collected(ask: Ask, whole: Selection, now: datetime) -> Iterator[Action]:
    """Sources of `faultline collect` of which nothing new comes."""
    for row in ask(collected.until, whole).to_dict("records"):
        until = row["collected_until"]
        hours = None if pd.isna(until) else (now - until).total_seconds() / 3600.0
        failed = isinstance(row["error"], str)
        if failed or hours is None or hours >= STALE_HOURS:
            last = (
                "never collected"
                if hours is None
                else f"last collected {numbers.duration(hours)} ago"
            )
            yield _source(
                (row["cluster"], row["source"], "collect"),
                what=f"{row['source']} of {row['cluster']} was {last}",
                why=f"the last attempt failed: {row['error']}" if failed
                else "does `faultline collect` still run?",
                hides=(2, hours or 0.0),
            )  # fmt: skip


def _source(parts: tuple[str, ...], *, what: str, why: str, hides: tuple[int, float]) -> Action:
    """A row of no stake that anybody knows."""
    return Action("source", target("source", *parts), what, why, None, NOT_KNOWN, "data",
                  hides=hides)  # fmt: skip


def of_stragglers(ask: Ask, selection: Selection) -> Iterator[Action]:
    """Traced runs that straggle, each job by its newest trace."""
    traces = ask(fleet.traces, selection)
    seen: set[tuple[str, str]] = set()
    for row in traces[traces["slowdown"] > STRAGGLING].to_dict("records"):
        job = None if pd.isna(row["job_id"]) else (str(row["cluster"]), str(row["job_id"]))
        if job in seen:
            continue
        if job is not None:
            seen.add(job)
        gpus, ratio = row["n_gpus"], row["wasted_ratio"]
        stake = None
        if not (pd.isna(gpus) or pd.isna(ratio)):
            stake = recorded(24.0 * float(ratio) * float(gpus), int(row["n_steps"]))
        what = f"Job {job[1]}" if job else f"Trace {row['name']}"
        yield Action(
            "straggler",
            target("straggler", *(job or ("", str(row["trace_id"])))),
            what=f"{what} straggles: {str(row['strongest_cause']).lower()}",
            why=f"its steps take {numbers.number(row['slowdown'])} times the ideal "
            f"({numbers.gpu_count(gpus)})",
            stake=stake,
            stake_basis="a day that it trains" if stake else "no meta file states its GPUs",
            page="stragglers",
            named={"trace": str(row["trace"])},
        )
