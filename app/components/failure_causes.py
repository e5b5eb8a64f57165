"""Causes of failures: over time, ranked, and as a table; the reader chooses the domains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from analytics.failures.cause_rates import causes_by_week
from app.components import empty_state, failure_rows, figure_block, glossary, table
from app.figures.failures import cause_ranking, causes_over_time, domains

if TYPE_CHECKING:
    import pandas as pd

    from analytics.failures.summary import FailureSummary
    from app.components.scope import Scope

DEFAULT = ["hardware", "system_software"]
"""What operators can act on: the other two can be a hundred times as many and hide it."""


def choose_domains() -> list[str]:
    """The domains that the figures show; the choice lives in the address."""
    chosen = st.pills(
        "Domains shown",
        list(domains.TITLES),
        selection_mode="multi",
        default=DEFAULT,
        format_func=domains.TITLES.__getitem__,
        key="domain",
        bind="query-params",
        help="\n\n".join(f"**{term.label}.** {term.definition}" for term in glossary.DOMAINS),
    )
    return [domain for domain in domains.TITLES if domain in chosen]


def over_time(summary: FailureSummary, shown: list[str], scope: Scope) -> None:
    """Rates of the chosen domains week by week, or what can be chosen instead."""
    if not any(d.n_attempts for d in summary.by_domain if d.domain in shown):
        empty_state.no_failures_of(shown, summary, scope.filters)
        return
    titles = {cause.cause: cause.title for cause in summary.by_cause}
    period = (scope.selection.from_at, scope.selection.to_at)
    causes = causes_by_week(summary.by_week, shown, period=period)
    figure = causes_over_time.figure(
        causes,
        titles=titles,
        exposure_known=summary.exposure_node_days is not None,
        mode=scope.mode,
        note=scope.note,
    )
    frame = causes_over_time.frame(causes, titles)
    figure_block.show(figure, frame, name="causes_by_week", scope=scope)


def ranked(summary: FailureSummary, shown: list[str], scope: Scope) -> None:
    """The ranking, then the table of all causes; picking a row opens its attempts, if any."""
    causes = [cause for cause in summary.by_cause if cause.domain in shown]
    if causes:
        known = summary.exposure_node_days is not None
        figure = cause_ranking.figure(
            causes, exposure_known=known, mode=scope.mode, note=scope.note
        )
        figure_block.show(figure, cause_ranking.frame(causes), name="cause_ranking", scope=scope)
    st.header("All causes", anchor=False)

    def attempts(picked: pd.Series) -> None:
        failure_rows.dialog(scope, cause=str(picked["cause"]), total=int(picked["attempts"]))

    frame = cause_ranking.frame(summary.by_cause)
    table.show(frame, name="causes", scope=scope, opens=attempts if summary.n_ended else None)
