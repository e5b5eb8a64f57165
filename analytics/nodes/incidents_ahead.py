"""What incidents of nodes will cost in the days ahead, drawn with all that is not known of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from analytics.arrays import Floats, Ints

OWN_WEIGHT: Final = 3.0
"""Incidents of a node that weigh as much as what is usual in the fleet, and of the fleet as much as
what is taken from elsewhere: of costs, and of the share that tests find."""
RATIOS: Final = np.geomspace(0.02, 200, 100)
"""Rates of nodes over the fleet's that are weighed."""
DIFFER: Final = 0.5
"""Deviation of the logarithm by which the law of rates is smoothed: nodes differ by so much at
least, and the rate of one bad node is not taken for known."""
ROUNDS: Final = 30
"""Of expectation, maximisation and smoothing."""
BLOCKS: Final = (2, 8)
"""Least and most parts of the window by which the scatter over time is known."""
WEEKS: Final = 8
"""Parts of the window by which what the whole fleet shares is known."""
PRIOR_DEGREES: Final = 2.0
PRIOR_SCATTER: Final = 1.5
"""Scatter that is assumed, with these degrees of freedom, beside the window's own."""
FLEET_MOVES: Final = 0.05
"""The same of the variance of what the whole fleet shares."""
NODE_MOVES: Final = 0.2
"""Relative variance of a node's rate from a window to the days after it: nodes are repaired, and
break. Both are about what LANL's clusters show (LA-UR-05-7318)."""
DRAWS: Final = 500
CHUNK: Final = 2_000_000
"""Weights drawn at a time."""


@dataclass(frozen=True)
class Past:
    """Incidents of a fleet in a window; arrays of nodes, and of incidents in order of nodes.

    Attributes
    ----------
    exposure
        Node-days of each node in jobs.
    busy_ratio
        Share of the window that it was in jobs, what is expected of the days ahead.
    place
        Node of each incident, index into `exposure`, ascending.
    when
        When it began, in [0, 1) of the window.
    gpu_hours
        What it cost, of one that names several nodes its part.
    window_days
        Length of the window.
    most_gpu_hours
        Beyond which no incident can cost.
    """

    exposure: Floats
    busy_ratio: Floats
    place: Ints
    when: Floats
    gpu_hours: Floats
    window_days: float
    most_gpu_hours: float

    @property
    def n(self) -> Floats:
        """Incidents of each node."""
        return np.bincount(self.place, minlength=len(self.exposure)).astype(np.float64)

    def by_part(self, parts: int) -> Floats:
        """Incidents of each node in equal parts of the window, shape (nodes, parts)."""
        part = np.clip((self.when * parts).astype(np.int64), 0, parts - 1)
        cell = self.place * parts + part
        counts = np.bincount(cell, minlength=len(self.exposure) * parts).astype(np.float64)
        return counts.reshape(-1, parts)


@dataclass(frozen=True)
class Rates:
    """What is known of the rates of a fleet."""

    mean: float
    """Incidents per node-day."""
    scatter: float
    """Variance over mean of the numbers of one node: 1 of Poisson's law, more where they come in
    bursts or the node was repaired meanwhile."""
    degrees: float
    """Degrees of freedom by which the scatter is known."""
    posterior: Floats
    """Probability of each of `RATIOS` of the mean, shape (nodes, ratios)."""

    @property
    def expected(self) -> Floats:
        """Incidents per node-day of each node."""
        found: Floats = self.posterior @ RATIOS * self.mean
        return found

    def bounds(self, conf_level: float) -> tuple[Floats, Floats]:
        """Quantiles of the rate of each node, incidents per node-day."""
        below = self.posterior.cumsum(axis=1)
        lower, upper = (
            RATIOS[np.minimum((below < tail).sum(axis=1), len(RATIOS) - 1)] * self.mean
            for tail in ((1 - conf_level) / 2, (1 + conf_level) / 2)
        )
        return np.minimum(lower, self.expected), np.maximum(upper, self.expected)

    def drawn(self, draws: int, rng: np.random.Generator) -> Floats:
        """Rates of the nodes, shape (draws, nodes)."""
        n_nodes = len(self.posterior)
        heaped = self.posterior.cumsum(axis=1) + np.arange(n_nodes)[:, None]
        at = rng.random((draws, n_nodes)) + np.arange(n_nodes)
        place = np.searchsorted(heaped.ravel(), at) - len(RATIOS) * np.arange(n_nodes)
        found: Floats = RATIOS[np.clip(place, 0, len(RATIOS) - 1)] * self.mean
        return found


def rates(past: Past, horizon_days: float) -> Rates:
    """Rates of the nodes by empirical Bayes, whatever their law, and their scatter over time.

    .. math:: p(r \\mid n_i) \\propto w_r \\left( (r \\mu T_i)^{n_i} e^{-r \\mu T_i}
        \\right)^{1 / \\phi}, \\quad
        \\phi = \\frac{\\sum_{ik} (n_{ik} - n_i / K)^2}{\\sum_i n_i (1 - 1 / K)}

    with n_ik incidents of node i in part k of K parts of the window, each about as long as the
    horizon (2 at least, 8 at most), and mu the fleet's rate. The weights w of the ratios r come of
    all nodes, so that a few bad ones do not make the others look as if they differed.

    References
    ----------
    Silverman, B. W. et al. (1990). A smoothed EM approach to indirect estimation problems. JRSS B
    52, 271-324.
    """
    n, days = past.n, past.exposure
    parts = int(np.clip(round(past.window_days / horizon_days), *BLOCKS))
    uneven = float(((past.by_part(parts) - n[:, None] / parts) ** 2).sum())
    degrees = float((parts - 1) * n.sum() ** 2 / (n**2).sum())
    by_moments = uneven / (float(n.sum()) * (1 - 1 / parts))
    scatter = (degrees * by_moments + PRIOR_DEGREES * PRIOR_SCATTER) / (degrees + PRIOR_DEGREES)
    scatter, mean = max(scatter, 1.0), float(n.sum() / days.sum())
    usual = np.maximum(days[:, None] * mean * RATIOS, 1e-12)
    log_likely = (n[:, None] * np.log(usual) - usual) / scatter
    likely = np.exp(log_likely - log_likely.max(axis=1, keepdims=True))
    healthy = RATIOS * np.exp(-RATIOS)
    apart = np.log(RATIOS[:, None] / RATIOS) / DIFFER + DIFFER / 2  # the mean stays
    smooth = np.exp(-(apart**2) / 2)
    smooth /= smooth.sum(axis=0)
    weight = 0.9 * healthy / healthy.sum() + 0.1 / len(RATIOS)
    for _ in range(ROUNDS):
        posterior = likely * weight
        posterior /= posterior.sum(axis=1, keepdims=True)
        weight = smooth @ posterior.mean(axis=0)
    return Rates(mean, scatter, degrees + PRIOR_DEGREES, posterior)


def shared_variance(past: Past, scatter: float) -> float:
    """Relative variance of what the fleet shares in an eighth of the window, beyond chance."""
    of_part = past.by_part(WEEKS).sum(axis=0)
    mean, degrees = float(of_part.mean()), WEEKS - 1
    seen = max(0.0, float(of_part.var(ddof=1)) - scatter * mean) / mean**2
    return (degrees * seen + PRIOR_DEGREES * FLEET_MOVES) / (degrees + PRIOR_DEGREES)


def expected_costs(past: Past) -> Floats:
    """Mean cost of an incident of each node, drawn towards the fleet's as if three were its own."""
    own = np.bincount(past.place, past.gpu_hours, minlength=len(past.exposure))
    found: Floats = (OWN_WEIGHT * past.gpu_hours.mean() + own) / (OWN_WEIGHT + past.n)
    return found


@dataclass(frozen=True)
class Shares:
    """Which kinds of incidents tests find; kinds are exclusive.

    Attributes
    ----------
    elsewhere
        Share of each kind as found elsewhere, sum 1, shape (kinds,).
    counts
        Incidents of each node by kind, where it is known, shape (nodes, kinds).
    found
        Whether the tests of a node find a kind, shape (nodes, kinds).
    """

    elsewhere: Floats
    counts: Floats
    found: Floats

    def drawn(self, draws: int, rng: np.random.Generator) -> Floats:
        """Share that each node's tests find: Dirichlet's law of the fleet, of the node around it.

        Shape (draws, nodes).
        """
        fleet = rng.standard_gamma(
            OWN_WEIGHT * self.elsewhere + self.counts.sum(axis=0), (draws, len(self.elsewhere))
        )
        fleet /= fleet.sum(axis=1, keepdims=True)
        usual = OWN_WEIGHT * (fleet @ self.found.T)
        own = (self.counts * self.found).sum(axis=1)
        found = rng.standard_gamma(usual + own)
        missed = rng.standard_gamma(
            np.maximum(OWN_WEIGHT - usual, 0.0) + self.counts.sum(axis=1) - own
        )
        share: Floats = np.divide(found, found + missed, out=np.zeros_like(found), where=found > 0)
        return share


def kind_shares(elsewhere: Floats, counts: Floats) -> Floats:
    """Share of each kind to be expected of each node: its own drawn towards the fleet's, and these
    towards what was found elsewhere, each as if that were three incidents."""
    of_fleet = OWN_WEIGHT * elsewhere + counts.sum(axis=0)
    fleet = of_fleet / of_fleet.sum()
    own = OWN_WEIGHT * fleet + counts
    shares: Floats = own / own.sum(axis=1, keepdims=True)
    return shares


@dataclass(frozen=True)
class Ahead:
    """Draws of the days ahead, shape (draws, nodes)."""

    numbers: Ints
    gpu_hours: Floats
    """That incidents cost."""
    found_gpu_hours: Floats
    """Of these, of incidents that the tests of the node would show."""


def ahead(past: Past, shares: Shares, *, horizon_days: float, seed: int = 0) -> Ahead:
    """Numbers and costs of incidents in the horizon, with all that is not known of them.

    Rates are drawn from their posterior, times gamma factors for how far the fleet's mean is known,
    for what the fleet shares and for what a node does of its own. Numbers are negative binomial
    with a scatter that is drawn. Costs come from a Dirichlet process of the node around the fleet's
    around a log-normal law, whose parameters are drawn. Tests find each incident with the share
    drawn of their node.

    Parameters
    ----------
    past : Past
        With one incident at least, and some exposure.
    """
    rng = np.random.default_rng(seed)
    of_fleet = rates(past, horizon_days)
    varies = shared_variance(past, of_fleet.scatter)
    size = max(1, CHUNK // max(len(past.exposure), len(past.place)))
    found = []
    for start in range(0, DRAWS, size):
        draws = min(size, DRAWS - start)
        mean = _means(past, of_fleet, varies, draws, rng) * (past.busy_ratio * horizon_days)
        degrees = of_fleet.degrees
        scatter = of_fleet.scatter * degrees / rng.chisquare(degrees, (draws, 1))
        bursts = np.maximum(scatter - 1, 1e-6)
        numbers = rng.poisson(rng.standard_gamma(mean / bursts) * bursts)
        shown = rng.binomial(numbers, shares.drawn(draws, rng))
        heaped = np.concatenate([[0.0], np.cumsum(_costs(past, numbers, rng))])
        ends = np.cumsum(numbers.ravel()).reshape(numbers.shape)
        begins = ends - numbers
        found.append(
            (numbers, heaped[ends] - heaped[begins], heaped[begins + shown] - heaped[begins])
        )
    return Ahead(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _means(
    past: Past, of_fleet: Rates, varies: float, draws: int, rng: np.random.Generator
) -> Floats:
    """Rates of the nodes in the days ahead, incidents per node-day in jobs."""
    rate = of_fleet.drawn(draws, rng)
    known = float(past.n.sum()) / of_fleet.scatter
    degrees = WEEKS - 1 + PRIOR_DEGREES
    shared = varies * degrees / rng.chisquare(degrees, (draws, 1))
    of_all = rng.gamma(known, 1 / known, (draws, 1)) * rng.standard_gamma(1 / shared) * shared
    found: Floats = rate * of_all * rng.gamma(1 / NODE_MOVES, NODE_MOVES, rate.shape)
    return found


def _costs(past: Past, numbers: Ints, rng: np.random.Generator) -> Floats:
    """A cost for each incident of each draw and node, in their order."""
    draws, n_known = len(numbers), len(past.place)
    draw, node = np.divmod(np.repeat(np.arange(numbers.size), numbers.ravel()), numbers.shape[1])
    costs = _unseen(past, draw, draws, rng)
    weights = rng.standard_exponential((2, draws, n_known))
    heaped = np.concatenate([np.zeros((2, draws, 1)), weights.cumsum(axis=2)], axis=2)
    of_fleet, of_node = heaped
    # Of the fleet's incidents, by their weights against that of the log-normal law.
    whole = of_fleet[:, -1]
    at = rng.random(len(draw)) * (whole + rng.standard_gamma(OWN_WEIGHT, draws))[draw]
    seen = at < whole[draw]
    costs[seen] = past.gpu_hours[_picked(of_fleet, draw[seen], at[seen])]
    # Of the node's own, by their weights against that of the fleet.
    first, last = (np.searchsorted(past.place, node, side=side) for side in ("left", "right"))
    low, high = of_node[draw, first], of_node[draw, last]
    usual = rng.standard_gamma(OWN_WEIGHT, numbers.shape)[draw, node]
    at = low + rng.random(len(draw)) * (high - low + usual)
    seen = at < high
    costs[seen] = past.gpu_hours[_picked(of_node, draw[seen], at[seen])]
    return costs


def _picked(heaped: Floats, draw: Ints, at: Floats) -> Ints:
    """The incident on whose weight each place of its draw falls; weights are heaped up."""
    whole = heaped[:, -1].max() + 1.0
    rows = heaped + whole * np.arange(len(heaped))[:, None]
    place: Ints = np.searchsorted(rows.ravel(), at + whole * draw, side="right") - 1
    found: Ints = np.clip(place - draw * heaped.shape[1], 0, heaped.shape[1] - 2)
    return found


def _unseen(past: Past, draw: Ints, draws: int, rng: np.random.Generator) -> Floats:
    """Costs that need not have been seen yet: none, or log-normal up to the most."""
    n_all = len(past.gpu_hours)
    logs = np.log(past.gpu_hours[past.gpu_hours > 0])
    n = len(logs)
    nothing = rng.beta(0.5 + n_all - n, 0.5 + n, draws)
    squares = 1.0 + (float(logs.var()) * n if n else 0.0)
    spread = np.sqrt(squares / rng.chisquare(max(n, 1), draws))
    middle = (float(logs.mean()) if n else 0.0) + spread / max(n, 1) ** 0.5 * rng.normal(size=draws)
    high = np.log(max(past.most_gpu_hours, 1e-9))
    drawn = np.exp(np.minimum(middle[draw] + spread[draw] * rng.normal(size=len(draw)), high))
    found: Floats = np.where(rng.random(len(draw)) < nothing[draw], 0.0, drawn)
    return found
