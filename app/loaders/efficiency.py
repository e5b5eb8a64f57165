"""How much of a job's time trains, and where the rest goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import questions
from app.loaders import cached

if TYPE_CHECKING:
    import pandas as pd

    from analytics.efficiency.ettr import EttrReport
    from analytics.efficiency.ettr_settings import EttrSettings
    from analytics.efficiency.expected_curve import ExpectedCurve
    from analytics.efficiency.expected_ettr import ExpectedEttr
    from analytics.efficiency.goodput import GoodputLedger
    from analytics.efficiency.habits import Habits
    from analytics.reliability.mttf import MttfReport
    from data.queries.efficiency import LedgerGroup
    from data.queries.selection import Selection


def has_ledger() -> bool:
    """Whether the ledger of the present records is built; never cached: site.toml may change."""
    return cached.fresh(questions.has_ledger)


def ledger(selection: Selection) -> GoodputLedger:
    """Where every GPU-hour went."""
    return cached.answer(questions.ledger, selection)


def ledger_by(selection: Selection, by: LedgerGroup) -> pd.DataFrame:
    """GPU-hours of each bucket by day, partition, account or size."""
    return cached.answer(questions.ledger_by, selection, by)


def bucket_rows(selection: Selection, *, bucket: str, limit: int) -> pd.DataFrame:
    """The rows behind a bucket."""
    return cached.rows(questions.bucket_rows, selection, bucket=bucket, limit=limit)


def lost_attempts(selection: Selection, limit: int) -> pd.DataFrame:
    """Attempts that infrastructure ended."""
    return cached.rows(questions.lost_attempts, selection, limit=limit)


def ettr(selection: Selection) -> EttrReport:
    """What runs got out of their time; those with most GPU-time are listed."""
    return cached.answer(questions.ettr, selection, limit=cached.ROWS_KEPT)


def run_rows(selection: Selection, limit: int) -> pd.DataFrame:
    """Runs with their ETTR, most GPU-time first."""
    return cached.rows(questions.run_rows, selection, limit=limit)


def run_ettr(run_id: str, cluster: str | None) -> questions.RunEttr:
    """What one run got out of its time."""
    return cached.answer(questions.run_ettr, run_id, cluster=cluster)


def habits() -> Habits:
    """How jobs on several nodes start up and save."""
    return cached.answer(questions.habits)


def expected_curve(runs: EttrReport, failures: MttfReport, habits: Habits) -> ExpectedCurve | None:
    """What ETTR is to be expected of runs like these, by size; needs no store."""
    return questions.expected_curve(runs, failures, habits)


def expected_ettr(settings: EttrSettings) -> ExpectedEttr:
    """What ETTR follows from a failure rate and the costs of a failure; needs no store."""
    return questions.expected_ettr(settings)
