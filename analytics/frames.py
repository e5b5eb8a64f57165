"""Canonical frames: what queries hand to analyses, column by column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from analytics.arrays import Floats

    Columns: TypeAlias = Mapping[str, NDArray[Any]]
    """Arrays of one length by name: a table that needs no pandas."""

LedgerGroup: TypeAlias = Literal["day", "partition", "account", "size_class"]
"""What the ledger of GPU-hours can be divided by."""
LEDGER_GROUPS: Final[tuple[LedgerGroup, ...]] = get_args(LedgerGroup)
RateGroup: TypeAlias = Literal["week", "partition", "rack", "node_age"]
"""What the failure rate can be divided by."""
RATE_GROUPS: Final[tuple[RateGroup, ...]] = get_args(RateGroup)
FailureDefinition: TypeAlias = Literal["infrastructure", "paper", "hardware", "scheduler"]
"""What an attempt must have to count as a failure; `data.definitions` has the conditions."""
FAILURE_DEFINITIONS: Final[tuple[FailureDefinition, ...]] = get_args(FailureDefinition)
DEFINITION: Final[FailureDefinition] = "infrastructure"
"""The definition by which everything is counted, unless another is asked for."""
GPUS_PER_NODE = 8.0
"""GPUs of one node, taken where no record says how many."""


@dataclass(frozen=True)
class CountedFailures:
    """Failures that the rate counts, each once by the domain of its verdict."""

    by_domain: Mapping[str, int]
    """Domain -> failures; of a failure log what its cause says. They sum to all."""
    lost_node: int
    """Those of them whose node the scheduler lost, whatever the verdict."""
    logged: int
    """Those of them that a failure log tells, without a job."""
    unexplained: int
    """Failed attempts beside them that may be failures too: no record says whose fault it was."""

    @property
    def n(self) -> int:
        """All of them."""
        return sum(self.by_domain.values())


@dataclass(frozen=True)
class FailureCounts:
    """What the rate is computed from: counts and exposure by day, and single failures."""

    by_day: Columns
    """Columns cluster, day (its date where the cluster stands), failures, incidents,
    exposure_node_days, unexplained (failed attempts of unknown cause); a row for each cluster and
    day."""
    by_size: Columns
    """Columns cluster, n_gpus, day, failures, running_days, unexplained of attempts of all
    sizes."""
    starts_hours: Floats
    """Time of each failure, hours from any origin."""
    repair_minutes: Floats
    """Minutes down of each failure whose repair is known."""
    exposure_known: bool
    """False where failures are known but of no cluster the nodes that could have failed."""
    basis: str
    """gpu_time, node_time (no attempt has GPUs) or node_failures (failures known without jobs)."""
    gpus_per_node: float | None
    """GPUs of one node; None where unknown or where clusters differ."""
    from_at: datetime | None
    """Start of the period counted; None where there is nothing to count."""
    to_at: datetime | None
    """End of the period counted (exclusive)."""
    attempts_without_gpus: int
    """Attempts left out because they have no GPUs or their number is unknown."""
    counted: CountedFailures
    """The failures of `by_day` by domain."""
    definition: FailureDefinition = DEFINITION
    """By which attempts count as failed."""
    min_gpus: int = 0
    """Smallest job counted."""
    evidence: Columns | None = None
    """Columns cluster, source, day: days of all time with records of jobs (`jobs`), and of what can
    show a failure beyond the scheduler's own states; None where that is not known."""
    without_exposure: tuple[str, ...] = ()
    """Clusters left out of the rate: it is not known which nodes could have failed."""
    node_time: tuple[str, ...] = ()
    """Clusters whose time is counted in nodes: none of their jobs has GPUs."""
    restarts: tuple[int, int] = (0, 0)
    """Attempts that were requeued before, and those of them without a record of what was before."""
    restarts_unknown: tuple[str, ...] = ()
    """Clusters whose records say not how often jobs were requeued, and keep no attempt before."""
    without_node: Mapping[str | None, int] = field(default_factory=dict)
    """What failures known without jobs hit that name no node, and how many did; None where nothing
    says it."""
    by_node: Columns | None = None
    """Columns failures, exposure_node_days of jobs of all sizes; a row for each node with exposure.
    None where nodes are not told apart."""


def sums_by_group(group: NDArray[np.intp], values: Floats, n_groups: int) -> list[float]:
    """Sum of the values of each group in their order, compensated after Kahan.

    Parameters
    ----------
    group : ndarray of int, shape (n,)
        Ordinal of the group that each value belongs to, from 0.
    values : ndarray, shape (n,)
        NaN counts nowhere.
    n_groups : int
        Number of groups; one without values has the sum 0.
    """
    totals, lost = [0.0] * n_groups, [0.0] * n_groups
    for place, value in zip(group.tolist(), values.tolist(), strict=True):
        if value != value:
            continue
        term = value - lost[place]
        total = totals[place] + term
        lost[place] = (total - totals[place]) - term
        totals[place] = total
    return totals
