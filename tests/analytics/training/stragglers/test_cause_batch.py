"""How often causes planted in random jobs are named, and others are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from analytics.training.stragglers.analysis import analyse_trace
from analytics.training.stragglers.slowdown import slowdowns
from analytics.training.stragglers.step_model import StepModel
from data.synthetic.trace_schedule import TraceCosts

KINDS = (
    "worker",
    "stage",
    "sequence_length",
    "pause",
    "dp_link",
    "pp_link",
    "optimizer",
    "data_loading",
)
WORTH = 0.015
"""Share of the step that a planted cause must cost to count as there; named are those of 1 %."""


@dataclass
class Job:
    """Layout and costs of a random job."""

    seed: int
    spoilt: tuple[str, ...]

    def __post_init__(self) -> None:
        rng = self.rng = np.random.default_rng(self.seed)
        self.dp, self.pp = int(rng.choice([2, 3, 4, 8, 16, 32])), int(rng.choice([1, 2, 4, 8]))
        self.vpp = int(rng.choice([1, 1, 2])) if self.pp > 1 else 1
        micro = (
            int(rng.choice([4, 6, 8, 12])) if self.vpp == 1 else self.pp * int(rng.integers(1, 4))
        )
        self.n_steps, noise = (
            int(rng.choice([5, 8, 12, 20])),
            float(rng.choice([0, 0.01, 0.02, 0.05])),
        )
        self.sizes = {
            "dp": self.dp,
            "pp": self.pp,
            "vpp": self.vpp,
            "micro_batches": micro,
            "steps": tuple(range(self.n_steps)),
            "overlapped": bool(rng.random() < 0.3),
        }
        computes = (self.n_steps, self.dp, self.pp, self.vpp, micro)
        unit = float(rng.uniform(0.02, 0.2)) / self.vpp
        self.forward = unit * rng.lognormal(0, noise, computes)
        self.backward = 2 * unit * rng.lognormal(0, noise, computes)
        self.step = step = 3 * unit * self.vpp * (micro + self.pp - 1)
        shares = {"all_gather": 0.01, "reduce_scatter": 0.02, "layernorm": 0.001, "embedding": 0.002,
                  "clip": 0.002, "optimizer": 0.01}  # fmt: skip
        seconds = {name: share * step for name, share in shares.items()}
        seconds |= {"forward_p2p": 0.02 * unit, "backward_p2p": 0.02 * unit}
        self.other = {
            name: value * rng.lognormal(0, 2 * noise, computes[:3])
            for name, value in seconds.items()
        }
        self.other["launch"] = np.zeros(computes[:2])
        self.rank, self.stage = int(rng.integers(self.dp)), int(rng.integers(self.pp))
        self.factor = float(rng.uniform(1.1, 3))
        self.boundary = int(rng.integers(1, max(self.pp, 2)))
        for kind in KINDS:
            self.rng = np.random.default_rng((self.seed, KINDS.index(kind)))
            if kind in self.spoilt:
                getattr(self, f"_{kind}")()

    def _slow(self, factor: Any, *at: Any) -> None:
        self.forward[at] *= factor
        self.backward[at] *= factor

    def _worker(self) -> None:
        self._slow(self.factor, slice(None), self.rank, self.stage)

    def _stage(self) -> None:
        self._slow(1 + (self.factor - 1) / 2, slice(None), slice(None), self.pp - 1)

    def _sequence_length(self) -> None:
        shape = (self.n_steps, self.dp, 1, 1, self.forward.shape[-1])
        self._slow(self.rng.lognormal(0, self.rng.uniform(0.15, 0.6), shape))

    def _pause(self) -> None:
        for step in range(self.n_steps):
            op = tuple(int(self.rng.integers(n)) for n in self.forward.shape[1:])
            self.forward[(step, *op)] += self.forward.mean() * self.rng.uniform(2, 8)

    def _dp_link(self) -> None:
        for name in ("all_gather", "reduce_scatter"):
            self.other[name][:, self.rank, self.stage] *= 5 * self.factor

    def _pp_link(self) -> None:
        self.other["forward_p2p"][:, self.rank, self.boundary % self.pp] *= 15 * self.factor

    def _optimizer(self) -> None:
        self.other["optimizer"][:, self.rank, self.stage] *= 5 * self.factor

    def _data_loading(self) -> None:
        self.other["launch"][:, self.rank] = self.step * self.factor / 10

    def costs(self) -> TraceCosts:
        return TraceCosts(forward=self.forward, backward=self.backward, **self.other)

    def is_planted(self, cause: str, target: Any) -> bool:
        """Whether a cause named is one of those planted, at its place."""
        place = {"dp_rank": self.rank, "stage": self.stage}
        wanted = {
            "worker": place,
            "dp_link": place,
            "optimizer": place,
            "stage": {"stage": self.pp - 1},
            "pp_link": {"dp_rank": self.rank, "stages": [self.boundary - 1, self.boundary]},
        }.get(cause, {})
        if cause == "worker" and self.pp > 1 and target["stage"] is None:
            return False
        return cause in self.spoilt and all(target[key] == at for key, at in wanted.items())


def planted(seed: int) -> tuple[str, ...]:
    rng = np.random.default_rng(seed + 1_000_000)
    kinds = rng.permutation(KINDS)[: int(rng.choice([0, 1, 1, 1, 2]))]
    alone = Job(seed, ()).pp == 1
    return tuple(str(kind) for kind in kinds if not (alone and kind in ("stage", "pp_link")))


@pytest.mark.slow
def test_planted_causes_are_named_and_healthy_jobs_are_not_accused(
    trace_of: Callable[..., Any],
) -> None:
    def seconds(job: Job) -> float:
        return float(
            slowdowns(StepModel.of(trace_of(job.costs(), **job.sizes))).traced_seconds.mean()
        )

    right = wrong = there = found = first = single = healthy = none = 0
    for seed in range(1, 401, 2):
        job = Job(seed, planted(seed))
        analysis = analyse_trace(StepModel.of(trace_of(job.costs(), **job.sizes)))
        named = analysis.found_causes
        hits = [job.is_planted(one.cause, one.target) for one in named]
        right, wrong = right + sum(hits), wrong + len(hits) - sum(hits)
        if not job.spoilt:
            healthy, none = healthy + 1, none + (not named)
        for kind in job.spoilt:
            others = tuple(other for other in job.spoilt if other != kind)
            gain = 1 - seconds(Job(seed, others)) / float(analysis.slowdowns.traced_seconds.mean())
            if gain >= (2 * WORTH if kind == "data_loading" else WORTH):
                there += 1
                found += any(
                    one.cause == kind and hit for one, hit in zip(named, hits, strict=True)
                )
                if not others:
                    single, first = single + 1, first + bool(hits and hits[0])
    print(
        f"right {right} wrong {wrong} there {there} found {found} first {first}/{single} none {none}/{healthy}"
    )
    assert right / (right + wrong) >= 0.95
    assert found / there >= 0.95
    assert first / single >= 0.95
    assert none / healthy >= 0.95
