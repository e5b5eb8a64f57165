"""Samples of any length, judged as a watch would have: every 8 minutes the last 15."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.nodes.machines.detection import Detection, detect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.nodes.machines.samples import Samples
    from analytics.nodes.machines.settings import Settings

PULL_SECONDS, EVERY_SECONDS = 900.0, 480.0
"""Minder's."""
LEAST_SAMPLES = 60
"""Of a pull, where samples are far apart."""


def pulls(samples: Samples) -> Iterator[Samples]:
    """The pulls of a watch, oldest first; the last one ends with the samples."""
    length = max(LEAST_SAMPLES, samples.steps(PULL_SECONDS))
    every = samples.steps(EVERY_SECONDS)
    last = max(0, samples.n_samples - length)
    for first in [*range(0, last, every), last]:
        values = {metric: array[first : first + length] for metric, array in samples.values.items()}
        start_at = samples.start_at + first * samples.step_seconds
        yield replace(samples, start_at=start_at, values=values)


def watched(samples: Samples, settings: Settings | None = None) -> tuple[Samples, Detection]:
    """The first pull that shows a faulty machine, else the last one, and what it shows.

    Raises
    ------
    AnalysisError
        Where the samples cover less than the time that a fault must last.
    """
    for pull in pulls(samples):
        found = detect(pull, settings)
        if found.machine is not None:
            break
    return pull, found
