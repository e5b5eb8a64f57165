"""The history of this job: attempts, verdicts, evidence, and what people decided."""

import streamlit as st

from app.answers.failures import incident, job, taxonomy, verdicts
from app.ask import FEW
from app.ask.cached import ask
from app.show import links, page
from app.views.failures import of_one, third_opinion
from app.widgets import filter_bar, inputs, page_head, said
from app.words import escaping, terms

scope = filter_bar.of_store(uses=("cluster",) if inputs.named("job") else filter_bar.USES)
head = st.container()
one = of_one.asked(
    "Job", job.job, example="4711, array task 4711_3 or a whole array",
    cluster=scope.selection.cluster,
)  # fmt: skip
if one is None:
    with head:
        what = "Type its number, follow a link, or pick a failed attempt."
        page_head.of_one("Which job?", what, scope)
    page.blocks([verdicts.attempts(ask, scope.selection, limit=FEW)], scope)
    st.stop()
answer = job.answer(ask, one)
with head:
    roles = "; ".join(f"{role}: {meaning}" for role, meaning in job.ROLES.items())
    page_head.of_one(answer.sentence, job.basis(one), scope, notes=(f"Evidence. {roles}.",))
chart, table = answer.blocks
page.blocks([chart], scope)
attempt = of_one.attempt_of_job(one)
known = ask(taxonomy.taxonomy)
judged = isinstance(attempt["cause"], str)
if judged:
    node = attempt["node"] if isinstance(attempt["node"], str) else attempt["failed_node"]
    where = ""
    if isinstance(node, str) and node:
        then = links.around(attempt["start_at"], attempt["end_at"], scope.timezone)
        where = f" · {links.node(node, attempt['cluster'], then)}"
    st.markdown(f"{job.named_cause(attempt, known)}{where}")
    st.caption(escaping.escaped(job.rests_on(attempt, known)), help=terms.CONFIDENCE.definition)
    cause = known.causes.get(attempt["cause"])
    if cause:
        owner = escaping.escaped(cause.owner[:1].upper() + cause.owner[1:])
        st.markdown(f"**{owner}:** {escaping.escaped(cause.action)}")
else:
    st.markdown(f"**No verdict.** {escaping.escaped(job.without_verdict(attempt))}")
of_one.part_of(attempt)
of_one.runs_of_user(attempt, scope.timezone)
if judged:
    page.blocks([job.evidence(attempt, ask(taxonomy.cause_titles))], scope)
left, right = st.columns([5, 2], gap="large")
with left:
    of_one.log(attempt, scope)
    third_opinion.show(attempt, scope)
    if judged:
        page.blocks([incident.alternatives([attempt], ask(taxonomy.cause_titles))], scope)
with right:
    decided = not judged or attempt["method"] == "human"
    said.show(
        f"attempt:{attempt['cluster']}/{attempt['attempt_key']}",
        scope,
        cause=None if decided else attempt["cause"],
    )
page.blocks([table], scope)
