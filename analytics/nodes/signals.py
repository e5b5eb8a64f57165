"""The seven signals by which lemon nodes were first told, as counts of a window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pandas as pd

if TYPE_CHECKING:
    from analytics.nodes.records import NodeRecords

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
