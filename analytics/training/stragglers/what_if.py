"""A traced job as a model of its step: any set of operations fixed or kept as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from analytics.errors import AnalysisError, ShapeError
from analytics.training.stragglers.alignment import distinct
from analytics.training.stragglers.costs import Costs, costs_of
from analytics.training.stragglers.graph import Graph, graph_of
from analytics.training.stragglers.operations import label
from analytics.training.stragglers.plan import Plan, plan_of
from analytics.training.stragglers.replay import Timeline, timeline
from analytics.training.stragglers.scenarios import Masks
from analytics.training.stragglers.simulation import simulate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from analytics.training.stragglers.trace import Trace

    Times: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True)
class WhatIf:
    """The graph of a job's step with the costs of its operations."""

    trace: Trace
    graph: Graph
    costs: Costs
    plan: Plan

    @classmethod
    def of(cls, trace: Trace) -> WhatIf:
        """The model that a trace makes.

        Raises
        ------
        AnalysisError
            Where the operations do not form a step (`graph.graph_of`).
        """
        graph = graph_of(trace)
        costs = costs_of(trace, graph)
        return cls(trace, graph, costs, plan_of(trace, graph, costs))

    @property
    def labels(self) -> tuple[str, ...]:
        """Types of the trace, sends and receives of a direction being one, in order of code."""
        return tuple(
            dict.fromkeys(label(code) for code in distinct(self.trace.operations.optype)[0])
        )

    def operations_of(
        self, *, optype: str | None = None, stage: int | None = None, dp: int | None = None
    ) -> NDArray[np.bool_]:
        """Operations of a type (label), a stage and a data-parallel rank; None for all.

        Shape (operations, ranks). The union of several is their `|`.

        Raises
        ------
        AnalysisError
            Where the trace holds none.
        """
        ops = self.trace.operations
        chosen = np.ones((len(ops), self.trace.n_dp), dtype=np.bool_)
        if optype is not None:
            chosen &= np.array([label(code) == optype for code in ops.optype])[:, None]
        if stage is not None:
            chosen &= (ops.stage == stage)[:, None]
        if dp is not None:
            chosen &= np.arange(self.trace.n_dp) == dp
        if not chosen.any():
            raise AnalysisError(
                f"the trace holds no operation of type {optype}, stage {stage}, dp_rank {dp}: "
                f"choose among {', '.join(self.labels)}, {self.trace.n_stages} stages and "
                f"{self.trace.n_dp} ranks"
            )
        return chosen

    def fix(self, operations: ArrayLike) -> Times:
        """Step times, seconds, if operations took their ideal costs and all others their own.

        Parameters
        ----------
        operations
            Booleans that broadcast to (operations, ranks), or (scenarios, operations, ranks).

        Returns
        -------
        ndarray
            Last end of each step; shape (steps,), or (scenarios, steps).
        """
        kept = ~np.asarray(operations, dtype=np.bool_)
        return self.keep(kept)

    def keep(self, operations: ArrayLike) -> Times:
        """Step times, seconds, if operations took their own costs and all others the ideal ones.

        The opposite of `fix`, with the same arguments.
        """
        kept = np.asarray(operations, dtype=np.bool_)
        shape = (len(self.trace.operations), self.trace.n_dp)
        try:
            whole = np.broadcast_to(kept, (*kept.shape[:-2], *shape))
        except ValueError:
            raise ShapeError(
                f"operations must broadcast to {shape} (operations, ranks), got {kept.shape}: "
                "build them with operations_of"
            ) from None
        masks = whole.reshape(-1, *shape)
        last = simulate(self.plan, self.costs, Masks(masks)).last.max(axis=-1)
        times: Times = last.reshape(*kept.shape[:-2], -1)
        return times

    def timeline(self, operations: ArrayLike = True) -> Timeline:
        """All starts and ends if operations took their own costs and all others the ideal ones.

        Parameters
        ----------
        operations
            Booleans that broadcast to (operations, ranks): by default all, which gives the
            original step without launch delays; False gives the ideal one.
        """
        shape = self.costs.own.shape
        kept = np.broadcast_to(np.asarray(operations, dtype=np.bool_), (shape[0], shape[2]))
        optype, ideal = self.trace.operations.optype, self.costs.ideal

        def cost(op: int) -> Times:
            """Own where kept, else ideal."""
            own = self.costs.own[op].astype(np.float64)
            chosen: Times = np.where(kept[op], own, ideal[optype[op]])
            return chosen

        return timeline(self.graph, cost, shape=shape)

    def traced_timeline(self) -> Timeline:
        """Starts and ends as traced; transfers begin when the last member of the group started."""
        end = self.trace.end.astype(np.float64)
        return Timeline(self.trace.start.astype(np.float64), end - self.costs.own, end)
