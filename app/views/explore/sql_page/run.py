"""Runs a query beside the page: elapsed time, cancel, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.actions import DataError
from app.answers.explore import queries
from app.ask import cached, reader
from app.figures.explore import result_chart
from app.reports import query_files
from app.reports.query_files import Asked
from app.views.explore.sql_page import editor
from app.widgets import ledger_build
from app.words import numbers

if TYPE_CHECKING:
    import pandas as pd

    from app.show.scope import Scope
    from data.sandbox import QueryResult, RunningQuery

QUICK_S = 0.7
"""Seconds that the page waits before it says that a query runs."""
INTERVAL_S = 0.5
UNREAD = "This query came with the link: read it, then press Run."
SESSION_KEPT = 50
"""Queries of this session that are remembered."""


@dataclass(frozen=True)
class Job:
    """A query under way, and what it was asked with."""

    running: RunningQuery
    asked: Asked


@dataclass(frozen=True)
class Rows:
    """Rows, and what was asked for them."""

    result: QueryResult
    asked: Asked

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The rows as a frame, made once: the page runs again at every click."""
        return query_files.frame_of(self.result)

    @cached_property
    def chart(self) -> result_chart.Chart | None:
        """The chart that suits them; None where they cannot be drawn."""
        return result_chart.suggested(self.frame)


@dataclass(frozen=True)
class Failed:
    """A query that gave no rows, and why."""

    sql: str
    reason: str
    place: tuple[int, int, int] | None
    cancelled: bool
    """The reader ended it: nothing is wrong."""


@dataclass(frozen=True)
class Past:
    """A query of this session."""

    sql: str
    outcome: str


def follow(scope: Scope) -> None:
    """Runs the query that a link brought where it is a saved one; another waits to be read."""
    sql = editor.text()
    if actions.is_saved(cached.store_root(), sql):
        start(scope)
    else:
        st.session_state["sql_unread"] = sql


def unread() -> None:
    """Says of a query that a link brought that nobody here has run it yet."""
    if st.session_state.get("sql_unread", "") == editor.text() != "":
        st.info(UNREAD, icon=":material/link:")


def start(scope: Scope) -> None:
    """Runs what is in the editor; a query of this session that still runs is cancelled."""
    cancel()
    sql = editor.text()
    for each in ("sql_failed", "sql_unread"):
        st.session_state.pop(each, None)
    if not ledger_build.for_query(sql):
        return
    try:
        running, values = actions.ask_sql(
            cached.store_root(),
            sql,
            scope.selection,
            person=reader.author(),
            by_link=sql == st.session_state.get(editor.BROUGHT),
        )
    except DataError as error:
        _fail(sql, error)
        return
    note = scope.of_query(queries.named(sql)).note
    asked = Asked(sql, note, values, cached.snapshot(), scope.synthetic)
    st.session_state["sql_job"] = Job(running, asked)
    running.wait(QUICK_S)


def cancel() -> None:
    """Ends the query of this session, if one runs."""
    job = st.session_state.get("sql_job")
    if job is not None:
        job.running.cancel()
        job.running.wait()
        _take(job, cancelled=True)


def settle() -> None:
    """Takes over what a query answered that has ended since: before anything is drawn."""
    job: Job | None = st.session_state.get("sql_job")
    if job is not None and job.running.wait(0):
        _take(job)


def progress() -> None:
    """Where a query runs: for how long it has, and a button that ends it."""
    job: Job | None = st.session_state.get("sql_job")
    if job is not None:
        _progress(job)


def buttons(scope: Scope) -> None:
    """The button that runs the query, and what it may take."""
    limits = actions.PAGE_LIMITS
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(
            "Run",
            key="sql_run",
            type="primary",
            icon=":material/play_arrow:",
            on_click=start,
            args=(scope,),
            disabled="sql_job" in st.session_state,
            help="Ctrl+Enter in the editor does the same.",
        )
        st.caption(
            f"At most {limits.wall_seconds:g} s",
            help="One SELECT or EXPLAIN, in a process of its own that reaches nothing but this "
            f"snapshot. At most {limits.memory_mb:,} MB of memory, {limits.max_rows:,} rows and "
            f"{limits.max_columns:,} columns, {limits.cpu_seconds} s of processor time, "
            f"{limits.max_bytes // 2**20} MB and {limits.max_values:,} values of rows; nothing "
            "spills to a disk.",
            width="content",
        )
        with st.popover("Parameters", type="tertiary", icon=":material/data_object:"):
            st.caption("The filters on the left set these; a query names them. Times are in UTC.")
            st.dataframe(queries.in_words(scope.selection), hide_index=True)
    missing = queries.missing_guard()
    if missing is not None:
        st.caption(missing)


@st.fragment(run_every=INTERVAL_S)
def _progress(job: Job) -> None:
    """Elapsed time, twice a second; the page runs again when the query has ended."""
    if job.running.wait(0):
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        seconds, most = job.running.elapsed_seconds, job.running.limits.wall_seconds
        st.button("Cancel", key="sql_cancel", icon=":material/stop:", on_click=cancel)
        st.progress(
            min(seconds / most, 1.0), text=f"Running for {seconds:.1f} s of at most {most:g} s"
        )


def _take(job: Job, *, cancelled: bool = False) -> None:
    """Takes over the answer of a query that has ended, once."""
    if st.session_state.pop("sql_job", None) is None:
        return
    try:
        result = job.running.result()
    except DataError as error:
        _fail(job.asked.sql, error, cancelled=cancelled)
        return
    st.session_state["sql_answer"] = Rows(result, job.asked)
    rows = numbers.counted(len(result.rows), "row")
    _remember(job.asked.sql, f"{rows} in {result.seconds:.2f} s")


def _fail(sql: str, error: DataError, *, cancelled: bool = False) -> None:
    """Keeps why a query gave no rows; the rows of the one before it would be taken for its own."""
    st.session_state.pop("sql_answer", None)
    st.session_state["sql_failed"] = Failed(
        sql, str(error), getattr(error, "place", None), cancelled=cancelled
    )
    _remember(sql, str(error))


def _remember(sql: str, outcome: str) -> None:
    """Adds a query to those of this session, and of the person where one is named."""
    past = [each for each in st.session_state.get("sql_past", []) if each.sql != sql]
    st.session_state["sql_past"] = [Past(sql, outcome), *past][:SESSION_KEPT]
    author = reader.author()
    if author and sql.strip():
        actions.kept_queries(cached.store_root()).remember(sql, outcome, author=author)
