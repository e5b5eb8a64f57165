"""Where did every GPU-hour go?"""

import streamlit as st

from app.answers.efficiency import ledger, ledger_parts
from app.answers.fleet import weeks
from app.ask.cached import ask, whole
from app.show import page
from app.widgets import filter_bar, fleet_line, inputs, ledger_build, page_head

scope = filter_bar.of_store()
ledger_build.ensure()
answer = whole(ledger.answer, scope.selection)
page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
fleet = fleet_line.place()
if not answer.numbers:
    page.blocks(answer.blocks, scope)
    fleet_line.show(fleet, scope)
    st.stop()
page.headlines([*weeks.beside(ask, scope.selection, answer.numbers)], scope)
page.blocks([answer.chart("ledger")], scope)


def by_group() -> None:
    """Losses by size, partition or account."""
    names = ledger_parts.NAMES
    chosen = inputs.choice("Losses by", [*names], default="size", key="group")
    page.blocks([ledger_parts.chart(ask, scope.selection, names[chosen])], scope)


def buckets() -> None:
    """Every bucket; how to see its cost where no price is stated."""
    page.blocks([answer.table("gpu_hours")], scope, titled=False)
    if answer.record["currency"] is None:
        st.caption(f":material/info: {ledger.NO_PRICE}")


page.tabs(
    {
        "Over time": lambda: page.blocks([ledger_parts.chart(ask, scope.selection, "day")], scope),
        "By group": by_group,
        "Lost work": lambda: page.blocks([answer.table("lost_work")], scope),
        "All buckets": buckets,
    },
    key="ledger_tab",
)
fleet_line.show(fleet, scope)
