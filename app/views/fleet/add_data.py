"""How data get in: a file through the browser, or the commands that export and ingest it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.show import page
from app.widgets import export_help, notice, upload
from app.words import escaping, numbers

if TYPE_CHECKING:
    from app.show.scope import Scope

AUTO = "auto"
RESULTS = "upload_results"
"""Where the answer to an upload waits for the page to be run on the new snapshot."""
STATED = {
    "cluster": ("Cluster", "as the records say"),
    "timezone": ("Zone of local times", "the cluster's, else UTC"),
    "columns": ("Columns, if no header", "JobID,State,..."),
    "delimiter": ("Delimiter", "the format's own"),
    "node": ("Host, if none is named", "as the lines say"),
}
"""What the reader can state about a file: label, and what holds otherwise."""


def answer() -> None:
    """What became of the upload that has just ended; shown once."""
    for result in st.session_state.pop(RESULTS, ()):
        _report(result)


def show(scope: Scope) -> None:
    """Upload on the left, commands on the right."""
    form, commands = st.columns([2, 3], gap="large")
    with form:
        _upload(scope)
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


def _upload(scope: Scope) -> None:
    """A form: file, source and what the file does not say; its answer below."""
    st.header("Upload a file", anchor=False)
    if scope.synthetic:
        st.markdown(
            "This store holds the synthetic demo, which never mixes with real data: start the "
            "dashboard on a store of your own with `faultline serve --store ./store`."
        )
        return
    helps = actions.sources()
    with st.form("upload", border=False):
        file = st.file_uploader("File (also .gz, .xz, .zst)", key="upload_file")
        source = st.selectbox(
            "Source",
            [AUTO, *helps],
            format_func=lambda name: f"{name}: {helps.get(name, 'found out from the file')}",
            key="upload_source",
        )
        fields = [column for _ in range(3) for column in st.columns(2)]
        mapping = fields.pop().selectbox(
            "Mapping of a failure log",
            actions.mappings(),
            index=None,
            placeholder="found out from its columns",
            key="upload_mapping",
        )
        stated = {
            name: field.text_input(label, placeholder=otherwise, key=f"upload_{name}") or None
            for field, (name, (label, otherwise)) in zip(fields, STATED.items(), strict=True)
        }
        own_mapping = st.file_uploader(
            "A mapping of your own (TOML), where none of those fits", key="upload_own_mapping"
        )
        partial = st.checkbox(
            "Partial: of a cut-off archive read what came before the cut", key="upload_partial"
        )
        sent = st.form_submit_button("Ingest", type="primary")
    if sent and file is None:
        st.warning("Choose a file first.", icon=":material/warning:")
    elif file is not None and sent:
        with notice.explained():
            options = replace(_options(stated), mapping=mapping, partial=partial)
            name = own_mapping.name if own_mapping else None
            sent_files = actions.Upload(file.name, file, mapping=own_mapping, mapping_name=name)
            st.session_state[RESULTS] = upload.ingest(source, sent_files, options, key="upload")
            st.rerun()


def _options(stated: dict[str, str | None]) -> actions.Options:
    """What the reader stated in words, as readers of files take it."""
    return actions.Options(
        cluster=stated["cluster"],
        delimiter=stated["delimiter"],
        node=stated["node"],
        timezone=actions.checked_zone(stated["timezone"]),
        columns=_names(stated["columns"]),
    )


def _names(columns: str | None) -> tuple[str, ...] | None:
    """Column names as they were typed."""
    return None if columns is None else tuple(name.strip() for name in columns.split(","))


def _report(result: actions.IngestResult) -> None:
    """What became of the records."""
    st.success(
        f"{escaping.escaped(result.path)} is in the store: "
        f"{numbers.counted(result.rows_read, 'record')} read as {result.source}, "
        f"{numbers.count(result.rows_kept)} kept, {numbers.count(result.rows_skipped)} skipped, "
        f"{numbers.count(result.rows_rejected)} rejected.",
        icon=":material/check:",
    )
    for reason, n in {**result.skipped_by_reason, **result.rejected_by_reason}.items():
        st.caption(f"{escaping.escaped(reason)}: {numbers.count(n)}")
    page.notes(result.notices)
