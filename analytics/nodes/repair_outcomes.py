"""Which repairs hold: next failures by action, beside other repairs and beside other nodes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics import validate
from analytics.estimate import CONF_LEVEL, Estimate, unknown
from analytics.nodes.repairs import HORIZON_DAYS, Key, Repair
from analytics.reliability.rate_regression import ALL_OTHERS, LevelRate, rate_ratios

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import ArrayLike

    from analytics.reliability.rate_regression import RateComparison

OTHERS: Final = "nodes not just repaired"
MOST_EARLIER: Final = 2
"""Earlier repairs from which more make no difference to the adjustment."""
RETURNS: Final = 2
"""Repairs that did not hold, by hardware, from which a node is for its vendor."""
Verdict = Literal["does not hold", "holds better", "no difference shown", "too little data"]


@dataclass(frozen=True)
class ActionOutcome:
    """What became of the nodes after one action."""

    action: str
    n_repairs: int
    n_nodes: int
    n_failed: int
    """Failed within the horizon."""
    fails_again: Estimate
    """Share that fails within the horizon, by Kaplan and Meier; n = repairs."""
    exposure_node_days: float
    """In jobs, until failure or horizon."""
    beside_repairs: Estimate
    """Rate of next failures over that of all other actions, adjusted for what came before."""
    beside_nodes: Estimate
    """The same over the failure rate of nodes that were not just repaired."""
    verdict: Verdict


@dataclass(frozen=True)
class Returned:
    """A node that failed again and again after its repairs."""

    of: Key
    repairs: tuple[Repair, ...]
    """Those that did not hold, in order of time."""
    n_repairs: int
    n_hardware: int
    """Of those that did not hold, failures of hardware, or of no known domain."""
    p_value: float
    """Chance of so many at the rate of all repaired nodes."""

    @property
    def for_vendor(self) -> bool:
        """Whether it is on the list for the vendor."""
        return self.n_hardware >= RETURNS


@dataclass(frozen=True)
class RepairOutcomes:
    """Which repairs hold."""

    actions: tuple[ActionOutcome, ...]
    """The most frequent first."""
    horizon_days: float
    fails_again: Estimate
    """Of all repairs."""
    beside_nodes: Estimate
    """Of all repairs: rate of next failures over that of nodes that were not just repaired."""
    returned: tuple[Returned, ...]
    """Nodes of which a repair did not hold, the least likely by chance first."""

    @property
    def failing(self) -> tuple[ActionOutcome, ...]:
        """Actions that do not hold."""
        return tuple(outcome for outcome in self.actions if outcome.verdict == "does not hold")


def fails_within(
    days: ArrayLike, failed: ArrayLike, horizon_days: float, *,
    n_items: int | None = None, conf_level: float = CONF_LEVEL,
) -> Estimate:  # fmt: skip
    """Share that fails within a time, where some were not watched so long.

    .. math:: F(t) = 1 - \\prod_{t_i \\le t} (1 - d_i / n_i)

    with d_i failures among n_i watched at t_i (Kaplan and Meier). The interval is Clopper and
    Pearson's of as many trials as have Greenwood's variance, F (1 - F) / Var F, fewer in the
    proportion of `n_items` to rows, since repairs of one node are not independent.

    Parameters
    ----------
    days, failed : array_like, shape (n,)
        Days watched, >= 0, and whether a failure ended them.
    n_items : int, optional
        Different items (nodes) among the rows.

    Raises
    ------
    OutOfRangeError, ShapeError
        For negative days, unequal lengths, a horizon that is not > 0 or a level outside (0, 1).

    References
    ----------
    Kaplan, E. L. and Meier, P. (1958). JASA 53, 457-481. Korn, E. L. and Graubard, B. I. (1998).
    Survey Methodology 24, 193-201 (effective trials).

    Examples
    --------
    >>> share = fails_within([1, 2, 3, 3], [1, 0, 1, 0], 2.5)
    >>> share.value, share.n
    (0.25, 4)
    """
    validate.conf_level(conf_level)
    validate.positive("horizon_days", horizon_days, "pass days, e.g. 28")
    times = validate.nonnegative_array("days", days)
    ended = validate.count_array("failed", failed)
    validate.same_length(days=times, failed=ended)
    n = len(times)
    survival, spread = 1.0, 0.0
    ends, deaths = np.unique(times[(ended > 0) & (times <= horizon_days)], return_counts=True)
    at_risks = n - np.searchsorted(np.sort(times), ends)
    for at_risk, died in zip(at_risks.tolist(), deaths.tolist(), strict=True):
        survival *= 1.0 - died / at_risk
        spread += died / (at_risk * (at_risk - died)) if at_risk > died else 0.0
    watched = int((times >= horizon_days).sum())
    if not n or (not watched and survival > 0):
        return unknown(conf_level, n)
    share = 1.0 - survival
    trials = share / (survival * spread) if spread and survival else float(max(watched, 1))
    if not survival:
        trials = float(n)
    trials *= min(1.0, (n if n_items is None else n_items) / n)
    hits, tail = share * trials, (1.0 - conf_level) / 2.0
    lower = float(special.betaincinv(hits, trials - hits + 1.0, tail)) if hits else 0.0
    upper = float(special.betaincinv(hits + 1.0, trials - hits, 1.0 - tail)) if survival else 1.0
    return Estimate(share, lower, upper, conf_level, n)


def outcomes(
    repairs: Sequence[Repair],
    exposure_node_days: Sequence[float],
    others: Mapping[Key, tuple[int, float]],
    *,
    horizon_days: float = HORIZON_DAYS,
    conf_level: float = CONF_LEVEL,
) -> RepairOutcomes:
    """What became of repaired nodes, by action.

    Next failures within the horizon over the node-days in jobs until then, as rate ratios
    (`rate_regression`) to all other repairs, adjusted for how often the node had been repaired in
    the 90 days before and for whether it had failed, and to nodes that were not just repaired.
    An action does not hold where its ratio to other repairs is above 1 by more than chance, all
    actions tested together.

    Parameters
    ----------
    exposure_node_days
        Of each repair, from return to failure or horizon (`windows`).
    others
        Node -> failures and node-days outside its repairs and the horizons after them.
    horizon_days : float
        Days > 0 in which a repair is expected to hold.

    Notes
    -----
    Beside nodes that were not just repaired, repaired ones fail more often even if all repairs
    are good, since nodes that fail often are repaired often. What tells a bad action is how other
    repairs do. Actions for different troubles differ by these, too.
    """
    validate.positive("horizon_days", horizon_days, "pass days, e.g. 28")
    held = np.asarray(exposure_node_days, dtype=np.float64)
    days = np.array([repair.days for repair in repairs])
    ended = np.array([repair.failure is not None for repair in repairs], dtype=bool)
    failed = (ended & (days <= horizon_days)).astype(np.float64)
    nodes = ["/".join(repair.of) for repair in repairs]
    by_action = defaultdict[str, list[int]](list)
    for at, repair in enumerate(repairs):
        by_action[repair.action].append(at)
    actions = [repair.action for repair in repairs]
    among = _by_level(
        rate_ratios(
            nodes, actions, failed, held,
            conf_level=conf_level, reference=ALL_OTHERS,
            factors={
                "earlier repairs": [str(min(repair.earlier, MOST_EARLIER)) for repair in repairs],
                "failure before": [str(repair.after_failure) for repair in repairs],
            },
        )
    )  # fmt: skip
    to_nodes = _beside_nodes(nodes, actions, failed, held, others, conf_level)
    again = partial(fails_within, horizon_days=horizon_days, conf_level=conf_level)
    whole = _beside_nodes(nodes, ["all"] * len(nodes), failed, held, others, conf_level)
    found = [
        ActionOutcome(
            action,
            len(rows),
            n_nodes,
            int(failed[rows].sum()),
            again(days[rows], ended[rows], n_items=n_nodes),
            float(held[rows].sum()),
            among[action].ratio if action in among else unknown(conf_level, 0),
            to_nodes.get(action, unknown(conf_level, 0)),
            _verdict(among.get(action), len(among)),
        )
        for action, rows in by_action.items()
        for n_nodes in [len({nodes[at] for at in rows})]
    ]
    found.sort(key=lambda outcome: (-outcome.n_repairs, outcome.action))
    return RepairOutcomes(
        tuple(found),
        horizon_days,
        again(days, ended, n_items=len(set(nodes))),
        whole.get("all", unknown(conf_level, int(failed.sum()))),
        _returned(repairs, failed, held),
    )


def _by_level(found: RateComparison) -> dict[str, LevelRate]:
    """The levels of a comparison by their names."""
    return {rate.level: rate for rate in found.levels}


def _beside_nodes(
    nodes: Sequence[str],
    levels: Sequence[str],
    failed: np.ndarray,
    held: np.ndarray,
    others: Mapping[Key, tuple[int, float]],
    conf_level: float,
) -> dict[str, Estimate]:
    """Ratio of each level of repairs to nodes that were not just repaired; none without such."""
    known = [(of, n, days) for of, (n, days) in others.items() if n or days]
    if not known:
        return {}
    compared = rate_ratios(
        [*nodes, *("/".join(of) for of, _, _ in known)],
        [*levels, *[OTHERS] * len(known)],
        [*failed, *(n for _, n, _ in known)],
        [*held, *(days for _, _, days in known)],
        reference=OTHERS,
        conf_level=conf_level,
    )
    return {level: rate.ratio for level, rate in _by_level(compared).items()}


def _verdict(level: LevelRate | None, n_levels: int) -> Verdict:
    """What the comparison with other repairs says."""
    if level is None or level.p_value is None or n_levels < 2:
        return "too little data"
    if not level.stands_out:
        return "no difference shown"
    return (
        "does not hold" if (level.ratio.value or level.ratio.lower or 0.0) > 1 else "holds better"
    )


def _returned(
    repairs: Sequence[Repair], failed: np.ndarray, held: np.ndarray
) -> tuple[Returned, ...]:
    """Nodes of which a repair did not hold."""
    rate = failed.sum() / held.sum() if held.sum() > 0 else 0.0
    by_node = defaultdict[Key, list[int]](list)
    for at, repair in enumerate(repairs):
        by_node[repair.of].append(at)
    found = []
    for of, rows in by_node.items():
        again = [repairs[at] for at in rows if failed[at]]
        if not again:
            continue
        expected = rate * held[rows].sum()
        hardware = [
            repair
            for repair in again
            if repair.failure and repair.failure.domain in (None, "hardware")
        ]
        chance = float(special.gammainc(len(again), expected)) if expected > 0 else 1.0
        found.append(Returned(of, tuple(again), len(rows), len(hardware), chance))
    return tuple(
        sorted(found, key=lambda returned: (-len(returned.repairs), returned.p_value, returned.of))
    )
