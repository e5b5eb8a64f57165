"""How much of a job's time trains, and where does the rest go?"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.efficiency import expected_ettr as expected
from analytics.efficiency.ettr import EttrReport, ettr_report
from analytics.efficiency.goodput import GoodputLedger, goodput_ledger
from data.queries import efficiency as efficiency_queries
from data.queries import fleet as fleet_queries

if TYPE_CHECKING:
    import pandas as pd

    from analytics.efficiency.ettr_settings import EttrSettings
    from analytics.efficiency.expected_ettr import ExpectedEttr
    from data.queries.efficiency import LedgerGroup
    from data.queries.selection import Selection
    from data.store import Store


COUNTED = (
    *("cluster", "run_id", "n_gpus", "n_attempts", "n_interruptions", "n_failures"),
    *("first_start_at", "queued_s", "scheduled_s", "startup_s", "checkpoint_s", "lost_s"),
    *("productive_s", "lower_productive_s", "upper_productive_s", "variance_productive_s2"),
)
"""Columns of runs that an ETTR is computed from."""


def expected_ettr(
    settings: EttrSettings, *, simulations: int = 0, seed: int = 0, conf_level: float = 0.90
) -> ExpectedEttr:
    """What ETTR follows for a job from a failure rate and the costs of a failure?"""
    return expected.expected_ettr(
        settings, simulations=simulations, seed=seed, conf_level=conf_level
    )


def has_ledger(store: Store) -> bool:
    """Is the ledger of these records built?"""
    return efficiency_queries.has_ledger(store)


def ledger(store: Store, selection: Selection, *, conf_level: float = 0.90) -> GoodputLedger:
    """Where did every GPU-hour go?"""
    notes = efficiency_queries.ledger_notes(store)
    rows = efficiency_queries.ledger_rows(store, selection)
    states = fleet_queries.states_recorded(store, selection)
    return goodput_ledger(
        rows,
        prices=efficiency_queries.prices(store),
        notes=notes,
        without_states=[cluster for cluster, recorded in states.items() if not recorded],
        conf_level=conf_level,
    )


def ledger_by(store: Store, selection: Selection, by: LedgerGroup) -> pd.DataFrame:
    """The same by day, partition, account or size: GPU-hours of each bucket."""
    efficiency_queries.ledger_notes(store)
    rows = efficiency_queries.ledger_rows(store, selection, (by,))
    found = rows.groupby([by, "bucket"], dropna=False, sort=True)["gpu_seconds"].sum() / 3600.0
    return found.rename("gpu_hours").reset_index()


def bucket_rows(
    store: Store, selection: Selection, *, bucket: str, limit: int = 10_000
) -> pd.DataFrame:
    """Which days, accounts and sizes stand behind a bucket?"""
    efficiency_queries.ledger_notes(store)
    return efficiency_queries.bucket_rows(store, selection, bucket=bucket, limit=limit)


def lost_attempts(store: Store, selection: Selection, *, limit: int = 10_000) -> pd.DataFrame:
    """Which attempts did infrastructure end, and what did they lose?"""
    return efficiency_queries.lost_attempts(store, selection, limit=limit)


def ettr(
    store: Store, selection: Selection, *, limit: int | None = None, conf_level: float = 0.90
) -> EttrReport:
    """What did the runs get out of their time? `by_run` lists the `limit` with most GPU-time."""
    notes = efficiency_queries.ledger_notes(store)
    columns = ("*",) if limit is None else COUNTED
    runs = efficiency_queries.run_rows(store, selection, columns)
    habits = {"several_nodes": notes["several_nodes"]}
    report = ettr_report(runs, notes=habits, conf_level=conf_level)
    if limit is None:
        return report
    largest = report.by_run.head(limit)
    named = efficiency_queries.runs_named(store, largest)
    kept = ["cluster", "run_id", "ettr", "lower", "upper"]
    return replace(report, by_run=largest[kept].merge(named, on=kept[:2], how="left"))


def run_rows(
    store: Store, selection: Selection, *, limit: int, conf_level: float = 0.90
) -> pd.DataFrame:
    """Each run with its ETTR, most GPU-time first."""
    return ettr(store, selection, conf_level=conf_level).by_run.head(limit)
