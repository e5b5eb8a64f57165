"""What makes a machine faulty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.nodes.machines.denoiser import WINDOW

if TYPE_CHECKING:
    from analytics.nodes.machines.views import View


@dataclass(frozen=True)
class Settings:
    """What makes a machine faulty."""

    change_threshold: float = 4.0
    """Score above which a machine counts that moved away from the others."""
    minute_threshold: float = 5.0
    """The same of its mean of a minute."""
    level_threshold: float = 10.0
    """The same where it was elsewhere all the time, as a machine of another kind is, too."""
    apart_ratio: float = 0.2
    """How far the next machine must be behind, as a share of the distance: a fault makes one
    machine unlike all others, a kind of machines is a group."""
    continuity_seconds: float = 240.0
    """How long it must last; Minder's."""
    gap_seconds: float = 45.0
    """How long it may be unseen in between."""
    baseline_seconds: float = 150.0
    """From how much of the beginning it is told where a machine was: more than twice a blip."""
    least_ratio: float = 0.005
    """Least spread, as a share of the metric's level."""
    order: tuple[str, ...] = ()
    """Metrics in the order in which they are asked; Minder's where none is given."""

    def lasting(self, step_seconds: float) -> float:
        """Seconds that a fault must be seen, of samples so far apart.

        All windows of eight samples that hold some of a blip show it: the longer the window, the
        longer a fault must be seen.
        """
        return self.continuity_seconds + (WINDOW - 1) * max(0.0, step_seconds - 1.0)

    def threshold(self, view: View) -> float:
        """Score above which a machine counts."""
        thresholds = {
            "change": self.change_threshold,
            "minute": self.minute_threshold,
            "level": self.level_threshold,
        }
        return thresholds[view]
