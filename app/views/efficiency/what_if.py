"""The same month again without its worst nodes and with another checkpoint interval?"""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from app.answers.content import Table
from app.answers.efficiency import best_interval, what_if
from app.ask.cached import ask
from app.show import links, page
from app.views.efficiency import wish
from app.widgets import filter_bar, ledger_build, notice, page_head
from app.words import escaping

over = st.session_state.get("over") or st.query_params.get("over") or wish.MONTH
uses = filter_bar.USES if over == wish.CHOSEN else filter_bar.USES[1:]
scope = filter_bar.of_store(uses=uses)
ledger_build.ensure()
scope = replace(scope, selection=ask(what_if.period, scope.selection, month=over != wish.CHOSEN))
dated = replace(scope, uses=scope.uses | {"period"})
"""Whose notes and downloads name the month; what a row opens is told it by the row."""
head = st.container()
wanted = wish.asked()
answer = None
with notice.explained():
    answer = what_if.answer(ask, scope.selection, wanted)
if answer is None:
    with head:
        page_head.of_one("What would have been regained?", "Nothing is played again.", scope)
    st.stop()
with head:
    page_head.show(answer.sentence, dated)
page.headlines(answer.numbers, dated)
job = answer.record["best_interval"]
of_job = "" if job is None else best_interval.sentence(job)
if of_job:
    calculator = links.page("ettr", best_interval.as_address(job), "all that moves its ETTR")
    st.caption(f"{escaping.escaped(of_job)} The calculator shows {calculator}.")
charts = [block for block in answer.blocks if not isinstance(block, Table)]
if len(charts) > 1:
    page.beside(charts, [1, 1], dated)
else:
    page.blocks(charts, dated)
page.notes([note for note in answer.notes if note != of_job])
tables = {block.key: block for block in answer.blocks if isinstance(block, Table)}
if "left_out" in tables:
    page.blocks([tables["left_out"]], scope)
page.blocks([block for key, block in tables.items() if key != "left_out"], dated)
page.method(answer.terms)
