"""What to do about one incident: a bar that stays in sight, answers at once and undoes in place."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.failures import said as said_of
from app.ask import reader
from app.ask.cached import fresh, store_root
from app.show import command_lines
from app.widgets import notice
from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from data.state import Annotation

STEPS = {
    "acknowledged": ("Acknowledge", "visibility"),
    "resolved": ("Resolve", "check_circle"),
}
"""Status -> what its button says, and its sign."""
STEPS_PX = 390
"""Room for the steps, taken or not: what stands beside them stays where somebody is about to
click."""


@st.fragment
def show(incident_id: str, commands: Sequence[str], postmortem: Callable[[], None]) -> None:
    """Acknowledge, assign, resolve, the commands that drain its nodes, and the postmortem.

    Only the bar runs again when something is said, and it asks for that alone: the rest of the page
    follows with its next run. `postmortem` draws the files to take.
    """
    target = f"incident:{incident_id}"
    holds: dict[str, Annotation] = {}
    for each in fresh(said_of.history, target):
        if each.undone_at is None:
            holds.setdefault(each.field, each)
    with st.container(horizontal=True, key="incident_bar"):
        with st.container(horizontal=True, vertical_alignment="center", width=STEPS_PX):
            if "status" not in holds:
                st.markdown(":orange-badge[:material/bolt: Open]", width="content")
            for status in STEPS:
                _step(target, status, holds.get("status"))
        _assignee(target, holds.get("assignee"))
        if commands:
            with st.popover("Drain command", icon=":material/terminal:", type="tertiary"):
                command_lines.show(commands)
        with st.popover("Postmortem", icon=":material/description:", type="tertiary"):
            postmortem()


def _step(target: str, status: str, said: Annotation | None) -> None:
    """A button, or that somebody has taken the step, with its undo."""
    label, icon = STEPS[status]
    reached = None if said is None else said.value
    if reached == status and said is not None:
        _taken(status.capitalize(), said)
    elif reached != "resolved" and st.button(label, icon=f":material/{icon}:", key=f"bar_{status}"):
        _say(target, "status", status)


def _assignee(target: str, said: Annotation | None) -> None:
    """Who works on it, or a way to say so: one click for oneself."""
    if said is not None:
        _taken(f"Assigned to {said.value}", said)
        return
    me = reader.author()
    if me is not None and st.button("Assign to me", icon=":material/person:", key="bar_me"):
        _say(target, "assignee", me)
    with st.popover("Assign", icon=":material/person_add:", type="tertiary"):
        with st.form("bar_assign", border=False):  # Enter saves
            name = st.text_input("Who works on it", key="bar_assignee", placeholder="A name")
            saved = st.form_submit_button("Save")
        if saved and name.strip():
            _say(target, "assignee", name.strip())


def _taken(what: str, said: Annotation) -> None:
    """What somebody said, and its undo."""
    by = "" if what.endswith(said.author) else f" by {said.author}"
    st.markdown(f":green-badge[:material/check: {escaping.escaped(what + by)}]", width="content")
    if st.button("Undo", key=f"bar_undo_{said.annotation_id}", type="tertiary"):
        with notice.explained():
            actions.undo(store_root(), said.annotation_id, author=reader.author())
            st.rerun(scope="fragment")


def _say(target: str, field: str, value: str) -> None:
    """Writes it down; the bar then runs again."""
    with notice.explained():
        actions.annotate(store_root(), target, field, value, author=reader.author())
        st.toast("Saved", icon=":material/check:")
        st.rerun(scope="fragment")
