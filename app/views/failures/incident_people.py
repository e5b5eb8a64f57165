"""Who has an incident, what people said of it, and which incidents and attempts are one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.answers.failures import said as said_of
from app.ask.cached import ask
from app.show import page
from app.widgets import said
from app.words import escaping

if TYPE_CHECKING:
    from analytics.failures.incidents.incident import Incident
    from app.show.scope import Scope

UNDO = "Nothing is lost by it: Undo under what people said brings back what was."


def show(one: Incident, scope: Scope) -> None:
    """Owner, assignee, times; what is done about it; then what was said, beside the forms."""
    incident_id = str(one.row["incident_id"])
    st.header("Who has it", anchor=False)
    page.headlines(said_of.who(one.row), scope)
    st.markdown(f"**What we do about it:** {escaping.escaped(said_of.remedy(one.row))}")
    told, forms = st.columns(2, gap="large")
    with told:
        st.header("What people said", anchor=False)
        target, history = f"incident:{incident_id}", ask(said_of.of_incident, incident_id)
        said.history(target, scope, history)
    with forms:
        st.header("Confirm or change", anchor=False)
        said.form(target, with_cause=True, cause=None if one.row["decided"] else one.row["cause"])
        if not one.row["retired"]:
            _arranging(one, target)


def _arranging(one: Incident, target: str) -> None:
    """Says that it is the same as another incident, or that attempts are not of it."""
    with st.popover("Merge or split", icon=":material/call_split:", type="tertiary"):
        with st.form("merge", border=False, clear_on_submit=True):
            other = st.text_input("This is the same as incident", placeholder="Id of the other one")
            if st.form_submit_button("Merge into it") and other.strip():
                said.say([(target, "merged_into", other.strip())])
        names = {
            f"attempt:{row['cluster']}/{row['attempt_key']}": f"job {row['job_id']}, attempt "
            f"{row['attempt']} · {row['state']}"
            for row in one.verdicts.to_dict("records")
        }
        with st.form("split", border=False, clear_on_submit=True):
            attempts = st.multiselect(
                "These attempts are not of this incident",
                list(names),
                format_func=names.__getitem__,
                placeholder="Failed attempts",
            )
            place = st.text_input("but of incident", placeholder="none, or the id of one")
            if st.form_submit_button("Take them out") and attempts:
                said.say([(each, "incident", place.strip() or "none") for each in attempts])
        st.caption(UNDO)
