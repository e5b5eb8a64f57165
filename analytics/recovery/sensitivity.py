"""What must be true for a target ETTR, what moves it most, and what halving each cost gives."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import optimize

from analytics.efficiency.ettr_forms import daly_young_interval, ettr_exact, ettr_v2
from analytics.errors import OutOfRangeError
from analytics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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
LARGEST: Final = 1e6
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
    won: float
    """ETTR that it adds."""


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
        tuple(
            sorted(
                (
                    Halved(name, value / 2, half, half - now)
                    for name in COSTS
                    if (value := getattr(settings, name)) > 0
                    for half in [_at(settings, form, **{name: value / 2})]
                ),
                key=lambda each: -each.won,
            )
        ),
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
    rate, write = job.failures_per_min, job.write_min
    interval = job.interval_min
    if interval is None:
        interval = float(daly_young_interval(rate, write))
        if math.isnan(interval):
            interval = 0.0 if write == 0 else math.inf
    if form == "v2":
        return float(ettr_v2(rate, job.restart_min, interval, write_min=write))
    return float(
        ettr_exact(rate, job.restart_min, interval, write_min=write, queue_min=job.queue_min)
    )


def _required(settings: EttrSettings, name: str, target: float, form: Form) -> Required:
    """What one parameter must be."""
    ettr = _at(settings, form)
    if name == INTERVAL:
        return _required_interval(settings, target, form)
    now, met = getattr(settings, name), ettr >= target
    best = max(_at(settings, form, **{name: 0.0}), ettr)

    def short(log_value: float) -> float:
        return _at(settings, form, **{name: math.exp(log_value)}) - target

    ends = sorted((math.log(now or SMALLEST), math.log(LARGEST if met else SMALLEST)))
    if short(ends[0]) < 0 or short(ends[1]) > 0:
        return Required(name, now, None, met, best)
    return Required(name, now, _root(short, *ends), met, best)


def _root(short: Callable[[float], float], least: float, most: float) -> float:
    """Where what is short of the target is 0; both ends and it as logarithms."""
    return math.exp(float(optimize.brentq(short, least, most, xtol=1e-13)))


def _required_interval(settings: EttrSettings, target: float, form: Form) -> Required:
    """The interval nearest to the present one at which the target is met."""
    now = settings.checkpoint_min
    ettr = _at(settings, form)

    def short(log_value: float) -> float:
        return _at(settings, form, interval_min=math.exp(log_value)) - target

    bounds = (math.log(1e-4), math.log(1e7))
    peak = float(optimize.minimize_scalar(lambda at: -short(at), bounds=bounds, method="bounded",
                                          options={"xatol": 1e-10}).x)  # fmt: skip
    best = max(short(peak) + target, ettr)
    met = ettr >= target
    if short(peak) < 0 or not 0 < now < math.inf:
        return Required(INTERVAL, now, None, met, best)
    far = bounds[1] if met else math.log(now)
    if met and short(far) > 0:
        return Required(INTERVAL, now, None, met, best)
    return Required(INTERVAL, now, _root(short, *sorted((peak, far))), met, best)


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
