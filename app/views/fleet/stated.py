"""What does a person state of a file that it does not say itself? Only what its source knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import streamlit as st

from app import actions
from app.views.fleet import stated_fields
from app.widgets import upload

if TYPE_CHECKING:
    from streamlit.runtime.uploaded_file_manager import UploadedFile


class Stated(NamedTuple):
    """What was stated of a file."""

    options: actions.Options
    mapping: UploadedFile | None
    """A mapping of its own."""
    meta: UploadedFile | None
    """Meta file of a straggler trace."""

    def upload(self, file: UploadedFile) -> actions.Upload:
        """The file with what explains it."""
        name = self.mapping.name if self.mapping else None
        return actions.Upload(
            file.name, file, meta=self.meta, mapping=self.mapping, mapping_name=name
        )


def show(source: str) -> Stated:
    """A field for each option that the source knows.

    Raises
    ------
    DataError
        Where a zone, a time or a number is none, or columns are named twice.
    """
    known = actions.known_options(source)
    stated = stated_fields.asked(known)
    own_zone = st.checkbox(
        "That zone holds for this file alone, whatever the cluster's is",
        key="upload_own_zone",
        disabled=stated["timezone"] is None,
    )
    preset = _preset(source)
    mapping = meta = None
    if "mapping" in known:
        mapping = upload.chosen("A mapping of your own (TOML)", key="upload_own_mapping")
    if "meta" in known:
        meta = upload.chosen("Meta file (YAML), if there is one", key="upload_meta")
    partial = st.checkbox(
        "Partial: of a cut-off archive read what came before the cut", key="upload_partial"
    )
    if mapping is not None and preset:
        raise actions.DataError("a preset and a mapping both name the columns: give one of them")
    if preset.keys() & {name for name, value in stated.items() if value is not None}:
        raise actions.DataError("a preset and a list both name the columns: give one of them")
    own_zone = own_zone and stated["timezone"] is not None
    options = actions.Options(**{**stated, **preset}, own_zone=own_zone, partial=partial)
    return Stated(options, mapping, meta)


def _preset(source: str) -> dict[str, Any]:
    """What a preset that was chosen states."""
    presets = actions.presets(source)
    if not presets:
        return {}
    chosen = st.selectbox(
        "Names of its columns",
        list(presets),
        index=None,
        placeholder="found out from the file",
        key="upload_preset",
    )
    return dict(presets[chosen]) if chosen else {}
