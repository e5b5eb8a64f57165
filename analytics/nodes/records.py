"""What is recorded of the nodes of one cluster in a window of days, and the seven signals of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

import pandas as pd

if TYPE_CHECKING:
    from analytics.arrays import Bools

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
    uses
        A row for each user of each node: `place`, `user`, `node_days` that their attempts ran
        there, `n_attempts`; None where not known.
    """

    cluster: str
    days: float
    nodes: pd.DataFrame
    events: pd.DataFrame
    collected: frozenset[Signal]
    uses: pd.DataFrame | None = None

    def without(self, rows: Bools) -> NodeRecords:
        """The same without some of the events."""
        return replace(self, events=self.events[~rows])


SIGNAL_OF: Final = {
    "excl_jobid_count": "excluded",
    "xid_cnt": "xid",
    "tickets": "ticket",
    "out_count": "out",
    "multi_node_node_fails": "job_failure",
    "single_node_node_fails": "job_failure",
    "single_node_node_failure_rate": "job_failure",
}
"""Each signal and the kind of record that it counts."""


def signals(records: NodeRecords) -> pd.DataFrame:
    """The signals of each node, in the order of the records' nodes; NaN where not collected.

    excl_jobid_count: jobs that excluded it; xid_cnt: XIDs that differ; tickets; out_count: times
    out of service that nobody planned; multi_node_node_fails and single_node_node_fails: jobs on
    several nodes and on it alone whose failure lies on it; the last over its jobs alone.

    References
    ----------
    Kokolis, A. et al. (2024). arXiv 2410.21680, section on lemon nodes.
    """
    rows = records.events
    by = rows["signal"]
    whole = (by == "job_failure") & (rows["share"] >= 1)
    codes = rows[by.isin(("xid", "warning"))].dropna(subset=["reason"])
    codes = codes.assign(xid=codes["reason"].str.findall(r"\bXID \d+")).explode("xid")
    single = _sum(records, whole & (rows["n_nodes"] <= 1))
    counted = {
        "excl_jobid_count": _sum(records, by == "excluded", "n_records"),
        "xid_cnt": codes.groupby("place")["xid"].nunique(),
        "tickets": _sum(records, by == "ticket"),
        "out_count": _sum(records, by == "out"),
        "multi_node_node_fails": _sum(records, whole & (rows["n_nodes"] > 1)),
        "single_node_node_fails": single,
    }
    found = pd.DataFrame(
        {
            name: each.reindex(records.nodes.index, fill_value=0).astype(float)
            for name, each in counted.items()
        }
    )
    ran = records.nodes["n_single"].where(records.nodes["n_single"] > 0)
    found["single_node_node_failure_rate"] = found["single_node_node_fails"] / ran
    for name, signal in SIGNAL_OF.items():
        if signal not in records.collected:
            found[name] = float("nan")
    return found


def _sum(records: NodeRecords, rows: pd.Series, column: str | None = None) -> pd.Series:
    """Records, or the sum of a column, by node."""
    grouped = records.events[rows].groupby("place")
    return grouped.size() if column is None else grouped[column].sum()
