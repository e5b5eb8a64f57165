"""A rank of a run may compute wrongly, by what ranks logged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.alerts.rule import Found, Rule
from app.alerts.runs import looked_at

if TYPE_CHECKING:
    from app.alerts.rule import Watch
    from app.ask import Ask

BLIND = "cannot be judged: no run logs a checksum, a loss or a gradient norm of each rank"


def find(ask: Ask, watch: Watch) -> Found:
    """Suspects of the runs that logged last."""
    of_ranks = [run for run in looked_at(ask, watch) if run.n_ranks > 1]
    if not of_ranks:
        return Found(blind=BLIND)
    from app.alerts.judging import corruption_suspect  # here: it takes .3 s, and few log ranks

    return corruption_suspect.found(ask, watch, of_ranks) or Found(blind=BLIND)


RULE = Rule(
    "corruption_suspect",
    "Corruption suspect",
    "A rank of a training run logged what sound hardware does not: its GPU may compute wrongly.",
    "Test the GPU of that rank, and go back to a checkpoint from before that step.",
    "critical",
    find,
    told="owner",
    weight=1.0,
)
