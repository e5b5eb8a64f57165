"""The form of an upload: the file, its source, and what the file does not say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.views.fleet import demo, mapping_wizard, stated
from app.widgets import notice, upload

if TYPE_CHECKING:
    from app.show.scope import Scope

AUTO = "auto"
RESULTS = "upload_results"
"""Where the answer to an upload waits for the page to be run on the new snapshot."""


def show(scope: Scope) -> None:
    """File, source and what the file does not say; its answer comes above the page."""
    st.header("Upload a file", anchor=False)
    if scope.synthetic:
        st.markdown(
            "This store holds the synthetic demo, which never mixes with real data: start the "
            "dashboard on a store of your own with `faultline serve --store ./store`, or remove "
            "the demo from this one."
        )
        demo.remove()
        return
    helps = actions.sources()
    file = upload.chosen("File (also .gz, .xz, .zst)", key="upload_file")
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
            _read(source, said.upload(file), said.options)
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
