"""Coverage by source and day: the figure in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import coverage_note, figure_block, notice
from app.figures import numbers
from app.figures.fleet import coverage

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Coverage


def show(held: Coverage, scope: Scope) -> None:
    """The figure, and the rows that have no time and so count nowhere."""
    if held.days.empty:
        st.markdown("No source has a record in this selection: choose a longer period.")
        return
    from_at, to_at = coverage_note.span(held, scope)
    figure = coverage.figure(
        held.days,
        missing=held.missing,
        from_at=from_at,
        to_at=to_at,
        mode=scope.mode,
        note=scope.note,
    )
    figure_block.show(figure, held.days, name="coverage", scope=scope)
    notice.notes(
        [
            f"{numbers.counted(int(row['n_rows']), 'row')} of {row['source']} ({row['cluster']}) "
            "without a time count nowhere."
            for row in held.undated.to_dict("records")
        ]
    )
