"""How failure rate and MTTF are computed, and what published figures do not add up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import glossary, published_mttf
from app.figures import numbers

if TYPE_CHECKING:
    from analytics.reliability.mttf import MttfReport
    from app.components.scope import Scope

TERMS = (
    glossary.FAILURE_RATE,
    glossary.INCIDENT_RATE,
    glossary.NODE_MTTF,
    glossary.PROJECTION,
    glossary.BETWEEN_FAILURES,
    glossary.REPAIR,
)


def show(report: MttfReport, scope: Scope) -> None:
    """Definitions, both counts of failures, the sizes counted, and the published figures."""
    with st.expander("Method and definitions", icon=":material/function:", type="compact"):
        for term in TERMS:
            st.markdown(f"**{term.label}.** {term.definition}")
        if report.by_hardware is not None and report.by_lost_node is not None:
            st.markdown(
                f"**Failures counted.** {numbers.counted(report.rate.failures, 'failure')}: "
                f"{numbers.count(report.by_hardware)} with verdict hardware, "
                f"{numbers.count(report.by_lost_node)} whose node the scheduler lost; one can be "
                "both."
            )
        st.markdown(
            f"**Sizes counted.** The rate counts jobs of {numbers.count(scope.selection.min_gpus)} "
            "GPUs and more: this page and ETTR start from 129 (the paper counts jobs of more than "
            "128), all others from 0. Measured MTTF by size shows every class, whatever the "
            "smallest job."
        )
        published_mttf.show()
