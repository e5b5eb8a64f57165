"""Which timelines of a job can be drawn: original, ideal, with a part fixed, as traced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args

from analytics.errors import AnalysisError
from analytics.training.stragglers.fixes import Part
from analytics.training.stragglers.timeline import chrome_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.training.stragglers.what_if import WhatIf

TimelineOf: TypeAlias = Literal["original", "ideal", "fixed", "traced"]
"""Simulated with all own costs, with all ideal ones, with one part ideal; or as traced."""
TIMELINES: Final[tuple[TimelineOf, ...]] = get_args(TimelineOf)


def drawn_timeline(
    model: WhatIf, of: TimelineOf, *, part: str | None = None, steps: Sequence[int] | None = None
) -> str:
    """A timeline of a job as JSON in the Chrome trace format (`timeline.chrome_trace`).

    Parameters
    ----------
    of
        What is drawn. All but `traced` leave out launch delays.
    part
        What is fixed, as `Part.named` reads it; of a fixed timeline alone.
    steps
        Numbers of the steps to draw; None for all.

    Raises
    ------
    AnalysisError
        Where a fixed timeline names no part or another one does, or the trace lacks it or a step.
    """
    if (of == "fixed") != (part is not None):
        raise AnalysisError(
            f"part must be named for a fixed timeline and for no other, got {part!r} for {of}: "
            "name e.g. worker:3,1 to draw it fixed"
        )
    if of == "traced":
        return chrome_trace(model.trace, model.traced_timeline(), title="as traced", steps=steps)
    if part is None:
        return chrome_trace(model.trace, model.timeline(of == "original"), title=of, steps=steps)
    named = Part.named(part)
    timeline = model.timeline(~named.operations(model))
    return chrome_trace(model.trace, timeline, title=f"{named.words} fixed", steps=steps)
