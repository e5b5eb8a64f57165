"""The faulty machines of a job by its metrics, or none; and what else is unlike the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from analytics.errors import AnalysisError
from analytics.nodes.machines.evidence import Evidence, kind_of
from analytics.nodes.machines.onset import onset
from analytics.nodes.machines.quiet import quiet_machines, resting
from analytics.nodes.machines.samples import (
    LEAST_MACHINES,
    MOST_MISSING,
    counted,
    dead_sensors,
    known_median,
)
from analytics.nodes.machines.shifts import (
    DEVIATIONS_OF_NORMAL,
    LEAST_BEFORE,
    LEAST_SPREAD,
    Clock,
    Regimes,
    blocked,
    scaled,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from analytics.nodes.machines.quiet import Quiet
    from analytics.nodes.machines.samples import Array, Samples

SILENCE = "all metrics"
"""The metric of a machine that says nothing more."""
LESS = 0.9
"""Share of what the job did before below which it does less."""
SURELY_APART = 2.0, 0.75
"""How many times as far as the others, and the share of the threshold that is enough then."""
LEAST_LASTING = 9
"""Samples that a fault must last where they are far apart."""
MOST_STEP_SECONDS = 60.0
MOST_NEAREST = 8
QUIET_SHARE = 8
"""One of so many samples in a row that are missing, or the same, make a machine quiet."""
LEVEL_THRESHOLD = 12.0
"""Spreads of the machines beyond which one is told that was elsewhere from the first sample on."""


@dataclass(frozen=True)
class Settings:
    """What makes a machine faulty."""

    threshold: float = 4.0
    """Joint score of its metrics from which on a machine counts; three quarters of it are enough
    for one that is twice as far as those that may not be faulty."""
    apart_ratio: float = 1.5
    """How many times as far as these it must be."""
    continuity_seconds: float = 240.0
    """How long a shift must last; Minder's."""

    def counts(self, score: float, others: float) -> bool:
        """Whether a machine of this score is faulty, where others reach so much."""
        needed = self.threshold * (SURELY_APART[1] if score >= SURELY_APART[0] * others else 1.0)
        return score >= needed and score >= self.apart_ratio * others

    def lasting(self, step_seconds: float) -> float:
        """Seconds that a fault must be seen, of samples so far apart."""
        return max(self.continuity_seconds, LEAST_LASTING * step_seconds)


Kind: TypeAlias = Literal["idle", "silent", "frozen", "sensor", "role", "alone"]
"""It rests as a spare; its metrics stopped, or froze, while the job goes on; one sensor alone is
off; it was unlike the others from the first sample on, as a role is; its role has too few machines
to compare it with."""


def most_faulty(n_machines: int) -> int:
    """Machines of a job that may be faulty at once: more that move alike are its own doing."""
    return 1 if n_machines < 8 else 2 if n_machines < 24 else 3


@dataclass(frozen=True)
class Faulty:
    """A machine that is faulty."""

    machine: str
    metric: str
    """The metric that is surest."""
    since_at: float
    """Since when, seconds since 1970."""
    metrics: tuple[str, ...]
    """All that moved, the surest first."""
    score: float | None
    """Of all its metrics together; None of one that fell silent."""


@dataclass(frozen=True)
class Told:
    """A machine that is unlike the others, and no fault is known of."""

    machine: str
    kind: Kind
    metrics: tuple[str, ...] = ()
    """Those that show it; none where all do."""
    since_at: float | None = None
    """Since when; None: from the first sample on."""


@dataclass(frozen=True)
class Nearest:
    """How near a machine came to a verdict, or how far it is beyond."""

    machine: str
    metric: str
    """In which it moved most."""
    score: float
    """Of all its metrics together."""
    threshold: float
    seconds: float
    """How long that metric was elsewhere."""


@dataclass(frozen=True)
class Detection:
    """The faulty machines, or none."""

    faulty: tuple[Faulty, ...] = ()
    """The surest first."""
    told: tuple[Told, ...] = ()
    """Machines that are unlike the others, and no fault is known of."""
    nearest: tuple[Nearest, ...] = ()
    """The machines of the largest scores, faulty or not."""
    dead_sensors: tuple[tuple[str, str], ...] = ()
    """(machine, metric) of sensors that were not believed."""
    left_out: tuple[tuple[str, str], ...] = ()
    """(machine, metric) of which half of the samples are missing."""
    n_judged: int = 0
    """Machines of which some metric was compared with that of others."""

    @property
    def machine(self) -> str | None:
        """The machine that is surest to be faulty."""
        return self.faulty[0].machine if self.faulty else None

    @property
    def metric(self) -> str | None:
        """The metric by which it is."""
        return self.faulty[0].metric if self.faulty else None

    @property
    def since_at(self) -> float | None:
        """Since when, seconds since 1970."""
        return self.faulty[0].since_at if self.faulty else None


def detect(
    samples: Samples, settings: Settings | None = None, roles: Mapping[str, str] | None = None
) -> Detection:
    """Which machines are faulty, by which metrics, and since when?

    Parameters
    ----------
    samples
        Of the machines of one job.
    settings
        What makes a machine faulty.
    roles
        Machine -> its role. Machines are compared within their role, those without one with each
        other; of a role of fewer than four machines nothing is judged.

    Raises
    ------
    AnalysisError
        Where the samples cover less than the time that a fault must last, or are too far apart, or
        no role has four machines.
    """
    settings = settings or Settings()
    _refuse(samples, settings)
    members: dict[str, list[int]] = {}
    for k, machine in enumerate(samples.machines):
        members.setdefault((roles or {}).get(machine, ""), []).append(k)
    large = [which for which in members.values() if len(which) >= LEAST_MACHINES]
    if not large:
        raise AnalysisError(
            f"machines are compared within their role, and no role has {LEAST_MACHINES} of them: "
            "state fewer roles"
        )
    found = [_Judged(samples.of(which), settings).detection() for which in large]
    alone = [k for which in members.values() if len(which) < LEAST_MACHINES for k in which]
    told = tuple(Told(samples.machines[k], "alone") for k in alone)
    return Detection(
        tuple(sorted((x for one in found for x in one.faulty), key=_surest)),
        tuple(each for one in found for each in one.told) + told,
        tuple(sorted((x for one in found for x in one.nearest), key=lambda x: -x.score)),
        tuple(each for one in found for each in one.dead_sensors),
        tuple(each for one in found for each in one.left_out),
        sum(one.n_judged for one in found),
    )


def _surest(each: Faulty) -> float:
    """What sorts the surest first: one that fell silent is."""
    return -np.inf if each.score is None else -each.score


class _Judged:
    """What is found of the machines of a job."""

    def __init__(self, samples: Samples, settings: Settings) -> None:
        self.samples, self.settings = samples, settings
        lasting = samples.steps(settings.lasting(samples.step_seconds))
        values = {metric: counted(metric, x) for metric, x in samples.values.items()}
        self.clock = Clock.of(samples.n_samples, lasting)
        self.idle = resting({m: blocked(x, self.clock.size) for m, x in values.items()})
        for array in values.values():
            array[:, self.idle] = np.nan
        self.quiet = quiet_machines(values, max(lasting, samples.n_samples // QUIET_SHARE))
        self.dead = dead_sensors(values, lasting)
        for quiet in (*quiet_machines(values, lasting), *self.quiet):
            for metric in quiet.metrics:
                values[metric][quiet.first :, quiet.machine] = np.nan
        for metric, marked in self.dead.items():
            values[metric][:, marked] = np.nan
        blocks = {metric: blocked(x, self.clock.size) for metric, x in values.items()}
        self.missing = {m: np.isnan(x).mean(axis=0) > MOST_MISSING for m, x in blocks.items()}
        for metric, marked in self.missing.items():
            blocks[metric][:, marked] = np.nan
        self.values = values
        self.blocks = {
            m: x for m, x in blocks.items() if (~np.isnan(x)).any(axis=0).sum() >= LEAST_MACHINES
        }
        compared = [~np.isnan(x).all(axis=0) for x in self.blocks.values()]
        self.n_judged = int(np.any(compared, axis=0).sum()) if compared else 0
        self.n_faulty = most_faulty(self.n_judged)
        self.regimes = Regimes.of(self.blocks or blocks)
        self.evidence = Evidence.gathered(
            self.blocks, self.regimes, self.clock.least, self.n_faulty
        )

    def detection(self) -> Detection:
        """All that is said of them."""
        faulty, sensors = self._named()
        named = {each.machine for each in faulty}
        told: dict[str, Told] = {}
        for each in (*self._quiet(), *sensors, *self._from_the_start()):
            if each.machine not in named:
                told.setdefault(each.machine, each)
        joint = self.evidence.joint
        nearest = [self._nearest(k) for k in np.argsort(-joint)[:MOST_NEAREST] if joint[k] > 0]
        return Detection(
            tuple(faulty),
            tuple(told.values()),
            tuple(nearest),
            _pairs(self.samples, self.dead),
            _pairs(self.samples, self.missing),
            self.n_judged,
        )

    def _named(self) -> tuple[list[Faulty], list[Told]]:
        """Machines that moved beyond what healthy ones do: faulty, or with a wrong sensor."""
        joint = self.evidence.joint
        ordered = np.argsort(-joint)
        others = joint[ordered[self.n_faulty]] if len(joint) > self.n_faulty else 0.0
        faulty, sensors = [self._gone(each) for each in self.quiet if self._stopped(each)], []
        for machine in ordered[: self.n_faulty].tolist():
            score = float(joint[machine])
            if not self.settings.counts(score, others):
                break
            metrics = tuple(self.evidence.metrics(machine))
            name = self.samples.machines[machine]
            since_at = self._since(machine, metrics[0])
            if self.evidence.is_sensor(machine, SURELY_APART[1] * self.settings.threshold):
                sensors.append(Told(name, "sensor", metrics, since_at))
            else:
                faulty.append(Faulty(name, metrics[0], since_at, metrics, score))
        return faulty, sensors

    def _stopped(self, quiet: Quiet) -> bool:
        """Whether the job did less once a machine had fallen silent: then it is the machine, not
        its exporter.
        """
        if quiet.kind != "silent" or len(quiet.metrics) < len(self.samples.values):
            return False
        at, least = quiet.first // self.clock.size, self.clock.least
        load = self.regimes.load[self.regimes.label]
        before, after = load[max(0, at - least) : at], load[at + 1 : at + 1 + least]
        return bool(before.size and after.size) and np.median(after) < LESS * np.median(before)

    def _gone(self, quiet: Quiet) -> Faulty:
        """A machine that fell silent, with which the job stopped."""
        name = self.samples.machines[quiet.machine]
        return Faulty(name, SILENCE, self._at(quiet.first), quiet.metrics, None)

    def _quiet(self) -> Iterator[Told]:
        """Spares, and machines whose metrics stopped or froze."""
        names = self.samples.machines
        for machine in self.idle:
            yield Told(names[machine], "idle")
        for each in self.quiet:
            metrics = each.metrics if len(each.metrics) < len(self.samples.values) else ()
            since_at = self._at(each.first) if each.first else None
            yield Told(names[each.machine], each.kind, metrics, since_at)

    def _from_the_start(self) -> Iterator[Told]:
        """Machines that were elsewhere all the time: one metric is a sensor's, more a role's."""
        far: dict[int, list[str]] = {}
        for metric, blocks in self.blocks.items():
            usual = known_median(scaled(blocks), axis=0)
            apart = np.abs(usual - known_median(usual, axis=0))
            spread = DEVIATIONS_OF_NORMAL * float(known_median(apart, axis=0))
            limit = LEVEL_THRESHOLD * max(spread, LEAST_SPREAD)
            for machine in np.flatnonzero(apart > limit).tolist():
                far.setdefault(machine, []).append(metric)
        for machine, metrics in far.items():
            kinds = {kind_of(metric) for metric in metrics}
            kind: Kind = "role" if len(kinds) > 1 else "sensor"
            yield Told(self.samples.machines[machine], kind, tuple(metrics))

    def _nearest(self, machine: int) -> Nearest:
        """How near a machine came, by its surest metric."""
        metric = max(self.evidence.of, key=lambda m: self.evidence.of[m].score[machine])
        blocks = int(self.evidence.of[metric].n_blocks[machine])
        return Nearest(
            self.samples.machines[machine],
            metric,
            float(self.evidence.joint[machine]),
            self.settings.threshold,
            blocks * self.clock.size * self.samples.step_seconds,
        )

    def _since(self, machine: int, metric: str) -> float:
        """When a machine's shift in a metric began, to a sample."""
        found, size = self.evidence.of[metric], self.clock.size
        end = int(found.first[machine] + found.n_blocks[machine])
        scale = scaled(self.values[metric][: end * size])
        apart = scale[:, machine] - known_median(scale, axis=1)
        label = np.repeat(self.regimes.label[:end], size)
        known = np.isfinite(apart)
        before = known & (np.arange(len(apart)) < int(found.first[machine]) * size)
        for which in np.unique(label):
            if (before & (label == which)).any():
                apart[label == which] -= np.median(apart[before & (label == which)])
        apart = np.interp(np.arange(len(apart)), np.flatnonzero(known), apart[known])
        width = min(8, size)
        began = onset(np.convolve(apart, np.full(width, 1.0 / width), "valid"), width)
        return self._at(began + width // 2 if began else int(found.first[machine]) * size)

    def _at(self, sample: int) -> float:
        """When a sample was taken."""
        return self.samples.start_at + sample * self.samples.step_seconds


def _refuse(samples: Samples, settings: Settings) -> None:
    """Refuses samples too far apart to tell a fault from a blip, or of less time than a fault."""
    if samples.step_seconds > MOST_STEP_SECONDS:
        raise AnalysisError(
            f"samples are {samples.step_seconds:g} s apart: a fault of minutes shows in samples at "
            f"most {MOST_STEP_SECONDS:g} s apart, best 1 s"
        )
    clock = Clock.of(samples.n_samples, samples.steps(settings.lasting(samples.step_seconds)))
    least = (LEAST_BEFORE + clock.least) * clock.size
    if samples.n_samples < least:
        raise AnalysisError(
            f"samples cover {samples.n_samples * samples.step_seconds:g} s, less than the "
            f"{least * samples.step_seconds:g} s in which a fault and the time before it show: "
            "pass a longer time"
        )


def _pairs(samples: Samples, which: Mapping[str, Array]) -> tuple[tuple[str, str], ...]:
    """(machine, metric) of what is marked."""
    return tuple(
        (samples.machines[k], metric)
        for metric, marked in which.items()
        for k in np.flatnonzero(marked)
    )


PULL_SECONDS, PULL_SAMPLES = 900.0, 240
"""Of a pull: Minder's, or so many samples where they are far apart."""


def pulls(samples: Samples) -> Iterator[Samples]:
    """The pulls of a watch, oldest first, each half over the next; the last one ends with the
    samples.
    """
    length = max(PULL_SAMPLES, samples.steps(PULL_SECONDS))
    last = max(0, samples.n_samples - length)
    for first in [*range(0, last, length // 2), last]:
        values = {metric: array[first : first + length] for metric, array in samples.values.items()}
        start_at = samples.start_at + first * samples.step_seconds
        yield replace(samples, start_at=start_at, values=values)


def watched(
    samples: Samples, settings: Settings | None = None, roles: Mapping[str, str] | None = None
) -> tuple[Samples, Detection]:
    """The first pull that shows a faulty machine, else the last one, and what it shows.

    Raises
    ------
    AnalysisError
        Where the samples cover less than the time that a fault must last.
    """
    for pull in pulls(samples):
        found = detect(pull, settings, roles)
        if found.faulty:
            break
    return pull, found


MOST_MACHINES, MOST_TIMES = 40, 180
LARGEST = float(np.finfo(float).max)


@dataclass(frozen=True)
class HeatMap:
    """One metric by machine and time."""

    metric: str
    machines: tuple[str, ...]
    """Those that were found, or what came nearest, first; then by distance from the median."""
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
    apart[[samples.machines.index(each.machine) for each in found.faulty]] = LARGEST
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
