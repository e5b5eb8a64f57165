"""The buckets of the GPU-hour ledger, and what each means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class BucketKind:
    """What a bucket means."""

    title: str
    meaning: str
    goodput_term: str | None
    """Term of ml-goodput-measurement; None where it has none: time outside jobs."""
    estimated: bool
    """Rests on what is known of checkpoints and start-up, not on records alone."""
    of_jobs: bool
    """Time that jobs held; the others are the fleet's."""


BUCKETS: Final[Mapping[str, BucketKind]] = {
    "productive": BucketKind(
        "Productive",
        "Work that was kept. Errors of the user's own program count as productive, as "
        "in Kokolis et al., arXiv 2410.21680.",
        "GOODPUT",
        estimated=True,
        of_jobs=True,
    ),
    "checkpoint": BucketKind(
        "Checkpoints",
        "Training stood still to write a checkpoint.",
        "UNPRODUCTIVE_CHECKPOINT_SAVE_TIME",
        estimated=True,
        of_jobs=True,
    ),
    "startup": BucketKind(
        "Start-up",
        "From the start of an attempt to its first step: launch, compilation, loading.",
        "PROGRAM_STARTUP",
        estimated=True,
        of_jobs=True,
    ),
    "lost_work": BucketKind(
        "Lost to failures",
        "Work since the last checkpoint when hardware, system software or a lost node ended "
        "the attempt.",
        "WASTED_PROGRESS_FROM_DISRUPTION",
        estimated=True,
        of_jobs=True,
    ),
    "lost_work_preempted": BucketKind(
        "Lost to preemption",
        "The same of attempts that were preempted; with a cause, where the requeue of a job that "
        "failed preempted them (second order).",
        "WASTED_PROGRESS_FROM_DISRUPTION",
        estimated=True,
        of_jobs=True,
    ),
    "straggler": BucketKind(
        "Stragglers",
        "Productive time that workers waited for the slowest: 1 - 1 / S of the runs with traces.",
        "OTHER",
        estimated=True,
        of_jobs=True,
    ),
    "other": BucketKind(
        "Other losses",
        "Work since the last checkpoint of attempts that were requeued by hand.",
        "OTHER",
        estimated=True,
        of_jobs=True,
    ),
    "queue_hold": BucketKind(
        "Held by the queue",
        "Free GPUs while eligible jobs waited for as many: fragmentation, limits, gang scheduling.",
        None,
        estimated=False,
        of_jobs=False,
    ),
    "drained": BucketKind(
        "Drained",
        "Nodes drained for repair or inspection; GPUs that jobs still held are not counted.",
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
        estimated=False,
        of_jobs=False,
    ),
    "down_planned": BucketKind(
        "Down, planned",
        "Planned maintenance and powered down.",
        None,
        estimated=False,
        of_jobs=False,
    ),
    "down_unplanned": BucketKind(
        "Down, unplanned",
        "Nodes the scheduler lost or found down.",
        "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION",
        estimated=False,
        of_jobs=False,
    ),
    "idle": BucketKind(
        "Idle", "In service, and no eligible job waited for it.", None, estimated=False,
        of_jobs=False,
    ),
}  # fmt: skip
"""The buckets, productive first."""
STACK: Final = (
    "productive",
    "startup",
    "checkpoint",
    "straggler",
    "lost_work_preempted",
    "lost_work",
    "other",
    "queue_hold",
    "idle",
    "drained",
    "down_planned",
    "down_unplanned",
)
"""From the bottom of a stack up: what was kept, what jobs spent and lost, what was free or out."""
