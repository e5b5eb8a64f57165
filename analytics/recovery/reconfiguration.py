"""Which jobs run on how many GPUs once some are lost, so that all together lose least."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING, Final

import numpy as np

from analytics import validate
from analytics.errors import OutOfRangeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from analytics.arrays import Floats, Ints

REATTEMPT, RESTART, RECONFIGURE = ACTIONS = (
    "reattempt in place",
    "restart the process in place",
    "reconfigure",
)
"""By severity: of SEV3, SEV2 and SEV1; what does not help is followed by the next."""
SEVERITIES: Final[Mapping[str, int]] = {
    **dict.fromkeys(
        ("gpu_memory", "gpu_sram", "gpu_fault", "gpu_unavailable", "gpu_driver", "pcie", "nvlink",
         "power", "chassis", "system_board", "cpu", "host_memory", "node_lost"), 1
    ),
    **dict.fromkeys(("program_crash", "illegal_memory_access", "cuda_error", "software"), 2),
    **dict.fromkeys(
        ("nccl_timeout", "nccl_error", "nccl_remote_error", "connection_error", "ib_link",
         "ethernet_link", "network"), 3
    ),
}  # fmt: skip
"""Unicron's classes by our causes: lost connection, ECC, DMA, NVLink and driver are 1; exits,
illegal memory and CUDA errors 2; network 3."""
MOST_CELLS: Final = 4e8
"""Jobs times units squared up to which a plan is made."""


@dataclass(frozen=True)
class Task:
    """A job that runs; GPUs are those that it has."""

    job: str
    gpus: int
    least_gpus: int
    """Fewest that it can run on."""
    weight: float = 1.0
    flops: float | None = None
    """Achieved on its GPUs, in any unit that all jobs share; None for one a GPU."""
    scaling: float = 1.0
    """Its throughput goes with GPUs to this power."""
    most_gpus: int | None = None
    """Beyond which it gains nothing; None for those that it has."""

    def __post_init__(self) -> None:
        validate.positive(f"gpus of {self.job}", self.gpus, "pass those that it has")
        validate.positive(f"least_gpus of {self.job}", self.least_gpus, "pass what it can run on")
        validate.nonnegative(f"weight of {self.job}", self.weight, "pass e.g. 1")
        validate.positive(f"scaling of {self.job}", self.scaling, "pass 1 for linear")

    @property
    def most(self) -> int:
        """GPUs beyond which it gains nothing."""
        return self.gpus if self.most_gpus is None else self.most_gpus

    def weighted_flops(self, gpus: Floats) -> Floats:
        """F(t, x) = w T(t, x) on so many GPUs, 0 below the fewest, no more beyond the most."""
        now = float(self.gpus if self.flops is None else self.flops)
        used = np.minimum(gpus, self.most)
        found: Floats = np.where(
            gpus >= self.least_gpus, self.weight * now * (used / self.gpus) ** self.scaling, 0.0
        )
        return found


@dataclass(frozen=True)
class Reconfigured:
    """What runs on what."""

    tasks: tuple[Task, ...]
    gpus: tuple[int, ...]
    """Of each task after it."""
    value: float
    """Weighted FLOPs until the next failure, less what the transition takes; flops times hours."""
    weighted_flops: float
    """Of all tasks after it."""

    @property
    def gives(self) -> tuple[tuple[str, int], ...]:
        """Jobs that give up GPUs, and how many."""
        return tuple(
            (task.job, task.gpus - after)
            for task, after in zip(self.tasks, self.gpus, strict=True)
            if after < task.gpus
        )


def reconfigured(
    tasks: Sequence[Task],
    gpus: int,
    *,
    running_hours: float,
    transition_hours: float,
    faulted: str | None = None,
) -> Reconfigured:
    """The GPUs of each job that make most of what is left.

    .. math:: \\max \\sum_t G(t, x'_t), \\quad \\sum_t x'_t \\le n', \\quad
        G(t, x') = F(t, x') D_{running} - [x' \\ne x \\text{ or faulted}] F(t, x) D_{transition}

    by the dynamic program S(i, j) = max_k S(i - 1, j - k) + G(t_i, k), in units of the greatest
    GPUs that divide all sizes. Where two are alike a job keeps what it has.

    Parameters
    ----------
    tasks
        Jobs as they run.
    gpus : int
        n', that are left for them, >= 0.
    running_hours : float
        D_running, until the next failure of any of them.
    transition_hours : float
        D_transition, in which a job that changes does nothing.
    faulted
        The job that was hit: it pays the transition though it keeps its size.

    Raises
    ------
    OutOfRangeError
        For times that are negative, a job that is not there, or more cells than 400 million.

    References
    ----------
    He et al. (2024), Unicron, arXiv 2401.00134, section 5.

    Examples
    --------
    >>> jobs = [Task("a", 64, 32), Task("b", 32, 32, weight=2.0)]
    >>> reconfigured(jobs, 88, running_hours=10.0, transition_hours=0.5, faulted="b").gpus
    (56, 32)
    """
    validate.nonnegative("running_hours", running_hours, "pass hours, e.g. the MTTF")
    validate.nonnegative("transition_hours", transition_hours, "pass hours, e.g. 0.25")
    validate.nonnegative("gpus", gpus, "pass those that are left")
    if faulted is not None and faulted not in {task.job for task in tasks}:
        raise OutOfRangeError("faulted", "one of the jobs", faulted, "name a job that runs")
    sizes_of = [(task.gpus, task.least_gpus, task.most) for task in tasks]
    unit = gcd(gpus, *(size for sizes in sizes_of for size in sizes)) or 1
    units = gpus // unit
    cells = sum((most - least) // unit + 2 for _, least, most in sizes_of) * (units + 1)
    if cells > MOST_CELLS:
        raise OutOfRangeError(
            "tasks", f"at most {MOST_CELLS:g} cells", cells, "plan jobs of more GPUs alone"
        )
    sizes = unit * np.arange(units + 1, dtype=float)
    best = np.zeros(units + 1)
    chosen = np.zeros((len(tasks), units + 1), dtype=np.int64)
    for place, task in enumerate(tasks):
        gain = task.weighted_flops(sizes) * running_hours
        changes = (sizes != task.gpus) | (task.job == faulted)
        gain = gain - changes * task.weighted_flops(np.array(float(task.gpus))) * transition_hours
        may = [task.gpus // unit, *range(task.least_gpus // unit, task.most // unit + 1), 0]
        best, chosen[place] = _with(best, gain, may)
    after, left = [0] * len(tasks), units
    for place in reversed(range(len(tasks))):
        after[place] = int(chosen[place, left]) * unit
        left -= int(chosen[place, left])
    flops = sum(
        float(task.weighted_flops(np.array(float(size))))
        for task, size in zip(tasks, after, strict=True)
    )
    return Reconfigured(tuple(tasks), tuple(after), float(best[-1]), flops)


def _with(best: Floats, gain: Floats, may: Sequence[int]) -> tuple[Floats, Ints]:
    """One more task: the best of each total, and what the task has of it; of sizes alike the first
    that it may have."""
    found = np.full(len(best), -np.inf)
    chosen = np.zeros(len(best), dtype=np.int64)
    for k in dict.fromkeys(size for size in may if size < len(best)):
        value = best[: len(best) - k] + gain[k]
        better = value > found[k:] + 1e-12 * np.abs(value)
        found[k:] = np.where(better, value, found[k:])
        chosen[k:] = np.where(better, k, chosen[k:])
    return found, chosen


@dataclass(frozen=True)
class Hit:
    """What a failure of one job right now would cost."""

    job: str
    chance: float
    """That it is this one, by GPUs."""
    cost_hours: float
    """Hours of the work of all jobs together."""
    plan: Reconfigured


def if_hit(
    tasks: Sequence[Task],
    *,
    lost_gpus: int,
    idle_gpus: int = 0,
    rate_per_gpu_hour: float,
    transition_hours: float,
    repair_hours: float = np.inf,
) -> tuple[Hit, ...]:
    """For each job, what the loss of some of its GPUs now would cost, the costliest first.

    The cost is what all jobs would have done until the next failure, or until the lost GPUs are
    back if that is sooner, less what the best plan does; in hours of their work together.

    Raises
    ------
    OutOfRangeError
        Where nothing is left to run on and nothing tells when it is back.
    """
    total = sum(task.gpus for task in tasks)
    validate.positive("rate_per_gpu_hour", rate_per_gpu_hour, "pass failures of a GPU an hour")
    left = total + idle_gpus - lost_gpus
    if left <= 0 and np.isinf(repair_hours):
        raise OutOfRangeError("lost_gpus", f"below {total + idle_gpus}", lost_gpus,
                              "some GPUs must be left, or a repair time stated")  # fmt: skip
    running = min(1.0 / (max(left, 1) * rate_per_gpu_hour), repair_hours)
    whole = sum(float(task.weighted_flops(np.array(float(task.gpus)))) for task in tasks)
    alike: dict[Task, tuple[int, Reconfigured]] = {}
    hits = []
    for place, task in enumerate(tasks):
        kind = replace(task, job="")
        if kind not in alike:
            found = reconfigured(
                tasks, max(left, 0), running_hours=running, transition_hours=transition_hours,
                faulted=task.job,
            )  # fmt: skip
            alike[kind] = (place, found)
        plan = _exchanged(place, *alike[kind])
        cost = (whole * running - plan.value) / whole if whole else 0.0
        hits.append(Hit(task.job, task.gpus / total, cost, plan))
    return tuple(sorted(hits, key=lambda hit: (-hit.cost_hours, hit.job)))


def _exchanged(place: int, other: int, plan: Reconfigured) -> Reconfigured:
    """The plan for a hit of one job, out of that for a hit of another that is like it."""
    gpus = list(plan.gpus)
    gpus[place], gpus[other] = gpus[other], gpus[place]
    return replace(plan, gpus=tuple(gpus))


def action(cause: str) -> tuple[int, str] | None:
    """Severity class of a cause and what is done first; None where none is published.

    >>> action("nvlink")
    (1, 'reconfigure')
    """
    severity = SEVERITIES.get(cause)
    return None if severity is None else (severity, ACTIONS[3 - severity])
