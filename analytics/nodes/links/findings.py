"""What is slow, how slow, and what would change that: a pattern as it is told."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from scipy import special

from analytics.estimate import Estimate
from analytics.nodes.links.search import deviation, residuals

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.nodes.links.fabric import Fabric, View
    from analytics.nodes.links.patterns import Pattern
    from analytics.nodes.links.search import Candidate, LevelName

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
    instead = next((each for each in judged.others if each.gain > 0), None)
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


def _ratio(fabric: Fabric, judged: Judged, cells: NDArray[np.bool_], conf_level: float) -> Estimate:
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


def _by_size(
    views: Sequence[View], cells: NDArray[np.bool_]
) -> tuple[tuple[tuple[float, ...], float], ...]:
    """Median ratio of these pairs with messages of each class of sizes."""
    found = []
    for each in views:
        if not each.sizes:
            continue
        values = residuals(each.level, cells)[cells]
        if np.isfinite(values).any():
            found.append((each.sizes, math.exp(float(np.nanmedian(values)))))
    return tuple(found)


def _unmeasured(known: NDArray[np.bool_], pattern: Pattern) -> int:
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


def _may_be_end(known: NDArray[np.bool_], pattern: Pattern) -> bool:
    a, b = pattern.ends
    others = int(known[a].sum()) - 1, int(known[:, b].sum()) - 1
    return min(others) < FEW
