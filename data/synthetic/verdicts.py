"""Why each attempt failed, as planted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from data.synthetic.faults import CAUSES
from data.synthetic.schedule import FAILED
from data.synthetic.spec import GPUS_PER_NODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from data.synthetic.schedule import Schedule

ILLEGAL_ACCESS: Final = "illegal_memory_access"
"""The one error of user programs that leaves a kernel line."""

_USER_SHARES: Final = {
    "key_error": (0.46, 0.30),
    "file_not_found": (0.14, 0.10),
    "import_error": (0.12, 0.04),
    "cuda_oom": (0.14, 0.20),
    "assertion_error": (0.06, 0.08),
    "data_loader": (0.05, 0.08),
    ILLEGAL_ACCESS: (0.03, 0.04),
    "nccl_timeout": (0.0, 0.16),
}
"""Share of user failures of single-node and of multi-node jobs."""

_BY_STATE: Final = {
    "TIMEOUT": ("time_limit", "user"),
    "OUT_OF_MEMORY": ("host_oom", "user"),
    "REQUEUED": ("requeued", "unknown"),
}

CAUSE_NAMES: Final = (
    *(cause.name for cause in CAUSES),
    *_USER_SHARES,
    *(name for name, _ in _BY_STATE.values()),
)
"""All planted causes; `Verdicts.cause` is an index into it."""

CAUSE_DOMAINS: Final = (
    *(cause.domain for cause in CAUSES),
    *("user" for _ in _USER_SHARES),
    *(domain for _, domain in _BY_STATE.values()),
)
"""The domain of each of `CAUSE_NAMES`: user, system_software, hardware or unknown."""


@dataclass(frozen=True)
class Verdicts:
    """Attempts that failed or were requeued by hand, in the order of the schedule."""

    row: NDArray[np.int64]
    """Row of the schedule."""
    cause: NDArray[np.int64]
    has_event: NDArray[np.bool_]
    """Whether a health event near the end of the attempt shows the cause."""

    def of(self, name: str) -> NDArray[np.int64]:
        """Rows of the schedule that one cause ended."""
        chosen: NDArray[np.int64] = self.row[self.cause == CAUSE_NAMES.index(name)]
        return chosen


def verdicts(schedule: Schedule, rng: np.random.Generator) -> Verdicts:
    """The planted cause of every attempt that ended in a failure or was requeued by its owner."""
    state, strike = schedule.state, schedule.strike
    cause = np.full(len(schedule), -1)
    for name, (word, _) in _BY_STATE.items():
        cause[schedule.in_state(name)] = CAUSE_NAMES.index(word)
    user = (state == FAILED) & (strike < 0)
    for column, of_size in enumerate(
        (schedule.n_gpus <= GPUS_PER_NODE, schedule.n_gpus > GPUS_PER_NODE)
    ):
        chosen = np.flatnonzero(user & of_size)
        shares = np.array([pair[column] for pair in _USER_SHARES.values()])
        drawn = rng.choice(len(shares), len(chosen), p=shares / shares.sum())
        cause[chosen] = len(CAUSES) + drawn
    struck = np.flatnonzero(strike >= 0)
    faults = [fault for _, _, fault in schedule.strikes]
    of_fault = np.array([fault.cause for fault in faults], dtype=np.int64)
    evident = np.array([bool(fault.evidence) for fault in faults], dtype=bool)
    cause[struck] = of_fault[strike[struck]]
    has_event = cause == CAUSE_NAMES.index(ILLEGAL_ACCESS)
    has_event[struck] = evident[strike[struck]]
    row = np.flatnonzero(cause >= 0)
    return Verdicts(row=row, cause=cause[row], has_event=has_event[row])
