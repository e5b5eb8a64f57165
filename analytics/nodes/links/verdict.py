"""Which link, sender, receiver or switch is slow: delays between pairs of endpoints, judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL
from analytics.nodes.links.fabric import Fabric
from analytics.nodes.links.findings import Judged, called, finding
from analytics.nodes.links.search import (
    FALSE_ALARMS,
    candidates,
    detectable,
    explained,
    residuals,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.nodes.links.fabric import View
    from analytics.nodes.links.findings import Finding, Verdict
    from analytics.nodes.links.matrix import Matrix
    from analytics.nodes.links.samples import DelaySamples
    from analytics.nodes.links.search import Candidate

LEAST_RATIO: Final = 1.2
"""Slower than this counts, where nothing else is asked for."""
LARGEST: Final = 10.0
"""Logarithm of the largest ratio that is told: a few samples tell nothing apart."""
MOST_FINDINGS: Final = 5
"""Slow things that are told apart one after another."""


@dataclass(frozen=True)
class SlowLinks:
    """What is slow in a matrix of delays."""

    findings: tuple[Finding, ...]
    """The strongest first; empty where nothing is slow."""
    link_from_ratio: float
    """Ratio from which one (further) slow link between hosts is named, by the sizes that show
    most."""
    end_from_ratio: float
    """The same of a slow sender or receiver."""
    nearest: tuple[str, float] | None
    """Where nothing is slow: what comes nearest, and its ratio."""
    names: tuple[str, ...]
    """Rows and columns of `ratio`: hosts, or endpoints where one of these is slow."""
    ratio: Matrix
    """Delay over what is usual in its tier, sources by destinations; NaN where unmeasured."""
    n: NDArray[np.int64]
    """Samples of each pair of `names`."""
    n_endpoints: int
    n_samples: int
    """Samples that count."""
    n_pairs: int
    """Pairs of endpoints with samples."""
    n_missing: int
    """Pairs of endpoints without."""
    groups: tuple[tuple[str, ...], ...]
    """Hosts behind each switch; empty where none is stated or found."""
    groups_found: bool
    """Whether they were found in the delays."""

    @property
    def verdict(self) -> Verdict:
        """The strongest finding's, or none."""
        return self.findings[0].verdict if self.findings else "none"


def slow_links(
    samples: DelaySamples, *, least_ratio: float = LEAST_RATIO, conf_level: float = CONF_LEVEL
) -> SlowLinks:
    """What is slow: a link, a sender, a receiver, a group of hosts, or nothing.

    Delay of a pair: the low quartile of its samples, for a burst delays some and a slow link all.
    Its residual is the logarithm over the median of its tier (pairs of one host, of one switch, of
    two; switches as stated, else as average linkage of the delays finds them). Patterns (one pair,
    a row, a column, both of one end, pairs of a group) are compared by their gain in likelihood,
    and the best is named where it is slower than `least_ratio` and where, by the scatter of the
    pairs and ends outside it, chance makes 0.002 such patterns of its kind at most, over all sizes
    and levels, and bursts 0.01. A switch goes before its hosts; hosts and devices are compared.
    What was named is left out and the rest judged again.

    Parameters
    ----------
    samples : DelaySamples
    least_ratio : float
        > 1; what is less slow is not named.
    conf_level : float
        In (0, 1), of the interval of the ratio.

    Raises
    ------
    OutOfRangeError
        For a ratio of 1 or less or a level outside (0, 1), or where no pair was measured.

    Notes
    -----
    Two groups whose pairs differ from all others look like two switches: to tell, state the
    switches, or measure a third. Of two hosts nothing can be told apart.

    References
    ----------
    Dong, J. et al. (2024). Boosting Large-scale Parallel Training Efficiency with C4. arXiv
    2406.04594: a hot cell of the matrix is a link, a row a source, a column a destination.

    Examples
    --------
    >>> import numpy as np
    >>> from analytics.nodes.links.samples import DelaySamples
    >>> source, destination = (np.tile(each, 3) for each in np.nonzero(~np.eye(8, dtype=bool)))
    >>> delay = np.random.default_rng(1).normal(10.0, 0.2, len(source))
    >>> delay[source == 2] *= 2
    >>> names = tuple("abcdefgh")
    >>> found = slow_links(DelaySamples(names, source, destination, delay)).findings[0]
    >>> found.verdict, found.source, found.hosts, round(found.ratio.value, 1)
    ('sender', 'c', ('c',), 2.0)
    """
    validate.conf_level(conf_level)
    if not least_ratio > 1:
        raise OutOfRangeError("least_ratio", "> 1", least_ratio, "pass e.g. 1.2")
    fabric, least = Fabric.of_samples(samples), math.log(least_ratio)
    left_out = np.zeros((len(fabric.names),) * 2, dtype=bool)
    findings: list[Finding] = []
    levels = whole = fabric.levels(left_out)
    first = _weighed(levels)
    shown, found = levels[0][-1], first
    while len(findings) < MOST_FINDINGS and (best := _strongest(fabric, found, least)) is not None:
        views = next(each for each in levels if each[0].name == best.view.name)
        findings.append(finding(fabric, best, views, least, conf_level))
        if len(findings) == 1:
            shown = _same(whole, best.view)
        left_out |= fabric.of_endpoints(best.view, best.best.pattern.cells)
        levels = fabric.levels(left_out)
        found = _weighed(levels)
    n_pairs = int((fabric.n > 0).sum())
    return SlowLinks(
        tuple(findings),
        *_detectable(levels, least),
        None if findings else _nearest(fabric, first, least),
        fabric.named(shown),
        np.exp(residuals(shown.level, None)),
        fabric.n_of_hosts if shown.name == "host" else fabric.n,
        len(fabric.names),
        int(fabric.n.sum()),
        n_pairs,
        len(fabric.names) * (len(fabric.names) - 1) - n_pairs,
        fabric.groups(),
        fabric.tiers is not None and not fabric.group_names,
    )


Weighed = list[list[tuple["View", list["Candidate"]]]]
"""Explanations of each view of each level, the best first."""


def _weighed(levels: list[list[View]]) -> Weighed:
    n_views = sum(map(len, levels))
    return [[(view, candidates(view.level, n_views=n_views)) for view in each] for each in levels]


def _strongest(fabric: Fabric, found: Weighed, least: float) -> Judged | None:
    """What explains most and is more than chance; None where nothing is.

    A switch goes before its hosts; a host and a device are compared by what they explain of the
    pairs of devices; devices inside a host come last.
    """
    n_views = sum(map(len, found))
    passed = []
    for view, weighed in (each for views in found for each in views):
        holds = [
            each
            for each in weighed
            if each.log_ratio >= least and each.by_chance <= FALSE_ALARMS / n_views
        ]
        if holds:
            others = [each for each in weighed if each is not holds[0]]
            passed.append(Judged(view, holds[0], others))
    if not passed:
        return None
    devices = {view.sizes: view.level for views in found[1:2] for view, _ in views}

    def rank(judged: Judged) -> tuple[int, float]:
        """A group counts before its ends, and ends before what lies inside a host."""
        best, name = judged.best, judged.view.name
        if name == "inside":
            return 0, best.gain
        if name == "device" or not devices:
            return 1, best.gain
        if best.pattern.kind == "group":
            return 2, best.gain
        cells = fabric.of_endpoints(judged.view, best.pattern.cells)
        return 1, explained(devices[judged.view.sizes], cells, best)

    return max(passed, key=rank)


def _same(levels: list[list[View]], view: View) -> View:
    """The view of the same level and sizes."""
    return next(
        each
        for views in levels
        for each in views
        if (each.name, each.sizes) == (view.name, view.sizes)
    )


def _detectable(levels: list[list[View]], least: float) -> tuple[float, float]:
    """Ratio from which a link, and a sender or receiver, of hosts would be named."""
    n_views = sum(map(len, levels))
    seen = [detectable(view.level, n_views=n_views) for view in levels[0]]
    link, end = (min(each) for each in zip(*seen, strict=True))
    return math.exp(min(max(link, least), LARGEST)), math.exp(min(max(end, least), LARGEST))


def _nearest(fabric: Fabric, found: Weighed, least: float) -> tuple[str, float] | None:
    """What comes nearest to being named, and its ratio."""
    every = [(each, view) for views in found for view, weighed in views for each in weighed]
    if not every:
        return None
    best, view = max(every, key=lambda each: each[0].log_ratio / max(each[0].threshold, least))
    return called(best.pattern, fabric.named(view)), math.exp(best.log_ratio)
