"""What do I hand to people who never open this dashboard?"""

import streamlit as st

from app.components import (
    empty_state,
    filter_bar,
    page_head,
    report_choice,
    report_files,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
page_head.of_one(
    "Reports to hand to others", f"Files that open without this dashboard · {scope.filters}", scope
)
choice = report_choice.choose()
report = report_choice.made(choice, scope)
if report is None:
    empty_state.no_report(choice.kind)
    st.stop()
report_files.downloads(report, scope)
report_files.command(choice, scope)
report_files.preview(report)
