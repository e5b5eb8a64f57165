"""Scenarios of the what-if, laid out as blocks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from analytics.training.stragglers.operations import OPTYPES, label

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from analytics.training.stragglers.plan import Member

    Times: TypeAlias = NDArray[np.float64]


@dataclass
class Standard:
    """Everything that each type, stage, rank and worker by itself contributes.

    Blocks, in this order: each data-parallel rank alone keeps its own costs, in its own lane of one
    block; all keep theirs (the original); all but one stage do (P blocks); one stage alone (P); one
    type alone (one a label); none (the ideal); each rank on one stage alone, in its lane (P). Then
    the other ranks, where one alone or on a stage is kept: they are all alike, so the lane of the
    kept rank does for them.
    """

    n_stages: int
    labels: Sequence[str]
    n_dp: int
    n_blocks: int = field(init=False)

    def __post_init__(self) -> None:
        """Places of the blocks."""
        self.original = 1
        self.fix_stage = self.original + 1
        self.alone = self.fix_stage + self.n_stages
        types = self.alone + self.n_stages
        self._type = {name: types + at for at, name in enumerate(self.labels)}
        self.ideal = types + len(self.labels)
        self.worker = self.ideal + 1
        self.others = self.worker + self.n_stages
        self.n_blocks = self.others + (1 + self.n_stages if self.n_dp > 1 else 0)
        self._type_of_code = [self._type.get(label(code), -1) for code in range(len(OPTYPES))]

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Own costs in the blocks that keep the operation, ideal ones in all others."""
        n_own, stage = self.alone, member.stage
        np.add(ready[:n_own], own, out=end[:n_own])
        np.add(ready[n_own:], ideal, out=end[n_own:])
        kept = slice(n_own + stage, self.worker + stage + 1, self.worker - n_own)
        np.add(ready[kept], own, out=end[kept])
        fixed = self.fix_stage + stage
        np.add(ready[fixed], ideal, out=end[fixed])
        of_type = self._type_of_code[member.optype]
        np.add(ready[of_type], own, out=end[of_type])

    def join(self, ready: Times) -> None:
        """All ranks of a scenario wait for the last one."""
        if self.n_dp > 1:
            together = ready[self.original : self.worker]
            together[:] = together.max(axis=-1, keepdims=True)
            workers, others = ready[self.worker : self.others], ready[self.others :]
            for kept, other in ((ready[:1], others[:1]), (workers, others[1:])):
                np.maximum(kept, other, out=kept)
                other[:] = kept

    def stage(self, ends: Times) -> Times:
        """Step times where one stage keeps its costs, (stages, steps)."""
        return _over_ranks(ends[self.alone : self.alone + self.n_stages])

    def types(self, ends: Times) -> dict[str, Times]:
        """Step times where one type keeps its costs, (steps,) each."""
        return {name: _over_ranks(ends[at]) for name, at in self._type.items()}

    def fixed_stage(self, ends: Times) -> Times:
        """Step times where all but one stage keep their costs, (stages, steps)."""
        return _over_ranks(ends[self.fix_stage : self.alone])

    def kept_dp(self, ends: Times) -> Times:
        """Step times where one rank keeps its costs, (steps, ranks)."""
        kept: Times = ends[0]
        return np.maximum(kept, ends[self.others]) if self.n_dp > 1 else kept

    def kept_worker(self, ends: Times) -> Times:
        """Step times where one worker keeps its costs, (stages, steps, ranks)."""
        kept: Times = ends[self.worker : self.others]
        return np.maximum(kept, ends[self.others + 1 :]) if self.n_dp > 1 else kept


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


@dataclass
class Workers:
    """Scenarios in which any set of workers keeps its own costs.

    Attributes
    ----------
    kept
        Shape (scenarios, ranks, stages).
    n_steps
        Steps simulated.
    """

    kept: NDArray[np.bool_]
    n_steps: int
    n_blocks: int = field(init=False)

    def __post_init__(self) -> None:
        self.n_blocks = len(self.kept)
        # For every step, not broadcast: a choice among rows that lie in one piece is twice as fast.
        wide = np.repeat(self.kept[:, None], self.n_steps, axis=1)
        self._of_stage = [wide[..., stage].copy() for stage in range(wide.shape[-1])]

    def add(self, ready: Times, member: Member, own: Times, *, ideal: float, end: Times) -> None:
        """Own costs where the worker is kept, ideal ones elsewhere."""
        kept = self._of_stage[member.stage][:, : len(own)]
        np.add(ready, np.where(kept, own, ideal), out=end)

    def join(self, ready: Times) -> None:
        """All ranks of a scenario wait for the last one."""
        ready[:] = ready.max(axis=-1, keepdims=True)


def _over_ranks(ends: Times) -> Times:
    """A step ends with its last rank."""
    times: Times = ends.max(axis=-1)
    return times
