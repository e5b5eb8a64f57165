"""What did the big runs get out of their time?"""

import streamlit as st

from app import loaders
from app.components import (
    empty_state,
    ettr_calculator,
    ettr_numbers,
    ettr_runs,
    filter_bar,
    headline,
    ledger_build,
    page_head,
    published_ettr,
    run_choice,
    run_detail,
    verdict,
)

scope = filter_bar.show(min_gpus=loaders.MTTF_MIN_GPUS)
if scope.empty:
    empty_state.no_store()
    st.stop()
ledger_build.ensure()
if run_id := run_choice.named():
    run_detail.show(run_id, scope)
    st.stop()
report, failures = loaders.ettr(scope.selection), loaders.mttf(scope.selection)
page_head.show(
    verdict.ettr(report, scope.selection.min_gpus), loaders.coverage(scope.selection), scope
)
if report.n_runs:
    headline.row(ettr_numbers.of_runs(report, scope))
    ettr_runs.show(report, ettr_runs.curve(report, failures), scope)
else:
    empty_state.no_runs(scope.filters)
ettr_calculator.show(report, failures, scope)
published_ettr.show()
