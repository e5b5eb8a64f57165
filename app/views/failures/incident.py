"""What happened here, why, why now, and what next?"""

import streamlit as st

from app.answers.failures import incident, incidents, said, taxonomy
from app.ask import FEW
from app.ask.cached import ask
from app.show import page
from app.views.failures import (
    attempt_choice,
    attempt_log,
    chosen,
    incident_files,
    incident_people,
)
from app.widgets import filter_bar, page_head, replay
from app.words import domains, escaping

scope = filter_bar.of_store(uses=() if chosen.named("Incident") else filter_bar.USES)
head = st.container()
with st.container(horizontal=True, vertical_alignment="center"):
    one = chosen.one("Incident", incident.incident, example="40a6bbf68339", width=360)
    if one is not None:
        incident_files.show(str(one.row["incident_id"]))
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
    page_head.of_one(answer.sentence, incident.basis(one, scope.timezone), scope)
for note in incident.standing(one):
    notice = st.warning if one.row["retired"] else st.info
    notice(escaping.escaped(note), icon=":material/history:")
page.notes(ask(said.arrangement, str(one.row["incident_id"])))
page.blocks([answer.chart("incident_timeline")], scope)
replay.show(answer.chart("incident_replay"), scope)
page.blocks([answer.table("incident_phases")], scope, titled=False)
st.header("Cause", anchor=False)
owner, _, action = incident.who_acts(one).partition(": ")
domain = domains.title(str(one.row["domain"]))
st.markdown(f"**{escaping.escaped(one.cause.title)}** · {domain}")
st.markdown(f"**{escaping.escaped(owner)}:** {escaping.escaped(action)}")
page.notes(incident.decided(one, ask(taxonomy.cause_titles)))
st.header("Cost", anchor=False)
page.headlines(incident.blast_radius(one), scope)
page.blocks([*incident.loop(one), answer.table("evidence")], scope)
if len(one.verdicts):
    attempt = attempt_choice.of_incident(one)
    page.blocks([incident.alternatives([attempt], ask(taxonomy.cause_titles))], scope)
    attempt_log.show(attempt, scope)
incident_people.show(one, scope)
page.blocks([answer.table("similar_incidents")], scope)
