"""The one faulty machine of a job by its metrics, or none (Minder, arXiv 2411.01791)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import AnalysisError
from analytics.nodes.machines.asked import Asked, Doubts, Nearest, asked_metrics
from analytics.nodes.machines.samples import silent_machine
from analytics.nodes.machines.views import WINDOW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.nodes.machines.asked import Run
    from analytics.nodes.machines.samples import Array, Samples
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


MOST_MACHINES, MOST_TIMES = 40, 180


@dataclass(frozen=True)
class HeatMap:
    """One metric by machine and time."""

    metric: str
    machines: tuple[str, ...]
    """The one that was found, or came nearest, first; then by distance from the median."""
    n_machines: int
    """How many there are in all."""
    at: Array
    """(times) Seconds since 1970 at which each cell begins."""
    values: Array
    """(machines, times) Mean of the samples in a cell; NaN where there is none."""
    faulty: bool
    """Whether the first machine is faulty."""
    since_at: float | None


def heat_map(samples: Samples, found: Detection) -> HeatMap:
    """The picture of a verdict: the deciding metric, or that in which a machine came nearest."""
    nearest = found.nearest[0] if found.nearest else None
    metric = found.metric if found.metric not in (None, SILENCE) else None
    metric = metric or (nearest.metric if nearest else next(iter(samples.values)))
    machine = found.machine or (nearest.machine if nearest else samples.machines[0])
    values = samples.values[metric]
    size = -(-len(values) // MOST_TIMES)
    begins = np.arange(0, len(values), size)
    known = np.isfinite(values)
    total = np.add.reduceat(np.where(known, values, 0.0), begins, axis=0)
    count = np.add.reduceat(known, begins, axis=0, dtype=np.int64)
    cells = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    middle = [np.median(row[np.isfinite(row)]) if np.isfinite(row).any() else 0.0 for row in cells]
    apart = np.nan_to_num(np.abs(cells - np.array(middle)[:, None])).mean(axis=0)
    first = samples.machines.index(machine)
    apart[first] = np.inf
    shown = np.argsort(-apart, kind="stable")[:MOST_MACHINES]
    return HeatMap(
        metric,
        tuple(samples.machines[k] for k in shown),
        len(samples.machines),
        samples.start_at + begins * samples.step_seconds,
        cells[:, shown].T,
        found.machine is not None,
        found.since_at,
    )
