"""Runs: measured beside expected ETTR, by size and week, and the list that opens each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders
from app.components import figure_block, links, notice, run_choice, table
from app.components.rows import EVERYTHING
from app.figures import numbers
from app.figures.efficiency import runs_and_expected

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from analytics.efficiency.ettr import EttrReport, GroupEttr
    from analytics.efficiency.expected_curve import ExpectedCurve
    from analytics.reliability.mttf import MttfReport
    from app.components.scope import Scope

COLUMNS = [
    "run_id", "name", "n_gpus", "ettr", "lower", "upper", "basis", "n_attempts", "n_interruptions",
    "n_failures", "queued_h", "scheduled_h", "startup_h", "checkpoint_h", "lost_h", "productive_h",
    "first_start_at", "last_end_at", "user", "account", "partition", "joined_by", "cluster",
]  # fmt: skip
HOURS = ("queued", "scheduled", "startup", "checkpoint", "lost", "productive")


def curve(report: EttrReport, failures: MttfReport) -> ExpectedCurve | None:
    """The ETTR to expect of such runs."""
    return loaders.expected_curve(report, failures, loaders.habits())


def show(report: EttrReport, expected: ExpectedCurve | None, scope: Scope) -> None:
    """The figure, then groups and the list of runs."""
    figure = runs_and_expected.figure(report, expected, mode=scope.mode, note=scope.note)
    figure_block.show(
        figure,
        runs_and_expected.frame(report, expected),
        name="ettr_runs",
        scope=scope,
        opens=_open_point,
    )
    st.caption(_basis(expected))
    notice.notes(report.notes)
    size, week = st.columns(2, gap="large")
    with size:
        st.header("By size", anchor=False)
        _groups(report.by_size, "gpus", scope)
    with week:
        st.header("By week of the first start", anchor=False)
        _groups(report.by_week, "week", scope)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.header("Runs", anchor=False, width="content")
        run_choice.box()
    rows(report, scope, name="runs", opens=links.open_run)


@st.dialog("Runs behind the number", width="large")
def dialog(report: EttrReport, scope: Scope) -> None:
    """The runs that an ETTR counts."""
    rows(report, scope, name="runs_behind")


def rows(
    report: EttrReport,
    scope: Scope,
    *,
    name: str,
    opens: Callable[[pd.Series], None] | None = None,
) -> None:
    """The runs with most GPU-time; the download holds all."""
    table.show(
        _listed(report.by_run),
        name=name,
        scope=scope,
        total=report.n_runs,
        everything=lambda: _listed(loaders.run_rows(scope.selection, EVERYTHING)),
        opens=opens,
    )


def _listed(runs: pd.DataFrame) -> pd.DataFrame:
    """Runs as they are shown, times in hours."""
    return runs.assign(**{f"{part}_h": runs[f"{part}_s"] / 3600 for part in HOURS})[COLUMNS]


def _groups(groups: Sequence[GroupEttr], by: str, scope: Scope) -> None:
    """ETTR of groups of runs."""
    frame = pd.DataFrame(
        [
            {
                by: group.group,
                "runs": group.n_runs,
                "ettr": group.ettr.value,
                "lower": group.ettr.lower,
                "upper": group.ettr.upper,
                "interruptions": group.ettr.n,
                "gpu_hours": group.gpu_hours,
            }
            for group in groups
        ]
    )
    table.show(frame, name=f"ettr_by_{by}", scope=scope)


def _basis(expected: ExpectedCurve | None) -> str:
    """What the curves take, in words."""
    if expected is None:
        return (
            ":material/info: No expected ETTR: the failure rate of this selection is unknown. "
            "Lower the smallest job, or choose a longer period."
        )
    rate, taken = expected.rate_per_1000_node_days, expected.settings
    return (
        f"Expected: exact form at the measured failure rate, {numbers.number(rate.value)} per "
        f"1,000 node-days ({numbers.interval(rate)}, the band), a start-up of "
        f"{numbers.number(taken.restart_min)} min, a checkpoint every "
        f"{numbers.number(taken.checkpoint_min)} min that takes {numbers.number(taken.write_min)} "
        f"min, and a wait of {numbers.duration(taken.queue_min / 60)} before each start (the "
        "median). A long run pays its first wait and start-up once; short ones lie on the dotted "
        "line. Preemptions are not in the rate."
    )


def _open_point(key: str) -> None:
    """The run of a point."""
    cluster, _, run_id = key.partition("/")
    links.open_run(pd.Series({"cluster": cluster, "run_id": run_id}))
