"""One incident: what to do, its blast radius, timeline, evidence, and what people decide."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import loaders
from app.components import (
    evidence,
    figure_block,
    glossary,
    incident_rows,
    incident_words,
    links,
    log_excerpt,
    notice,
    table,
    verbatim,
)
from app.components.headline import Headline
from app.figures import numbers
from app.figures.failures import domains, incident_timeline

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.questions import Incident

MEMBERS = [
    "start_at", "seconds_after_start", "node", "text", "role", "source", "severity", "signal",
    "job_id", "attempt", "state", "n_gpus", "cause", "domain", "confidence", "end_at", "kind",
    "key", "cluster",
]  # fmt: skip
JOBS = ["job_id", "attempt", "kind", "state", "began_at", "start_at", "n_gpus", "cause", "domain",
        "confidence", "node", "text", "account", "user", "cluster", "key"]  # fmt: skip
ATTEMPTS = ("failure", "preemption")


def choose() -> Incident | None:
    """The incident that is named; None, with a notice, where there is none."""
    wanted = st.text_input(
        "Incident",
        key="incident",
        bind="query-params",
        placeholder="Incident id, e.g. 40a6bbf68339",
        icon=":material/search:",
        label_visibility="collapsed",
        width=360,
    )
    if wanted and wanted.strip():
        with notice.explained():
            return loaders.incident(wanted.strip())
    return None


def latest(scope: Scope) -> None:
    """The latest incidents, to pick from."""
    st.header("Latest incidents", anchor=False)
    total = loaders.incidents(scope.selection).n_incidents
    if not total:
        st.markdown(f"No incident in this selection ({verbatim.escaped(scope.filters)}).")
        return
    everything = {"domain": None, "cause": None, "status": None}
    incident_rows.show(scope, everything, name="latest_incidents", total=total)


def standing(found: Incident) -> None:
    """Where the id leads elsewhere, or the incident is none any more."""
    row = found.row
    if found.asked_id != row["incident_id"]:
        st.info(
            f"Incident {found.asked_id} was merged into {row['incident_id']}, which is shown.",
            icon=":material/merge:",
        )
    if row["retired"]:
        st.warning(
            "Retired: with the records that are now in the store, its members are no incident any "
            "more. This is how it stood last.",
            icon=":material/history:",
        )


def action(found: Incident) -> None:
    """Cause and domain, then who does what."""
    row, cause = found.row, found.cause
    domain = domains.TITLES.get(str(row["domain"]), str(row["domain"]))
    decided = ""
    if row["decided"]:
        known = loaders.taxonomy().causes.get(str(row["derived_cause"]))
        other = f"; the evidence names: {known.title if known else 'another'}"
        decided = " · by a person" + (other if row["cause"] != row["derived_cause"] else "")
    st.markdown(f"**{cause.title}** · {domain}{decided}")
    st.markdown(f"**{cause.owner[:1].upper()}{cause.owner[1:]}:** {cause.action}")


def to_confirm(found: Incident) -> str | None:
    """The cause that a click can confirm: none where a person has decided."""
    return None if found.row["decided"] else str(found.row["cause"])


def headlines(found: Incident, scope: Scope) -> list[Headline]:
    """Blast radius and confidence, each with its rows."""
    row, members = found.row, found.members
    jobs = members[members["kind"].isin(ATTEMPTS)][JOBS]
    opens = partial(_dialog, jobs, scope, name="incident_jobs")
    second = row["second_order_gpu_seconds"]
    part = numbers.number(None if pd.isna(second) else second / 3600.0)
    lost = row["lost_gpu_hours"]
    least = "at least " if row["n_unmeasured"] and not pd.isna(lost) else ""
    unmeasured = f"; {row['n_unmeasured']:,} not measured" if row["n_unmeasured"] else ""
    return [
        Headline(
            glossary.BLAST_RADIUS,
            numbers.count(row["n_jobs"]),
            f"{row['n_failed_jobs']:,} failed ({incident_words.gpus(row['n_failed_gpus'])}), "
            f"{row['n_preempted_jobs']:,} preempted "
            f"({incident_words.gpus(row['n_preempted_gpus'])})",
            opens,
        ),
        Headline(
            glossary.LOST_GPU_HOURS,
            f"{least}{numbers.number(None if pd.isna(lost) else lost)}",
            f"{part} of it second order{unmeasured}",
            opens,
        ),
        Headline(
            glossary.NODES_HIT,
            numbers.count(row["n_nodes"]),
            f"{len(row['nodes']):,} with evidence" if row["nodes_named"] else "none with evidence",
            partial(_dialog, _members(found)[members["node"].notna()], scope, name="by_node"),
        ),
        Headline(
            glossary.INCIDENT_CONFIDENCE,
            numbers.percent(found.confidence),
            numbers.counted(len(found.verdicts), "verdict"),
            partial(_dialog, _verdicts(found), scope, name="incident_verdicts"),
        ),
    ]


def timeline(found: Incident, scope: Scope) -> None:
    """Everything on one axis."""
    drawn = found.timeline
    figure = incident_timeline.figure(
        drawn,
        timezone=scope.timezone,
        mode=scope.mode,
        note="synthetic data" if scope.synthetic else "",
    )
    data = incident_timeline.frame(drawn)
    figure_block.show(figure, data, name="incident_timeline", scope=scope)


def crash_loop(found: Incident, scope: Scope) -> None:
    """The job that failed in a row, and what its requeues pushed aside."""
    row, failures = found.row, found.members[found.members["kind"].eq("failure")]
    if not row["loop_failures"]:
        return
    st.header("Crash loop", anchor=False)
    aside = (
        f" They preempted {numbers.counted(int(row['n_preempted_jobs']), 'job')} "
        f"({incident_words.gpus(row['n_preempted_gpus'])})."
        if row["n_preempted_jobs"]
        else " They preempted no other job."
    )
    st.markdown(
        f"One job failed {row['loop_failures']:,} times in a row, with "
        f"{numbers.counted(int(row['loop_requeues']), 'requeue')} between.{aside} Hold it until "
        "the cause is mended: every further round takes its nodes again."
    )
    table.show(failures[JOBS], name="loop", scope=scope, opens=_open_member)


def listed(found: Incident, scope: Scope) -> None:
    """The evidence in order of time; picking a row opens its job or node."""
    st.header("Evidence in order of time", anchor=False)
    table.show(_members(found), name="members", scope=scope, opens=_open_member)


def _members(found: Incident) -> pd.DataFrame:
    """Members with the time since the first failure or critical event."""
    since = found.members["start_at"] - found.timeline.first_at
    return found.members.assign(seconds_after_start=since.dt.total_seconds())[MEMBERS]


def behind(found: Incident, scope: Scope) -> None:
    """Of one failed attempt: other causes considered, and its log."""
    if found.verdicts.empty:
        return
    attempt = _attempt(found.verdicts)
    titles = {name: cause.title for name, cause in loaders.taxonomy().causes.items()}
    st.header("Other causes considered", anchor=False)
    evidence.alternatives(attempt["alternatives"], titles)
    st.header("Log", anchor=False)
    log_excerpt.show(attempt, attempt["evidence"], scope)


def _attempt(verdicts: pd.DataFrame) -> pd.Series:
    """The failed attempt that is looked at; the first unless the reader says else."""
    by_key = verdicts.set_index("attempt_key", drop=False)
    if len(by_key) == 1:
        return by_key.iloc[0]
    names = {
        key: f"job {row['job_id']}, attempt {row['attempt']} · {row['state']}"
        for key, row in zip(by_key.index, by_key.to_dict("records"), strict=True)
    }
    chosen = st.selectbox(
        "Failed attempt", list(names), format_func=names.__getitem__, key="of_attempt", width=420
    )
    return by_key.loc[chosen]


def _verdicts(found: Incident) -> pd.DataFrame:
    """Verdicts without what a table cannot hold."""
    return found.verdicts.drop(columns=["evidence", "alternatives"])


@st.dialog("Behind the number", width="large")
def _dialog(frame: pd.DataFrame, scope: Scope, *, name: str) -> None:
    """The rows behind a number."""
    table.show(frame, name=name, scope=scope)


def _open_member(row: pd.Series) -> None:
    """The job of a row, else its node."""
    if isinstance(row["job_id"], str) and row["job_id"]:
        links.open_job(row)
    elif isinstance(row["node"], str):
        links.open_node(row)
