"""What else an incident shows that shows a given signal."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from analytics.proportion import proportion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.estimate import Estimate
    from analytics.failures.co_occurrence import SignalSet


@dataclass(frozen=True)
class Companion:
    """Signals that come with another one, and how often."""

    given: str
    """The signal that is looked at."""
    companions: tuple[str, ...]
    """Signals that come with it."""
    share: Estimate
    """Share of the failures that show `given` which show all companions too; n = those that show
    `given`."""
    n_both: int
    """Failures that show all of them."""
    lift: float | None
    """Failures that show all of them over the number expected by chance."""


def companions(sets: Sequence[SignalSet]) -> tuple[Companion, ...]:
    """Of each signal of each set, how often the rest of the set comes with it.

    .. math:: \\hat p(S \\setminus s \\mid s) = n_S / n_s

    n_S failures show every signal of the set S and n_s its signal s, with Clopper and Pearson's
    interval of n_S of n_s.

    Parameters
    ----------
    sets : sequence of SignalSet
        As `co_occurrence` returns them: every set with all its parts.

    Returns
    -------
    tuple of Companion
        Most frequent sets first; of one set the signal that the others come with most.

    Notes
    -----
    A large share does not say which came first, nor that the one caused the other. Of a signal
    that nearly all failures show, everything comes with it: look at the lift.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, section III: of PCIe errors, 43 % come with XID 79 on one
    cluster and 63 % on the other.

    Examples
    --------
    >>> import pandas as pd
    >>> from analytics.failures.co_occurrence import co_occurrence
    >>> seen = pd.DataFrame({"failure": ["a", "a", "b", "c"],
    ...                      "signal": ["pcie", "XID 79", "pcie", "pcie"]})
    >>> [(one.given, one.companions, round(one.share.value, 2), one.share.n)
    ...  for one in companions(co_occurrence(seen, 4))]
    [('XID 79', ('pcie',), 1.0, 1), ('pcie', ('XID 79',), 0.33, 3)]
    """
    counts = {one.signals: round((one.share.value or 0.0) * one.n_failures) for one in sets}
    found = [
        Companion(
            signal,
            tuple(other for other in one.signals if other != signal),
            proportion(counts[one.signals], counts[(signal,)], one.share.conf_level),
            counts[one.signals],
            one.lift,
        )
        for one in sets
        if len(one.signals) > 1
        for signal in one.signals
    ]
    return tuple(
        sorted(found, key=lambda one: (-one.n_both, len(one.companions), one.share.n, one.given))
    )
