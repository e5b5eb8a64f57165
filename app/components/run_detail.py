"""One run: what became of its time, attempt by attempt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import figure_block, links, notice, page_head, run_choice, table, verdict
from app.figures.efficiency import run_timeline

if TYPE_CHECKING:
    import pandas as pd

    from app.components.scope import Scope
    from app.questions import RunEttr

COLUMNS = [
    "job_id", "attempt", "state", "cause", "domain", "node", "n_gpus", "waited_h", "ran_h",
    "startup_h", "checkpoint_h", "lost_h", "productive_h", "basis", "submit_at", "start_at",
    "end_at", "incident_id", "user", "account", "partition", "name", "cluster", "attempt_key",
]  # fmt: skip
HOURS = ("waited", "ran", "startup", "checkpoint", "lost", "productive")


def show(run_id: str, scope: Scope) -> None:
    """The run's verdict, timeline, interruptions and attempts; a notice where there is none."""
    head = st.container()
    run_choice.back()
    run: RunEttr | None = None
    with notice.explained():
        run = loaders.run_ettr(run_id, scope.selection.cluster)
    with head:
        if run is None:
            page_head.of_one(f"Run {run_id} has no ETTR.", scope.filters, scope)
            return
        page_head.of_one(verdict.run(run), verdict.run_basis(run), scope)
    _timeline(run, scope)
    _interruptions(run)
    notice.notes(run.notes)
    _attempts(run, scope)


def _timeline(run: RunEttr, scope: Scope) -> None:
    """Attempts and ETTR on one axis."""
    figure = run_timeline.figure(
        run.attempts,
        run.over_time,
        titles=loaders.cause_titles(),
        timezone=scope.timezone,
        mode=scope.mode,
        note="synthetic data" if scope.synthetic else "",
    )
    figure_block.show(figure, run_timeline.frame(run.over_time), name="run_timeline", scope=scope)
    ended = run.over_time.elapsed[-1]
    st.caption(
        "ETTR divides productive time by the time the run waited and ran. Over all time since it "
        f"first became eligible, pauses between submissions included, it is {ended:.3f}."
    )


def _interruptions(run: RunEttr) -> None:
    """What ended attempts, with links to the job and the incident."""
    ended = run.attempts[run.attempts["interrupted"]]
    if ended.empty:
        return
    st.header("Interruptions", anchor=False)
    titles = loaders.cause_titles()
    st.markdown("\n".join(f"- {_interruption(row, titles)}" for _, row in ended.iterrows()))


def _interruption(row: pd.Series, titles: dict[str, str]) -> str:
    """One of them in words."""
    cause = titles.get(row["cause"], row["cause"]) if isinstance(row["cause"], str) else None
    why = f": {cause}" if cause else ""
    incident = (
        f", incident {links.incident(row['incident_id'])}"
        if isinstance(row["incident_id"], str)
        else ""
    )
    lost = row["lost_s"] / 60
    return f"{links.attempt(row)} {row['state']}{why}, about {lost:,.0f} min of work lost{incident}"


def _attempts(run: RunEttr, scope: Scope) -> None:
    """All attempts as a table; one opens its job."""
    st.header("Attempts", anchor=False)
    hours = {f"{part}_h": run.attempts[f"{part}_s"] / 3600 for part in HOURS}
    frame = run.attempts.assign(**hours)[COLUMNS]
    table.show(frame, name="run_attempts", scope=scope, opens=links.open_job)
