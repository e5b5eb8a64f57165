"""How far can each check be trusted: how often does it fire around the end of successful jobs?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from analytics.failures import calibration
from app.answers.content import Answer, Missing, Table
from app.words import numbers, terms
from app.words.cells import Column
from data.queries import failures as failure_queries

if TYPE_CHECKING:
    from analytics.failures.calibration import CheckTrust
    from app.ask import Ask
    from data.filters import Selection
    from data.store import Store

COLUMNS = (
    Column("signal", "Check or code"),
    Column("severity", "Severity"),
    Column("percent_of_completed_attempts", "Of completed attempts (%)", "number",
           none="none completed"),
    Column("over_1_percent", "Over 1 %", "flag"),
    Column("percent_of_failed_nodes", "Of failed nodes (%)", "number", none="none failed"),
    Column("causal_ratio", terms.CAUSAL_RATIO.label, "ratio", help=terms.CAUSAL_RATIO.definition),
    Column("discounted", "Discounted", "flag", help="Counts as evidence by its causal ratio."),
    Column("n_completed_attempts_hit", "Completed attempts hit", "count"),
    Column("n_completed_attempts", "Completed attempts", "count"),
    Column("n_failed_hits", "Failed nodes hit", "count"),
    Column("n_failed", "Failed nodes", "count"),
    Column("cluster", "Cluster"),
)  # fmt: skip
NO_CHECKS = Missing(
    "checks",
    "No health check or kernel event is known.",
    "Without events every verdict rests on the scheduler and on logs alone. Kernel logs "
    "and health checks say more:",
    (
        "journalctl -k -o short-iso-precise > kernel-$(hostname).log",
        "faultline ingest kernel-log kernel-*.log --cluster NAME",
        "faultline ingest gcm-health health.jsonl --cluster NAME",
    ),
)


def trust(store: Store, selection: Selection) -> CheckTrust:
    """Hits of each check around failures and successes."""
    return calibration.check_trust(failure_queries.check_calibration(store, selection))


def answer(ask: Ask, selection: Selection) -> Answer:
    """How far can each check be trusted?"""
    trusted = ask(trust, selection)
    if trusted.checks.empty:
        return Answer("", blocks=(NO_CHECKS,))
    over, discounted = trusted.n_over, trusted.n_discounted
    note = (
        "Whole store as of the last publish, whatever the period. The paper asks that under 1 % of "
        "completed jobs see a failed check (Kokolis et al., arXiv 2410.21680). "
        f"{terms.CAUSAL_RATIO.label}: {terms.CAUSAL_RATIO.definition}"
    )
    return Answer(
        f"{numbers.counted(over, 'check')} of {len(trusted.checks):,} "
        f"{'fires' if over == 1 else 'fire'} around the end of more than 1 % of completed "
        f"attempts; {discounted:,} {'is' if discounted == 1 else 'are'} discounted as evidence.",
        blocks=(Table("check_calibration", "Checks", COLUMNS, trusted.checks),),
        notes=(note,),
    )
