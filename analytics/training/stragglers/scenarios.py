"""Scenarios of the what-if, laid out as blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from analytics.training.stragglers.operations import label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.plan import Member

    Times: TypeAlias = NDArray[np.float64]


@dataclass
class Standard:
    """Everything that each type, stage, rank and worker by itself contributes.

    Blocks, in this order: each stage alone keeps its own costs (P blocks), each type alone (one a
    label), none does (the ideal), all do (the original), all but one stage do (P); then, for each
    data-parallel rank in its own lane, that rank alone, and that rank on one stage alone (P); then
    the same for the other ranks in that scenario, which are all alike and so need one lane for
    each rank that is kept.
    """

    n_stages: int
    labels: Sequence[str]
    n_dp: int
    n_blocks: int = field(init=False)

    def __post_init__(self) -> None:
        """Places of the blocks."""
        p = self.n_stages
        self._type = {name: p + at for at, name in enumerate(self.labels)}
        self.ideal = p + len(self.labels)
        self.original = self.ideal + 1
        self.fix_stage = self.original + 1
        self.dp = self.fix_stage + p
        self.worker = self.dp + 1
        self.others = self.worker + p
        self.n_blocks = self.others + (1 + p if self.n_dp > 1 else 0)

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Own costs in the blocks that keep the operation, ideal ones in all others."""
        original, worker, stage = self.original, self.worker, member.stage
        np.add(ready[:original], ideal, out=end[:original])
        np.add(ready[original:worker], own, out=end[original:worker])
        np.add(ready[worker:], ideal, out=end[worker:])
        kept = slice(stage, worker + stage + 1, worker)
        np.add(ready[kept], own, out=end[kept])
        fixed = self.fix_stage + stage
        np.add(ready[fixed], ideal, out=end[fixed])
        alone = self._type[label(member.optype)]
        np.add(ready[alone], own, out=end[alone])

    def join(self, ready: Times) -> None:
        """All ranks of a scenario wait for the last one."""
        if self.n_dp > 1:
            together = ready[: self.dp]
            together[:] = together.max(axis=-1, keepdims=True)
            kept, others = ready[self.dp : self.others], ready[self.others :]
            np.maximum(kept, others, out=kept)
            others[:] = kept

    def stage(self, ends: Times) -> Times:
        """Step times where one stage keeps its costs, (stages, steps)."""
        return _over_ranks(ends[: self.n_stages])

    def types(self, ends: Times) -> dict[str, Times]:
        """Step times where one type keeps its costs, (steps,) each."""
        return {name: _over_ranks(ends[at]) for name, at in self._type.items()}

    def fixed_stage(self, ends: Times) -> Times:
        """Step times where all but one stage keep their costs, (stages, steps)."""
        return _over_ranks(ends[self.fix_stage : self.dp])

    def kept_dp(self, ends: Times) -> Times:
        """Step times where one rank keeps its costs, (steps, ranks)."""
        kept: Times = self._kept(ends)[0]
        return kept

    def kept_worker(self, ends: Times) -> Times:
        """Step times where one worker keeps its costs, (stages, steps, ranks)."""
        kept: Times = self._kept(ends)[1:]
        return kept

    def _kept(self, ends: Times) -> Times:
        kept: Times = ends[self.dp : self.others]
        return np.maximum(kept, ends[self.others :]) if self.n_dp > 1 else kept


@dataclass
class Masks:
    """Scenarios in which any set of operations keeps its own costs.

    Attributes
    ----------
    kept
        Shape (scenarios, operations, ranks), the ranks being one for all of them.
    """

    kept: NDArray[np.bool_]
    n_blocks: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_blocks = len(self.kept)
        self._of_op = list(self.kept.transpose(1, 0, 2)[:, :, None])

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Own costs where the operation is kept, ideal ones elsewhere."""
        np.add(ready, np.where(self._of_op[member.op], own, ideal), out=end)

    def join(self, ready: Times) -> None:
        """All ranks of a scenario wait for the last one."""
        ready[:] = ready.max(axis=-1, keepdims=True)


def _over_ranks(ends: Times) -> Times:
    """A step ends with its last rank."""
    times: Times = ends.max(axis=-1)
    return times
