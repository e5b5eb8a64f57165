"""The best checkpoint interval of a job, with what its failure rate and its writing leave open."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from analytics import validate
from analytics.efficiency.ettr_forms import daly_young_interval, ettr_exact, optimal_interval
from analytics.estimate import Estimate, unknown
from analytics.frames import GPUS_PER_NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.efficiency.habits import Habits

    Form = Callable[[float, float], float | None]


@dataclass(frozen=True)
class BestInterval:
    """The best interval between checkpoints of a job; times in minutes."""

    gpus: int
    rate_per_1000_node_days: Estimate
    write_min: Estimate
    """How long a checkpoint stops training; its bounds are those of one run of this size."""
    exact_min: Estimate
    """At which the exact expected ETTR is highest; n = failures of the rate."""
    daly_young_min: Estimate
    ettr: float | None
    """Exact expected ETTR at the best interval, the queue left out; None where none is best."""

    @property
    def apart(self) -> bool:
        """Whether Daly-Young's interval is another one when both are rounded to two digits."""
        exact, daly_young = self.exact_min.value, self.daly_young_min.value
        if exact is None or daly_young is None:
            return False
        return f"{exact:.1e}" != f"{daly_young:.1e}"


def write_of(habits: Habits, gpus: int, conf_level: float) -> Estimate:
    """Minutes that a checkpoint stops a run of this size; an assumed range has no level.

    Examples
    --------
    >>> from analytics.efficiency.habits import OBSERVED, SEVERAL_NODES, habits
    >>> import pandas as pd
    >>> known = habits(pd.DataFrame(columns=OBSERVED), stated={}, assumed=SEVERAL_NODES)
    >>> write_of(known, 1024, 0.9)
    Estimate(value=1.0, lower=0.0, upper=5.0, conf_level=None, n=0)
    """
    model = habits.models.get("write_s")
    if model is not None:
        size = np.array([float(gpus)])
        lower, upper = (float(bound[0]) / 60 for bound in model.bounds(size, conf_level))
        return Estimate(float(model.mean(size)[0]) / 60, lower, upper, conf_level, model.n_runs)
    each = [corner.write_s / 60 for corner in habits.corners]
    level = conf_level if min(each) == max(each) else None
    return Estimate(habits.central.write_s / 60, min(each), max(each), level, 0)


def best_interval(
    gpus: int,
    rate_per_1000_node_days: Estimate,
    habits: Habits,
    *,
    gpus_per_node: float | None = None,
    conf_level: float,
) -> BestInterval:
    """The best interval of a job of so many GPUs: `optimal_interval`, and Daly and Young's.

    Both grow as sqrt(w / lambda): bounds of the rate lambda and of the write w move the logarithm
    of the interval each by so much, and their squares add up. Where the write is assumed both reach
    their bounds at once, and the range has no level. Where no failure was seen the interval has a
    lower bound alone, that at the highest rate. It is unknown where the rate is, where writing
    costs nothing, and where no failure was seen and writing may cost nothing.

    Parameters
    ----------
    gpus : int
        > 0.
    rate_per_1000_node_days : Estimate
        Failures per 1,000 node-days.
    habits
        Of jobs on several nodes.
    gpus_per_node : float, optional
        8 where it is not known.

    Raises
    ------
    OutOfRangeError
        For a size that is not > 0.

    Examples
    --------
    >>> from analytics.efficiency.habits import Habit, Habits
    >>> known = Habits(Habit(3600, 60, 300), (Habit(3600, 60, 300),) * 4, "configured", 0, None)
    >>> found = best_interval(1024, Estimate(6.5, 5.2, 8.0, 0.9, 80), known, conf_level=0.9)
    >>> [round(each) for each in (found.exact_min.value, found.exact_min.lower,
    ...     found.exact_min.upper, found.daly_young_min.value)]
    [58, 52, 65, 59]
    """
    validate.positive("gpus", gpus, "pass the GPUs of the job")
    rate, write = rate_per_1000_node_days, write_of(habits, gpus, conf_level)
    per_min = gpus / (gpus_per_node or GPUS_PER_NODE) / 1000 / 1440
    exact, daly_young = (
        _bounded(partial(_minutes, form, per_min), rate, write, conf_level)
        for form in (optimal_interval, daly_young_interval)
    )
    ettr = None
    if exact.value is not None and rate.value and write.value is not None:
        restart = habits.central.restart_s / 60
        of_job = rate.value * per_min
        ettr = float(ettr_exact(of_job, restart, exact.value, write_min=write.value))
    return BestInterval(gpus, rate, write, exact, daly_young, ettr)


def _minutes(form: Any, per_min: float, rate: float, write_min: float) -> float | None:
    """An interval by one of the two forms; None where none is best."""
    best = float(form(rate * per_min, write_min))
    return None if math.isnan(best) else best


def _bounded(form: Form, rate: Estimate, write: Estimate, conf_level: float) -> Estimate:
    """An interval with the bounds that rate and write leave open."""
    level = None if rate.assumed or write.assumed else conf_level
    if not write.value or not rate.upper:
        return unknown(conf_level, rate.n)
    value = form(rate.value, write.value) if rate.value else None
    shortest = form(rate.upper, write.lower or 0.0)
    longest = form(rate.lower or 0.0, write.upper or write.value)
    if value is None and not shortest:
        return unknown(conf_level, rate.n)
    if value is None or level is None:
        return Estimate(value, shortest or 0.0, longest if value else None, level, rate.n)
    lower = _moved(
        value, form(rate.upper, write.value), form(rate.value or 0.0, write.lower or 0.0)
    )
    upper = _moved(value, form(rate.lower or 0.0, write.value),
                   form(rate.value or 0.0, write.upper or write.value))  # fmt: skip
    return Estimate(value, lower or 0.0, upper, level, rate.n)


def _moved(value: float, *bounds: float | None) -> float | None:
    """The value moved by both bounds at once: their squares add up on the logarithm."""
    off = [math.log(each / value) for each in bounds if each is not None]
    if len(off) < len(bounds):
        return None
    return value * math.exp(math.copysign(math.hypot(*off), sum(off)))
