"""How data get in: a file through the browser, or the commands that export and ingest it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.show import page
from app.views.fleet import mapping_wizard, stated
from app.widgets import export_help, notice, upload
from app.words import escaping, numbers

if TYPE_CHECKING:
    from app.show.scope import Scope

AUTO = "auto"
RESULTS = "upload_results"
"""Where the answer to an upload waits for the page to be run on the new snapshot."""


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
    """File, source and what the file does not say; its answer comes above the page."""
    st.header("Upload a file", anchor=False)
    if scope.synthetic:
        st.markdown(
            "This store holds the synthetic demo, which never mixes with real data: start the "
            "dashboard on a store of your own with `faultline serve --store ./store`."
        )
        return
    helps = actions.sources()
    file = st.file_uploader("File (also .gz, .xz, .zst)", key="upload_file")
    source = st.selectbox(
        "Source",
        [AUTO, *helps],
        format_func=lambda name: f"{name}: {helps.get(name, 'found out from the file')}",
        key="upload_source",
    )
    with notice.explained():
        said = stated.show(source)
        sent = st.button("Ingest", type="primary", key="upload_ingest")
        if sent and file is None:
            st.warning("Choose a file first.", icon=":material/warning:")
        elif sent and file is not None:
            name = said.mapping.name if said.mapping else None
            files = actions.Upload(file.name, file, mapping=said.mapping, mapping_name=name)
            _read(source, files, said.options)
        elif file is not None and _matching(source, said):
            mapped = mapping_wizard.show(source, file, said.options)
            if mapped is not None:
                _read(source, mapped, said.options)


def _matching(source: str, said: stated.Stated) -> bool:
    """Whether the columns are to be matched here: the source takes a mapping, none was stated."""
    takes = "mapping" in actions.known_options(source)
    unmapped = takes and said.mapping is None and said.options.mapping is None
    return unmapped and st.toggle("Match the columns of the file", key="wizard")


def _read(source: str, files: actions.Upload, options: actions.Options) -> None:
    """Reads it into the store, and shows the page anew."""
    st.session_state[RESULTS] = upload.ingest(source, files, options, key="upload")
    st.rerun()


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
