"""Recovery policies side by side: which is best, and which cannot be told apart."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.recovery.histories import MINUTES_PER_DAY, Histories
from analytics.recovery.mechanism import KINDS
from analytics.recovery.policy import BASE, policies
from analytics.recovery.simulator import played

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from analytics.arrays import Bools, Floats
    from analytics.recovery.mechanism import Mechanism
    from analytics.recovery.policy import Policy, Site
    from analytics.recovery.simulator import Played

FAILURES: Final = 40_000
"""Failures that are played of each policy, where nobody says how many runs."""
RUNS: Final = (100, 5000)
"""Fewest and most runs."""
DRAWS: Final = 64
"""Draws of the failure rates within what their counts leave open."""
FAILURES_A_DRAW: Final = 400
"""Failures that are played at each of them."""
RUNS_A_DRAW: Final = (2, 64)
ROUNDING: Final = 1e-12
DAYS: Final = 30.0
"""Of a run, where nobody says how many."""
A_RUN: Final = 3_000.0
"""Failures at which a run may end before its days do, so that a job that fails each minute is
played in seconds. Every run begins with a restart: what goes on after failures is told as worse by
at most the share of that in the run."""


@dataclass(frozen=True)
class Counted:
    """Failures by kind and the node-days in which they were counted: what a rate rests on."""

    failures: Mapping[str, float]
    """A kind that could have been seen and was not has 0; one that is not named does not happen."""
    node_days: float
    weight: float = 1.0
    """Of a failure: less than 1 where they come together, so that the interval of the rate is that
    of so many fewer."""

    def __post_init__(self) -> None:
        validate.positive("node_days", self.node_days, "pass the exposure of the failures")
        validate.positive("weight", self.weight, "pass 1 for failures that come one by one")

    @property
    def n(self) -> int:
        """All of them."""
        return round(sum(self.failures.values()))

    def drawn(self, draws: int, seed: int) -> Floats:
        """Rates per 1,000 node-days by kind, shape (4, draws): of all kinds together Gamma(w n +
        1/2) over w times the node-days (Jeffreys), shared out by Dirichlet's with half a failure of
        each kind before."""
        generator = np.random.default_rng([seed, draws])
        total = generator.gamma(self.weight * self.n + 0.5, size=draws) / self.weight
        named = [place for place, kind in enumerate(KINDS) if kind in self.failures]
        counts = np.array([self.failures[KINDS[place]] for place in named]) + 0.5
        drawn = np.zeros((len(KINDS), draws))
        drawn[named] = generator.dirichlet(counts, size=draws).T * total
        return drawn * 1000.0 / self.node_days


@dataclass(frozen=True, kw_only=True)
class Trial:
    """On what policies are tried: all of them on the same.

    Raises
    ------
    OutOfRangeError
        For days, runs or a level out of range, and a job that never fails: all policies are alike.
    """

    site: Site
    """The job; its rates are those at which ETTR is given."""
    counted: Counted | None = None
    """What the rates rest on; without it they are taken as they are."""
    days: float = DAYS
    """Over which time is counted."""
    a_run: float | None = None
    """Failures after which a run ends, if it has not lasted these days; None of one that lasts
    them."""
    runs: int = 0
    """How many; 0 for as many as hold about 40,000 failures."""
    conf_level: float = CONF_LEVEL
    seed: int = 0

    def __post_init__(self) -> None:
        validate.conf_level(self.conf_level)
        validate.positive("days", self.days, "pass the days of a run, e.g. 30")
        if self.a_run is not None:
            validate.positive("a_run", self.a_run, "pass how many, or leave it out")
        validate.nonnegative("runs", self.runs, "pass how many, or leave it out")
        if not self._per_day > 0:
            raise OutOfRangeError("rates", "> 0", 0.0, "where nothing fails, policies are alike")

    @property
    def _per_day(self) -> float:
        """Failures of a day without a wait."""
        return float(self.site.hazards.per_min.sum()) * MINUTES_PER_DAY

    @property
    def lasts(self) -> float:
        """Days of a run."""
        return self.days if self.a_run is None else min(self.days, self.a_run / self._per_day)

    @property
    def expected(self) -> float:
        """Failures of a run, if it never waits."""
        return self._per_day * self.lasts

    @property
    def histories(self) -> Histories:
        """What befalls each run."""
        return Histories(self.runs or int(np.clip(FAILURES / self.expected, *RUNS)), self.seed)


@dataclass(frozen=True)
class Outcome:
    """What became of one policy in a trial."""

    key: str
    mechanism: Mechanism
    main: Played
    at_rates: Floats | None
    """ETTR at each draw of the rates less that at the rates, shape (draws,); None of rates that
    were stated."""


@dataclass(frozen=True)
class Ranked:
    """A policy among others."""

    policy: Policy
    rank: int
    """1 is the best; those of one ETTR share a rank."""
    tied_with: tuple[str, ...]
    """Keys of those that it cannot be told apart from."""
    ettr: Estimate
    """With the interval that the simulation leaves open; n = runs."""
    by_rates: Estimate | None
    """The interval that the counts of failures leave open; None of rates that were stated."""
    gain: Estimate | None
    """ETTR beyond that of checkpoints alone; None where these are not among them."""
    shares: Mapping[str, float]
    """Of the wall-clock time, by part."""
    standby: int
    """Nodes that stand ready."""
    lost_node_hours: float
    """Node-hours that the job and its standby held without training, over the days; while it waits
    for nodes it holds none."""


def outcome(trial: Trial, key: str, changed: Mapping[str, float] | None = None) -> Outcome:
    """One policy in a trial, with some of its parameters as the user has them.

    Raises
    ------
    OutOfRangeError
        For a policy or a parameter that does not exist.
    """
    if key not in policies():
        raise OutOfRangeError(
            "policy", f"one of {', '.join(policies())}", key, "name one, or none for all"
        )
    mechanism = policies()[key].mechanism(trial.site, changed)
    main = played(trial.site.hazards, mechanism, trial.histories, days=trial.lasts)
    at_rates = None if trial.counted is None else _at_rates(trial, trial.counted, mechanism)
    return Outcome(key, mechanism, main, at_rates)


def ranking(trial: Trial, outcomes: Sequence[Outcome]) -> tuple[Ranked, ...]:
    """Policies by their ETTR, best first.

    All met the same failures, so that two differ by what they do: the error of a difference is
    that of its own, paired by runs,

    .. math:: s^2 = \\frac{1}{n} \\operatorname{Var}(z_a - z_b), \\quad
        z = \\frac{P - \\hat E W}{\\bar W}

    with P productive and W wall-clock time of a run. Two are told apart where the difference is
    beyond what chance leaves (t, Bonferroni's over all that are compared), and where its sign is
    the same in all but (1 - level) / 2 of the rates that the counts leave open.
    """
    found = sorted(outcomes, key=lambda each: -each.main.ettr)
    apart = _apart(found, trial.conf_level)
    base = next((each for each in found if each.key == BASE), None)
    hours = trial.site.hazards.nodes * 24.0 * trial.days
    return tuple(
        Ranked(
            policies()[each.key],
            rank,
            tuple(
                other.key
                for other, differs in zip(found, row, strict=True)
                if not differs and other is not each
            ),
            _of_simulation(each.main, trial.conf_level),
            None if each.at_rates is None else _of_rates(trial, each.main.ettr, each.at_rates),
            _gain(trial, each, base),
            each.main.shares,
            each.mechanism.standby,
            hours * (1.0 - each.main.ettr - each.main.shares["wait"])
            + each.mechanism.standby * 24.0 * trial.days,
        )
        for each, rank, row in zip(found, _ranks(found), apart, strict=True)
    )


def _at_rates(trial: Trial, counted: Counted, mechanism: Mechanism) -> Floats:
    """ETTR at each draw of the rates, less that at the rates themselves by the same luck."""
    each = int(np.clip(math.ceil(FAILURES_A_DRAW / trial.expected), *RUNS_A_DRAW))
    drawn = counted.drawn(DRAWS, trial.seed) * trial.site.hazards.nodes / 1000 / MINUTES_PER_DAY
    per_min = np.column_stack((trial.site.hazards.per_min, drawn))
    runs = played(
        trial.site.hazards,
        mechanism,
        Histories(each, trial.seed + 1, times=DRAWS + 1),
        days=trial.lasts,
        per_min=np.tile(per_min, each),
    )
    productive, wall = (part.reshape(each, DRAWS + 1) for part in (runs.minutes[0], runs.wall))
    ettr = productive.sum(axis=0) / wall.sum(axis=0)
    differs: Floats = ettr[1:] - ettr[0]
    return differs


def _of_simulation(main: Played, conf_level: float) -> Estimate:
    """ETTR with Student's interval over runs."""
    n, reach = main.influence.size, _reach(main.influence, conf_level)
    if n < 2:
        return Estimate(main.ettr, None, None, conf_level, n)
    return Estimate(
        main.ettr, max(main.ettr - reach, 0.0), min(main.ettr + reach, 1.0), conf_level, n
    )


def _of_rates(trial: Trial, value: float, at_rates: Floats) -> Estimate:
    """ETTR with the range that holds the middle of the draws; n = failures counted."""
    conf_level = trial.conf_level
    lower, upper = _spread(value, at_rates, conf_level)
    n = trial.counted.n if trial.counted else 0
    return Estimate(value, max(lower, 0.0), min(upper, 1.0), conf_level, n)


def _spread(value: float, draws: Floats, conf_level: float) -> tuple[float, float]:
    """The middle of what draws add to a value, which it holds."""
    low, high = np.quantile(draws, [(1.0 - conf_level) / 2.0, (1.0 + conf_level) / 2.0])
    return value + min(float(low), 0.0), value + max(float(high), 0.0)


def _gain(trial: Trial, one: Outcome, base: Outcome | None) -> Estimate | None:
    """ETTR beyond the base: the interval is that of the rates, of stated ones that of the runs."""
    if base is None:
        return None
    value = one.main.ettr - base.main.ettr
    if one.at_rates is None or base.at_rates is None or trial.counted is None:
        paired = one.main.influence - base.main.influence
        reach = _reach(paired, trial.conf_level)
        return Estimate(value, value - reach, value + reach, trial.conf_level, paired.size)
    lower, upper = _spread(value, one.at_rates - base.at_rates, trial.conf_level)
    return Estimate(value, lower, upper, trial.conf_level, trial.counted.n)


def _reach(influence: Floats, conf_level: float) -> float:
    """Half the width of Student's interval over runs, NaN of one."""
    if influence.size < 2:
        return math.nan
    error = float(influence.std(ddof=1)) / math.sqrt(influence.size)
    return error * float(special.stdtrit(influence.size - 1, (1.0 + conf_level) / 2.0))


def _apart(found: Sequence[Outcome], conf_level: float) -> Bools:
    """Which can be told apart, shape (policies, policies)."""
    n = found[0].main.influence.size if found else 0
    pairs = max(1, len(found) - 1)
    limit = float(special.stdtrit(max(n - 1, 1), 1.0 - (1.0 - conf_level) / 2.0 / pairs))
    apart = np.zeros((len(found), len(found)), dtype=bool)
    for i, one in enumerate(found):
        for j, other in enumerate(found):
            apart[i, j] = i != j and n > 1 and _differ(one, other, limit, conf_level)
    return apart


def _differ(one: Outcome, other: Outcome, limit: float, conf_level: float) -> bool:
    """Whether two are told apart, by the runs and by the rates."""
    difference = one.main.ettr - other.main.ettr
    paired = one.main.influence - other.main.influence
    error = float(paired.std(ddof=1)) / math.sqrt(paired.size)
    if abs(difference) <= max(limit * error, ROUNDING):
        return False
    if one.at_rates is None or other.at_rates is None:
        return True
    same = np.sign(difference + one.at_rates - other.at_rates) == np.sign(difference)
    return float(same.mean()) >= (1.0 + conf_level) / 2.0


def _ranks(found: Sequence[Outcome]) -> Iterator[int]:
    """1 for the best; equal ones share the first rank of theirs."""
    rank, last = 0, math.inf
    for place, each in enumerate(found, start=1):
        if each.main.ettr < last - ROUNDING:
            rank, last = place, each.main.ettr
        yield rank
