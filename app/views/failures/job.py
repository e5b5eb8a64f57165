"""The history of this job: attempts, verdicts, evidence, and what people decided."""

import streamlit as st

from app import loaders
from app.components import (
    empty_state,
    filter_bar,
    job_attempts,
    job_choice,
    page_head,
    verdict,
)

scope = filter_bar.show()
if scope.empty:
    empty_state.no_store()
    st.stop()
head = st.container()
job = job_choice.choose(scope)
with head:
    page_head.of_one(verdict.job(job, loaders.cause_titles()), verdict.job_basis(job), scope)
if job is None:
    job_choice.failed(scope)
    st.stop()
job_attempts.axis(job, scope)
job_attempts.verdict(job_attempts.choose(job), scope)
job_attempts.listed(job, scope)
