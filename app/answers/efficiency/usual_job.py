"""The job that a plan is for until a reader states another: like the largest run of a selection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.efficiency.best_interval import write_of
from analytics.efficiency.expected_ettr import EttrSettings
from analytics.efficiency.habits import habit_sentences
from analytics.estimate import CONF_LEVEL
from analytics.frames import GPUS_PER_NODE
from analytics.reliability.comparisons import RSC1_RATE
from app.answers.efficiency.ettr import habits, measured
from app.answers.reliability import mttf
from app.ask import FEW
from data.filters import MTTF_MIN_GPUS
from data.queries import efficiency

if TYPE_CHECKING:
    from analytics.estimate import Estimate
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

GPUS = 16_384
"""Size of a job where no run is known."""


def failure_rate(ask: Ask, selection: Selection) -> Estimate:
    """Failures of infrastructure per 1,000 node-days of a selection, with its interval."""
    return ask(mttf.measured, selection).rate.rate_per_1000_node_days


def job_like_runs(ask: Ask, selection: Selection) -> EttrSettings:
    """A job as large as the largest run, with the failure rate and the habits measured; it waits as
    large runs do.

    Where no failure was seen the rate is its upper bound; where it is unknown, RSC-1's.
    """
    large = replace(selection, min_gpus=max(selection.min_gpus, MTTF_MIN_GPUS))
    report, known = ask(measured, large, limit=FEW), ask(habits)
    if not report.n_runs:
        report = ask(measured, selection, limit=FEW)
    rate, habit = failure_rate(ask, selection), known.central
    gpus = int(report.gpus[1] or GPUS)
    return EttrSettings(
        gpus=float(gpus),
        rate_per_1000_node_days=rate.value or rate.upper or RSC1_RATE,
        restart_min=habit.restart_s / 60,
        gpus_per_node=ask(mttf.measured, selection).gpus_per_node or GPUS_PER_NODE,
        write_min=write_of(known, gpus, CONF_LEVEL).value or 0.0,
        interval_min=habit.interval_s / 60,
        queue_min=(report.mean_wait_hours.value or 0.0) * 60,
    )


def assumptions(ask: Ask, selection: Selection) -> tuple[str, ...]:
    """What `job_like_runs` takes for want of records, and how jobs are taken to save and start."""
    said = ask(_habits_told)
    per_node, runs = (
        ask(mttf.measured, selection).gpus_per_node,
        ask(measured, selection, limit=FEW),
    )
    if not runs.n_runs:
        said = (
            f"No run of this selection is known: a job of {GPUS:,} GPUs without a wait is taken.",
            *said,
        )
    elif not ask(waits_known, selection):
        said = ("How long jobs wait is not known: no wait is taken.", *said)
    if per_node is None:
        said = (f"GPUs of a node are not known: {GPUS_PER_NODE:g} are taken.", *said)
    return said


def waits_known(store: Store, selection: Selection) -> bool:
    """Whether it is known how long runs of a selection wait."""
    return measured(store, selection, limit=FEW).mean_wait_hours.value is not None


def _habits_told(store: Store) -> tuple[str, ...]:
    """How jobs on several nodes are taken to save and start up, and what that rests on."""
    notes = efficiency.ledger_notes(store)
    return habit_sentences({"several_nodes": notes["several_nodes"]})
