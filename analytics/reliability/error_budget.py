"""Error budgets: what a target allows to go wrong in four weeks, and how fast it is spent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import OutOfRangeError, ShapeError
from analytics.estimate import Estimate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Bools, Floats

PERIOD_HOURS: Final = 28 * 24
"""Period of a budget."""
HOURLY: Final = (1, 6, 24, 72)
"""Windows, in hours, of figures that are known by the hour."""
DAILY: Final = (24, 72, 168)
"""Of those that are known by the day."""


@dataclass(frozen=True)
class Pair:
    """Two windows that must both burn: the long one shows that it matters, the short one that it
    still goes on."""

    long_hours: int
    short_hours: int
    budget_share: float
    """Of the budget that the long window spends at least."""

    @property
    def burn(self) -> float:
        """How many times as fast as allowed both windows spend, at least.

        >>> Pair(24, 6, 0.25).burn
        7.0
        """
        return self.budget_share * PERIOD_HOURS / self.long_hours


HOURLY_PAIRS: Final = (Pair(6, 1, 0.05), Pair(24, 6, 0.1), Pair(72, 6, 0.15), Pair(672, 72, 1.0))
DAILY_PAIRS: Final = (Pair(72, 24, 0.15), Pair(168, 24, 0.3), Pair(672, 168, 1.0))
"""The last pair of each: the budget is spent, and goes on being overspent."""


@dataclass(frozen=True)
class ErrorBudget:
    """A target, and what of its budget is left."""

    allowed: float
    """What may go wrong, per unit of what is measured: 1 - target of a share."""
    wrong: Estimate
    """What did, per unit, in the period."""
    burns: Mapping[int, Estimate]
    """Hours of a window -> how many times as fast as allowed it spent."""

    @property
    def left(self) -> Estimate:
        """Share of the budget that is left; below 0 where more was spent than there was."""
        spent = self.wrong.scaled(1.0 / self.allowed)
        return Estimate(
            None if spent.value is None else 1.0 - spent.value,
            None if spent.upper is None else 1.0 - spent.upper,
            None if spent.lower is None else 1.0 - spent.lower,
            spent.conf_level,
            spent.n,
        )


def error_budget(allowed: float, wrong: Estimate, windows: Mapping[int, Estimate]) -> ErrorBudget:
    r"""The budget of a target, and its burn over windows.

    .. math:: \text{left} = 1 - \frac{w}{a}, \quad \text{burn}_h = \frac{w_h}{a}

    with w what went wrong per unit in the period, :math:`w_h` in the last h hours and a what is
    allowed: 1 - target of availability (per node-hour) and of ETTR (per GPU-hour), the target
    itself of a failure rate. A burn of 1 spends the budget in exactly one period.

    Parameters
    ----------
    allowed : float
        a, > 0 in the unit of `wrong`.
    wrong : Estimate
        Of the period; unknown where nothing could be seen.
    windows : mapping
        Hours -> the same of the last hours.

    Raises
    ------
    OutOfRangeError
        Where nothing is allowed: a target of 1 has no budget.

    References
    ----------
    Beyer et al. (2018), The Site Reliability Workbook, chapter 5: burn rates over several windows.

    Examples
    --------
    >>> day = Estimate(0.1, 0.08, 0.12, 0.9, 40)
    >>> found = error_budget(0.05, Estimate(0.02, 0.01, 0.03, 0.9, 40), {24: day})
    >>> found.left.value, found.burns[24].value
    (0.6, 2.0)
    """
    if not allowed > 0:
        raise OutOfRangeError("allowed", "> 0", allowed, "state a target that allows something")
    burns = {hours: each.scaled(1.0 / allowed) for hours, each in windows.items()}
    return ErrorBudget(allowed, wrong, burns)


def burning(
    wrong: Floats, exposure: Floats, allowed: float, pairs: Sequence[Pair], *, step_hours: int = 1
) -> Bools:
    """At the end of which steps any pair of windows burns as fast as it says, in both windows.

    Parameters
    ----------
    wrong, exposure : numpy.ndarray, shape (steps,)
        What went wrong in each step, and of how much; a window without exposure does not burn.

    Raises
    ------
    ShapeError
        Where both differ in length.

    Examples
    --------
    >>> wrong = np.array([0.0] * 80 + [3.0] * 6)
    >>> burning(wrong, np.full(86, 10.0), 0.05, [Pair(4, 1, 0.02)])[-6:].tolist()
    [False, False, True, True, True, True]
    """
    if len(wrong) != len(exposure):
        raise ShapeError(f"exposure must have a value a step, got {len(exposure)} and {len(wrong)}")
    found = np.zeros(len(wrong), dtype=bool)
    for pair in pairs:
        both = [
            _burn(wrong, exposure, allowed, hours // step_hours) >= pair.burn * (1.0 - 1e-9)
            for hours in (pair.long_hours, pair.short_hours)
        ]
        found |= both[0] & both[1]
    return found


def calm(
    wrong: Floats, exposure: Floats, allowed: float, hours: int, *, step_hours: int = 1
) -> Bools:
    """At the end of which steps the last hours spent less than is allowed.

    >>> calm(np.array([2.0, 0.0, 0.0]), np.full(3, 10.0), 0.05, 2).tolist()
    [False, False, True]
    """
    return np.asarray(_burn(wrong, exposure, allowed, hours // step_hours) < 1.0)


def _burn(wrong: Floats, exposure: Floats, allowed: float, steps: int) -> Floats:
    """Burn of the last steps at the end of each; of what was recorded of them."""
    spent, of = (_last(each, max(steps, 1)) for each in (wrong, exposure))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(of > 0, spent / (allowed * of), 0.0))


def _last(values: Floats, steps: int) -> Floats:
    """Sum of the last steps at the end of each."""
    summed = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(1, len(summed)) - steps, 0)
    return np.asarray(summed[1:] - summed[first])
