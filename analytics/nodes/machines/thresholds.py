"""The threshold that a site's own healthy machines stay below."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import AnalysisError
from analytics.nodes.machines.detection import SURELY_APART, Settings, detect

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.nodes.machines.samples import Samples

HEALTHY_RATIO = 0.995
"""Share of healthy pulls that must stay below a threshold."""
ENOUGH = 200
"""Healthy pulls from which on the threshold may be lower than the shipped one: of fewer, that share
is not known."""
LEAST_THRESHOLD = 2.0


def calibrated(healthy: Sequence[Samples], settings: Settings | None = None) -> Settings:
    """The threshold that healthy pulls stay below.

    Of each pull the largest score of a machine is taken; the threshold is the `HEALTHY_RATIO`
    quantile over pulls, which with few is their largest. Fewer than `ENOUGH` pulls only raise it.

    Raises
    ------
    AnalysisError
        Where no pull is given.
    """
    settings = settings or Settings()
    if not healthy:
        raise AnalysisError(
            "the threshold needs healthy samples, got none: name files of a healthy job"
        )
    largest = [
        max((near.score for near in detect(pull, settings).nearest), default=0.0)
        for pull in healthy
    ]
    reached = float(np.quantile(largest, HEALTHY_RATIO, method="higher")) / SURELY_APART[1]
    least = LEAST_THRESHOLD if len(healthy) >= ENOUGH else settings.threshold
    return replace(settings, threshold=max(least, round(reached, 3)))
