"""Where did every GPU-hour go?"""

import streamlit as st

from app.answers.efficiency import ledger, ledger_by_group
from app.ask.cached import ask
from app.show import page
from app.widgets import empty_state, filter_bar, ledger_build, page_head

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
ledger_build.ensure()
answer = ledger.answer(ask, scope.selection)
page_head.show(answer.sentence, scope)
if not answer.numbers:
    page.blocks(answer.blocks, scope)
    st.stop()
page.headlines(answer.numbers, scope)
page.blocks([answer.chart("ledger")], scope)
over_time, by_group, lost, buckets = st.tabs(
    ["Over time", "By group", "Lost work", "All buckets"],
    key="tab",
    on_change="rerun",
    bind="query-params",
)
if over_time.open:
    with over_time:
        page.blocks([ledger_by_group.chart(ask, scope.selection, "day")], scope)
if by_group.open:
    with by_group:
        chosen = st.segmented_control(
            "Losses by",
            [*ledger_by_group.NAMES],
            default="size",
            required=True,
            key="group",
            bind="query-params",
        )
        page.blocks(
            [ledger_by_group.chart(ask, scope.selection, ledger_by_group.NAMES[chosen])], scope
        )
if lost.open:
    with lost:
        page.blocks([answer.table("lost_work")], scope)
if buckets.open:
    with buckets:
        page.blocks([answer.table("gpu_hours")], scope, titled=False)
        if answer.record["currency"] is None:
            st.caption(f":material/info: {ledger.NO_PRICE}")
page.notes(answer.notes)
page.method(answer.terms)
