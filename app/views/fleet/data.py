"""What does this rest on, and what is missing?"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.actions import third_opinion
from app.answers.content import Missing
from app.answers.failures.third_opinion import in_all
from app.answers.fleet import audit, clocks, coverage, ingests
from app.ask import FEW, reader
from app.ask.cached import ask, store_root, whole
from app.show import command_lines, page
from app.views.fleet import demo, upload_form
from app.widgets import empty_state, export_help, filter_bar, notice, page_head
from app.words import escaping, numbers
from data.filters import Selection

if TYPE_CHECKING:
    from app.show.scope import Scope


def undone() -> None:
    """What became of the undo that has just ended; shown once."""
    found = st.session_state.pop(UNDONE, None)
    if found is None:
        return
    done, ingest_id = found
    again = command_lines.of_store(f"faultline rollback --to {done.published}")
    st.success(
        f"Ingest {escaping.code(ingest_id)} is taken back. "
        f"{escaping.code(again)} brings it in again.",
        icon=":material/undo:",
    )
    _to_repeat(done, ingest_id)


def ingests_and_undo(scope: Scope) -> None:
    """The table, and below it which ingest is to be taken back."""
    shown = ingests.table(ask)
    page.blocks([shown], scope, titled=False)
    if isinstance(shown, Missing):
        return
    undoable = [row["ingest_id"] for row in ingests.held(ask).to_dict("records") if row["undoable"]]
    kept = ask(ingests.snapshots)
    page.notes(kept.damaged)
    page.blocks([ingests.snapshots_table(kept)], scope)
    chosen = st.selectbox(
        "Take back an ingest",
        undoable,
        index=None,
        placeholder="choose one",
        key="undo_ingest",
        help="Those whose snapshot before is still kept. What it means is said first.",
        width=240,
    )
    if chosen is not None:
        _confirm(chosen)


UNDONE = "rolled_back"
"""Where the answer to an undo waits for the page to be run on the new snapshot."""


def _confirm(ingest_id: str) -> None:
    """What goes with it, and the button that does it."""
    with notice.explained():
        planned = actions.plan(store_root(), ingest_id=ingest_id)
        n_others = len(planned.to_repeat(ingest_id))
        st.markdown(
            "The store goes back to what it was before that ingest. What people said, saved "
            "queries and the audit stay."
        )
        if n_others:
            st.warning(
                f"{numbers.counted(n_others, 'ingest')} that came with it or later "
                f"{'goes' if n_others == 1 else 'go'} too, and must be repeated:",
                icon=":material/warning:",
            )
            _to_repeat(planned, ingest_id)
        # Its name says what was agreed to: a click on what is no longer shown does nothing.
        if st.button("Take it back", key=f"undo_{planned.published}", type="primary"):
            done, _, missed = actions.roll_back(
                store_root(),
                ingest_id=ingest_id,
                expected=planned.published,
                author=reader.author(),
            )
            st.session_state[UNDONE] = done, ingest_id
            if missed is not None:
                st.toast(escaping.escaped(missed))
            st.rerun()


def _to_repeat(planned: actions.Plan, ingest_id: str) -> None:
    """The commands of the ingests that went too, and the files that have none."""
    others = planned.to_repeat(ingest_id)
    commands = [each["command"] for each in others if each["command"]]
    if commands:
        command_lines.show(commands)
    for each in others:
        if not each["command"]:
            st.caption(f"{escaping.code(each['path'])}, read as {each['source']}")


WHAT = (
    "Logins, failed ones too, ingests, collecting, uploads, queries, exports, reports, backups, "
    "questions to a language model, "
    "and all that people said, took back or deleted. Texts inside queries are left out. The "
    "filters of the sidebar do not apply."
)


def who_did_what(scope: Scope) -> None:
    """The filters and the table."""
    kept = actions.Audit(store_root())
    st.caption(WHAT)
    spent = third_opinion.spent(store_root())
    if spent.calls:
        st.caption(f"Language model, in all: {in_all(spent)}")
    with st.container(horizontal=True):
        person = _one_of("Person", kept.people())
        action = _one_of("Action", kept.actions())
    found = kept.entries(person=person, action=action, limit=audit.SHOWN)
    unfiltered = replace(scope, selection=Selection())  # what its download says of filters
    page.blocks([audit.table(found)], unfiltered, titled=False)


def _one_of(label: str, names: list[str]) -> str | None:
    return st.selectbox(
        label,
        names,
        index=None,
        placeholder="all",
        key=f"audit_{label.lower()}",
        width=240,
    )


def rejected_rows(scope: Scope) -> None:
    """What is looked for, and a page of what was found."""
    held = ask(ingests.kept)
    if held.n_rows > held.n_kept:
        st.caption(
            f"{numbers.counted(held.n_rows, 'record')} could not be read; of "
            f"{numbers.count(held.n_kept)} the text is kept."
        )
    wanted = _wanted(held) if held.n_kept else ingests.Wanted()
    found = ask(ingests.matching, wanted)
    pages = max(1, -(-found // FEW))
    place = 1
    if pages > 1:
        place = st.number_input(
            f"Page of {pages:,}", min_value=1, max_value=pages, key="rejected_page", width=160
        )
    shown = ingests.rejected(ask, wanted, limit=FEW, offset=FEW * (int(place) - 1))
    page.blocks([shown], scope, titled=False)


def _wanted(held: ingests.Kept) -> ingests.Wanted:
    """The reason, and a text that stands in the record or the name of its file."""
    with st.container(horizontal=True):
        counts = dict(held.reasons)
        reason = st.selectbox(
            "Reason",
            [*counts],
            index=None,
            format_func=lambda name: f"{name}: {numbers.count(counts[name])}",
            placeholder="all",
            key="rejected_reason",
            width=420,
        )
        text = st.text_input(
            "In the record or the file's name",
            placeholder="Search all of them",
            key="rejected_text",
            width=320,
        )
    return ingests.Wanted(reason, text.strip())


def read() -> None:
    """What became of the upload that has just ended; shown once."""
    for result in st.session_state.pop(upload_form.RESULTS, ()):
        _report(result)


def add_data(scope: Scope) -> None:
    """Upload on the left, commands on the right."""
    form, commands = st.columns([2, 3], gap="large")
    with form:
        upload_form.show(scope)
    with commands:
        st.header("Export and ingest on the command line", anchor=False)
        end = (scope.selection.to_at or datetime.now(UTC)).date()
        start = (scope.selection.from_at or datetime.now(UTC) - timedelta(days=90)).date()
        export_help.show(
            start=start,
            end=end,
            cluster=scope.selection.cluster or "NAME",
            timezone=scope.timezone,
        )


def _report(result: actions.IngestResult) -> None:
    """What became of the records."""
    st.success(
        f"{escaping.escaped(result.path)} is in the store: "
        f"{numbers.counted(result.rows_read, 'record')} read as {result.source}, "
        f"{numbers.count(result.rows_kept)} kept, {numbers.count(result.rows_skipped)} skipped, "
        f"{numbers.count(result.rows_rejected)} rejected.",
        icon=":material/check:",
    )
    if result.told_rejected is not None:
        st.warning(f"{escaping.escaped(result.told_rejected)}.", icon=":material/warning:")
    for reason, n in result.skipped_by_reason.items():
        st.caption(f"{escaping.escaped(reason)}: {numbers.count(n)}")
    page.notes(result.notices)


scope = filter_bar.show(uses=("period", "cluster"))
demo.said()
if scope.empty:
    st.title(empty_state.NO_DATA, anchor=False)
    st.markdown(empty_state.OR_DEMO)
    read()
    undone()
    add_data(scope)
    st.stop()
answer = whole(coverage.answer, scope.selection)
chart, table = answer.blocks
page_head.show(answer.sentence, scope, notes=answer.notes, terms=answer.terms)
read()
undone()
page.blocks([chart], scope)
page.tabs(
    {
        "Sources": lambda: page.blocks([table], scope, titled=False),
        "Collected": lambda: page.blocks(
            [ingests.collected_block(ask, scope.selection, datetime.now(UTC))], scope, titled=False
        ),
        "Names of nodes": lambda: page.blocks(
            [coverage.node_names(ask, scope.selection)], scope, titled=False
        ),
        "Clocks": lambda: page.blocks([clocks.table(ask, scope.selection)], scope, titled=False),
        "Ingests": lambda: ingests_and_undo(scope),
        "Rejected rows": lambda: rejected_rows(scope),
        "Audit": lambda: who_did_what(scope),
        "Add data": lambda: add_data(scope),
    },
    key="data_tab",
)
