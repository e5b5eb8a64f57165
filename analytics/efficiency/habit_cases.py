"""Habits under which attempts are divided: over those of the models, and at what is assumed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analytics.efficiency.habit_model import WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from analytics.efficiency.habits import Habit, Habits

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

FIELDS = ("interval_s", "write_s", "restart_s")


@dataclass(frozen=True)
class Times:
    """Times of a habit, seconds: one for all attempts, or one each."""

    interval_s: Floats | float
    write_s: Floats | float
    restart_s: Floats | float

    @classmethod
    def of(cls, habit: Habit) -> Times:
        """The times of a habit."""
        return cls(*(float(getattr(habit, name)) for name in FIELDS))


@dataclass(frozen=True)
class Cases:
    """Habits of attempts.

    Attributes
    ----------
    mean
        The mean of what is modelled, the central value of what is not.
    nodes
        Habits over which parts are averaged by `WEIGHTS`: u and D of the models at the same node, w
        at its mean, because parts are proportional to it. `mean` alone where nothing is modelled.
    others
        `mean`, where it is no node, and the corners of what is stated or assumed; nothing where all
        is modelled.
    shared
        Quantity -> share of its variance that unobserved runs have in common; 0 without a model.
    write_cv2
        Squared coefficient of variation of the write; 0 without a model.
    """

    mean: Times
    nodes: tuple[Times, ...]
    others: tuple[Times, ...]
    shared: Mapping[str, Floats | float]
    write_cv2: Floats | float

    @property
    def modelled(self) -> bool:
        """Whether the nodes stand for a distribution."""
        return len(self.nodes) > 1

    def average(self, values: Sequence[Floats]) -> Floats:
        """Mean over the nodes, which come first."""
        return _average(values[: len(self.nodes)]) if self.modelled else values[0]

    def variance(self, values: Sequence[Floats]) -> Floats:
        """Variance over the nodes, which come first."""
        nodes = values[: len(self.nodes)]
        mean = _average(nodes)
        return _average([(each - mean) ** 2 for each in nodes])


def cases(habits: Habits, n_gpus: Ints | None) -> Cases:
    """The habits of a class, at the size of each attempt.

    Parameters
    ----------
    n_gpus : ndarray of int64, shape (n,)
        GPUs of each attempt.

    Raises
    ------
    ValueError
        Where habits have models and the sizes are missing.
    """
    mean = Times.of(habits.central)
    corners = [Times.of(each) for each in habits.corners]
    shared: dict[str, Floats | float] = dict.fromkeys(FIELDS, 0.0)
    if not habits.models:
        return Cases(mean, (mean,), tuple(corners), shared, 0.0)
    if n_gpus is None:
        msg = "n_gpus: habits that have models need the size of each attempt"
        raise ValueError(msg)
    place, distinct = pd.factorize(n_gpus)
    sizes = np.asarray(distinct, dtype=float)
    means: dict[str, Floats] = {}
    points: dict[str, Floats] = {}
    write_cv2: Floats | float = 0.0
    for name, model in habits.models.items():
        means[name] = model.mean(sizes)[place]
        shared[name] = model.shared_share(sizes)[place]
        if name == "write_s":
            write_cv2 = np.expm1(model.shared_var(sizes) + model.own_var)[place]
        else:
            points[name] = model.nodes(sizes)[:, place]
    mean = replace(mean, **means)
    nodes = tuple(
        replace(mean, **{name: values[at] for name, values in points.items()})
        for at in range(len(WEIGHTS))
    )
    others = (mean, *(replace(each, **means) for each in corners)) if habits.assumes else ()
    return Cases(mean, nodes, others, shared, write_cv2)


def _average(values: Sequence[Floats]) -> Floats:
    """Mean of the values at the nodes."""
    total = np.zeros(len(values[0]))
    for weight, each in zip(WEIGHTS, values, strict=True):
        total += weight * each
    return total
