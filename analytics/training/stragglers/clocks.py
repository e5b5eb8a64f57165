"""Clocks of workers that differ: found from transfers that end together, and corrected."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics.errors import AnalysisError
from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.operations import median

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.graph import Graph
    from analytics.training.stragglers.operations import Floats, Times
    from analytics.training.stragglers.trace import Trace

LEAST_S: Final = 1e-3
"""Offset from which on a clock is off, seconds: the ends of one transfer scatter by up to half."""
TOLERANCE: Final = 0.25
"""Share of an offset by which what shows it may differ, or half of `LEAST_S`."""
EARLIEST_S, MOST_IMPOSSIBLE = 10e-3, 0.25
"""A receive may end so long before its send began, and longer in such a share of the steps."""
FEWEST_STEPS: Final = 5
"""Steps from which on a drift is looked for."""
PAIRS: Final = 8
"""Sends and receives of two stages and one direction that are looked at."""
COLLECTIVES: Final = (kind.ALL_GATHER, kind.REDUCE_SCATTER, kind.SEPARATE)
"""Transfers over the data-parallel ranks of one stage."""
_SENDS: Final = (kind.FORWARD_SEND, kind.BACKWARD_SEND)


@dataclass(frozen=True)
class ClockOffset:
    """How far the clock of a worker was ahead of those of the others, and was set back."""

    dp_rank: int
    stage: int
    rank: int | None
    """Label of the worker; None where the trace has none."""
    offset_ms: float
    """In the middle of the traced steps."""
    drift_ms: float = 0.0
    """By how much more at the last step than at the first."""


def synchronised(trace: Trace, graph: Graph) -> tuple[Trace, tuple[ClockOffset, ...]]:
    """The trace with the clocks of its workers set right, and the offsets that were taken off.

    A transfer ends on all its members at once, but for what their clocks differ: a collective of
    gradients or parameters within a stage, a send and its receive between two,

    .. math:: D_k(d, p) = \\mathrm{med}\\,(e_d - \\mathrm{med}_{d'} e_{d'}), \\quad
        P(d, p) = \\tfrac12\\,\\mathrm{med}\\,(e_{recv} - e_{send})_{forward}
        - \\tfrac12\\,\\mathrm{med}\\,(e_{recv} - e_{send})_{backward}

    with e the ends on data-parallel rank d of stage p, medians over steps and operations of kind k,
    and P between p and the next stage: what a receive ends later than its send cancels. Offsets
    follow from D and the sums of P, from the median of all workers. One is a clock's if it is 1 ms
    or more and every kind of transfer of the worker shows it, in both directions, within 25 % or
    half a millisecond: a slow link shows in some. With one stage its steps must begin that much
    later, too.

    Returns
    -------
    tuple
        The trace itself where no clock is off; offsets strongest first.

    Raises
    ------
    AnalysisError
        Where, so corrected, receives still end before their sends began: the clocks jump.

    Notes
    -----
    An offset that grows by 1 ms or more over the traced steps, by the median slope between steps
    (Theil and Sen), is taken as a line, others as constant. With one kind of transfer, or none,
    no clock can be told from a slow link, and none is corrected; nor is an offset that is shorter
    than the transfers that show it take.
    """
    sees = _Ends.of(trace, graph)
    offsets = sees.offsets()
    told = (sees.shortest < 0) | (trace.n_stages == 1)
    wrong = (np.abs(offsets) >= LEAST_S) & told & sees.agree(offsets)
    workers = np.argwhere(wrong).tolist()
    lines = _lines(trace, graph, offsets, workers) if workers else {}
    if workers:
        by_step = np.zeros((len(trace.steps), *offsets.shape))
        for dp, stage in workers:
            by_step[:, dp, stage] = lines[dp, stage]
        trace = _set_back(trace, by_step)
    _refuse_the_impossible(trace, sees.pairs)
    found = [_offset(trace, dp, stage, lines[dp, stage]) for dp, stage in workers]
    return trace, tuple(sorted(found, key=lambda each: -abs(each.offset_ms)))


def _offset(trace: Trace, dp: int, stage: int, by_step: Times) -> ClockOffset:
    """The offset of one worker."""
    rank = None if trace.ranks is None else int(trace.ranks[dp, stage])
    middle, drift = float(by_step.mean()), float(by_step[-1] - by_step[0])
    return ClockOffset(dp, stage, rank, round(1e3 * middle, 3), round(1e3 * drift, 3))


def _lines(
    trace: Trace, graph: Graph, offsets: Times, workers: Sequence[Sequence[int]]
) -> dict[tuple[int, int], Times]:
    """Offsets of workers step by step: constant, or the line along which one drifts."""
    steps = trace.steps.astype(np.float64)
    series = np.stack([_Ends.of(_one_step(trace, at), graph).offsets() for at in range(len(steps))])
    first, second = np.triu_indices(len(steps), 1)
    lines = {}
    for dp, stage in workers:
        shown, line = series[:, dp, stage], np.full(len(steps), offsets[dp, stage])
        if len(steps) >= FEWEST_STEPS:
            slope = median((shown[second] - shown[first]) / (steps[second] - steps[first]))
            if abs(slope) * (steps[-1] - steps[0]) >= LEAST_S:
                line = slope * steps + median(shown - slope * steps)
        lines[dp, stage] = line
    return lines


def _one_step(trace: Trace, at: int) -> Trace:
    """The trace of one of its steps."""
    one = slice(at, at + 1)
    start, duration = trace.start[:, one], trace.duration[:, one]
    return replace(trace, steps=trace.steps[one], start=start, duration=duration)


def _set_back(trace: Trace, offsets: Times) -> Trace:
    """The trace with offsets (steps, ranks, stages) taken off all starts, each step from 0."""
    of_op = offsets.transpose(2, 0, 1)[trace.operations.stage].astype(trace.start.dtype)
    start = trace.start - of_op
    return replace(trace, start=start - start.min(axis=(0, 2))[:, None])


def _refuse_the_impossible(trace: Trace, pairs: Sequence[tuple[int, int]]) -> None:
    """Refuses a trace in a quarter of whose steps a receive ends before its send began."""
    for send, receive in pairs:
        early = trace.start[send] - trace.end[receive]
        impossible = early > EARLIEST_S
        if impossible.mean() > MOST_IMPOSSIBLE:
            raise AnalysisError(
                f"clocks of the workers cannot be set right: {trace.operations.name(receive)} ends "
                f"{1e3 * float(median(early[impossible])):.1f} ms before its send begins in "
                f"{100 * float(impossible.mean()):.0f} % of steps: trace with synchronised clocks"
            )


@dataclass(frozen=True)
class _Ends:
    """By how much the ends of transfers differ on their members, medians over steps, seconds."""

    within: dict[int, Times]
    """By type of collective: from the median rank of the stage, (ranks, stages); NaN without."""
    across: dict[tuple[int, bool], Times]
    """By the earlier of two stages and whether forward: receive less send, (ranks,)."""
    begins: Times
    """First starts, from the median rank of the stage, (ranks, stages)."""
    shortest: Times
    """Time of the transfer that takes the least, from its last start to its first end,
    (ranks, stages): less than nothing only where clocks differ."""
    pairs: tuple[tuple[int, int], ...]
    """Sends and receives that were looked at."""

    @classmethod
    def of(cls, trace: Trace, graph: Graph) -> _Ends:
        """What a trace shows."""
        ops, shape = trace.operations, (trace.n_dp, trace.n_stages)
        begins, shortest, within = np.zeros(shape), np.full(shape, np.inf), {}
        for stage in range(trace.n_stages):
            first = trace.start[ops.stage == stage].min(axis=0)
            begins[:, stage] = _apart(first[None])
        for optype in COLLECTIVES:
            shown = np.full(shape, np.nan)
            for stage in range(trace.n_stages):
                at = ops.of(optype, stage)
                if at:
                    members = slice(at.start, at.stop)
                    shown[:, stage] = _apart(trace.end[members])
                    taken = trace.end[members].min(axis=-1) - trace.start[members].max(axis=-1)
                    shortest[:, stage] = np.minimum(shortest[:, stage], median(taken.ravel()))
            if trace.n_dp > 1 and not np.isnan(shown).all():
                within[optype] = shown
        found = _pairs(trace, graph)
        across = {
            key: _middle(trace.end[receives] - trace.end[sends])
            for key, (sends, receives) in found.items()
        }
        for (stage, _), (sends, receives) in found.items():
            last_start = np.maximum(trace.start[sends], trace.start[receives])
            taken = _middle(np.minimum(trace.end[sends], trace.end[receives]) - last_start)
            for end in (stage, stage + 1):
                shortest[:, end] = np.minimum(shortest[:, end], taken)
        pairs = [
            pair for sends_receives in found.values() for pair in zip(*sends_receives, strict=True)
        ]
        return cls(within, across, begins, shortest, tuple(pairs))

    def offsets(self) -> Times:
        """What clocks are ahead of the median one if nothing else makes ends differ."""
        offsets = np.zeros_like(self.begins)
        if self.within:
            shown = np.stack(list(self.within.values()))
            n_shown = (~np.isnan(shown)).sum(axis=0)
            offsets = np.nansum(shown, axis=0) / np.maximum(n_shown, 1)
        for stage in range(offsets.shape[1] - 1):
            if {(stage, True), (stage, False)} <= self.across.keys():
                later = (self.across[stage, True] - self.across[stage, False]) / 2
                step = median(later - offsets[:, stage + 1] + offsets[:, stage])
                offsets[:, stage + 1] += step
        return np.asarray(offsets - median(offsets))

    def agree(self, offsets: Times) -> NDArray[np.bool_]:
        """Whether every transfer of a worker shows its offset, and at least two kinds of them."""
        slack = np.maximum(LEAST_S / 2, TOLERANCE * np.abs(offsets))
        from_stage = offsets - median(offsets, axis=0)
        alone = offsets.shape[1] == 1  # else ends across stages tell a clock from a slow link
        agreed = (np.abs(self.begins - from_stage) <= 2 * slack) | (not alone)
        n_shown = np.zeros(offsets.shape, dtype=np.int64)
        for shown in self.within.values():
            agreed &= np.isnan(shown) | (np.abs(shown - from_stage) <= slack)
            n_shown += ~np.isnan(shown)
        for (stage, forward), later in self.across.items():
            expected = (offsets[:, stage + 1] - offsets[:, stage]) * (1 if forward else -1)
            for at in (stage, stage + 1):
                agreed[:, at] &= np.abs(later - expected) <= slack[:, at]
                n_shown[:, at] += 1
        return np.asarray(agreed & (n_shown >= 2))


def _apart(times: Floats) -> Times:
    """Medians over operations and steps of how much later than the median rank, (ranks,)."""
    return _middle(times - median(times, axis=-1)[..., None])


def _middle(times: Floats) -> Times:
    """Medians over operations and steps, (ranks,)."""
    return np.asarray(median(times.reshape(-1, times.shape[-1]), axis=0), dtype=np.float64)


def _pairs(trace: Trace, graph: Graph) -> dict[tuple[int, bool], tuple[list[int], list[int]]]:
    """Sends and receives by the earlier of their stages, which are neighbours, and direction."""
    optype, stage = trace.operations.optype.tolist(), trace.operations.stage.tolist()
    found: dict[tuple[int, bool], tuple[list[int], list[int]]] = {}
    for node in graph.nodes:
        if len(node.members) != 2 or node.shared:
            continue
        send, receive = sorted(node.members, key=lambda op: optype[op] not in _SENDS)
        forward = optype[send] == kind.FORWARD_SEND
        if optype[send] not in _SENDS or stage[receive] - stage[send] != (1 if forward else -1):
            continue
        sends, receives = found.setdefault((min(stage[send], stage[receive]), forward), ([], []))
        if len(sends) < PAIRS:
            sends.append(send)
            receives.append(receive)
    return found
