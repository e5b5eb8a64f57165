"""Each metric of some machines, asked for the one that stays unlike all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.nodes.machines.continuity import longest_run, sustained_score
from analytics.nodes.machines.priority import in_order
from analytics.nodes.machines.samples import LEAST_MACHINES, filled, mostly_missing
from analytics.nodes.machines.sensors import dead_sensors
from analytics.nodes.machines.views import compared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.nodes.machines.continuity import Run
    from analytics.nodes.machines.samples import Array, Samples
    from analytics.nodes.machines.settings import Settings
    from analytics.nodes.machines.views import Compared, View


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
class Doubts:
    """Which machines are no evidence, by metric."""

    dead: dict[str, Array]
    missing: dict[str, Array]

    @classmethod
    def of_samples(cls, samples: Samples, settings: Settings) -> Doubts:
        """Dead sensors, and those of which half of the samples are missing."""
        dead = dead_sensors(samples.values, samples.steps(settings.continuity_seconds))
        return cls(dead, {m: mostly_missing(values) for m, values in samples.values.items()})


@dataclass(frozen=True)
class Asked:
    """One metric that is asked for a faulty machine."""

    samples: Samples
    settings: Settings
    metric: str
    names: list[str]
    """Of the machines that are compared."""
    compared: Compared

    def run(self, view: View, least: int = 1) -> Run | None:
        """The longest stretch of a machine beyond the threshold, of so many windows at least."""
        return longest_run(
            self.compared.views[view],
            threshold=self.settings.threshold(view),
            apart=self.settings.apart_ratio,
            most_gap=self.samples.steps(self.settings.gap_seconds),
            least=least,
        )

    def nearest(self) -> Iterator[Nearest]:
        """What came nearest in each view."""
        for view, found in self.compared.views.items():
            score, machine = sustained_score(
                found,
                apart=self.settings.apart_ratio,
                n_windows=self.samples.steps(self.settings.continuity_seconds),
            )
            run = self.run(view)
            yield Nearest(
                self.names[run.machine if run else machine],
                self.metric,
                view,
                score,
                self.settings.threshold(view),
                run.n_windows * self.samples.step_seconds if run else 0.0,
            )

    @property
    def highest_scores(self) -> Array:
        """Of each window the highest score of any machine that moved away from all others."""
        found = self.compared.views["change"]
        scores: Array = np.where(found.apart > self.settings.apart_ratio, found.score, 0.0)
        return scores


def asked_metrics(samples: Samples, settings: Settings, doubts: Doubts) -> Iterator[Asked]:
    """Each metric that enough machines have, compared when it is asked, in order."""
    for metric in in_order(samples.values, settings.order):
        values = samples.values[metric]
        used = np.flatnonzero(~(doubts.dead[metric] | doubts.missing[metric]))
        if used.size < LEAST_MACHINES:
            continue
        found = compared(
            filled(values if used.size == values.shape[1] else values[:, used]),
            samples.steps(settings.baseline_seconds),
            settings.least_ratio,
        )
        yield Asked(samples, settings, metric, [samples.machines[k] for k in used], found)
