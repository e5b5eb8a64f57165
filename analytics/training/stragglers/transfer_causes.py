"""Candidates among transfers and the tail of a step: slow links, slow optimizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.candidates import Candidate
from analytics.training.stragglers.compute_causes import worker_target
from analytics.training.stragglers.computes import MAD_TO_SD, SIGNIFICANT, low_median
from analytics.training.stragglers.counterfactual import Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.candidates import Number
    from analytics.training.stragglers.what_if import WhatIf

    Floats: TypeAlias = NDArray[np.floating[Any]]

GRADIENTS: Final = (kind.ALL_GATHER, kind.REDUCE_SCATTER, kind.SEPARATE)
TAIL: Final = (kind.LAYERNORM, kind.EMBEDDING, kind.CLIP, kind.OPTIMIZER)
LEAST_RATIO: Final = 1.1
"""Least time of a transfer over that of its peers."""
LEAST_SHARE: Final = 0.003
"""Share of the step time that the excess must be for a what-if to be worth asking."""
_MOST: Final = 4
"""Candidates of a kind that are asked about."""


@dataclass(frozen=True)
class Excess:
    """Operations of one kind, alike but for where they run, (places, steps, ranks)."""

    operations: NDArray[np.intp]
    own: Floats
    usual: Floats
    """What each would cost if it were not slow."""

    @property
    def seconds(self) -> Floats:
        """Time above the usual one, a step; (places, ranks)."""
        found: Floats = (self.own - self.usual).mean(axis=1)
        return found


def excess(own: Floats, operations: NDArray[np.intp]) -> Excess:
    """What operations that should cost the same cost above the usual.

    The usual cost is the lower median, over places and ranks, of their medians over steps. A place
    and rank is slow throughout where its median is 6 robust standard errors and 10 % above it: all
    its costs are scaled down. A single cost is slow where it lies 6 standard deviations and 50 %
    above what remains: it is set to the usual one.
    """
    n_steps = own.shape[1]
    level = np.median(own, axis=1)
    usual = float(low_median(level, (0, 1)))
    noise = MAD_TO_SD * float(np.median(np.abs(own - level[:, None])))
    margin = SIGNIFICANT * 1.2533 * noise / np.sqrt(n_steps)
    slow = (level - usual > margin) & (level > LEAST_RATIO * usual)
    scaled = np.where(slow, usual / np.where(slow, level, 1.0), 1.0)
    fixed = own * scaled[:, None]
    sudden = fixed - usual > np.maximum(SIGNIFICANT * noise, 0.5 * abs(usual))
    often = sudden.sum(axis=1, keepdims=True) >= max(3.0, 0.1 * n_steps)
    fixed = np.where(sudden & often, max(usual, 0.0), fixed)
    return Excess(operations, own, np.minimum(fixed, own))


def transfer_candidates(model: WhatIf) -> Iterator[Candidate]:
    """Causes for which transfers and the tail hold evidence, in no order."""
    yield from _dp_links(model)
    yield from _pp_links(model)
    yield from _optimizers(model)


def _change(parts: Sequence[Excess], chosen: Sequence[NDArray[np.bool_]]) -> Change:
    """Usual costs at the (places, ranks) chosen of each part."""
    ratios = [
        np.where(
            mask[:, None] & (part.own > 0), part.usual / np.where(part.own > 0, part.own, 1.0), 1.0
        )
        for part, mask in zip(parts, chosen, strict=True)
    ]
    return Change(np.concatenate([part.operations for part in parts]), np.concatenate(ratios))


def _dp_links(model: WhatIf) -> Iterator[Candidate]:
    """Parameters and gradients of a stage, or of one of its ranks, that take longer than others."""
    ops, own = model.trace.operations, model.costs.own
    parts = []
    for optype in GRADIENTS:
        at = np.flatnonzero(ops.optype == optype)
        parts += [
            excess(own[at[ops.seq[at] == seq]], at[ops.seq[at] == seq])
            for seq in np.unique(ops.seq[at])
        ]
    if not parts:
        return
    n_stages, n_dp = model.trace.n_stages, model.trace.n_dp
    total, spent = np.zeros((2, n_stages, n_dp))
    for part in parts:
        np.add.at(total, ops.stage[part.operations], part.seconds)
        np.add.at(spent, ops.stage[part.operations], part.own.mean(axis=1))
    least = LEAST_SHARE * model.trace.step_seconds.mean()
    for stage in np.argsort(-total.max(axis=1), kind="stable")[:_MOST].tolist():
        if not total[stage].max() > least:
            continue
        dp = _single(total[stage])
        masks = [
            np.broadcast_to((ops.stage[p.operations] == stage)[:, None], (len(p.operations), n_dp))
            for p in parts
        ]
        where: dict[str, Number] = {"dp_rank": None, "stage": stage, "rank": None}
        at_worst = int(total[stage].argmax())
        if dp is not None:
            where = worker_target(model, dp, stage)
        evidence: dict[str, Number] = {
            "seconds_above_usual": float(total[stage, at_worst]),
            "time_over_usual_ratio": _over(spent[stage, at_worst], total[stage, at_worst]),
            "n_dp_ranks_slow": int((total[stage] > total[stage].max() / 2).sum()),
        }
        yield Candidate("dp_link", where, _change(parts, masks), evidence)


def _single(seconds: Floats) -> int | None:
    """The one rank that is slow, None where several are."""
    worst = int(seconds.argmax())
    others = np.delete(seconds, worst)
    return worst if others.size and others.max() < seconds[worst] / 2 else None


def _over(spent: float, above: float) -> float | None:
    """Time over the usual time; None where that is nothing."""
    return float(spent / (spent - above)) if spent > above else None


def _pp_links(model: WhatIf) -> Iterator[Candidate]:
    """Transfers over a boundary between stages that take longer than others of their direction."""
    ops, own = model.trace.operations, model.costs.own
    links: dict[tuple[int, int, int], list[tuple[int, int]]] = {}
    for node in model.graph.nodes:
        if len(node.members) == 2 and not node.shared and ops.optype[node.members[0]] in kind.P2P:
            send, receive = sorted(
                node.members,
                key=lambda op: ops.optype[op] in (kind.FORWARD_RECV, kind.BACKWARD_RECV),
            )
            forward = int(ops.optype[send] == kind.FORWARD_SEND)
            key = (forward, int(ops.stage[send]), int(ops.stage[receive]))
            links.setdefault(key, []).append((send, receive))
    found = []
    for forward in (0, 1):
        mine = [key for key in links if key[0] == forward]
        if mine:
            found += _slow_links(mine, [own[np.array(links[key])] for key in mine])
    least = LEAST_SHARE * model.trace.step_seconds.mean()
    by_place: dict[tuple[int, int, int | None], list[_Link]] = {}
    for link in found:
        if link.seconds > least:
            by_place.setdefault(link.place, []).append(link)
    ranked = sorted(by_place.items(), key=lambda item: -sum(link.seconds for link in item[1]))
    for place, both in ranked[:_MOST]:
        yield _link_candidate(model, place, links=both, pairs=links)


@dataclass(frozen=True)
class _Link:
    """A slow link, in one direction."""

    key: tuple[int, int, int]
    """Whether forward, stage of the sender, stage of the receiver."""
    dp: int | None
    """Data-parallel rank; None for all."""
    seconds: float
    """Time above the usual one, a step, if nothing hid it."""
    ratio: Floats
    """Usual over own cost, (steps, ranks); 1 elsewhere."""
    over: float | None

    @property
    def place(self) -> tuple[int, int, int | None]:
        return (min(self.key[1:]), max(self.key[1:]), self.dp)


def _slow_links(keys: list[tuple[int, int, int]], own: list[Floats]) -> list[_Link]:
    """Links of a direction that are slow; costs as (pairs, 2, steps, ranks) each."""
    typical = np.stack([np.median(one.max(axis=1), axis=0) for one in own])
    found = excess(typical, np.arange(len(keys)))
    ratio = np.where(typical > 0, found.usual / np.where(typical > 0, typical, 1.0), 1.0)
    links = []
    for at, key in enumerate(keys):
        seconds = found.seconds[at] * len(own[at])
        n_slow = int((found.seconds[at] > found.seconds[at].max() / 2).sum())
        if not seconds.max() > 0:
            continue
        everywhere = len(seconds) > 1 and 2 * n_slow > len(seconds)
        ranks = [None] if everywhere else np.flatnonzero(seconds > 0).tolist()
        for dp in ranks:
            chosen = np.ones(len(seconds), dtype=np.bool_) if dp is None else (
                np.arange(len(seconds)) == dp
            )
            spent = float(typical[at][:, chosen].mean())
            above = float(found.seconds[at][chosen].mean())
            links.append(
                _Link(
                    key,
                    dp,
                    float(seconds[chosen].max()),
                    np.where(chosen, ratio[at], 1.0),
                    _over(spent, above),
                )
            )
    return links


def _link_candidate(
    model: WhatIf,
    place: tuple[int, int, int | None],
    *,
    links: list[_Link],
    pairs: dict[tuple[int, int, int], list[tuple[int, int]]],
) -> Candidate:
    low, high, dp = place
    ranks = model.trace.ranks
    named: list[Number] | None = None
    if dp is not None and ranks is not None:
        named = [int(ranks[dp, low]), int(ranks[dp, high])]
    places = [np.array(pairs[link.key]).ravel() for link in links]
    ratio = [
        np.broadcast_to(link.ratio, (len(at), *link.ratio.shape))
        for link, at in zip(links, places, strict=True)
    ]
    ways = {"forward" if link.key[0] else "backward" for link in links}
    evidence: dict[str, Number] = {
        "seconds_above_usual": sum(link.seconds for link in links),
        "time_over_usual_ratio": max((link.over or 0.0 for link in links)) or None,
        "n_transfers": sum(len(pairs[link.key]) for link in links),
    }
    target = {
        "dp_rank": dp,
        "stages": [low, high],
        "direction": "both" if len(ways) == 2 else min(ways),
        "ranks": named,
    }
    return Candidate("pp_link", target, Change(np.concatenate(places), np.concatenate(ratio)),
                     evidence)


def _optimizers(model: WhatIf) -> Iterator[Candidate]:
    """The operations between the last gradient and the end of the step, where some are long."""
    ops, own = model.trace.operations, model.costs.own
    parts = []
    for optype in TAIL:
        at = np.flatnonzero(ops.optype == optype)
        if len(at):
            parts.append(excess(own[at], at))
    if not parts:
        return
    total = np.zeros((model.trace.n_stages, model.trace.n_dp))
    for part in parts:
        np.add.at(total, ops.stage[part.operations], part.seconds)
    if not total.max() > LEAST_SHARE * model.trace.step_seconds.mean():
        return
    stage, dp = (int(at) for at in np.unravel_index(total.argmax(), total.shape))
    worst = max(parts, key=lambda part: float(part.seconds.max()))
    masks = [np.ones((len(part.operations), total.shape[1]), dtype=np.bool_) for part in parts]
    evidence: dict[str, Number] = {
        "operation": kind.OPTYPES[ops.optype[worst.operations[0]]],
        "seconds_above_usual": float(total.max()),
        "n_slow_workers": int((total > total.max() / 2).sum()),
    }
    yield Candidate("optimizer", worker_target(model, dp, stage), _change(parts, masks), evidence)
