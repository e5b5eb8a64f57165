"""Step times if the operations of a single data-parallel rank were delayed, for every rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np

from analytics.training.stragglers.replay import released

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.graph import Graph

    Times: TypeAlias = NDArray[np.float64]
    Cost: TypeAlias = Callable[[int], Times]
    """Of an operation, an array of (steps, ranks)."""

_BEGIN: Final = -1


@dataclass(frozen=True)
class _Paths:
    """Longest paths to a place within each rank, from the shared nodes that it can be reached from.

    The begin of the step counts as a shared node.
    """

    sources: tuple[int, ...]
    """Places of the shared nodes, ascending."""
    seconds: Times
    """Without and with the delays of the rank, (2, sources, steps, ranks)."""


def delayed_rank_seconds(graph: Graph, cost: Cost, delay: Cost, last: Sequence[int]) -> Times:
    """Step times if one rank were delayed, and no other; (steps, ranks), seconds.

    .. math:: g^d_j = \\max_i \\bigl( g^d_i +
        \\max(\\max_{r \\ne d} A_r[i, j], A'_d[i, j]) \\bigr)

    with g^d_j when the ranks begin shared node j together if rank d is delayed, and A_r[i, j] the
    longest path of rank r from i to j past no other shared node, A' with delays. Between shared
    nodes ranks do not meet, so the paths of all are followed once: time and memory grow with the
    number of operations, not with the square of the ranks.

    Parameters
    ----------
    cost, delay
        What an operation takes, and how long after its last predecessor it is launched.
    last
        Operations with which a step ends.
    """
    shape = cost(last[0]).shape
    begins = {_BEGIN: np.zeros(shape)}
    ends: dict[int, _Paths] = {}
    at_begin = _Paths((_BEGIN,), np.zeros((2, 1, *shape)))
    kept = set(last)
    for at, (node, done) in enumerate(zip(graph.nodes, released(graph), strict=True)):
        starts = []
        for op in node.members:
            before = _latest([ends[pred] for pred in graph.preds[op]] or [at_begin])
            late = before.seconds.copy()
            late[1] += delay(op)
            starts.append(_Paths(before.sources, late))
        ready = _latest(starts)
        if node.shared:
            begins[at] = _together(ready, begins)
            ready = _Paths((at,), np.zeros((2, 1, *shape)))
        for op in node.members:
            ends[op] = _Paths(ready.sources, ready.seconds + cost(op))
        for op in done:
            if op not in kept:
                del ends[op]
    return _together(_latest([ends[op] for op in last]), begins)


def _latest(paths: list[_Paths]) -> _Paths:
    """The longest of paths to the same place, from each source."""
    first = paths[0]
    if len(paths) == 1:
        return first
    if all(path.sources == first.sources for path in paths):
        seconds = first.seconds
        for path in paths[1:]:
            seconds = np.maximum(seconds, path.seconds)
        return _Paths(first.sources, seconds)
    sources = sorted({source for path in paths for source in path.sources})
    shape = first.seconds.shape
    seconds = np.full((2, len(sources), *shape[2:]), -np.inf)
    for path in paths:
        at = [sources.index(source) for source in path.sources]
        seconds[:, at] = np.maximum(seconds[:, at], path.seconds)
    return _Paths(tuple(sources), seconds)


def _together(paths: _Paths, begins: dict[int, Times]) -> Times:
    """When all ranks have reached a place, by the rank that is delayed; (steps, ranks)."""
    plain, delayed = paths.seconds
    others = np.full_like(plain, -np.inf)
    n_ranks = plain.shape[-1]
    if n_ranks > 1:
        second, most = np.moveaxis(np.partition(plain, n_ranks - 2, axis=-1)[..., -2:], -1, 0)
        slowest = np.arange(n_ranks) == plain.argmax(axis=-1)[..., None]
        others = np.where(slowest, second[..., None], most[..., None])
    from_begin = np.stack([begins[source] for source in paths.sources])
    found: Times = (from_begin + np.maximum(others, delayed)).max(axis=0)
    return found
