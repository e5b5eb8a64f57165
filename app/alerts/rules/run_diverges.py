"""A training run diverges, is NaN, or has lost its loss scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.alerts.rule import Found, Rule
from app.alerts.runs import looked_at

if TYPE_CHECKING:
    from app.alerts.rule import Watch
    from app.ask import Ask

BLIND = "cannot be judged: no step of a training run is stored"
NOTHING_LOGGED = "cannot be judged: no run logs its loss or its gradient norm often enough"


def find(ask: Ask, watch: Watch) -> Found:
    """Times in which one of the runs that logged last was beyond recovering by itself."""
    seen = looked_at(ask, watch)
    if not seen:
        return Found(blind=BLIND)
    from app.alerts.judging import run_diverges  # here: many clusters log no run

    return run_diverges.found(ask, watch, seen) or Found(blind=NOTHING_LOGGED)


RULE = Rule(
    "run_diverges",
    "Run diverges",
    "The loss or the gradient norm of a training run rose and did not come back, is NaN, or its "
    "loss scale collapsed: what it computes since is lost.",
    "Set the run back to the checkpoint that its page advises, and skip the data of those steps.",
    "critical",
    find,
    told="owner",
)
