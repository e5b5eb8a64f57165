"""What must be true for a target ETTR, what moves it most, and what halving each cost gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import optimize

from analytics.efficiency.ettr_forms import ettr_v2
from analytics.errors import OutOfRangeError
from analytics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from analytics.arrays import Floats
    from analytics.efficiency.expected_ettr import EttrSettings

Form = Literal["exact", "v2"]
RATE: Final = "rate_per_1000_node_days"
INTERVAL: Final = "interval_min"
PARAMETERS: Final = {
    RATE: "per 1,000 node-days",
    "write_min": "min",
    "restart_min": "min",
    INTERVAL: "min",
    "queue_min": "min",
}
"""What may be asked of, each alone, and its unit."""
COSTS: Final = (RATE, "restart_min", "write_min", "queue_min")
"""What costs nothing where it is 0."""
SMALLEST: Final = 1e-9
LARGEST: Final = 1e7
SHORTEST: Final = 1e-4
"""Of an interval that is sought, minutes."""
TARGET: Final = 0.9


@dataclass(frozen=True)
class Required:
    """What one parameter must be for the target, all others as they are."""

    parameter: str
    now: float
    value: float | None
    """At most that: below the present one what is needed, above it what there is room for. Of an
    interval that is too short, at least that. None where the parameter alone is not enough."""
    met: bool
    """Whether the target is met as it is."""
    best: float
    """The highest ETTR that it can give alone."""


@dataclass(frozen=True)
class Moved:
    """ETTR with one parameter at a low and at a high value, all others as they are."""

    parameter: str
    low: float
    high: float
    ettr_low: float
    """The lower ETTR of the two."""
    ettr_high: float
    measured: bool
    """Whether the values are the bounds of an estimate; else half and double."""


@dataclass(frozen=True)
class Halved:
    """ETTR with one parameter at half, all others as they are."""

    parameter: str
    value: float
    ettr: float
    won: Estimate
    """ETTR that it adds, with the interval that the rate leaves open."""


@dataclass(frozen=True)
class Sensitivity:
    """A job's ETTR, and what it would take."""

    settings: EttrSettings
    rate: Estimate
    target: float
    ettr: Estimate
    """Bounds at those of the rate."""
    required: tuple[Required, ...]
    moved: tuple[Moved, ...]
    """What moves it most first."""
    halved: tuple[Halved, ...]
    """What is worth most first."""


def sensitivity(
    settings: EttrSettings, rate: Estimate, *, target: float = TARGET, form: Form = "exact"
) -> Sensitivity:
    """What a job's expected ETTR hangs on.

    Each of rate r, write w, restart u0 and interval dt is solved for alone: the value at which the
    form equals the target. Where no interval is stated it is Daly-Young's of the rate and write in
    question. A target that a cost of 0 does not reach is not reached by that cost alone.

    Parameters
    ----------
    settings
        The job; its own rate is that in question.
    rate : Estimate
        Its interval moves the ETTR in `ettr` and in `moved`.
    target : float
        In (0, 1).
    form
        The exact form, or the paper's first-order one.

    Raises
    ------
    OutOfRangeError
        For a target outside (0, 1).

    Examples
    --------
    >>> from analytics.efficiency.expected_ettr import EttrSettings
    >>> job = EttrSettings(gpus=12_000, rate_per_1000_node_days=6.5, restart_min=5, write_min=5)
    >>> found = sensitivity(job, Estimate(6.5, None, None, 0.9, 100), form="v2")
    >>> [(each.parameter, each.value and round(each.value, 3)) for each in found.required][:2]
    [('rate_per_1000_node_days', 0.96), ('write_min', 0.358)]
    """
    if not 0 < target < 1:
        raise OutOfRangeError("target", "in (0, 1)", target, "pass 0.9 for 90 %")
    if settings.failures_per_min <= 0:
        raise OutOfRangeError(RATE, "> 0", 0.0, "where nothing fails, nothing is to be gained")
    bounds = (rate.upper, rate.lower)
    low, high = (None if at is None else _at(settings, form, **{RATE: at}) for at in bounds)
    now = _at(settings, form)
    return Sensitivity(
        settings,
        rate,
        target,
        Estimate(now, low, high, rate.conf_level, rate.n),
        tuple(
            _required(settings, name, target, form)
            for name in PARAMETERS
            if name != "queue_min" or settings.queue_min > 0
        ),
        tuple(
            sorted(_moved(settings, rate, form), key=lambda each: each.ettr_low - each.ettr_high)
        ),
        tuple(sorted(_halved(settings, rate, form), key=lambda each: -(each.won.value or 0.0))),
    )


def by_size(
    settings: EttrSettings, gpus: Sequence[float], rate: Estimate, form: Form = "exact"
) -> tuple[Estimate, ...]:
    """ETTR of the same job at other sizes, bounds at those of the rate."""
    found = []
    for size in gpus:
        job = replace(settings, gpus=size)
        low, high = (
            None if at is None else _at(job, form, **{RATE: at}) for at in (rate.upper, rate.lower)
        )
        found.append(Estimate(_at(job, form), low, high, rate.conf_level, rate.n))
    return tuple(found)


def grid(
    settings: EttrSettings, intervals_min: Floats, restarts_min: Floats, form: Form = "exact"
) -> Floats:
    """ETTR by interval and restart, shape (restarts, intervals)."""
    found: Floats = np.array(
        [
            [_at(settings, form, interval_min=dt, restart_min=u0) for dt in intervals_min]
            for u0 in restarts_min
        ]
    )
    return found


def _at(settings: EttrSettings, form: Form, **changed: float) -> float:
    """ETTR with some parameters changed."""
    job = replace(settings, **changed)
    if form == "exact":
        return job.exact
    rate, restart, interval = job.failures_per_min, job.restart_min, job.checkpoint_min
    return float(ettr_v2(rate, restart, interval, write_min=job.write_min))


def _required(settings: EttrSettings, name: str, target: float, form: Form) -> Required:
    """What one parameter must be: of a cost at most that, of the interval the value nearest to the
    present one; it is sought from where the ETTR is highest."""
    now = settings.checkpoint_min if name == INTERVAL else getattr(settings, name)
    ettr = _at(settings, form)

    def beyond_target(log_value: float) -> float:
        """ETTR less the target, by the logarithm of the parameter."""
        return _at(settings, form, **{name: math.exp(log_value)}) - target

    peak = _peak(beyond_target) if name == INTERVAL else math.log(SMALLEST)
    free = ettr if name == INTERVAL else _at(settings, form, **{name: 0.0})
    best, met = max(beyond_target(peak) + target, ettr, free), ettr >= target
    known = 0 < now < math.inf or met
    far = math.log(LARGEST) if met else math.log(now) if known else peak
    if not known or beyond_target(peak) < 0 or beyond_target(far) > 0:
        return Required(name, now, None, met, best)
    root = optimize.brentq(beyond_target, *sorted((peak, far)), xtol=1e-13)
    return Required(name, now, math.exp(float(root)), met, best)


def _peak(beyond_target: Callable[[float], float]) -> float:
    """Logarithm of the interval at which the ETTR is highest."""
    found = optimize.minimize_scalar(
        lambda at: -beyond_target(at),
        bounds=(math.log(SHORTEST), math.log(LARGEST)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return float(found.x)


def _halved(settings: EttrSettings, rate: Estimate, form: Form) -> Iterator[Halved]:
    """Each cost at half."""

    def won(name: str, at: float | None) -> float | None:
        """ETTR that half of a cost adds at a rate."""
        if at is None:
            return None
        job = replace(settings, rate_per_1000_node_days=at)
        return _at(job, form, **{name: getattr(job, name) / 2}) - _at(job, form)

    for name in COSTS:
        value = getattr(settings, name)
        if value > 0:
            gains = [won(name, at) for at in (rate.lower, rate.upper)]
            known = sorted(each for each in gains if each is not None)
            bounds = (known[0], known[1]) if len(known) == len(gains) else (None, None)
            gained = won(name, settings.rate_per_1000_node_days)
            estimate = Estimate(gained, *_around(gained, bounds), rate.conf_level, rate.n)
            yield Halved(name, value / 2, _at(settings, form, **{name: value / 2}), estimate)


def _around(
    value: float | None, bounds: tuple[float | None, float | None]
) -> tuple[float | None, float | None]:
    """Bounds that hold the value: between two rates a gain may be highest."""
    low, high = bounds
    if value is None or low is None or high is None:
        return None, None
    return min(low, value), max(high, value)


def _moved(settings: EttrSettings, rate: Estimate, form: Form) -> list[Moved]:
    """Each parameter at the bounds of its estimate, else at half and double."""
    found = []
    for name in (*COSTS, INTERVAL):
        now = settings.checkpoint_min if name == INTERVAL else getattr(settings, name)
        if not 0 < now < math.inf:
            continue
        low, high, measured = now / 2, now * 2, False
        if name == RATE and rate.lower and rate.upper:
            low, high, measured = rate.lower, rate.upper, True
        ends = sorted(_at(settings, form, **{name: value}) for value in (low, high))
        found.append(Moved(name, low, high, ends[0], ends[1], measured))
    return found
