"""Adding a trace: in the browser, or by a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.training.fleet import COMMANDS
from app.show import command_lines
from app.widgets import notice, upload
from app.words import escaping, numbers

if TYPE_CHECKING:
    from app.show.scope import Scope

ADDED = "straggler_added"
"""Where the answer to an upload waits for the page to be run on the new snapshot."""


def ended() -> None:
    """What became of the upload that has just ended; shown once."""
    for result in st.session_state.pop(ADDED, ()):
        st.success(
            f"{escaping.escaped(result.path)} is in the store: "
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
        files, fields = st.columns(2), st.columns(2)
        with files[0]:
            trace = upload.chosen("Trace (Parquet or CSV)", key="straggler_file")
        with files[1]:
            meta = upload.chosen("Meta file (YAML), if there is one", key="straggler_meta")
        job_id = fields[0].text_input("Job", placeholder="e.g. 4711", key="straggler_job")
        cluster = fields[1].text_input("Cluster", placeholder="the job's", key="straggler_cluster")
        sent = st.form_submit_button("Analyse and store", type="primary")
    if sent and trace is None:
        st.warning("Choose a trace first.", icon=":material/warning:")
    elif sent and trace is not None:
        with notice.explained():
            options = actions.Options(
                cluster=cluster.strip() or None, job_id=job_id.strip() or None
            )
            sent_files = actions.Upload(trace.name, trace, meta=meta)
            st.session_state[ADDED] = upload.ingest(
                "straggler-trace", sent_files, options, key="straggler"
            )
            st.rerun()
