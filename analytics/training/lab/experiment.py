"""Which indicator sees which flipped bit, how early, and which mitigation survives it: measured."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import OutOfRangeError
from analytics.training.lab.indicators import (
    INDICATORS,
    PAST,
    Series,
    first_alarms,
    highest_scores,
    threshold,
)
from analytics.training.lab.injection import (
    BITS,
    EARLIEST,
    PLACES,
    Injected,
    Injection,
    check,
    flipped,
    planned,
)
from analytics.training.lab.training import (
    MITIGATIONS,
    Recipe,
    State,
    Task,
    held_out_loss,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.training.lab.injection import Place
    from analytics.training.lab.transformer import Singles

    Progress = Callable[[int, int], None]

LEAST_STEPS: Final = 4 * (PAST + 1)
"""Of a run: before a flip each indicator has a past, the cosine of updates from the second step."""
MOST_FALSE: Final = 0.25
SEVERE: Final = 4
"""One further flip of the severest bit for so many of all places and bits."""
UNHARMED: Final = 24
"""Flips that did no harm and are played again, to see whether a mitigation does some."""
HELD_OUT: Final = 64
"""Sequences by which a run is judged at its end, the same of all."""


@dataclass(frozen=True)
class Lab:
    """What is tried."""

    n_injections: int = 384
    """Spread evenly over places and bits; further ones are of the severest bit alone."""
    seed: int = 0
    steps: int = 160
    places: tuple[Place, ...] = PLACES
    bits: tuple[int, ...] = tuple(range(BITS))
    recipe: Recipe = field(default_factory=Recipe)
    false_alarms: float = 0.02
    """Probability of an alarm of one indicator in a clean run, and of a clean run called harmed."""
    mitigations: tuple[str, ...] = tuple(MITIGATIONS)
    batch: int = 16
    """Runs that are trained side by side."""

    @property
    def n_calibration(self) -> int:
        """Clean runs by which thresholds are set."""
        return math.ceil(2 / self.false_alarms) - 1

    @property
    def n_verification(self) -> int:
        """Other clean runs, by which they are checked, and which injections change."""
        return self.n_calibration + 1

    @property
    def n_clean(self) -> int:
        """Clean runs under each mitigation."""
        return math.ceil(1 / self.false_alarms) - 1

    @property
    def severest(self) -> int:
        """The highest bit asked for that is not the sign: bit 30, the highest of the exponent,
        multiplies a value below 2 by 2 to the power of 128."""
        return max((bit for bit in self.bits if bit < BITS - 1), default=BITS - 1)

    @property
    def watched_from(self) -> int:
        """First step whose alarms count."""
        return int(EARLIEST * self.steps)


@dataclass(frozen=True)
class Trained:
    """Runs that have ended."""

    series: Series
    final_loss: Floats
    """Held-out loss of each run's worst replica; infinite where it is not finite."""
    drift: Floats
    """How far the parameters of the farthest replica are from the clean run's, over the way that
    the clean run has come; NaN where no clean run is given."""
    before: tuple[float, ...]
    """Value that each injection hit; none of clean runs."""
    parameters: Singles
    """Of the first replica, (runs, parameters)."""


@dataclass(frozen=True)
class Flip:
    """An injection and what came of it."""

    injection: Injection
    even: bool
    """Whether it is one of those that are spread evenly over places and bits."""
    value_before: float
    value_after: float
    final_loss: float
    loss_change: float
    """Beyond the final loss of the same run without the flip."""
    harmful: bool
    """Whether the final loss lies beyond what clean runs reach."""
    drift: float
    alarms: dict[str, int | None]
    """Indicator -> steps from the flip to its first alarm; None where it says nothing."""
    clean_alarms: frozenset[str]
    """Indicators that alarm after that step without the flip too, in the same clean run."""


@dataclass(frozen=True)
class Replay:
    """The same flips under a mitigation."""

    mitigation: str
    clean_loss: Floats
    """Final loss of clean runs."""
    limit: float
    """Final loss from which a run is harmed, under this mitigation."""
    final_loss: Floats
    """Of each flip that is played again; infinite where it is not finite."""

    @property
    def harmed(self) -> Bools:
        """Whether each flip did harm."""
        return ~(self.final_loss <= self.limit)


@dataclass(frozen=True)
class Found:
    """All that the lab measured."""

    lab: Lab
    thresholds: dict[str, float]
    false_alarms: dict[str, Bools]
    """Indicator -> whether it alarmed in each clean run of the verification; `any` of them all."""
    clean_loss: Floats
    """Final loss of the clean runs of the verification."""
    limit: float
    flips: tuple[Flip, ...]
    replayed: tuple[int, ...]
    """Flips that were played again under the mitigations, by their place."""
    replays: tuple[Replay, ...]


def _silent(done: int, of: int) -> None:
    """Tells nobody."""


def experiment(lab: Lab, progress: Progress = _silent) -> Found:
    """Trains clean runs, sets thresholds by them, flips bits in others, and plays harmful flips
    again under each mitigation.

    Thresholds: an indicator alarms in a clean run with probability `false_alarms`
    (`indicators.threshold`); the runs that verify it are others. A flip is harmful where the
    held-out loss at the end lies beyond what a clean run reaches with the same probability. Under
    the mitigations are played again: all harmful flips, and some of the others.

    Parameters
    ----------
    lab
        What is tried; the same one gives the same numbers on one machine, bit for bit.
    progress
        Is told runs done and runs to do.

    Raises
    ------
    OutOfRangeError
        For too few steps, injections or clean runs.
    """
    _check(lab)
    rng = np.random.default_rng([lab.seed, 0])
    task = Task.drawn(lab.recipe.shape.n_tokens, rng)
    held_out = task.sequences(rng, HELD_OUT, lab.recipe.shape.length)
    bench = _Bench(lab, task, held_out, progress)
    cut = lab.n_calibration
    calibration = bench.trained(lab.recipe, list(range(cut)))
    own = list(range(cut, cut + lab.n_verification))
    clean = bench.trained(lab.recipe, own)
    highest = highest_scores(calibration.series, lab.watched_from)
    thresholds = {name: threshold(each, lab.false_alarms) for name, each in highest.items()}
    limit = threshold(calibration.final_loss, lab.false_alarms)
    within = [int(run) for run in np.flatnonzero(clean.final_loss <= limit)]
    injections = _planned(lab, rng, within)
    runs = [own[each.run] for each in injections]
    hit = bench.trained(lab.recipe, runs, injections, clean)
    flips = _flips(lab, injections, hit, clean, thresholds, limit)
    replayed = _replayed(flips, rng)
    bench.planned(len(replayed))
    replays = tuple(
        _replay(bench, name, [flips[at].injection for at in replayed]) for name in lab.mitigations
    )
    since = np.full(lab.n_verification, lab.watched_from)
    alarms = first_alarms(clean.series, thresholds, since)
    false = {name: np.isfinite(each) for name, each in alarms.items()}
    false["any"] = np.logical_or.reduce([false[name] for name in INDICATORS])
    return Found(lab, thresholds, false, clean.final_loss, limit, flips, replayed, replays)


def _check(lab: Lab) -> None:
    """Refuses what gives no result."""
    check(lab.places, lab.bits)
    if lab.steps < LEAST_STEPS:
        raise OutOfRangeError("steps", f"at least {LEAST_STEPS}", lab.steps, "let runs be longer")
    if lab.n_injections < 1:
        raise OutOfRangeError("injections", "at least 1", lab.n_injections, "ask for some")
    if not 0 < lab.false_alarms <= MOST_FALSE:
        raise OutOfRangeError(
            "false alarms", f"above 0 and at most {MOST_FALSE:g}", lab.false_alarms,
            "pass e.g. 0.02",
        )  # fmt: skip


def _planned(lab: Lab, rng: np.random.Generator, runs: Sequence[int]) -> list[Injection]:
    """Injections spread evenly, then further ones of the severest bit; each into a clean run that
    ends as clean runs do."""
    if not runs:
        raise OutOfRangeError("clean runs within the limit", "some", 0, "allow fewer false alarms")
    plans = ((lab.n_injections, lab.bits), (lab.n_injections // SEVERE, (lab.severest,)))
    return [
        each
        for n, bits in plans
        for each in planned(
            lab.recipe, n, rng, steps=lab.steps, runs=runs, places=lab.places, bits=bits
        )
    ]


def _flips(
    lab: Lab,
    injections: Sequence[Injection],
    hit: Trained,
    clean: Trained,
    thresholds: dict[str, float],
    limit: float,
) -> tuple[Flip, ...]:
    """What came of each injection."""
    steps = np.array([each.step for each in injections])
    alarms = first_alarms(hit.series, thresholds, steps)
    without = first_alarms(
        clean.series.of_runs([each.run for each in injections]), thresholds, steps
    )
    found = []
    for at, each in enumerate(injections):
        delays = {name: first[at] - each.step for name, first in alarms.items()}
        before = hit.before[at]
        loss = float(hit.final_loss[at])
        found.append(
            Flip(
                each,
                at < lab.n_injections,
                before,
                flipped(before, each.bit),
                loss,
                loss - float(clean.final_loss[each.run]),
                not loss <= limit,
                float(hit.drift[at]),
                {name: None if np.isnan(d) else int(d) for name, d in delays.items()},
                frozenset(name for name, first in without.items() if np.isfinite(first[at])),
            )
        )
    return tuple(found)


def _replayed(flips: Sequence[Flip], rng: np.random.Generator) -> tuple[int, ...]:
    """All harmful flips, and some others by chance."""
    harmful = [at for at, flip in enumerate(flips) if flip.harmful]
    others = [at for at, flip in enumerate(flips) if not flip.harmful]
    n = min(len(others), UNHARMED)
    return (*harmful, *sorted(int(at) for at in rng.choice(others, n, replace=False)))


def _replay(bench: _Bench, name: str, injections: Sequence[Injection]) -> Replay:
    """Clean runs and flips under a mitigation."""
    lab = bench.lab
    recipe = MITIGATIONS[name](lab.recipe)
    first = lab.n_calibration + lab.n_verification
    clean = bench.trained(recipe, list(range(first, first + lab.n_clean)))
    limit = threshold(clean.final_loss, lab.false_alarms)
    runs = [lab.n_calibration + each.run for each in injections]
    hit = bench.trained(recipe, runs, injections)
    return Replay(name, clean.final_loss, limit, hit.final_loss)


class _Bench:
    """Trains runs in batches, and says how far it is."""

    def __init__(self, lab: Lab, task: Task, held_out: Ints, progress: Progress) -> None:
        self.lab, self.task, self.held_out, self.progress = lab, task, held_out, progress
        self.done = 0
        self.of = 0
        self.planned(lab.n_injections // 4)  # until it is known which flips are played again

    def planned(self, n_replayed: int) -> None:
        """How many flips each mitigation plays again."""
        lab = self.lab
        flips = lab.n_injections + lab.n_injections // SEVERE
        once = lab.n_calibration + lab.n_verification + flips
        self.of = once + len(lab.mitigations) * (lab.n_clean + n_replayed)

    def trained(
        self,
        recipe: Recipe,
        runs: Sequence[int],
        injections: Sequence[Injection] | None = None,
        clean: Trained | None = None,
    ) -> Trained:
        """Runs by their numbers, each with its injection where there are any."""
        parts = []
        for at in range(0, len(runs), self.lab.batch):
            some = slice(at, at + self.lab.batch)
            hits = None if injections is None else injections[some]
            parts.append(self._batch(recipe, runs[some], hits, clean))
            self.done += len(runs[some])
            self.progress(self.done, self.of)
        return _joined(parts)

    def _batch(
        self,
        recipe: Recipe,
        runs: Sequence[int],
        injections: Sequence[Injection] | None,
        clean: Trained | None,
    ) -> Trained:
        """Runs side by side."""
        lab = self.lab
        state = State.initial(recipe, [[lab.seed, run] for run in runs])
        start = state.parameters[:, 0].copy()
        tokens = np.stack([self._tokens(recipe, run) for run in runs], axis=1)
        faults = None if injections is None else Injected(injections)
        series = Series.of([step(recipe, state, at, tokens[at], faults) for at in range(lab.steps)])
        loss = held_out_loss(recipe, state, self.held_out).astype(np.float64)
        loss[~np.isfinite(loss)] = np.inf
        drift = np.full(len(runs), np.nan)
        if clean is not None and injections is not None:
            aim = clean.parameters[[each.run for each in injections]].astype(np.float64)
            drift = _drift(state.parameters, aim, start)
        before = () if faults is None else tuple(faults.before[at] for at in range(len(runs)))
        return Trained(series, loss, drift, before, state.parameters[:, 0].copy())

    def _tokens(self, recipe: Recipe, run: int) -> Ints:
        """All tokens of a run, (steps, replicas, sequences, length + 1)."""
        rng = np.random.default_rng([self.lab.seed, run, 2])
        sizes = (self.lab.steps, recipe.replicas, recipe.sequences)
        found = self.task.sequences(rng, int(np.prod(sizes)), recipe.shape.length)
        return found.reshape(*sizes, -1)


def _drift(parameters: Singles, aim: Floats, start: Singles) -> Floats:
    """Distance of the farthest replica from the clean end, over the clean run's way."""
    with np.errstate(all="ignore"):
        apart = np.linalg.norm(parameters.astype(np.float64) - aim[:, None], axis=2).max(axis=1)
        found: Floats = apart / np.linalg.norm(aim - start, axis=1)
    found[~np.isfinite(found)] = np.inf
    return found


def _joined(parts: Sequence[Trained]) -> Trained:
    """Batches as one."""
    values = {
        name: np.concatenate([part.series.values[name] for part in parts], axis=1)
        for name in parts[0].series.values
    }
    differ = np.concatenate([part.series.replicas_differ for part in parts], axis=1)
    return Trained(
        Series(values, differ),
        np.concatenate([part.final_loss for part in parts]),
        np.concatenate([part.drift for part in parts]),
        tuple(value for part in parts for value in part.before),
        np.concatenate([part.parameters for part in parts]),
    )
