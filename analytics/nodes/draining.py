"""What taking lemons out of service saves: expected of the next days, and in those that were."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import special

from analytics import validate
from analytics.efficiency.ettr_forms import ettr_exact
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.episodes import KINDS
from analytics.nodes.ratios import GRID
from analytics.reliability.failure_rate import poisson_rate

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Floats, Ints
    from analytics.nodes.lemons import JudgedCluster
    from analytics.nodes.records import NodeRecords


OWN_WEIGHT: Final = 3.0
"""Occasions of a node whose losses weigh as much as what is usual in the fleet."""
RESTART_MIN: Final = 5.0
INTERVAL_MIN: Final = 60.0
DRAWS: Final = 2000
LARGE_NODES: Final = 17
"""Nodes of a large job: more than 128 GPUs at 8 a node, as papers count them."""


@dataclass(frozen=True)
class Saving:
    """What draining one node saves."""

    at: int
    """Index of the node in its cluster."""
    gpu_hours: Estimate
    """Of jobs that it would end in the days ahead, less those of a healthy node in its place; n =
    its occasions."""


@dataclass(frozen=True)
class BackTest:
    """The list of an earlier day, judged by what came after."""

    n_listed: int
    saved_ratio: float | None
    """Share of the GPU-hours lost afterwards that these nodes lost, less what as many healthy ones
    would have; None where nothing was lost."""
    saved_gpu_hours: float
    lost_gpu_hours: float
    expected: Estimate
    """GPU-hours that were foretold of the list."""


@dataclass(frozen=True)
class WithoutThem:
    """The window as it would have been with healthy nodes in their place."""

    n_nodes: int
    failures: float
    """Failed jobs of the window."""
    avoided: Estimate
    """Of them, those that would not have been; n = those on these nodes."""
    lost_gpu_hours: float
    regained_gpu_hours: Estimate
    large_mttf_hours: Estimate
    """Mean running time to a failure of jobs on 17 nodes and more, as it was; n = failures."""
    large_mttf_hours_without: Estimate
    large_ettr: Estimate
    """Expected of these jobs with a checkpoint each hour and a restart of five minutes, assumed."""
    large_ettr_without: Estimate


def savings(
    judged: JudgedCluster, chosen: Bools, *, conf_level: float = CONF_LEVEL
) -> list[Saving]:
    """GPU-hours that draining each of the chosen nodes saves in as many days as the window has.

    .. math:: S_i = (\\lambda_i - 1) E_i \\ell_i, \\quad
        \\ell_i = \\frac{3 \\bar\\ell + \\sum \\ell_{ij}}{3 + n_i}

    with lambda the rate ratio, E the occasions of a healthy node with the same exposure, and l the
    GPU-hours that jobs lose by an occasion. The interval is of the prediction: ratios drawn from
    their posterior, numbers from Poisson's law; of them those that end a job by the node's own
    share of such, drawn towards the fleet's alike, with losses from those of all nodes.
    """
    validate.conf_level(conf_level)
    if not chosen.any():
        return []
    rng = np.random.default_rng(0)
    losses, n = _losses(judged.records), judged.ratios.n
    lost, usual = losses.sum(), max(float(judged.found.weight.sum()), 1.0)
    fleet = float(lost / usual)
    drawn, ends_job = _by_failure(judged)
    found = []
    for at in np.flatnonzero(chosen).tolist():
        mean = float(judged.usual.mean[at, : len(KINDS)].sum())
        own = (OWN_WEIGHT * fleet + float(losses[at])) / (OWN_WEIGHT + int(n[at]))
        of_fleet = OWN_WEIGHT * float(ends_job.sum()) / usual
        ends = min((of_fleet + float(ends_job[at])) / (OWN_WEIGHT + int(n[at])), 1.0)
        ratio = rng.choice(GRID, DRAWS, p=judged.ratios.posterior[at])
        failures = rng.binomial(rng.poisson(ratio * mean), ends)
        per_failure = float(drawn.mean()) * ends
        sums = _sums(rng, failures, drawn) * (own / per_failure if per_failure > 0 else 0.0)
        healthy = mean * own
        tails = np.quantile(sums - healthy, [(1 - conf_level) / 2, (1 + conf_level) / 2])
        value = float(judged.ratios.posterior[at] @ GRID) * mean * own - healthy
        lower, upper = min(float(tails[0]), value), max(float(tails[1]), value)
        found.append(Saving(at, Estimate(value, lower, upper, conf_level, int(n[at]))))
    return found


def summed(found: Sequence[Saving], conf_level: float = CONF_LEVEL) -> Estimate:
    """Savings of several nodes together; errors of nodes are taken for independent.

    The half-widths of the intervals add up as squares, each side for itself.
    """
    value = sum(each.gpu_hours.value or 0.0 for each in found)
    below, above = (
        float(np.sqrt(sum(((bound or 0.0) - (each.gpu_hours.value or 0.0)) ** 2
                          for each in found
                          for bound in (getattr(each.gpu_hours, side),))))
        for side in ("lower", "upper")
    )  # fmt: skip
    n = sum(each.gpu_hours.n for each in found)
    return Estimate(value, value - below, value + above, conf_level, n)


def back_test(
    before: JudgedCluster, after: NodeRecords, chosen: Bools, *, conf_level: float = CONF_LEVEL
) -> BackTest:
    """The list of `before` held against the records of the days that followed.

    Parameters
    ----------
    before
        Verdicts at the date.
    after
        Records of the days after it; nodes are matched by name.
    chosen
        Nodes of `before` that are listed.
    """
    names = set(before.records.nodes["node"][chosen])
    listed = after.nodes["node"].isin(names).to_numpy()
    losses = _losses(after)
    usual = float(losses[~listed].mean()) if (~listed).any() else 0.0
    lost = float(losses.sum())
    saved = float(losses[listed].sum()) - usual * int(listed.sum())
    foretold = summed(savings(before, chosen, conf_level=conf_level), conf_level)
    return BackTest(len(names), saved / lost if lost > 0 else None, saved, lost, foretold)


def without_them(
    judged: JudgedCluster,
    chosen: Bools,
    *,
    large_hours: float,
    conf_level: float = CONF_LEVEL,
) -> WithoutThem:
    """The window with healthy nodes in place of the chosen ones.

    Failures on them would have been those of healthy nodes, a Poisson number with mean E of their
    exposure. Of a failure that no record lays on one node each of n nodes holds the n-th part.

    Parameters
    ----------
    large_hours : float
        Hours that large jobs ran in the window.
    """
    events = judged.records.events
    failed = events[events["signal"] == "job_failure"]
    here = chosen[failed["place"].to_numpy()]
    share, lost = (
        failed["share"].to_numpy(),
        (failed["share"] * failed["lost_gpu_hours"]).to_numpy(),
    )
    large = (failed["n_nodes"] >= LARGE_NODES).to_numpy()
    usual = float(judged.usual.mean[chosen, 0].sum())
    on_them = float(share[here].sum())
    avoided = _avoided(on_them, usual, conf_level)
    per_failure = float(lost[here].sum()) / on_them if on_them else 0.0
    n_large, large_here = float(share[large].sum()), float(share[large & here].sum())
    part = large_here / on_them if on_them else 0.0
    was = poisson_rate(round(n_large), large_hours, conf_level).inverted(1.0)
    left = n_large - part * (avoided.value or 0.0)
    without = poisson_rate(max(round(left), 0), large_hours, conf_level).inverted(1.0)
    return WithoutThem(
        int(chosen.sum()),
        float(share.sum()),
        avoided,
        float(lost.sum()),
        avoided.scaled(per_failure),
        was,
        without,
        _ettr(was),
        _ettr(without),
    )


def _ettr(mttf_hours: Estimate) -> Estimate:
    """Expected ETTR of long runs at a mean time to failure, with its bounds."""

    def at(hours: float | None) -> float | None:
        if hours is None:
            return None
        return float(ettr_exact(1 / (60 * hours), RESTART_MIN, INTERVAL_MIN))

    bounds = (at(mttf_hours.lower), at(mttf_hours.upper))
    return Estimate(at(mttf_hours.value), *bounds, mttf_hours.conf_level, mttf_hours.n)


def _avoided(on_them: float, usual: float, conf_level: float) -> Estimate:
    """Failures on some nodes less those that healthy ones would have had."""
    most, least = (_poisson(tail, usual) for tail in ((1 + conf_level) / 2, (1 - conf_level) / 2))
    value = on_them - usual
    bounds = min(on_them - most, value), max(on_them - least, value)
    return Estimate(value, *bounds, conf_level, round(on_them))


def _poisson(tail: float, mean: float) -> float:
    """The least number up to which a Poisson one is this probable."""
    most = float(np.ceil(special.pdtrik(tail, mean)))
    less = max(most - 1.0, 0.0)
    return less if special.pdtr(less, mean) >= tail else most


def _losses(records: NodeRecords) -> Floats:
    """GPU-hours that jobs lost on each node, of shared failures its part."""
    rows = records.events[records.events["signal"] == "job_failure"]
    lost = (rows["share"] * rows["lost_gpu_hours"]).to_numpy(dtype=np.float64)
    found: Floats = np.zeros(len(records.nodes))
    np.add.at(found, rows["place"].to_numpy(dtype=np.int64), lost)
    return found


def _by_failure(judged: JudgedCluster) -> tuple[Floats, Floats]:
    """GPU-hours of each occasion that ended a job, and how many of each node did."""
    rows = judged.records.events
    rows = rows[(rows["signal"] == "job_failure") & (rows["share"] >= 1)]
    place, day = rows["place"].to_numpy(dtype=np.int64), rows["day"].to_numpy(dtype=np.float64)
    at = judged.found.at(place, day)
    known = judged.found.place[at] == place  # a front end has none
    occasions, of = np.unique(at[known], return_inverse=True)
    lost: Floats = np.zeros(max(len(occasions), 1))
    np.add.at(lost, of, rows["lost_gpu_hours"].to_numpy(dtype=np.float64)[known])
    n = np.bincount(judged.found.place[occasions], minlength=len(judged.records.nodes))
    return lost, n.astype(np.float64)


def _sums(rng: np.random.Generator, numbers: Ints, drawn: Floats) -> Floats:
    """Sums of so many draws each."""
    total = int(numbers.sum())
    values = np.append(rng.choice(drawn, total), 0.0)
    whole = np.concatenate([[0.0], np.cumsum(values)])
    ends = np.cumsum(numbers)
    found: Floats = whole[ends] - whole[ends - numbers]
    return found
