"""What became of my runs and jobs: why each ended, whose fault it was, what to do next?"""

import streamlit as st

from app.answers.efficiency import my_runs
from app.ask import FEW
from app.ask.cached import ask
from app.show import page
from app.widgets import filter_bar, inputs, ledger_build, notice, page_head

scope = filter_bar.of_store()
ledger_build.ensure()
head = st.container()
name = inputs.searched("User", key="user", placeholder="User, e.g. the name that sacct prints")
answer = None
if name:
    with notice.explained():
        answer = my_runs.answer(ask, name, scope.selection, limit=FEW)
if answer is None:
    with head:
        what = "Type a name, or pick a user: the address then opens the same page for others."
        page_head.of_one("Whose runs?", what, scope)
    page.show(my_runs.everyone(ask, scope.selection), scope)
    st.stop()
with head:
    terms = [number.term for number in answer.numbers]
    page_head.show(answer.sentence, scope, notes=answer.notes, terms=terms)
page.headlines(answer.numbers, scope)
page.blocks(answer.blocks, scope)
