"""The attempts of a job: on one axis, and the verdict of the one that is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders
from app.components import (
    evidence,
    figure_block,
    glossary,
    links,
    log_excerpt,
    part_of,
    said,
    table,
)
from app.figures import numbers
from app.figures.failures import attempts, domains

if TYPE_CHECKING:
    from analytics.failures.taxonomy import Taxonomy
    from app.components.scope import Scope
    from app.questions import Job

COLUMNS = [
    "attempt", "state", "cause", "domain", "confidence", "node", "submit_at", "start_at", "end_at",
    "n_nodes", "n_gpus", "exit_code", "exit_signal", "reason", "failed_node", "restarts",
    "node_list", "partition", "user", "account", "name", "submit_line", "preempted_by", "job_id",
    "cluster", "attempt_key",
]  # fmt: skip
METHODS = {
    "scheduler": "the scheduler's record",
    "health_event": "health events on its nodes",
    "log_rule": "its log, by a rule",
    "log_model": "its log, by the model trained on this site's labels",
    "human": "a person's decision",
}


def axis(job: Job, scope: Scope) -> None:
    """All attempts on one time axis."""
    titles = loaders.cause_titles()
    figure = attempts.figure(
        job.attempts,
        titles=titles,
        timezone=scope.timezone,
        mode=scope.mode,
        note="synthetic data" if scope.synthetic else "",
    )
    frame = job.attempts[COLUMNS]
    figure_block.show(figure, frame, name="attempts", scope=scope)


def listed(job: Job, scope: Scope) -> None:
    """All attempts as a table."""
    st.header("All attempts", anchor=False)
    table.show(job.attempts[COLUMNS], name="attempts_table", scope=scope)


def choose(job: Job) -> pd.Series:
    """The attempt that is looked at: the last one with a verdict, unless the address says else."""
    found = job.attempts.reset_index(drop=True)
    judged = found.index[found["cause"].notna()]
    default = int(judged[-1]) if len(judged) else len(found) - 1
    if len(found) == 1:
        return found.iloc[0]
    several = {
        "several_jobs": found["job_id"].nunique() > 1,
        "several_clusters": found["cluster"].nunique() > 1,
    }
    names = [attempts.name(row, **several) for row in found.to_dict("records")]
    chosen = st.selectbox(
        "Attempt",
        names,
        index=None,
        placeholder=f"{names[default]}, {found['state'][default]}",
        label_visibility="collapsed",
        key="attempt",
        bind="query-params",
        width=420,
    )
    return found.iloc[default if chosen is None else names.index(chosen)]


def verdict(attempt: pd.Series, scope: Scope) -> None:
    """Verdict, what to do and evidence; then log and alternatives beside what people say."""
    taxonomy = loaders.taxonomy()
    target = f"attempt:{attempt['cluster']}/{attempt['attempt_key']}"
    judged = isinstance(attempt["cause"], str)
    _say_cause(attempt, taxonomy)
    part_of.attempt(attempt)
    if judged:
        st.header("Evidence", anchor=False)
        evidence.show(attempt["evidence"], attempt["end_at"], scope)
    left, right = st.columns([5, 2], gap="large")
    with left:
        st.header("Log", anchor=False)
        log_excerpt.show(attempt, attempt["evidence"] if judged else (), scope)
        if judged:
            st.header("Other causes considered", anchor=False)
            evidence.alternatives(attempt["alternatives"], loaders.cause_titles())
    with right:
        st.header("Confirm or change", anchor=False)
        said.form(target, with_cause=True, found=_to_confirm(attempt))
        st.header("What people said", anchor=False)
        said.history(target, scope)


def _to_confirm(attempt: pd.Series) -> str | None:
    """The cause that a click can confirm: none where a person has decided."""
    if not isinstance(attempt["cause"], str) or attempt["method"] == "human":
        return None
    return str(attempt["cause"])


def _say_cause(attempt: pd.Series, taxonomy: Taxonomy) -> None:
    """The verdict in words: cause, domain, confidence, where, and who does what."""
    if not isinstance(attempt["cause"], str):
        st.markdown(f"**No verdict.** {_why_none(attempt)}")
        return
    known = taxonomy.causes.get(attempt["cause"])
    title = known.title if known else attempt["cause"]
    domain = domains.TITLES.get(attempt["domain"], attempt["domain"])
    st.markdown(f"**{title}** · {domain}{_where(attempt)}")
    symptom = taxonomy.symptoms.get(str(attempt["symptom"]))
    st.caption(
        _rests_on(attempt)
        + (f", symptom {symptom.title}" if symptom and symptom.name != "unknown" else "")
        + _changed(attempt, taxonomy),
        help=glossary.CONFIDENCE.definition,
    )
    if known:
        st.markdown(f"**{known.owner[:1].upper()}{known.owner[1:]}:** {known.action}")


def _rests_on(attempt: pd.Series) -> str:
    """What names the cause, and how surely."""
    if attempt["method"] == "none":
        return "No evidence names a cause"
    by = METHODS.get(attempt["method"], attempt["method"])
    return f"By {by}, confidence {numbers.percent(attempt['confidence'])}"


def _changed(attempt: pd.Series, taxonomy: Taxonomy) -> str:
    """What the evidence names, where a person decided otherwise."""
    derived = attempt["derived_cause"]
    if attempt["method"] != "human" or derived == attempt["cause"]:
        return ""
    known = taxonomy.causes.get(derived)
    return f"; the evidence names: {known.title if known else derived}"


def _where(attempt: pd.Series) -> str:
    """The node that failed, with its page."""
    node = attempt["node"] if isinstance(attempt["node"], str) else attempt["failed_node"]
    return f" · {links.node(node, attempt['cluster'])}" if isinstance(node, str) and node else ""


def _why_none(attempt: pd.Series) -> str:
    """Why an attempt has no verdict."""
    if pd.isna(attempt["end_at"]):
        return "The attempt has not ended."
    return f"It ended {attempt['state']}, which is no failure."
