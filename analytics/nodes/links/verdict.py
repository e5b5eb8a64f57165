"""Which link, sender, receiver or switch is slow: delays between pairs of endpoints, judged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics import validate
from analytics.errors import OutOfRangeError
from analytics.estimate import CONF_LEVEL, Estimate
from analytics.nodes.links.fabric import Fabric
from analytics.nodes.links.search import (
    FALSE_ALARMS,
    candidates,
    detectable,
    deviation,
    explained,
    residuals,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.arrays import Bools, Ints
    from analytics.nodes.links.fabric import View
    from analytics.nodes.links.matrix import Matrix
    from analytics.nodes.links.samples import DelaySamples
    from analytics.nodes.links.search import Candidate, LevelName, Pattern

Verdict = Literal["none", "link", "sender", "receiver", "group"]
MEDIAN_ERROR: Final = math.sqrt(math.pi / 2)
"""Standard error of a median over that of a mean, of Gaussian values."""
FEW: Final = 2
"""Other pairs of a link's ends up to which it may as well be the end."""


@dataclass(frozen=True)
class Finding:
    """One slow link, sender, receiver or group."""

    verdict: Verdict
    way: str
    """How its pairs belong to it: link, both (directions of it), out, in, either (all that its
    members send or receive), across (what leaves them), within, between (two groups)."""
    level: LevelName
    """Whether hosts are slow, devices towards other hosts, or devices inside a host."""
    source: str | None
    """The slow sender, or where the slow link begins; None of a receiver or a group."""
    destination: str | None
    """The slow receiver, or where the slow link ends; None of a sender or a group."""
    hosts: tuple[str, ...]
    """Hosts of all that is slow."""
    ratio: Estimate
    """Delay of its pairs over the usual one; n = pairs, of a link its samples."""
    by_size: tuple[tuple[tuple[float, ...], float], ...]
    """Sizes of messages in bytes -> the ratio with these; empty where sizes are unknown."""
    named_from_ratio: float
    """Ratio from which it is told from chance in these samples."""
    false_alarms: float
    """Expected number of patterns of its kind as slow as this, were nothing slow."""
    instead: str
    """The next best explanation; empty where there is none."""
    log_likelihood_ratio: float | None
    """By how much that explains less; None where there is none."""
    n_unmeasured: int
    """Pairs of its sender, receiver or group that have no sample."""
    may_be_end: bool
    """Whether an end of a slow link has next to no other pair: it may be slow with all."""


@dataclass(frozen=True)
class Judged:
    """The best explanation of a view, and the others."""

    view: View
    best: Candidate
    others: Sequence[Candidate]


def finding(
    fabric: Fabric, judged: Judged, views: Sequence[View], least: float, conf_level: float
) -> Finding:
    """The best explanation with its ratio, what speaks for it and what against.

    `views` are all of its level, `least` is the logarithm of the least ratio that counts.
    """
    view, best = judged.view, judged.best
    pattern, cells = best.pattern, best.pattern.cells & np.isfinite(best.residual)
    names = fabric.named(view)
    ends = [names[at] for at in (*pattern.ends, *pattern.others)]
    instead = next((other for other in judged.others if other.gain > 0), None)
    known = np.isfinite(view.level.log_us)
    return Finding(
        "group" if pattern.kind == "both_ways" else pattern.kind,
        pattern.way,
        view.name,
        ends[0] if pattern.kind in ("link", "sender") else None,
        ends[-1] if pattern.kind in ("link", "receiver") else None,
        _hosts(fabric, view, pattern),
        _ratio(fabric, judged, cells, conf_level),
        _by_size(views, cells),
        math.exp(max(best.threshold, least)),
        max(best.by_chance, best.by_bursts),
        "" if instead is None else called(instead.pattern, names),
        None if instead is None else (best.gain - instead.gain) / 2,
        _unmeasured(known, pattern),
        pattern.kind == "link" and _may_be_end(known, pattern),
    )


def called(pattern: Pattern, names: Sequence[str]) -> str:
    """A pattern in words: `link n1 to n2`, `sender n1`, `n1 both ways`, `group of 8 with n1`."""
    first = names[pattern.ends[0]]
    if pattern.kind == "link":
        return f"link {first} to {names[pattern.ends[1]]}"
    if pattern.kind == "both_ways":
        return f"{first} both ways"
    if pattern.kind == "group":
        return f"group of {len(pattern.ends)} with {first}"
    return f"{pattern.kind} {first}"


def _hosts(fabric: Fabric, view: View, pattern: Pattern) -> tuple[str, ...]:
    """Hosts of the ends of a pattern, each once."""
    places = (*pattern.ends, *pattern.others)
    if view.name == "host":
        return tuple(fabric.hosts[at] for at in places)
    return tuple(dict.fromkeys(fabric.hosts[fabric.host[at]] for at in places))


def _ratio(fabric: Fabric, judged: Judged, cells: Bools, conf_level: float) -> Estimate:
    """Delay over usual; of a link its interval by the scatter of all pairs, else by its own."""
    values, shift = judged.best.residual[cells], judged.best.log_ratio
    n, tail = len(values), (1 + conf_level) / 2
    if judged.best.pattern.kind == "link":
        error = float(special.ndtri(tail)) * deviation(residuals(judged.view.level, None))
        counts = fabric.n_of_hosts if judged.view.name == "host" else fabric.n
        n = int(counts[cells].sum())
    elif n > 1:
        spread = float(np.std(values, ddof=1)) / math.sqrt(n)
        error = float(special.stdtrit(n - 1, tail)) * MEDIAN_ERROR * spread
    else:
        return Estimate(math.exp(shift), None, None, conf_level, n)
    bounds = math.exp(shift - error), math.exp(shift + error)
    return Estimate(math.exp(shift), *bounds, conf_level, n)


def _by_size(views: Sequence[View], cells: Bools) -> tuple[tuple[tuple[float, ...], float], ...]:
    """Median ratio of these pairs with messages of each class of sizes."""
    found = []
    for view in views:
        if not view.sizes:
            continue
        values = residuals(view.level, cells)[cells]
        if np.isfinite(values).any():
            found.append((view.sizes, math.exp(float(np.nanmedian(values)))))
    return tuple(found)


def _unmeasured(known: Bools, pattern: Pattern) -> int:
    """Pairs of the ends of a pattern that were not measured; of a link none."""
    if pattern.kind == "link":
        return 0
    touched = np.zeros_like(known)
    ends = list(pattern.ends)
    if pattern.kind in ("sender", "both_ways") or pattern.way in ("out", "either"):
        touched[ends] = True
    if pattern.kind in ("receiver", "both_ways") or pattern.way in ("in", "either"):
        touched[:, ends] = True
    return int((touched & ~known & ~np.eye(len(known), dtype=bool)).sum())


def _may_be_end(known: Bools, pattern: Pattern) -> bool:
    a, b = pattern.ends
    others = int(known[a].sum()) - 1, int(known[:, b].sum()) - 1
    return min(others) < FEW


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
    n: Ints
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
        views = next(level for level in levels if level[0].name == best.view.name)
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
    return [[(view, candidates(view.level, n_views=n_views)) for view in views] for views in levels]


def _strongest(fabric: Fabric, found: Weighed, least: float) -> Judged | None:
    """What explains most and is more than chance; None where nothing is.

    A switch goes before its hosts; a host and a device are compared by what they explain of the
    pairs of devices; devices inside a host come last.
    """
    n_views = sum(map(len, found))
    passed = []
    for view, weighed in (each for views in found for each in views):
        holds = [
            candidate
            for candidate in weighed
            if candidate.log_ratio >= least and candidate.by_chance <= FALSE_ALARMS / n_views
        ]
        if holds:
            others = [candidate for candidate in weighed if candidate is not holds[0]]
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
        same
        for views in levels
        for same in views
        if (same.name, same.sizes) == (view.name, view.sizes)
    )


def _detectable(levels: list[list[View]], least: float) -> tuple[float, float]:
    """Ratio from which a link, and a sender or receiver, of hosts would be named."""
    n_views = sum(map(len, levels))
    seen = [detectable(view.level, n_views=n_views) for view in levels[0]]
    link, end = (min(ratios) for ratios in zip(*seen, strict=True))
    return math.exp(min(max(link, least), LARGEST)), math.exp(min(max(end, least), LARGEST))


def _nearest(fabric: Fabric, found: Weighed, least: float) -> tuple[str, float] | None:
    """What comes nearest to being named, and its ratio."""
    every = [
        (candidate, view) for views in found for view, weighed in views for candidate in weighed
    ]
    if not every:
        return None
    best, view = max(every, key=lambda pair: pair[0].log_ratio / max(pair[0].threshold, least))
    return called(best.pattern, fabric.named(view)), math.exp(best.log_ratio)
