"""What pages of one incident, job or node share: which one, its attempt, log and incidents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from app.answers.failures import incidents, job
from app.answers.failures import node as node_answer
from app.answers.training import fleet
from app.ask import FEW
from app.ask.cached import ask
from app.figures.failures import attempts
from app.show import links, page
from app.widgets import copy_button, inputs, notice
from app.words import escaping, numbers
from app.words.plain import titled

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from analytics.failures.incidents.incident import Incident
    from app.answers.failures.job import Job
    from app.show.scope import Scope

R = TypeVar("R")


def asked(
    what: str, question: Callable[..., R], *, example: str, width: int = 420, **asked: Any
) -> R | None:
    """The thing that is named; None, with a notice where there is none of that name."""
    placeholder = f"{what}, e.g. {example}"
    name = inputs.searched(what, key=what.lower(), placeholder=placeholder, width=width)
    if name:
        with notice.explained():
            return ask(question, name, **asked)
    return None


def attempt_of_job(job: Job) -> Mapping[Any, Any]:
    """The last one with a verdict, unless the address says else."""
    rows = job.attempts.to_dict("records")
    judged = [place for place, row in enumerate(rows) if isinstance(row["cause"], str)]
    default = judged[-1] if judged else len(rows) - 1
    if len(rows) == 1:
        return rows[0]
    names = attempts.names(job.attempts)
    chosen = st.selectbox(
        "Attempt",
        names,
        index=None,
        placeholder=f"{names[default]}, {rows[default]['state']}",
        label_visibility="collapsed",
        key="attempt",
        bind="query-params",
        width=420,
    )
    return rows[default if chosen is None else names.index(chosen)]


def attempt_of_incident(incident: Incident) -> Mapping[Any, Any]:
    """A failed attempt of an incident, the first unless the reader says else."""
    rows = {row["attempt_key"]: row for row in incident.verdicts.to_dict("records")}
    if len(rows) == 1:
        return next(iter(rows.values()))
    names = {
        key: f"job {row['job_id']}, attempt {row['attempt']} · {row['state']}"
        for key, row in rows.items()
    }
    chosen = st.selectbox(
        "Failed attempt", list(names), format_func=names.__getitem__, key="of_attempt", width=420
    )
    return rows[chosen]


AROUND = 8
"""Lines shown before and after one that counts."""
LAST = 25
"""Lines of the end shown where no line names a cause."""


def log(attempt: Mapping[Any, Any], scope: Scope) -> None:
    """The excerpt, then all lines, or what would bring a log."""
    st.header("Log", anchor=False)
    cluster, key = str(attempt["cluster"]), str(attempt["attempt_key"])
    read = job.log_lines(ask, cluster, key)
    if read.empty:
        page.missing(job.NO_LOG)
        return
    evidence = attempt["evidence"] if isinstance(attempt["cause"], str) else ()
    excerpts = job.excerpts(read, evidence, title="", around=AROUND, last=LAST)
    if not any(line.counts for excerpt in excerpts for line in excerpt.lines):
        st.caption("No line of the log names a cause; these are its last lines.")
    page.blocks(excerpts, scope)
    with st.expander(f"All {len(read):,} lines", type="compact"):
        page.blocks([job.log_table(ask, cluster, key, limit=FEW)], scope, titled=False)


SHOWN = 3
"""Incidents of a node that are named."""


def part_of(row: Mapping[Any, Any]) -> None:
    """The incident of an attempt, its run and its traces; nothing where it has none."""
    cluster = str(row["cluster"])
    for incident_id, summary in incidents.of_attempt(ask, cluster, str(row["attempt_key"])):
        what = escaping.escaped(_what(summary))
        st.markdown(f"Part of incident {links.to('incident', incident_id)}: {what}")
    run = row["run_id"]
    if isinstance(run, str) and row["n_nodes"] > 1:
        link = links.to("run", run, cluster, said=f"Run {run}")
        st.markdown(link)
    traces = ask(fleet.traces_of_job, cluster, str(row["job_id"]))
    for _, trace in traces.iterrows():
        link = links.to("trace", trace["trace"], said=f"Straggler trace {trace['trace']}")
        slowdown = numbers.number(trace["slowdown"])
        cause = escaping.escaped(str(trace["strongest_cause"]))
        st.markdown(f"{link}: slowdown {slowdown}, {cause}.")


def runs_of_user(row: Mapping[Any, Any], timezone: str) -> None:
    """The page that tells the owner of an attempt about all that ran around it, to open or send."""
    name, cluster = row["user"], str(row["cluster"])
    if not isinstance(name, str) or not name:
        return
    then = links.around(row["start_at"], row["end_at"], timezone)
    with st.container(horizontal=True, vertical_alignment="center"):
        said = f"Runs and jobs of {name}"
        st.markdown(links.to("user", name, cluster, said=said, during=then), width="content")
        copy_button.page("Copy link for its user", links.address("user", name, cluster, then))


def _what(summary: str) -> str:
    """What an incident is, without where and what it hit."""
    return titled(summary).partition(":")[0].partition(" on node")[0]


def incidents_of_node(cluster: str | None, name: str, timezone: str) -> None:
    """The latest incidents in which a node is named, whatever the period."""
    named = ask(node_answer.named_in, cluster, name)
    if named.empty:
        st.caption(node_answer.in_no_incident(ask, cluster))
        return
    st.markdown(
        f"Named in {numbers.counted(len(named), 'incident')}"
        + (f", the latest {SHOWN}:" if len(named) > SHOWN else ":")
    )
    lines = (
        f"- {numbers.moment(row['start_at'], timezone)} "
        f"{links.to('incident', row['incident_id'], said=_what(row['summary']))}"
        for _, row in named.head(SHOWN).iterrows()
    )
    st.markdown("\n".join(lines))
