"""Which column of this file means what, and what would be read by that?"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from app import actions
from app.actions import mapping
from app.views.fleet import mapping_choices
from app.widgets import upload
from app.words import escaping, numbers

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from app.actions.mapping import Preview


def show(source: str, file: UploadedFile, options: actions.Options) -> actions.Upload | None:
    """Columns to choose, what would be read; the file with its mapping once it is to be read.

    Raises
    ------
    DataError
        Where the file is packed, or no table, or cannot be read within the limits.
    """
    options = replace(options, mapping=None)
    stated = actions.stated(options)
    taken = upload.examined("mapping sample", [file], name=file.name, options=stated)

    def of_sample(question: str, **said: Any) -> Any:
        known = {"name": file.name, "header": taken.header, "options": stated}
        return upload.examined(question, [file], sample=taken.content, **known, **said)

    st.subheader("Which column means what", anchor=False)
    columns = mapping_choices.columns(source, taken)
    time_format, words = mapping_choices.time_format(source), []
    if "state" in columns and mapping.takes_states(source):
        words = of_sample("mapping states", column=columns["state"])
    states = mapping_choices.states(columns.get("state"), words)
    chosen = mapping.Chosen(columns, time_format, states)
    toml = mapping.written(source, chosen, taken.header, options.delimiter)
    name = f"{Path(file.name).stem}.toml"
    missing = [each.name for each in mapping.fields(source) if each.needed]
    missing = [each for each in missing if each not in columns]
    if missing:
        st.caption(f"Name the column of {' and '.join(missing)} to see what would be read.")
        return None
    _preview(of_sample("mapping preview", source=source, toml=toml))
    st.download_button(
        "Download the mapping (TOML)",
        toml,
        name,
        "application/toml",
        key="wizard_download",
        help=f"For `faultline ingest {source} FILE --mapping {escaping.escaped(name)}`",
    )
    if st.button("Read with this mapping", type="primary", key="wizard_read"):
        sent = io.BytesIO(toml.encode())
        return actions.Upload(file.name, file, mapping=sent, mapping_name=name)
    return None


def _preview(found: Preview) -> None:
    """The first rows, and what would be rejected and why."""
    st.markdown(
        f"Of the first {numbers.counted(found.n_records, 'record')} "
        f"{numbers.count(found.n_kept)} would be kept, {numbers.count(found.n_skipped)} skipped, "
        f"{numbers.count(found.n_rejected)} rejected."
    )
    for reason, n in found.rejected_by_reason.items():
        st.caption(f"{escaping.escaped(reason)}: {numbers.count(n)}")
    st.dataframe(found.rows, hide_index=True, key="wizard_rows")
    if found.rejected:
        rejected = pd.DataFrame(found.rejected)[["reason", "raw"]]
        st.dataframe(rejected, hide_index=True, key="wizard_rejected")
    for text in found.notices:
        st.caption(escaping.escaped(text))
