"""What is recorded of the nodes of one cluster in a window of days, and against which exposure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

Signal = Literal["job_failure", "out", "ticket", "xid", "warning", "excluded"]
SIGNALS: Final[tuple[Signal, ...]] = (
    "job_failure", "out", "ticket", "xid", "warning", "excluded",
)  # fmt: skip
"""Kinds of records: a job that the node ended, a time out of service that nobody planned, a repair
ticket, a day with a critical event, a day with a lesser XID of hardware, a user who excluded it."""
WINDOW_DAYS: Final = 28
"""Days of records that are judged (Kokolis et al., arXiv 2410.21680, section on lemon nodes)."""
GROUPINGS: Final = ("rack", "pod", "switch", "pdu")
"""What several nodes share, and what can be at fault in their place."""
EXPOSURES: Final = ("present_days", "busy_days", "n_attempts")
"""Columns of nodes that say how much a node could have failed."""


@dataclass(frozen=True)
class NodeRecords:
    """Records of one cluster.

    Attributes
    ----------
    cluster
        Its name.
    days
        Length of the window.
    nodes
        A row for each node, numbered from 0 by the index: `node`; `present_days`, days of the
        window on which it is known to be there; `busy_days`, node-days that jobs held;
        `n_attempts`, attempts that ran, and `n_single`, those on it alone; `role` (compute, front
        end, service or None); `holds_jobs`, whether any job ever ran on it; the columns of
        `GROUPINGS`, None where not known.
    events
        A row for each record: `place` (index into nodes), `day` (days since the window began),
        `until_day` (of a time out of service; NaN else), `signal`, `share` (of a failure that no
        record lays on one node, one over the nodes of the job; 1 else), `user` (whose job, who
        excluded it, or "checks" where health checks alone tell it; None unknown), `evident` (a
        record of the node itself shows the failure, not only the state of a job or a check),
        `n_nodes` (of the job; 0 else), `lost_gpu_hours` (of a failed job; 0 else),
        `reason` (XID, check, cause or reason; None else), `n_records` (records that it stands
        for).
    collected
        Signals of which the cluster has a source in the window; the others are left out.
    """

    cluster: str
    days: float
    nodes: pd.DataFrame
    events: pd.DataFrame
    collected: frozenset[Signal]

    def without(self, rows: NDArray[np.bool_]) -> NodeRecords:
        """The same without some of the events."""
        return replace(self, events=self.events[~rows])
