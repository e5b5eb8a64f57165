"""Which column of this file means what, and what would be read by that?"""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from app import actions
from app.actions import mapping
from app.words import escaping, numbers

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


def show(source: str, file: UploadedFile, options: actions.Options) -> actions.Upload | None:
    """Columns to choose, what would be read; the file with its mapping once it is to be read.

    Raises
    ------
    DataError
        Where the file is no plain CSV.
    """
    options = replace(options, mapping=None)
    taken = mapping.begun(file.name, file, options)
    st.subheader("Which column means what", anchor=False)
    chosen = _chosen(source, taken)
    toml = mapping.written(source, chosen, options.delimiter)
    name = f"{Path(file.name).stem}.toml"
    missing = [each.name for each in mapping.fields(source) if each.needed]
    missing = [each for each in missing if each not in chosen]
    if missing:
        st.caption(f"Name the column of {' and '.join(missing)} to see what would be read.")
        return None
    _preview(mapping.preview(source, taken, toml, options))
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


def _chosen(source: str, taken: mapping.Sample) -> dict[str, str]:
    """Our name -> the file's column, for those that it has."""
    guesses = mapping.guessed(source, taken.header)
    columns: dict[str, str] = {}
    for field in mapping.fields(source):
        options = [None, *taken.header]
        column = st.selectbox(
            f"{field.name}{' (needed)' if field.needed else ''}: {field.meaning}",
            options,
            index=options.index(guesses.get(field.name)),
            format_func=lambda name: "not in the file" if name is None else name,
            key=f"wizard_{source}_{field.name}_{taken.header}",
        )
        if column is not None:
            columns[field.name] = column
    return columns


def _preview(found: mapping.Preview) -> None:
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
