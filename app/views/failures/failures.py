"""What fails, how often, whose fault is it?"""

import streamlit as st

from app import loaders
from app.components import (
    check_calibration,
    confusion_block,
    empty_state,
    failure_causes,
    failure_numbers,
    failure_rows,
    failure_states,
    filter_bar,
    headline,
    page_head,
    verdict,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
summary = loaders.failures(scope.selection)
page_head.show(verdict.failures(summary), loaders.coverage(scope.selection), scope)
if not summary.n_ended and not summary.n_failed:
    empty_state.no_attempts(scope.filters)
    st.stop()
if summary.n_ended:
    headline.row(failure_numbers.of(summary, scope))
shown = failure_causes.choose_domains()
failure_causes.over_time(summary, shown, scope)
if not summary.n_ended:
    failure_causes.ranked(summary, shown, scope)
    empty_state.no_jobs()
    st.stop()
causes, attempts, states, checks, right = st.tabs(
    ["Causes", "Attempts", "States", "Checks", "Right and wrong"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if causes.open:
    with causes:
        failure_causes.ranked(summary, shown, scope)
if attempts.open:
    with attempts:
        failure_rows.show(scope, name="attempts", total=summary.n_failed_attempts)
if states.open:
    with states:
        failure_states.show(summary, scope)
if checks.open:
    with checks:
        check_calibration.show(scope)
if right.open:
    with right:
        confusion_block.show(scope)
