"""What in a trace contradicts itself, and what was done about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from app.words import numbers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.training.stragglers.analysis import StragglerAnalysis

MOST_NAMED: Final = 3
"""Workers that are named."""
LEAST_LAUNCH: Final = 0.995
"""Launch slowdown below which operations ran before what they wait for had ended."""
LONGEST_STEP_S: Final = 120.0
"""Mean step time from which on milliseconds in place of seconds are likelier."""


def doubts(analysis: StragglerAnalysis) -> Iterator[str]:
    """Clocks that were set right, steps shorter than their operations, times in another unit."""
    offsets = analysis.clock_offsets
    for one in offsets[:MOST_NAMED]:
        label = "" if one.rank is None else f" (rank {one.rank})"
        side = "ahead of" if one.offset_ms > 0 else "behind"
        drift = f", drifting by {numbers.number(one.drift_ms)} ms," if one.drift_ms else ""
        yield (
            f"The clock of dp rank {one.dp_rank}, stage {one.stage}{label} was "
            f"{numbers.number(abs(one.offset_ms))} ms {side} the others{drift} and was set right: "
            "transfers end on all their members at once."
        )
    if len(offsets) > MOST_NAMED:
        yield f"{numbers.counted(len(offsets) - MOST_NAMED, 'more clock')} set right."
    slow = analysis.slowdowns
    if slow.launch_slowdown < LEAST_LAUNCH:
        yield (
            f"The traced step is {numbers.percent(1.0 - slow.launch_slowdown)} shorter than its "
            f"operations take one after the other (launch slowdown {slow.launch_slowdown:.3f}, "
            "below 1): some ran before what they wait for had ended. Clocks that differ, or "
            "starts and durations that do not belong together, make it so."
        )
    step = float(slow.traced_seconds.mean())
    if step > LONGEST_STEP_S:
        yield (
            f"A traced step takes {numbers.number(step)} s on average. Times must be seconds: "
            "where the trace has milli- or microseconds, divide them, and analyse it again."
        )
