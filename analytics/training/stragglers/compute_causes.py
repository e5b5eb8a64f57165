"""Candidates among computes: slow workers, slow stages, uneven sequences, pauses."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from analytics.training.stragglers import operations as kind
from analytics.training.stragglers.alignment import distinct
from analytics.training.stragglers.candidates import Candidate
from analytics.training.stragglers.counterfactual import Change
from analytics.training.stragglers.medians import low_median, median

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from analytics.training.stragglers.candidates import Number, Target
    from analytics.training.stragglers.computes import Computes
    from analytics.training.stragglers.what_if import WhatIf

    Floats: TypeAlias = NDArray[np.floating[Any]]

LEAST_STAGE_RATIO: Final = 1.02
"""Least time of a stage's computes over that of the usual stage."""
LEAST_CORRELATION: Final = 0.9
"""Least correlation of forward and backward computes of a micro-batch (Lin et al.)."""
LEAST_AGREEMENT: Final = 0.7
"""Least correlation of a micro-batch's times on neighbouring stages."""
LEAST_WITHIN_STEP: Final = 0.7
"""Least correlation of forward and backward computes among the micro-batches of a step."""
MOST_PAUSED: Final = 0.2
"""Share of computes from which on long ones are no exceptions."""
MOST_NAMED: Final = 8
"""Workers that a cause names."""


def compute_candidates(
    model: WhatIf, parts: Computes, measured: Mapping[str, float]
) -> Iterator[Candidate]:
    """Causes for which the computes hold evidence, in no order; `measured` are `correlations`."""
    yield from _workers(model, parts)
    yield from _stages(model, parts)
    yield from _sequence_length(model, parts, measured)
    yield from _pauses(model, parts)


def _change(model: WhatIf, parts: Computes, log_ratio: Floats) -> Change:
    shape = (parts.places.size, *model.costs.own.shape[1:])
    wide = np.broadcast_to(np.exp(log_ratio), (*parts.places.shape, *shape[1:]))
    return Change(parts.places.ravel(), wide.reshape(shape))


def worker_target(model: WhatIf, dp: int, stage: int) -> dict[str, Number]:
    """Names of a worker."""
    ranks = model.trace.ranks
    rank = None if ranks is None else int(ranks[dp, stage])
    return {"dp_rank": dp, "stage": stage, "rank": rank}


def _workers(model: WhatIf, parts: Computes) -> Iterator[Candidate]:
    """Workers whose computes are slower than those of the same stage in other ranks, as one."""
    seconds = np.exp(parts.base).sum(axis=2)[:, :, None, None] * np.expm1(parts.worker)
    by_step = seconds.sum(axis=0)
    excess = by_step.mean(axis=1).T
    if not excess.any():
        return
    order = np.argsort(-excess, axis=None, kind="stable")
    slow = [divmod(int(at), excess.shape[1]) for at in order if excess.flat[at] > 0]
    dp, stage = slow[0]
    whole_rank = excess.shape[1] > 1 and bool(excess[dp].min() > excess[dp].max() / 2)
    target: dict[str, Any] = worker_target(model, dp, stage)
    if whole_rank:
        target |= {"stage": None, "rank": None}
    named = [worker_target(model, *one) for one in slow[:MOST_NAMED]]
    usual = float(np.exp(parts.base[:, stage]).sum())
    slow_steps = by_step[stage, :, dp] > by_step[stage, :, dp].max() / 2
    evidence: dict[str, Number] = {
        "time_over_peers_ratio": 1.0 + float(by_step[stage, slow_steps, dp].mean()) / usual,
        "slow_steps_ratio": float(slow_steps.mean()),
        "n_slow_workers": len(slow),
        "share_of_slowest_ratio": float(excess[dp, stage] / excess.sum()),
        "whole_dp_rank": whole_rank,
    }
    change = _change(model, parts, -parts.worker[:, :, None, None])
    yield Candidate("worker", target | {"workers": named}, change, evidence)


def _stages(model: WhatIf, parts: Computes) -> Iterator[Candidate]:
    """Stages whose computes take longer than those of others in all data-parallel ranks."""
    level = np.exp(parts.base).mean(axis=2)
    total = level.sum(axis=0)
    usual = float(low_median(total, 0))
    mean = level.mean(axis=1)
    n_dp = model.trace.n_dp
    for stage in np.flatnonzero((total > LEAST_STAGE_RATIO * usual) & (total > mean.sum())):
        log_ratio = np.zeros(level.shape)
        log_ratio[:, stage] = np.minimum(np.log(mean / level[:, stage]), 0.0)
        forward, backward = (level[:, stage] / low_median(level, 1)).tolist()
        evidence: dict[str, Number] = {
            "time_over_usual_stage_ratio": float(total[stage] / usual),
            "forward_ratio": forward,
            "backward_ratio": backward,
            "n_dp_ranks": n_dp,
            "last_stage": bool(stage == level.shape[1] - 1),
        }
        change = _change(model, parts, parts.spread(log_ratio, "tp"))
        yield Candidate("stage", {"stage": int(stage)}, change, evidence)


def _sequence_length(
    model: WhatIf, parts: Computes, found: Mapping[str, float]
) -> Iterator[Candidate]:
    """Micro-batches that are long in all their computes."""
    demeaned = max(found["demeaned"], found["all_stages"])
    if not demeaned >= LEAST_CORRELATION or not found["within_step"] >= LEAST_WITHIN_STEP:
        return
    n_stages = parts.places.shape[1]
    if n_stages > 1 and not found["between_stages"] >= LEAST_AGREEMENT:
        return
    work = parts.slope[:, :, :, None, None, None] * parts.work
    calm = parts.detrended - parts.pause
    relative, levelled = np.exp(calm), np.exp(calm - work)
    axes = (3, 4, 5)
    log_mean = np.log(relative.mean(axis=axes) / levelled.mean(axis=axes))
    ratio = np.exp(log_mean[:, :, :, None, None, None] - work)
    calm_ratio = np.exp(-parts.pause)
    # A pause keeps its length.
    change = _change(model, parts, np.log(1.0 - calm_ratio * (1.0 - ratio)))
    spread = relative.std(axis=axes) / relative.mean(axis=axes)
    evidence: dict[str, Number] = {
        "correlation_raw": found["raw"],
        "correlation_demeaned": found["demeaned"],
        "correlation_between_stages": found["between_stages"] if n_stages > 1 else None,
        "coefficient_of_variation": float(median(spread)),
    }
    yield Candidate("sequence_length", None, change, evidence)


def correlations(model: WhatIf, parts: Computes) -> dict[str, float]:
    """Pearson correlations of times of the same micro-batch; NaN where nothing varies.

    `raw`: forward with backward, median over stages; `demeaned`: after removing the mean of each
    worker and chunk; `all_stages`: demeaned, of the mean over stages; `within_step`: demeaned by
    step as well; `between_stages`: demeaned, of neighbouring stages, median.
    """
    own = model.costs.own[parts.places]
    calm = parts.detrended - parts.pause
    logs = calm - calm.mean(axis=(3, 4), keepdims=True)
    logs = np.where(parts.paused, 0.0, logs)
    stages = range(own.shape[1])
    over_stages = logs.mean(axis=(1, 2))
    in_step = over_stages - over_stages.mean(axis=1, keepdims=True)
    by_stage = logs.mean(axis=(0, 2))
    single = own.shape[3] == 1
    return {
        "raw": _median([_pearson(own[0, p], own[1, p]) for p in stages]),
        "demeaned": _median([_pearson(logs[0, p], logs[1, p]) for p in stages]),
        "all_stages": _pearson(over_stages[0], over_stages[1]),
        "within_step": 1.0 if single else _pearson(in_step[0], in_step[1]),
        "between_stages": _median([_pearson(one, other) for one, other in pairwise(by_stage)]),
    }


def _median(values: list[float]) -> float:
    return float(median(values)) if values else float("nan")


def _pearson(one: Floats, other: Floats) -> float:
    one, other = one.ravel() - one.mean(), other.ravel() - other.mean()
    size = float(np.sqrt((one * one).sum() * (other * other).sum()))
    return float((one * other).sum()) / size if size > 0 else float("nan")


def _pauses(model: WhatIf, parts: Computes) -> Iterator[Candidate]:
    """Isolated long computes, and operations that are pauses by name."""
    paused = parts.paused
    own = model.costs.own
    named = np.flatnonzero(model.trace.operations.optype == kind.GC)
    idle = own[named]
    share = float(paused.mean())
    if share > MOST_PAUSED or not (paused.any() or (idle > 0).any()):
        return
    computes = _change(model, parts, np.where(paused, -parts.rest, 0.0))
    ratio = np.concatenate((computes.ratio, np.zeros((len(named), *own.shape[1:]))))
    change = Change(np.concatenate((computes.operations, named)), ratio)
    lost = own[parts.places] * np.where(paused, -np.expm1(-parts.rest), 0.0)
    by_worker = lost.sum(axis=(0, 2, 3))
    np.add.at(by_worker, model.trace.operations.stage[named], idle)
    yield Candidate("pause", *_pause_words(model, by_worker, paused=paused, change=change))


def _pause_words(
    model: WhatIf, by_worker: Floats, *, paused: NDArray[np.bool_], change: Change
) -> tuple[Target, Change, dict[str, Number]]:
    """Which workers pause, how often and how long; seconds lost as (stages, steps, ranks)."""
    hit = by_worker > 0
    workers = np.argwhere(hit.any(axis=1).T)
    lost = by_worker.sum(axis=1).T
    order = sorted(workers.tolist(), key=lambda one: -lost[tuple(one)])
    named = [worker_target(model, *one) for one in order[:MOST_NAMED]]
    steps = model.trace.steps[hit.any(axis=(0, 2))]
    n_pauses = int(paused.sum()) or int(hit.sum())
    gaps = distinct(np.diff(steps))[0]
    evidence: dict[str, Number] = {
        "n_pauses": n_pauses,
        "n_workers": len(order),
        "steps_with_pause_ratio": len(steps) / len(model.trace.steps),
        "seconds_per_pause": float(by_worker.sum()) / n_pauses,
        "share_of_top_worker_ratio": float(lost.max() / lost.sum()),
        "steps_between": int(gaps[0]) if len(gaps) == 1 and len(steps) > 2 else None,
    }
    return {"workers": named, "n_workers": len(order)}, change, evidence
