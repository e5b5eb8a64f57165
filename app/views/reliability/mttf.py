"""How long until a job of N GPUs fails?"""

import streamlit as st

from app import loaders
from app.components import (
    empty_state,
    filter_bar,
    headline,
    mttf_by_size,
    mttf_method,
    notice,
    page_head,
    projection_calculator,
    rates_by,
    reliability_numbers,
    verdict,
)

scope = filter_bar.show(min_gpus=loaders.MTTF_MIN_GPUS)
if scope.empty:
    empty_state.no_store()
    st.stop()
report, before = loaders.mttf(scope.selection), loaders.mttf_before(scope.selection)
page_head.show(verdict.mttf(report), loaders.coverage(scope.selection), scope)
headline.row(reliability_numbers.of_mttf(report, before, scope))
notice.notes(report.notes)
mttf_by_size.show(report, scope)
rates_by.choose(report, scope)
projection_calculator.show()
mttf_method.show(report, scope)
