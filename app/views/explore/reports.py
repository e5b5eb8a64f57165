"""What do I hand to people who never open this dashboard?"""

import streamlit as st

from app.views.explore import report_page
from app.widgets import filter_bar, page_head

scope = filter_bar.of_store(uses=report_page.uses())
page_head.of_one(
    "Reports to hand to others", f"Files that open without this dashboard · {scope.filters}", scope
)
choice = report_page.choose(scope)
report = report_page.made(choice, scope)
if report is None:
    st.stop()
report_page.downloads(report)
report_page.command(choice, scope)
report_page.preview(report)
