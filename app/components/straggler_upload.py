"""Adding a trace: upload through the browser, or the command that stores it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from app import actions, loaders
from app.components import command_lines, notice, verbatim
from app.figures import numbers

if TYPE_CHECKING:
    from app.components.scope import Scope

SOURCE = "straggler-trace"
ADDED = "straggler_added"
"""Where the answer to an upload waits for the page to be run on the new snapshot."""
COMMANDS = (
    "faultline ingest straggler-trace trace.parquet --meta meta.yaml --job-id 4711",
    "faultline stragglers trace.parquet --meta meta.yaml",
)


def commands() -> None:
    """What stores a trace, and what analyses one without storing it."""
    command_lines.show(COMMANDS)


def answer() -> None:
    """What became of the upload that has just ended; shown once."""
    for result in st.session_state.pop(ADDED, ()):
        st.success(
            f"{verbatim.escaped(result.path)} is in the store: "
            f"{numbers.counted(result.rows_kept, 'operation')}.",
            icon=":material/check:",
        )


def show(scope: Scope) -> None:
    """A form: the trace, its meta file, its job."""
    if scope.synthetic:
        st.markdown(
            "This store holds the synthetic demo, which never mixes with real data: store a trace "
            "in a store of your own and start the dashboard on that, or analyse a file without "
            "storing it:"
        )
        command_lines.show([COMMANDS[0], "faultline serve --store ./store", "", COMMANDS[1]])
        return
    with st.form("straggler_upload", border=False):
        files = st.columns(2)
        trace = files[0].file_uploader("Trace (Parquet or CSV)", key="straggler_file")
        meta = files[1].file_uploader("Meta file (YAML), if there is one", key="straggler_meta")
        fields = st.columns(2)
        job_id = fields[0].text_input("Job", placeholder="e.g. 4711", key="straggler_job")
        cluster = fields[1].text_input("Cluster", placeholder="the job's", key="straggler_cluster")
        sent = st.form_submit_button("Analyse and store", type="primary")
    if sent and trace is None:
        st.warning("Choose a trace first.", icon=":material/warning:")
    elif sent and trace is not None:
        with notice.explained():
            _ingest(trace, meta, job_id=job_id.strip() or None, cluster=cluster.strip() or None)


def _ingest(trace: Any, meta: Any, *, job_id: str | None, cluster: str | None) -> None:
    """Stores the trace with its results; leaving leaves the store as it was."""
    with (
        st.status(f"Reading {trace.name}", expanded=True),
        tempfile.TemporaryDirectory() as folder,
    ):
        line = st.empty()
        path, meta_path = Path(folder) / "trace", Path(folder) / "meta.yaml"
        path.write_bytes(trace.read())
        if meta is not None:
            meta_path.write_bytes(meta.read())
        options = actions.Options(
            cluster=cluster,
            job_id=job_id,
            meta=None if meta is None else str(meta_path),
            progress=lambda text: _tell(line, text),
        )
        results, _ = actions.ingest_files(
            loaders.store_root(), SOURCE, [str(path)], options, called={str(path): trace.name}
        )
    st.session_state[ADDED] = results
    st.rerun()


def _tell(line: Any, text: str) -> None:
    line.caption(text)
