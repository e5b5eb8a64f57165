"""What did one run get out of its time, attempt by attempt?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.efficiency import expected_curve as expected
from analytics.efficiency.ettr_over_time import WINDOW_S, EttrOverTime, ettr_over_time
from analytics.efficiency.habits import Habits, recorded_habits
from analytics.efficiency.ledger_notes import habit_sentences
from analytics.efficiency.run_attempts import run_attempts
from analytics.efficiency.run_attempts import run_ettr as ettr_of
from analytics.efficiency.training_log import attempt_progress
from data.errors import DataError
from data.queries import efficiency as efficiency_queries
from data.queries import runs as run_queries

if TYPE_CHECKING:
    import pandas as pd

    from analytics.efficiency.ettr import EttrReport
    from analytics.efficiency.expected_curve import ExpectedCurve
    from analytics.estimate import Estimate
    from analytics.reliability.mttf import MttfReport
    from data.store import Store


CURVE_POINTS = 60
"""Sizes at which the expected ETTR is drawn."""
BEYOND = 4.0
"""How far beyond the largest run, as a factor."""


@dataclass(frozen=True)
class RunEttr:
    """What one run got out of its time."""

    cluster: str
    run_id: str
    ettr: Estimate
    """n = interruptions."""
    attempts: pd.DataFrame
    """One row an attempt, oldest first: what the scheduler recorded, the seconds of each part,
    verdict and incident."""
    over_time: EttrOverTime
    notes: tuple[str, ...]
    """What the parts take for granted."""

    @property
    def n_gpus(self) -> int:
        """The most that an attempt held."""
        return int(self.attempts["n_gpus"].max())


def run_ettr(
    store: Store,
    run_id: str,
    *,
    cluster: str | None = None,
    window_s: float = WINDOW_S,
    conf_level: float = 0.90,
) -> RunEttr:
    """What did this run get out of its time, up to each moment and in each window?

    Raises
    ------
    DataError
        Where no cluster has such a run, several have, or no attempt of it ran with GPUs.
    LedgerMissingError
        Where the ledger, which joins attempts to runs, is not built.
    """
    notes = efficiency_queries.ledger_notes(store)
    name = _cluster_of(store, run_id, cluster)
    found = run_queries.attempts_of(store, name, run_id)
    steps = run_queries.metrics_of(store, name, run_id)
    attempts = run_attempts(
        found,
        notes=notes,
        progress=attempt_progress(steps, found[found["start_at"].notna()].assign(run_id=run_id)),
    )
    if not attempts["ran_s"].any():
        raise DataError(
            f"run {run_id}: no attempt of it ran with GPUs, so it has no ETTR: "
            "`faultline ettr` lists those that have"
        )
    over_time = ettr_over_time(attempts, window_s=window_s)
    estimate = ettr_of(attempts, conf_level=conf_level)
    held = {
        habits: notes[habits]
        for habits, several in (("several_nodes", True), ("one_node", False))
        if attempts["several"].eq(several).any()
    }
    return RunEttr(name, run_id, estimate, attempts, over_time, habit_sentences(held))


def habits(store: Store) -> Habits:
    """How do jobs on several nodes start up and save, as the ledger takes it?"""
    return recorded_habits(efficiency_queries.ledger_notes(store)["several_nodes"])


def expected_curve(runs: EttrReport, failures: MttfReport, habits: Habits) -> ExpectedCurve | None:
    """What ETTR is to be expected of runs like these, by size, at the measured failure rate?

    A run of the curve waits and trains as long as the median one did. None without runs, without
    work that one got done, or where the failure rate is not known.
    """
    wait, hours = runs.wait_hours.value, runs.productive_hours
    if wait is None or not hours:
        return None
    least, most = runs.gpus
    return expected.expected_curve(
        failures.rate.rate_per_1000_node_days,
        habit=habits.central,
        queue_hours=wait,
        run_hours=hours,
        gpus=np.geomspace(least, most * BEYOND, CURVE_POINTS).tolist(),
        gpus_per_node=failures.gpus_per_node,
    )


def _cluster_of(store: Store, run_id: str, cluster: str | None) -> str:
    """The cluster of a run; refuses one that is not there, or that several clusters have."""
    found = run_queries.clusters_of(store, run_id)
    if cluster is None and len(found) > 1:
        raise DataError(f"run {run_id!r} is in {', '.join(found)}: choose one cluster")
    if found and (cluster is None or cluster in found):
        return cluster or found[0]
    near = [run for _, run in run_queries.run_of_job(store, run_id)]
    remedy = f"job {run_id} is part of run {near[0]}" if near else "`faultline ettr` lists runs"
    raise DataError(f"run {run_id!r} is not in the store: {remedy}")
