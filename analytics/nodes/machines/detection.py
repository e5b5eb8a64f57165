"""The one faulty machine of a job by its metrics, or none (Minder, arXiv 2411.01791)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import AnalysisError
from analytics.nodes.machines.asked import Asked, Doubts, Nearest, asked_metrics
from analytics.nodes.machines.denoiser import WINDOW
from analytics.nodes.machines.sensors import silent_machine
from analytics.nodes.machines.settings import Settings

if TYPE_CHECKING:
    from analytics.nodes.machines.continuity import Run
    from analytics.nodes.machines.samples import Array, Samples
    from analytics.nodes.machines.views import View

SILENCE = "all metrics"
"""The metric of a machine that says nothing more."""
MOST_STEP_SECONDS = 30.0


@dataclass(frozen=True)
class Detection:
    """The faulty machine, or none."""

    machine: str | None = None
    metric: str | None = None
    """The metric that decided."""
    since_at: float | None = None
    """Since when, seconds since 1970."""
    since_start: bool = False
    """Whether it was so from the first sample on: then it began no later."""
    nearest: tuple[Nearest, ...] = ()
    """What would have changed the verdict, nearest first: one a metric and view that was asked."""
    dead_sensors: tuple[tuple[str, str], ...] = ()
    """(machine, metric) of sensors that were not believed."""
    left_out: tuple[tuple[str, str], ...] = ()
    """(machine, metric) of which half of the samples are missing."""


def detect(samples: Samples, settings: Settings | None = None) -> Detection:
    """Which machine is faulty, by which metric, and since when?

    Metrics are asked in their order, each first by how far machines moved away from where they
    began, then by where they are; the first machine that stays unlike all others is the verdict.

    Raises
    ------
    AnalysisError
        Where the samples cover less than the time that a fault must last, or are too far apart.
    """
    settings = settings or Settings()
    lasting = settings.lasting(samples.step_seconds)
    n_needed = samples.steps(lasting)
    _refuse_coarse(samples)
    _refuse_short(samples, n_needed)
    doubts = Doubts.of_samples(samples, settings)
    base = Detection(
        dead_sensors=_named(samples, doubts.dead), left_out=_named(samples, doubts.missing)
    )
    gone = silent_machine(samples, n_needed)
    if gone is not None:
        machine, first = gone
        since_at = samples.start_at + first * samples.step_seconds
        return replace(base, machine=samples.machines[machine], metric=SILENCE, since_at=since_at)
    nearest: list[Nearest] = []
    for asked in asked_metrics(samples, settings, doubts):
        for view in asked.views:
            run = asked.run(view, lasting)
            if run is not None:
                return _verdict(base, asked, view, run)
        nearest += asked.nearest()
    nearest.sort(key=lambda each: -each.score / each.threshold)
    return replace(base, nearest=tuple(nearest))


def _verdict(base: Detection, asked: Asked, view: View, run: Run) -> Detection:
    """The machine of a run, which lasted long enough."""
    samples = asked.samples
    first = asked.since(view, run)
    # A window is unlike the others once about half of its samples are.
    late = WINDOW // 2 if first else 0
    rests_on = asked.nearest_in(view)
    return replace(
        base,
        machine=asked.names[run.machine],
        metric=asked.metric,
        since_at=samples.start_at + (first + late) * samples.step_seconds,
        since_start=first == 0,
        nearest=(rests_on,),
    )


def _refuse_coarse(samples: Samples) -> None:
    """Refuses samples too far apart to tell a fault from a blip."""
    if samples.step_seconds > MOST_STEP_SECONDS:
        raise AnalysisError(
            f"samples are {samples.step_seconds:g} s apart: a fault of minutes shows in samples at "
            f"most {MOST_STEP_SECONDS:g} s apart, best 1 s"
        )


def _refuse_short(samples: Samples, n_needed: int) -> None:
    """Refuses samples of less time than a fault must last."""
    least = n_needed + WINDOW - 1
    if samples.n_samples < least:
        raise AnalysisError(
            f"samples cover {samples.n_samples * samples.step_seconds:g} s, less than the "
            f"{least * samples.step_seconds:g} s that a fault must show: pass a longer time"
        )


def _named(samples: Samples, which: dict[str, Array]) -> tuple[tuple[str, str], ...]:
    """(machine, metric) of what is marked."""
    return tuple(
        (samples.machines[k], metric)
        for metric, marked in which.items()
        for k in np.flatnonzero(marked)
    )
