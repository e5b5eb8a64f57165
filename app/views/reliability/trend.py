"""Is it getting better, since what, what was changed then, and what comes next?"""

from functools import partial

import streamlit as st

from app.answers.reliability import forecast, trend
from app.ask.cached import whole
from app.show import page
from app.views.reliability.trend_page import forecasts, groups
from app.widgets import filter_bar, fleet_line, page_head
from app.words import escaping

scope = filter_bar.of_store()
answer, coming = whole(trend.answer, scope.selection), whole(forecast.answer, scope.selection)
page_head.show(answer.sentence, scope, notes=(*answer.notes, *coming.notes), terms=answer.terms)
fleet = fleet_line.place()
page.headlines(answer.numbers, scope)
page.blocks(answer.blocks[:1], scope)
if coming.numbers[0].exact is not None:
    st.header("What comes next", anchor=False)
    st.markdown(escaping.escaped(coming.sentence))
    page.headlines(coming.numbers, scope)
    page.blocks(coming.blocks, scope)
    page.folded("Odds of a job", partial(forecasts.of_job, scope), key="job_odds")
    page.folded("Parts to keep", partial(forecasts.parts, scope), key="shelf")
page.blocks(answer.blocks[1:], scope)
page.folded("Failures of a node, by group", partial(groups.show, scope), key="node_groups")
fleet_line.show(fleet, scope)
