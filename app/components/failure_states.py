"""How attempts end: the figure of states and its table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.components import figure_block, table
from app.figures.failures import states

if TYPE_CHECKING:
    from analytics.failures.summary import FailureSummary
    from app.components.scope import Scope


def show(summary: FailureSummary, scope: Scope) -> None:
    """States by count and by GPU-time, side by side."""
    frame = states.frame(summary.by_state)
    figure = states.figure(summary.by_state, mode=scope.mode, note=scope.note)
    figure_block.show(figure, frame, name="states", scope=scope)
    table.show(frame, name="states_table", scope=scope)
