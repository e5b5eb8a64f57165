"""Causes among transfers and the tail of a step: slow links, slow optimizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.compute_causes import (
    MAD_TO_SD,
    MOST_NAMED,
    SIGNIFICANT,
    least_steps,
    worker_target,
)
from analytics.training.stragglers.operations import distinct, low_median, median
from analytics.training.stragglers.step_model import Candidate, Change

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.operations import Floats
    from analytics.training.stragglers.step_model import Number, StepModel, Target

    Key: TypeAlias = tuple[int, int, int]
    Pairs: TypeAlias = dict[Key, list[tuple[int, int]]]

_SENDS: Final = (kind.FORWARD_SEND, kind.BACKWARD_SEND)
GRADIENTS: Final = (kind.ALL_GATHER, kind.REDUCE_SCATTER, kind.SEPARATE)
TAIL: Final = (kind.LAYERNORM, kind.EMBEDDING, kind.CLIP, kind.OPTIMIZER)
LEAST_RATIO: Final = 1.1
"""Least time of a transfer over that of its peers."""
LEAST_SHARE: Final = 0.003
"""Share of the step time that the excess must be for a what-if to be worth asking."""
MOST_ASKED: Final = 4
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
        return np.asarray((self.own - self.usual).mean(axis=1))


def excess(own: Floats, operations: NDArray[np.intp]) -> Excess:
    """What operations that should cost the same cost above the usual.

    The usual cost is the lower median, over places and ranks, of their medians over steps. A place
    and rank is slow throughout where its median is 6 robust standard errors and 10 % above it: all
    its costs are scaled down. A single cost is slow where it lies 6 standard deviations and 50 %
    above what remains: it is set to the usual one.
    """
    n_steps = own.shape[1]
    level = median(own, axis=1)
    usual = float(low_median(level, (0, 1)))
    noise = MAD_TO_SD * float(median(np.abs(own - level[:, None])))
    margin = SIGNIFICANT * 1.2533 * noise / np.sqrt(n_steps)
    slow = (level - usual > margin) & (level > LEAST_RATIO * usual)
    scaled = np.where(slow, max(usual, 0.0) / np.where(slow, level, 1.0), 1.0)
    fixed = own * scaled[:, None]
    sudden = fixed - usual > np.maximum(SIGNIFICANT * noise, 0.5 * abs(usual))
    often = sudden.sum(axis=1, keepdims=True) >= least_steps(n_steps)
    fixed = np.where(sudden & often, max(usual, 0.0), fixed)
    return Excess(operations, own, np.minimum(fixed, own))


def _change(parts: Sequence[Excess], chosen: Sequence[NDArray[np.bool_]]) -> Change:
    """Usual costs at the (places, ranks) chosen of each part."""
    ratios = [
        np.where(mask[:, None], usual_ratio(part), 1.0)
        for part, mask in zip(parts, chosen, strict=True)
    ]
    return Change(np.concatenate([part.operations for part in parts]), np.concatenate(ratios))


def usual_ratio(part: Excess) -> Floats:
    """Usual over own cost, 1 where that is nothing; (places, steps, ranks)."""
    positive = part.own > 0
    return np.where(positive, part.usual / np.where(positive, part.own, 1.0), 1.0)


def dp_links(model: StepModel) -> Iterator[Candidate]:
    """Parameters and gradients of a stage, or of one of its ranks, that take longer than others."""
    ops = model.trace.operations
    parts = _gradients(model)
    if not parts:
        return
    n_stages, n_dp = model.trace.n_stages, model.trace.n_dp
    total, spent = np.zeros((2, n_stages, n_dp))
    for part in parts:
        np.add.at(total, ops.stage[part.operations], part.seconds)
        np.add.at(spent, ops.stage[part.operations], part.own.mean(axis=1))
    least = LEAST_SHARE * model.trace.step_seconds.mean()
    for place in _slow_places(total, least)[:MOST_ASKED]:
        chosen = np.zeros((n_stages, n_dp), dtype=np.bool_)
        chosen[place.stages, place.ranks] = True
        stage, dp = np.unravel_index((total * chosen).argmax(), total.shape)
        one_stage = place.stages != slice(None)
        target: Target = {"dp_rank": None, "stage": int(stage), "rank": None}
        if place.ranks != slice(None):
            target = worker_target(model, int(dp), int(stage))
        if not one_stage:
            target = {**target, "stage": None, "rank": None}
        evidence: dict[str, Number] = {
            "seconds_above_usual": float(total[stage, dp]),
            "time_over_usual_ratio": over_usual(spent[stage, dp], total[stage, dp]),
            "n_workers_slow": int((chosen & (total > total[stage, dp] / 2)).sum()),
        }
        masks = [chosen[ops.stage[part.operations]] for part in parts]
        yield Candidate("dp_link", target, _change(parts, masks), evidence)


def _gradients(model: StepModel) -> list[Excess]:
    """Collectives of each type and number, alike on all stages and ranks."""
    ops, own = model.trace.operations, model.costs.own
    parts = []
    for optype in GRADIENTS:
        at = np.flatnonzero(ops.optype == optype)
        for seq in distinct(ops.seq[at])[0]:
            alike = at[ops.seq[at] == seq]
            parts.append(excess(own[alike], alike))
    return parts


class _Place(NamedTuple):
    """A stage or all, a rank or all."""

    stages: int | slice
    ranks: int | slice
    seconds: float


def _slow_places(total: Floats, least: float) -> list[_Place]:
    """Where gradients take long: a rank on several stages, else by stage; slowest first."""
    n_stages, n_dp = total.shape
    slow = total > least
    places = []
    for dp in range(n_dp):
        alone = n_dp > 1 and all(
            _single(total[stage]) == dp for stage in np.flatnonzero(slow[:, dp])
        )
        if alone and slow[:, dp].sum() > 1:
            places.append(_Place(slice(None), dp, float(total[:, dp].sum())))
    taken = [place.ranks for place in places]
    for stage in range(n_stages):
        worst = _single(total[stage])
        if slow[stage].any() and worst not in taken:
            ranks = slice(None) if worst is None else worst
            places.append(_Place(stage, ranks, float(total[stage].max())))
    return sorted(places, key=lambda place: -place.seconds)


def _single(seconds: Floats) -> int | None:
    """The one rank that is slow, None where several are."""
    worst = int(seconds.argmax())
    others = np.delete(seconds, worst)
    return worst if others.size and others.max() < seconds[worst] / 2 else None


def over_usual(spent: float, above: float) -> float | None:
    """Time over the usual time; None where that is nothing."""
    return float(spent / (spent - above)) if spent > above else None


def optimizers(model: StepModel) -> Iterator[Candidate]:
    """The operations between the last gradient and the end of the step, where some are long."""
    ops, own = model.trace.operations, model.costs.own
    alike = [np.flatnonzero(ops.optype == optype) for optype in TAIL]
    parts = [excess(own[at], at) for at in alike if len(at)]
    if not parts:
        return
    total = np.zeros((model.trace.n_stages, model.trace.n_dp))
    for part in parts:
        np.add.at(total, ops.stage[part.operations], part.seconds)
    if not total.max() > LEAST_SHARE * model.trace.step_seconds.mean():
        return
    slow = total > total.max() / 2
    worst = max(parts, key=lambda part: float(part.seconds.max()))
    masks = [np.ones((len(part.operations), total.shape[1]), dtype=np.bool_) for part in parts]
    evidence: dict[str, Number] = {
        "operation": kind.OPTYPES[ops.optype[worst.operations[0]]],
        "seconds_above_usual": float(total.max()),
        "n_slow_workers": int(slow.sum()),
    }
    target = _common_target(model, np.where(slow, total, 0.0))
    yield Candidate("optimizer", target, _change(parts, masks), evidence)


def _common_target(model: StepModel, seconds: Floats) -> Target:
    """The worker that is slow; of several the stage or rank of which they are most, and who.

    `seconds`: 0 for those that are not slow; (stages, ranks).
    """
    order = np.argsort(-seconds, axis=None, kind="stable")[: np.count_nonzero(seconds)]
    stages, ranks = np.unravel_index(order, seconds.shape)
    workers = [
        worker_target(model, int(dp), int(stage))
        for dp, stage in zip(ranks[:MOST_NAMED], stages[:MOST_NAMED], strict=True)
    ]
    listed: Target = {"workers": workers, "n_workers": len(order)}
    if len(order) == 1:
        return {**workers[0], **listed}
    of_rank = bool((ranks == ranks[0]).all()) and 2 * len(order) > len(seconds)
    of_stage = bool((stages == stages[0]).all()) and 2 * len(order) > seconds.shape[1]
    return {
        "dp_rank": workers[0]["dp_rank"] if of_rank else None,
        "stage": workers[0]["stage"] if of_stage else None,
        "rank": None,
        **listed,
    }


@dataclass(frozen=True)
class _Link:
    """A slow link, in one direction."""

    key: Key
    """Whether forward, stage of the sender, stage of the receiver."""
    dp: int | None
    """Data-parallel rank; None for all."""
    seconds: float
    """Time above the usual one, a step, if nothing hid it."""
    ratio: Floats
    """Usual over own cost, (steps, ranks); 1 elsewhere."""
    over: float | None
    """Its time over the usual one; None where that is nothing."""

    @property
    def place(self) -> tuple[int, int, int | None]:
        """Both stages, whichever way it runs, and the rank."""
        return (min(self.key[1:]), max(self.key[1:]), self.dp)


def pp_links(model: StepModel) -> Iterator[Candidate]:
    """Transfers over a boundary between stages that take longer than others of their direction."""
    ops, own = model.trace.operations, model.costs.own
    links: Pairs = {}
    optypes, stages = ops.optype.tolist(), ops.stage.tolist()
    for node in model.graph.nodes:
        if len(node.members) == 2 and optypes[node.members[0]] in kind.P2P:
            one, other = node.members
            send, receive = (one, other) if optypes[one] in _SENDS else (other, one)
            forward = int(optypes[send] == kind.FORWARD_SEND)
            links.setdefault((forward, stages[send], stages[receive]), []).append((send, receive))
    slow = []
    for forward in (0, 1):
        mine = [key for key in links if key[0] == forward]
        if mine:
            slow += _slow_links(mine, [own[np.array(links[key])] for key in mine])
    least = LEAST_SHARE * model.trace.step_seconds.mean()
    by_place: dict[tuple[int, int, int | None], list[_Link]] = {}
    for link in slow:
        if link.seconds > least:
            by_place.setdefault(link.place, []).append(link)
    ranked = sorted(by_place.items(), key=lambda item: -sum(link.seconds for link in item[1]))
    for place, both in ranked[:MOST_ASKED]:
        yield _link_candidate(model, place, links=both, pairs=links)


def _slow_links(keys: list[Key], own: list[Floats]) -> list[_Link]:
    """Links of a direction that are slow; costs as (pairs, 2, steps, ranks) each."""
    places = np.arange(len(keys))
    sides = [np.stack([median(one[:, side], axis=0) for one in own]) for side in (0, 1)]
    excesses = [excess(typical, places) for typical in sides]
    ratio = np.minimum(*(usual_ratio(one) for one in excesses))
    above = np.maximum(*(one.seconds for one in excesses))
    longest = np.maximum(*sides)
    links = []
    for at, key in enumerate(keys):
        seconds = above[at] * len(own[at])
        n_slow = int((above[at] > above[at].max() / 2).sum())
        if not seconds.max() > 0:
            continue
        everywhere = len(seconds) > 1 and 2 * n_slow > len(seconds)
        ranks = [None] if everywhere else np.flatnonzero(seconds > 0).tolist()
        for dp in ranks:
            every = np.arange(len(seconds))
            chosen = every >= 0 if dp is None else every == dp
            spent = float(longest[at][:, chosen].mean())
            links.append(
                _Link(
                    key,
                    dp,
                    float(seconds[chosen].max()),
                    np.where(chosen, ratio[at], 1.0),
                    over_usual(spent, float(above[at][chosen].mean())),
                )
            )
    return links


def _link_candidate(
    model: StepModel,
    place: tuple[int, int, int | None],
    *,
    links: list[_Link],
    pairs: Pairs,
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
        "time_over_usual_ratio": max(link.over or 0.0 for link in links) or None,
        "n_transfers": sum(len(pairs[link.key]) for link in links),
    }
    target: Target = {
        "dp_rank": dp,
        "stages": [low, high],
        "direction": "both" if len(ways) == 2 else min(ways),
        "ranks": named,
    }
    return Candidate(
        "pp_link", target, Change(np.concatenate(places), np.concatenate(ratio)), evidence
    )
