"""Which attempt is looked at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import streamlit as st

from app.figures.failures import attempts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from analytics.failures.incidents.incident import Incident
    from app.answers.failures.job import Job


def choose(job: Job) -> Mapping[Any, Any]:
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


def of_incident(incident: Incident) -> Mapping[Any, Any]:
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
