"""What users submit: sizes, running times, outcomes and times of submission of all jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import ndtri

from data.synthetic import published
from data.synthetic.spec import GPUS_PER_NODE, UTILISATION, DemoSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from analytics.arrays import Floats, Ints

OUTCOMES: Final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY")
"""How a job ends if nothing interrupts it; `Workload.outcome` is an index into it."""

_OUTCOME_LENGTH: Final = np.array([1.0, 0.4, 0.8, 1.5, 0.5])
"""Running time of a job of each outcome, relative to a completed one."""

_SPREAD: Final = {"small": 1.7, "medium": 1.2, "large": 0.9}
"""Standard deviation of the logarithm of running times."""

_REDONE: Final = 0.02
"""Share of running time that is work done again after an interruption, measured on the default."""


@dataclass(frozen=True)
class Workload:
    """All jobs in the order in which they become ready to start; times in seconds of the period."""

    n_gpus: Ints
    work_s: Ints
    """Productive time each job needs, without start-up and checkpoints."""
    outcome: NDArray[np.int8]
    submit_s: Ints
    eligible_s: Ints
    ready_s: Ints
    requeue_at: dict[int, int]
    """Job to the running time after which its owner requeues the first attempt."""

    def __len__(self) -> int:
        return len(self.n_gpus)


def wall_s(work_s: Ints, n_gpus: Ints) -> Ints:
    """Running time of an undisturbed attempt: start-up and checkpoints of multi-node jobs added."""
    gang = n_gpus > GPUS_PER_NODE
    writes = (work_s - 1) // published.CHECKPOINT_INTERVAL_S * published.CHECKPOINT_WRITE_S
    return work_s + np.where(gang, published.STARTUP_S + writes, 0)


def workload(spec: DemoSpec, rng: np.random.Generator) -> Workload:
    """The jobs of a demo cluster.

    Counts of sizes and outcomes are exact to rounding and running times are stratified (one draw
    from each quantile), so that GPU-time, and with it utilisation, hardly varies with the seed.
    """
    done = (
        1
        - published.CANCELLED_WAITING
        - published.STATE_SHARES["PREEMPTED"]
        - published.STATE_SHARES["REQUEUED"]
    )
    n_jobs = max(1, int(spec.n_jobs * (done - 0.001)))
    classes = _classes(spec.n_nodes, n_jobs)
    n_gpus = np.repeat(classes.sizes, classes.counts)
    outcome = _outcomes(n_jobs, rng)
    run_s = _run_times(spec, classes, outcome, rng=rng)
    gang = n_gpus > GPUS_PER_NODE
    ready_s = np.empty(n_jobs)
    share = rng.permuted(_strata(int((~gang).sum()), rng))
    ready_s[~gang] = _by_the_clock(share, spec, daily=0.6, weekly=0.5)
    ready_s[gang] = _steady(n_gpus[gang], run_s[gang], spec, rng=rng)
    order = np.argsort(ready_s, kind="stable")
    work_s = _work_s(run_s, n_gpus, outcome)
    return _submitted(spec, (n_gpus[order], work_s[order], outcome[order]), ready_s[order], rng=rng)


def _work_s(run_s: Floats, n_gpus: Ints, outcome: NDArray[np.int8]) -> Ints:
    """Productive part of undisturbed running times, at least a second, a minute of a TIMEOUT."""
    cycle = published.CHECKPOINT_INTERVAL_S + published.CHECKPOINT_WRITE_S
    steps = (run_s - published.STARTUP_S) * published.CHECKPOINT_INTERVAL_S / cycle
    least = np.where(outcome == OUTCOMES.index("TIMEOUT"), 60, 1)
    work: Floats = np.maximum(np.where(n_gpus > GPUS_PER_NODE, steps, run_s), least)
    return work.astype(np.int64)


def _submitted(
    spec: DemoSpec,
    jobs: tuple[Ints, Ints, NDArray[np.int8]],
    ready: Floats,
    *,
    rng: np.random.Generator,
) -> Workload:
    """Jobs with their times: seconds pass from eligible to ready, a few are held for an hour."""
    n_gpus, work_s, outcome = jobs
    n_jobs = len(n_gpus)
    ready_s = np.minimum(ready.astype(np.int64), spec.period_s - 1)
    eligible_s = np.maximum(ready_s - 1 - rng.exponential(20, n_jobs).astype(np.int64), 0)
    held = np.where(rng.random(n_jobs) < 0.05, rng.exponential(published.HOUR_S, n_jobs), 0)
    submit_s = np.maximum(eligible_s - held.astype(np.int64), 0)
    share = published.STATE_SHARES["REQUEUED"] * spec.n_jobs / n_jobs
    chosen = np.flatnonzero(rng.random(n_jobs) < share)
    after = (wall_s(work_s, n_gpus)[chosen] * rng.random(len(chosen))).astype(np.int64) + 1
    return Workload(
        n_gpus=n_gpus,
        work_s=work_s,
        outcome=outcome,
        submit_s=submit_s,
        eligible_s=eligible_s,
        ready_s=ready_s,
        requeue_at=dict(zip(chosen.tolist(), after.tolist(), strict=True)),
    )


@dataclass(frozen=True)
class _Classes:
    """Classes of jobs of one size."""

    sizes: Ints
    """GPUs."""
    counts: Ints
    """Jobs."""
    time: Floats
    """Share of GPU-time."""
    spread: Floats
    """Standard deviation of the logarithm of running times."""


def _classes(n_nodes: int, n_jobs: int) -> _Classes:
    """Sizes of jobs a cluster of this size sees.

    From 64 nodes on, large jobs are powers of two up to half the cluster, rare above 30 % of it;
    below, three quarters of the nodes are one large job, so that the cluster still sees one.
    Shares of sizes that do not fit go to those of their group that do, else to the other groups.
    """
    gpus, rarest = n_nodes * GPUS_PER_NODE, min(published.LARGE_JOBS)
    large = {}
    for g, (share, time_share) in published.LARGE_JOBS.items():
        rarity = 1.0 if g <= 0.3 * gpus or g == rarest else 0.3
        if g <= gpus / 2:
            large[g] = (share * rarity, time_share * rarity)
    if n_nodes < 64:
        large = {3 * n_nodes // 4 * GPUS_PER_NODE: (1.0, 1.0)} if n_nodes > 2 else {}
    medium = {g: shares for g, shares in published.MEDIUM_JOBS.items() if g < max(large, default=0)}
    rows: list[tuple[float, float, float, float]] = []
    for group, classes in (("small", published.SMALL_JOBS), ("medium", medium), ("large", large)):
        jobs_total, time_total = published.GROUP_SHARES[group]
        jobs = sum(share for share, _ in classes.values())
        time = sum(share for _, share in classes.values())
        rows += [
            (g, share / jobs * jobs_total, time_share / time * time_total, _SPREAD[group])
            for g, (share, time_share) in classes.items()
        ]
    sizes, jobs_of, time_of, spread = np.array(rows).T
    counts = _rounded(jobs_of / jobs_of.sum() * n_jobs)
    return _Classes(sizes.astype(np.int64), counts, time_of / time_of.sum(), spread)


def _outcomes(n_jobs: int, rng: np.random.Generator) -> NDArray[np.int8]:
    shares = np.array([published.STATE_SHARES[state] for state in OUTCOMES])
    shares[OUTCOMES.index("CANCELLED")] -= published.CANCELLED_WAITING
    counts = _rounded(shares / shares.sum() * n_jobs)
    return rng.permuted(np.repeat(np.arange(len(OUTCOMES), dtype=np.int8), counts))


def _run_times(
    spec: DemoSpec, classes: _Classes, outcome: NDArray[np.int8], *, rng: np.random.Generator
) -> Floats:
    """Undisturbed running times, seconds: each class's GPU-time is its share of what is offered.

    Of multi-node jobs what still runs at the end of the period, sum(d^2) / 2 period, is offered
    on top.
    """
    run_s = np.empty(len(outcome))
    target = UTILISATION * (1 - _REDONE) * spec.capacity_gpu_s
    longest = min(published.LONGEST_RUN_S, spec.period_s / 2)
    ends = np.cumsum(classes.counts)
    for i, size in enumerate(classes.sizes):
        part = slice(ends[i] - classes.counts[i], ends[i])
        quantiles = rng.permuted(_strata(int(classes.counts[i]), rng))
        drawn = np.exp(classes.spread[i] * ndtri(quantiles)) * _OUTCOME_LENGTH[outcome[part]]
        wanted = target * classes.time[i] / size
        for _ in range(4):
            unseen = (drawn**2).sum() / 2 / spec.period_s if size > GPUS_PER_NODE else 0.0
            scale = (wanted + min(unseen, wanted)) / max(drawn.sum(), 1e-9)
            drawn = np.clip(drawn * scale, 1, longest)
        run_s[part] = drawn
    return run_s


def _steady(n_gpus: Ints, run_s: Floats, spec: DemoSpec, *, rng: np.random.Generator) -> Floats:
    """Times at which multi-node jobs become ready: submitted work grows evenly with time.

    What a running cluster would hold at the beginning (the running rest of its jobs) is submitted
    at the first minute.
    """
    work = n_gpus * run_s
    order = rng.permutation(len(work))
    total = work.sum()
    held = min((work * run_s).sum() / 2 / spec.period_s, total / 2)
    before = np.cumsum(work[order]) - work[order]
    ready_s = np.empty(len(work))
    share = np.clip((before - held) / max(total - held, 1e-9), 0, 1 - 1e-9)
    ready_s[order] = _by_the_clock(share, spec, daily=0.15, weekly=0.0)
    return ready_s


def _by_the_clock(share: Floats, spec: DemoSpec, *, daily: float, weekly: float) -> Floats:
    """Times, seconds, by which a share of all was submitted: busy afternoons, quiet weekends."""
    grid = np.linspace(0, spec.period_s, max(2, int(spec.days * 24) + 1))
    hour, day = grid / published.HOUR_S % 24, grid / published.DAY_S % 7
    busy = (1 + daily * np.cos((hour - 15) / 24 * 2 * np.pi)) * np.where(day < 5, 1, 1 - weekly)
    so_far = np.concatenate([[0.0], np.cumsum((busy[1:] + busy[:-1]) / 2)])
    return np.interp(share, so_far / so_far[-1], grid)


def _strata(n: int, rng: np.random.Generator) -> Floats:
    """One number from each of n equal parts of (0, 1), ascending."""
    return np.asarray((np.arange(n) + rng.uniform(0.01, 0.99, n)) / max(n, 1))


def _rounded(shares: Floats) -> Ints:
    """Whole numbers that keep the (whole) sum: the largest remainders are rounded up."""
    whole = np.floor(shares).astype(np.int64)
    missing = round(float(shares.sum())) - int(whole.sum())
    whole[np.argsort(-(shares - whole), kind="stable")[:missing]] += 1
    return whole
