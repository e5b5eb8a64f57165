"""Each metric of some machines, asked for the one that stays unlike all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.nodes.machines.continuity import longest_run, onset, sustained_score
from analytics.nodes.machines.priority import in_order
from analytics.nodes.machines.regimes import regimes
from analytics.nodes.machines.samples import LEAST_MACHINES, filled, mostly_missing
from analytics.nodes.machines.sensors import dead_sensors
from analytics.nodes.machines.views import compared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from analytics.nodes.machines.continuity import Run
    from analytics.nodes.machines.samples import Array, Samples
    from analytics.nodes.machines.settings import Settings
    from analytics.nodes.machines.views import Looks, View

MINUTE = 60.0


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
        dead = dead_sensors(samples.values, samples.steps(settings.lasting(samples.step_seconds)))
        return cls(dead, {m: mostly_missing(values) for m, values in samples.values.items()})


@dataclass(frozen=True)
class Asked:
    """One metric that is asked for a faulty machine."""

    samples: Samples
    settings: Settings
    metric: str
    names: list[str]
    """Of the machines that are compared."""
    views: dict[View, Looks]

    def run(self, view: View, least: float = 0.0) -> Run | None:
        """The longest stretch of a machine beyond the threshold, of so many seconds at least."""
        looks = self.views[view]
        return longest_run(
            looks.found,
            threshold=self.settings.threshold(view),
            apart=self.settings.apart_ratio,
            most_gap=self._looks(view, self.settings.gap_seconds),
            least=self._looks(view, least),
        )

    def seconds(self, view: View, run: Run) -> float:
        """How long a run lasted, without times at which the job changed."""
        return run.n_looks * self.views[view].windows * self.samples.step_seconds

    def since(self, view: View, run: Run) -> int:
        """The window since which the machine of a run is abnormal."""
        looks = self.views[view]
        end = (run.first + run.n_looks) * looks.windows
        return int(looks.at[onset(looks.series[:end, run.machine])])

    def nearest(self) -> list[Nearest]:
        """What came nearest in each view."""
        return [self.nearest_in(view) for view in self.views]

    def nearest_in(self, view: View) -> Nearest:
        """What came nearest in a view, or has a run in it."""
        settings = self.settings
        score, machine = sustained_score(
            self.views[view].found,
            apart=settings.apart_ratio,
            most_gap=self._looks(view, settings.gap_seconds),
            least=self._looks(view, settings.lasting(self.samples.step_seconds)),
        )
        run = self.run(view)
        return Nearest(
            self.names[run.machine if run else machine],
            self.metric,
            view,
            score,
            settings.threshold(view),
            self.seconds(view, run) if run else 0.0,
        )

    def _looks(self, view: View, seconds: float) -> int:
        """How many looks such a time holds."""
        return max(1, self.samples.steps(seconds) // self.views[view].windows)


def asked_metrics(samples: Samples, settings: Settings, doubts: Doubts) -> Iterator[Asked]:
    """Each metric that enough machines have, compared when it is asked, in order."""
    n_baseline = samples.steps(settings.baseline_seconds)
    regime = regimes(samples.values, n_baseline)
    for metric in in_order(samples.values, settings.order):
        values = samples.values[metric]
        used = np.flatnonzero(~(doubts.dead[metric] | doubts.missing[metric]))
        if used.size < LEAST_MACHINES:
            continue
        found = compared(
            filled(values if used.size == values.shape[1] else values[:, used]),
            regime,
            n_baseline,
            samples.steps(MINUTE),
            settings.least_ratio,
        )
        yield Asked(samples, settings, metric, [samples.machines[k] for k in used], found)
