"""Each metric of some machines, asked in its order for the one that stays unlike all others.

What the job as a whole does is told apart first: it loads, trains, waits, rests; machines differ
in each. A machine counts that stays the farthest for minutes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from analytics.errors import ShapeError
from analytics.nodes.machines.samples import LEAST_MACHINES, dead_sensors, filled, mostly_missing
from analytics.nodes.machines.views import WINDOW, compared

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from analytics.nodes.machines.detection import Settings
    from analytics.nodes.machines.samples import Array, Samples
    from analytics.nodes.machines.views import Farthest, Looks, View

MOST_LOOKED_AT = 32
"""Machines whose median stands for the job."""
SMOOTHED = 30
"""Samples over which phases of a step are averaged away."""
STRIDE = 4
"""Every so many samples are looked at."""
ALIKE = 0.15
"""Mean difference of metrics, as shares of their largest level, of one regime."""
UNSETTLED = -1
"""The regime of moments that belong to none that lasted."""


def regimes(values: Mapping[str, Array], least: int) -> Array:
    """Which regime of the job each sample is of, numbered as they began; -1 where it changes.

    The state of the job is the median over machines of each metric, averaged over half a minute,
    as a share of its largest; so one faulty machine has no say in it. A moment belongs to the
    first regime whose first moment was alike in the mean over metrics. A regime of fewer than
    `least` samples is none: it says too little of how machines differ in it.

    Parameters
    ----------
    values
        Metric -> (samples, machines), NaN where missing.
    least
        Samples that a regime must have.
    """
    states = np.column_stack([_state(array) for array in values.values()])
    n = len(states)
    states = states[:, states.max(axis=0) > 0]
    leaders: list[Array] = []
    found = np.empty(len(states[::STRIDE]), dtype=np.int64)
    for k, state in enumerate(states[::STRIDE]):
        alike = (j for j, one in enumerate(leaders) if np.abs(state - one).mean() <= ALIKE)
        found[k] = next(alike, len(leaders)) if state.size else 0
        if found[k] == len(leaders):
            leaders.append(state)
    few = np.flatnonzero(np.bincount(found) * STRIDE < least)
    found[np.isin(found, few)] = UNSETTLED
    labels: Array = np.repeat(found, STRIDE)[:n]
    return labels


def _state(values: Array) -> Array:
    """The median over some machines, averaged over time, as a share of its largest."""
    stride = -(-values.shape[1] // MOST_LOOKED_AT)
    some = np.sort(values[:, ::stride], axis=1)  # missing ones come last
    known = np.isfinite(some).sum(axis=1)
    middle = np.where(known > 0, some[np.arange(len(some)), np.maximum(known - 1, 0) // 2], 0.0)
    middle = np.nan_to_num(middle)
    weights = np.ones(min(SMOOTHED, len(middle)))
    within = np.convolve(np.ones(len(middle)), weights, "same")
    level: Array = np.abs(np.convolve(middle, weights, "same") / within)
    return level / max(float(level.max()), np.finfo(float).tiny)


COVERED = 0.6
"""Share of the windows of a run in which its machine must be the farthest: a fault is not seen in
every phase of the training."""
NOISE = 3.0
"""Deviations within so many spreads of the noise are noise."""
MOST_GROWTH = 60
"""Windows over which a fault is followed back to where it began to grow."""
DEVIATIONS_OF_NORMAL = 1.4826
"""Standard deviation of a normal distribution in median absolute deviations."""


@dataclass(frozen=True)
class Run:
    """A stretch of looks in which one machine was the farthest again and again."""

    machine: int
    first: int
    """First look of it."""
    n_looks: int
    """Looks from the first to the last."""


def longest_run(
    found: Farthest, *, threshold: float, apart: float, most_gap: int, least: int = 1
) -> Run | None:
    """The longest run of a machine, of at least so many looks; None where there is none.

    A look counts for its machine where the score is above the threshold and the next machine is
    so far behind. Looks that do not count may lie between, at most `most_gap` in a row, and
    `COVERED` of the run must count.
    """
    counts = (found.score > threshold) & (found.apart > apart)
    best: Run | None = None
    for machine in np.flatnonzero(np.bincount(found.machine[counts]) >= COVERED * least):
        at = np.flatnonzero(counts & (found.machine == machine))
        for part in np.split(at, np.flatnonzero(np.diff(at) > most_gap) + 1):
            n_looks = int(part[-1] - part[0]) + 1
            longest = best.n_looks if best else least - 1
            if n_looks > longest and part.size >= COVERED * n_looks:
                best = Run(int(machine), int(part[0]), n_looks)
    return best


def sustained_score(
    found: Farthest, *, apart: float, most_gap: int, least: int
) -> tuple[float, int]:
    """The threshold below which some machine has a run of so many looks, and that machine.

    0, and the machine that is farthest most often, where none has one at any threshold.
    """

    def run(threshold: float) -> Run | None:
        return longest_run(found, threshold=threshold, apart=apart, most_gap=most_gap, least=least)

    scores = np.append(0.0, np.sort(found.score[found.apart > apart]))
    low, high = 0, len(scores) - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if run(scores[middle]) else (low, middle)
    lasting = run(scores[low - 1]) if low else None
    if lasting is None:
        return 0.0, int(np.bincount(found.machine).argmax())
    return float(scores[low]), lasting.machine


def onset(series: Array) -> int:
    """The window since which a machine is abnormal; 0 where it was so from the beginning.

    The step that explains most of the series' variance is where it changed. As a fault may grow,
    the onset goes back from there as long as all windows are beyond the noise of those before, if
    these are more than the windows that hold some of an abrupt step.
    Where the machine was at least half as far away before the step, none is believed.

    Parameters
    ----------
    series
        (windows) How far the machine is from all others, or from where it began, up to the end of
        the run.
    """
    x = np.clip(series, *np.quantile(series, (0.05, 0.95))).astype(np.float64)
    n, sums = len(x), np.cumsum(x)
    before = np.arange(1, n)
    step = sums[:-1] / before - (sums[-1] - sums[:-1]) / (n - before)
    changed = int((np.square(step) * before * (n - before)).argmax()) + 1
    middle = np.median(series[:changed])
    if abs(middle) >= abs(np.median(series[changed:])) / 2:
        return 0
    apart = np.abs(series[:changed] - middle)
    within = np.flatnonzero(apart <= NOISE * DEVIATIONS_OF_NORMAL * np.median(apart))
    grew = max(int(within[-1]) + 1, changed - MOST_GROWTH)
    return grew if changed - grew > WINDOW else changed


PUBLISHED = (
    r"pfc|pause",
    r"cpu",
    r"gpu_util|duty",
    r"power",
    r"gr_engine|graphics",
    r"tensor",
    r"nvlink",
)
"""Minder's order, each metric by what its names have in common."""


def in_order(metrics: Iterable[str], learnt: Sequence[str] = ()) -> list[str]:
    """Metrics as they are asked: as learnt, then as published, then as given.

    Examples
    --------
    >>> in_order(["DCGM_FI_DEV_GPU_TEMP", "DCGM_FI_DEV_POWER_USAGE", "cpu_usage"])
    ['cpu_usage', 'DCGM_FI_DEV_POWER_USAGE', 'DCGM_FI_DEV_GPU_TEMP']
    """

    def place(metric: str) -> tuple[int, int]:
        """Where it stands."""
        if metric in learnt:
            return 0, learnt.index(metric)
        known = (k for k, names in enumerate(PUBLISHED) if re.search(names, metric.lower()))
        return 1, next(known, len(PUBLISHED))

    return sorted(metrics, key=place)


def learnt_order(metrics: Sequence[str], scores: Array, faulty: Array) -> tuple[str, ...]:
    """Metrics by a decision tree that tells faulty windows from healthy ones.

    A metric stands the higher the nearer to the root the tree first asks it; of one depth, the one
    that sorts more windows. What the tree never asks comes last.

    Parameters
    ----------
    metrics
        Names, n of them.
    scores
        (windows, n) Of each window and metric the highest score of any machine.
    faulty
        (windows) Whether a machine is faulty then.

    Raises
    ------
    ShapeError
        Where the arrays do not fit together or the windows are all of one kind.

    References
    ----------
    Minder, arXiv 2411.01791, section on the prioritisation of metrics.

    Examples
    --------
    >>> scores = np.array([[1.0, 1.0], [2.0, 9.0], [2.0, 8.0], [1.0, 2.0]])
    >>> learnt_order(["power", "pfc"], scores, np.array([False, True, True, False]))
    ('pfc', 'power')
    """
    from sklearn.tree import DecisionTreeClassifier

    if scores.shape != (faulty.size, len(metrics)) or faulty.all() or not faulty.any():
        raise ShapeError(
            "scores must be (windows, metrics) with windows of both kinds: pass healthy and "
            "faulty ones"
        )
    tree = DecisionTreeClassifier(
        max_depth=len(metrics), min_samples_leaf=max(1, faulty.size // 100), random_state=0,
        class_weight="balanced",
    ).fit(scores, faulty).tree_  # fmt: skip
    depth = np.zeros(tree.node_count, dtype=int)
    for node in range(tree.node_count):  # children come after their parents
        for child in (tree.children_left[node], tree.children_right[node]):
            if child >= 0:
                depth[child] = depth[node] + 1
    ranks = []
    for k, metric in enumerate(metrics):
        asked = np.flatnonzero(tree.feature == k)
        first = int(asked[depth[asked].argmin()]) if asked.size else -1
        at = (
            (int(depth[first]), -int(tree.n_node_samples[first])) if asked.size else (len(depth), 0)
        )
        ranks.append((at, metric))
    return tuple(metric for _, metric in sorted(ranks, key=lambda each: each[0]))


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
