"""What happened here, why, why now, and what next?"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.failures import incident, incidents, taxonomy
from app.answers.failures import said as said_of
from app.ask import FEW
from app.ask.cached import ask
from app.reports import kinds
from app.show import export, files, html, markdown, page
from app.views.failures import of_one
from app.widgets import (
    copy_button,
    filter_bar,
    fleet_line,
    incident_bar,
    inputs,
    ledger_build,
    page_head,
    replay,
    said,
)
from app.words import escaping

if TYPE_CHECKING:
    from analytics.failures.incidents.incident import Incident
    from app.show.scope import Scope


def files_to_take(incident_id: str) -> None:
    """Three buttons; the files are what `faultline report incident` prints."""
    report = ask(kinds.report, "incident", about=incident_id)
    text = markdown.render(report)
    copy_button.text("Copy as Markdown", text)
    save = partial(export.button, action="report", type="tertiary", icon=":material/download:")
    name, mime = files.name(report, "md"), files.MIME["md"]
    save("Markdown", name, lambda: text, mime=mime, key="report_Markdown")
    name, mime = files.name(report, "html"), files.MIME["html"]
    save("HTML", name, lambda: html.render(report), mime=mime, key="report_HTML")


UNDO = "Undo, under What people said, brings back what was."


def people(one: Incident, scope: Scope) -> None:
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


scope = filter_bar.of_store(uses=() if inputs.named("incident") else filter_bar.USES)
head = st.container()
with st.container(horizontal=True, vertical_alignment="center"):
    one = of_one.asked("Incident", incident.incident, example="40a6bbf68339", width=360)
if one is None:
    with head:
        what = "Paste its id, follow a link, or pick one of the latest."
        page_head.of_one("Which incident?", what, scope)
    st.header("Latest incidents", anchor=False)
    latest = incidents.Choice(scope.selection, incidents.Kind(), address=st.context.url or "")
    page.blocks([incidents.table(ask, latest, limit=FEW)], scope, titled=False)
    st.stop()
answer = incident.answer(ask, one.asked_id)
with head:
    page_head.of_one(
        answer.sentence,
        incident.basis(one, scope.timezone),
        scope,
        notes=[note for note in answer.notes if note not in incident.standing(one)],
    )
    fleet = fleet_line.place()
name = str(one.row["incident_id"])
if not one.row["retired"]:
    with st.container(key="incident_bar_place"):
        incident_bar.show(name, incident.drain_commands(ask, one), partial(files_to_take, name))
for note in incident.standing(one):
    notice = st.warning if one.row["retired"] else st.info
    notice(escaping.escaped(note), icon=":material/history:")
page.headlines(incident.blast_radius(one), scope)
ledger_build.offer()
owner, _, action = incident.who_acts(one).partition(": ")
st.markdown(f"**{escaping.escaped(owner)}:** {escaping.escaped(action)}")
page.blocks([answer.chart("incident_timeline")], scope)
replay.show(answer.chart("incident_replay"), scope)
page.blocks([answer.table("incident_phases")], scope, titled=False)
page.blocks([*incident.loop(one), answer.table("evidence")], scope)
if len(one.verdicts):
    attempt = of_one.attempt_of_incident(one)
    page.blocks([incident.alternatives([attempt], ask(taxonomy.cause_titles))], scope)
    of_one.log(attempt, scope)
people(one, scope)
page.blocks([answer.table("similar_incidents")], scope)
fleet_line.show(fleet, scope)
