"""Which failures does a rate count, and which attempts stand behind a size class?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.answers.columns import columns
from app.answers.content import Table
from app.ask import EVERYTHING
from data.queries import reliability

if TYPE_CHECKING:
    from app.ask import Ask
    from data.filters import Selection

FAILURES = columns(
    "failed_at", "job_id", "attempt", "state", "cause", "domain", "node", "n_gpus", "n_nodes",
    "confidence", "method", "evidence", "partition", "user", "account", "cluster", "subcause",
    "repair_minutes", "text", hidden=("attempt_key",),
)  # fmt: skip
ATTEMPTS = columns(
    "job_id", "attempt", "state", "failed", "n_gpus", "n_nodes", "running_hours", "start_at",
    "end_at", "partition", "user", "account", "cluster", hidden=("attempt_key",),
)  # fmt: skip


def failures(ask: Ask, selection: Selection, *, limit: int = EVERYTHING) -> Table:
    """The failed attempts, or failures of nodes, that a rate counts; the newest first."""
    rows = ask(reliability.failure_rows, selection, limit=limit)
    return Table("failures", "Failures behind the number", FAILURES, rows, "No failure counts.")


def attempts(
    ask: Ask, selection: Selection, gpus_from: int, gpus_to: int, *, limit: int = EVERYTHING
) -> Table:
    """The attempts of a class of sizes, the longest first."""
    rows = ask(reliability.attempt_rows, selection, gpus=(gpus_from, gpus_to), limit=limit)
    return Table("attempts", "Attempts behind the number", ATTEMPTS, rows, "No attempt ran.")
