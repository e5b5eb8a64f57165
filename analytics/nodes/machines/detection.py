"""The one faulty machine of a job by its metrics, or none (Minder, arXiv 2411.01791)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import AnalysisError
from analytics.nodes.machines.continuity import Run, longest_run, onset, sustained_score
from analytics.nodes.machines.denoiser import WINDOW
from analytics.nodes.machines.priority import in_order
from analytics.nodes.machines.samples import LEAST_MACHINES, Samples, filled, mostly_missing
from analytics.nodes.machines.sensors import dead_sensors, silent_machine
from analytics.nodes.machines.views import Compared, View, compared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.nodes.machines.samples import Array

SILENCE = "all metrics"
"""The metric of a machine that says nothing more."""


@dataclass(frozen=True)
class Settings:
    """What makes a machine faulty."""

    change_threshold: float = 4.0
    """Score above which a machine counts that moved away from the others."""
    level_threshold: float = 7.0
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

    def threshold(self, view: View) -> float:
        """Score above which a machine counts."""
        return self.level_threshold if view == "level" else self.change_threshold


@dataclass(frozen=True)
class Nearest:
    """The machine that came nearest to a verdict in a metric, or on which the verdict rests."""

    machine: str
    metric: str
    view: View
    score: float
    """The highest threshold at which it is the farthest for long enough."""
    threshold: float
    """The threshold that was asked."""
    seconds: float
    """How long it was the farthest beyond that threshold, at most."""


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

    Raises
    ------
    AnalysisError
        Where the samples cover less than the time that a fault must last.
    """
    settings = settings or Settings()
    n_needed = samples.steps(settings.continuity_seconds)
    _refuse_short(samples, n_needed)
    dead = dead_sensors(samples.values, n_needed)
    missing = {metric: mostly_missing(values) for metric, values in samples.values.items()}
    base = Detection(dead_sensors=_named(samples, dead), left_out=_named(samples, missing))
    gone = silent_machine(samples, n_needed)
    if gone is not None:
        machine, first = gone
        since_at = samples.start_at + first * samples.step_seconds
        return replace(base, machine=samples.machines[machine], metric=SILENCE, since_at=since_at)
    nearest: list[Nearest] = []
    for metric in in_order(samples.values, settings.order):
        used = np.flatnonzero(~(dead[metric] | missing[metric]))
        if used.size < LEAST_MACHINES:
            continue
        values = samples.values[metric]
        of_metric = compared(
            filled(values if used.size == values.shape[1] else values[:, used]),
            samples.steps(settings.baseline_seconds),
            settings.least_ratio,
        )
        names = [samples.machines[k] for k in used]
        asked = _Asked(samples, settings, metric, names, of_metric)
        for view in of_metric.views:
            run = asked.run(view, n_needed)
            if run is not None:
                return asked.verdict(base, view, run)
        nearest += asked.nearest(n_needed)
    nearest.sort(key=lambda each: -each.score / each.threshold)
    return replace(base, nearest=tuple(nearest))


@dataclass(frozen=True)
class _Asked:
    """One metric that is asked for a faulty machine."""

    samples: Samples
    settings: Settings
    metric: str
    names: list[str]
    compared: Compared

    def run(self, view: View, least: int = 1) -> Run | None:
        """The longest stretch of a machine beyond the threshold."""
        return longest_run(
            self.compared.views[view],
            threshold=self.settings.threshold(view),
            apart=self.settings.apart_ratio,
            most_gap=self.samples.steps(self.settings.gap_seconds),
            least=least,
        )

    def verdict(self, base: Detection, view: View, run: Run) -> Detection:
        """The machine of a run, which lasted long enough."""
        first = onset(
            self.compared.deviation[:, run.machine],
            run,
            self.samples.steps(self.settings.baseline_seconds),
        )
        # The first window that is unlike the others ends with the first such samples.
        late = 0 if first == 0 else WINDOW // 2
        since_at = self.samples.start_at + (first + late) * self.samples.step_seconds
        rests_on = Nearest(
            self.names[run.machine], self.metric, view, run.score, self.settings.threshold(view),
            run.n_windows * self.samples.step_seconds,
        )  # fmt: skip
        return replace(
            base,
            machine=self.names[run.machine],
            metric=self.metric,
            since_at=since_at,
            since_start=first == 0,
            nearest=(rests_on,),
        )

    def nearest(self, n_needed: int) -> Iterator[Nearest]:
        """What came nearest in each view."""
        for view, found in self.compared.views.items():
            score, machine = sustained_score(
                found, apart=self.settings.apart_ratio, n_windows=n_needed
            )
            run = self.run(view)
            seconds = run.n_windows * self.samples.step_seconds if run else 0.0
            machine = run.machine if run else machine
            yield Nearest(
                self.names[machine], self.metric, view, score, self.settings.threshold(view), seconds
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
