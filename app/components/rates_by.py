"""The failure rate of groups: the choice of grouping and its figure."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import empty_state, figure_block
from app.figures.reliability import rate_by_group, rate_over_time

if TYPE_CHECKING:
    from analytics.reliability.mttf import MttfReport
    from app.components.scope import Scope
    from data.queries.reliability import Grouping

GROUPINGS: tuple[Grouping, ...] = ("week", "partition", "rack", "node_age")


def choose(report: MttfReport, scope: Scope) -> None:
    """The rate by a grouping that the reader chooses; the choice lives in the address."""
    by = st.segmented_control(
        "Failure rate by",
        GROUPINGS,
        default="week",
        required=True,
        key="by",
        bind="query-params",
    )
    show(report, scope, by=by)


def show(report: MttfReport, scope: Scope, *, by: Grouping) -> None:
    """The rate of each group of one grouping."""
    groups = loaders.rates_by(scope.selection, by)
    if not groups:
        empty_state.no_groups(by)
        return
    draw = rate_over_time.figure if by == "week" else partial(rate_by_group.figure, by=by)
    figure = draw(groups, overall=report.rate, mode=scope.mode, note=scope.note)
    figure_block.show(figure, rate_by_group.frame(groups), name=f"rate_by_{by}", scope=scope)
