"""Signals that failures show together, and what comes with a given one: shares with intervals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL
from analytics.failures.columns import require
from analytics.proportion import proportion

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from analytics.estimate import Estimate

LARGEST_SET = 3
"""Signals in a set at most."""


@dataclass(frozen=True)
class SignalSet:
    """A set of signals and how many of the failures show all of them."""

    signals: tuple[str, ...]
    share: Estimate
    """Share of the failures that show all; n = failures looked at."""
    lift: float | None
    """Share over the share expected by chance, the product of the single shares; None of one."""


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


def co_occurrence(
    signals: pd.DataFrame, n_failures: int, *, conf_level: float = 0.90
) -> tuple[SignalSet, ...]:
    """Sets of signals by the share of failures that show all of a set.

    .. math:: \\hat p_S = n_S / N, \\quad
        \\mathrm{lift}(S) = \\hat p_S / \\prod_{s \\in S} \\hat p_s

    n_S of the N failures show every signal of S (and perhaps others). A lift of 1 is what
    independent signals would give.

    Parameters
    ----------
    signals : DataFrame
        Columns failure (a key unique to the failure) and signal (a name); a signal that a failure
        shows twice counts once, null ones do not.
    n_failures : int
        N, failures without any signal included.
    conf_level : float
        Of the Clopper-Pearson intervals.

    Returns
    -------
    tuple of SignalSet
        Of up to `LARGEST_SET` signals, single ones too; most frequent first, then smaller sets,
        then by name.

    Raises
    ------
    OutOfRangeError, ShapeError
        For N below the number of failures in the frame, a level outside (0, 1) or a missing
        column.

    Notes
    -----
    The failures are taken as independent: those of one incident are not, so count one a incident
    where storms are large. Many sets are looked at, so a single high lift may be chance.

    References
    ----------
    Kokolis et al., arXiv 2410.21680, section III: of PCIe errors, 43 % come with XID 79 on one
    cluster and 63 % on the other; 21 % and 49 % with an IPMI critical interrupt as well.

    Examples
    --------
    >>> import pandas as pd
    >>> seen = pd.DataFrame({"failure": ["a", "a", "b", "c"],
    ...                      "signal": ["pcie", "XID 79", "pcie", "XID 79"]})
    >>> [(one.signals, one.share.value, one.lift) for one in co_occurrence(seen, 4)]
    [(('XID 79',), 0.5, None), (('pcie',), 0.5, None), (('XID 79', 'pcie'), 0.25, 1.0)]
    """
    validate.conf_level(conf_level)
    require("signals", signals, ("failure", "signal"))
    shown = signals.dropna(subset=["failure", "signal"]).drop_duplicates(["failure", "signal"])
    patterns = Counter(shown.groupby("failure")["signal"].agg(frozenset).tolist())
    seen = sum(patterns.values())
    if n_failures < seen:
        raise OutOfRangeError(
            "n_failures", f">= the {seen} failures with a signal", n_failures, "count all failures"
        )
    counts: Counter[tuple[str, ...]] = Counter()
    for pattern, n in patterns.items():
        for size in range(1, LARGEST_SET + 1):
            for one in combinations(sorted(pattern), size):
                counts[one] += n
    order = sorted(counts, key=lambda one: (-counts[one], len(one), one))
    return tuple(
        SignalSet(
            one,
            proportion(counts[one], n_failures, conf_level),
            _lift(one, counts, n_failures),
        )
        for one in order
    )


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
    >>> seen = pd.DataFrame({"failure": ["a", "a", "b", "c"],
    ...                      "signal": ["pcie", "XID 79", "pcie", "pcie"]})
    >>> [(one.given, one.companions, round(one.share.value, 2), one.share.n)
    ...  for one in companions(co_occurrence(seen, 4))]
    [('XID 79', ('pcie',), 1.0, 1), ('pcie', ('XID 79',), 0.33, 3)]
    """
    counts = {one.signals: round((one.share.value or 0.0) * one.share.n) for one in sets}
    found = [
        Companion(
            signal,
            tuple(other for other in one.signals if other != signal),
            proportion(counts[one.signals], counts[(signal,)], one.share.conf_level or CONF_LEVEL),
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


def _lift(one: tuple[str, ...], counts: Mapping[tuple[str, ...], int], total: int) -> float | None:
    """Count of a set over its count expected from its single signals."""
    if len(one) == 1:
        return None
    return float(counts[one] / total / prod(counts[signal,] / total for signal in one))
