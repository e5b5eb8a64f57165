"""Candidates among collectives and the tail of a step: slow links of gradients, optimizers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.alignment import distinct
from analytics.training.stragglers.candidates import Candidate
from analytics.training.stragglers.compute_causes import MOST_NAMED, worker_target
from analytics.training.stragglers.computes import MAD_TO_SD, SIGNIFICANT, least_steps
from analytics.training.stragglers.counterfactual import Change
from analytics.training.stragglers.medians import low_median, median

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.candidates import Number, Target
    from analytics.training.stragglers.what_if import WhatIf

    Floats: TypeAlias = NDArray[np.floating[Any]]

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
    ratio: Floats = np.where(positive, part.usual / np.where(positive, part.own, 1.0), 1.0)
    return ratio


def dp_links(model: WhatIf) -> Iterator[Candidate]:
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


def _gradients(model: WhatIf) -> list[Excess]:
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
    found = []
    for dp in range(n_dp):
        alone = n_dp > 1 and all(
            _single(total[stage]) == dp for stage in np.flatnonzero(slow[:, dp])
        )
        if alone and slow[:, dp].sum() > 1:
            found.append(_Place(slice(None), dp, float(total[:, dp].sum())))
    taken = [place.ranks for place in found]
    for stage in range(n_stages):
        worst = _single(total[stage])
        if slow[stage].any() and worst not in taken:
            ranks = slice(None) if worst is None else worst
            found.append(_Place(stage, ranks, float(total[stage].max())))
    return sorted(found, key=lambda place: -place.seconds)


def _single(seconds: Floats) -> int | None:
    """The one rank that is slow, None where several are."""
    worst = int(seconds.argmax())
    others = np.delete(seconds, worst)
    return worst if others.size and others.max() < seconds[worst] / 2 else None


def over_usual(spent: float, above: float) -> float | None:
    """Time over the usual time; None where that is nothing."""
    return float(spent / (spent - above)) if spent > above else None


def optimizers(model: WhatIf) -> Iterator[Candidate]:
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


def _common_target(model: WhatIf, seconds: Floats) -> Target:
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
