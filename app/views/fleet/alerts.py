"""What wants attention, what is muted, what would have fired?"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial

import streamlit as st

from app.alerts import listing
from app.alerts.evaluate import clock
from app.ask.cached import ask, fresh
from app.show import page
from app.views.fleet.alerts_page import alert_lines, rule_lines
from app.widgets import action_list, filter_bar, page_head
from app.words.glossary import of_alerts

scope = filter_bar.show(uses=("cluster", "period"))
wall = datetime.now(UTC).replace(second=0, microsecond=0)
known = fresh(listing.known, clock(ask, wall))
answer = listing.answer(known, wall, scope.selection.cluster)
states = listing.states(known, wall)
page_head.of_one(
    answer.sentence,
    listing.asked_at(known),
    scope,
    notes=[note for note in answer.notes if note != listing.NOBODY],
    terms=(of_alerts.ALERT, of_alerts.SEVERITY, of_alerts.FALSE_ALARMS, of_alerts.MUTED),
)
if not known.receivers:
    st.caption(listing.NOBODY)
page.tabs(
    {
        "Alerts": partial(alert_lines.show, known, states, wall, scope.selection.cluster),
        "All that needs somebody": partial(action_list.show, scope),
        "Rules": partial(rule_lines.show, known, wall, scope),
    },
    key="alerts_tab",
)
