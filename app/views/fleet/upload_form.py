"""The form of an upload: the file, its source, and what the file does not say."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd
import streamlit as st

from app import actions
from app.actions import mapping
from app.show import command_lines
from app.views.fleet import demo
from app.widgets import notice, upload
from app.words import escaping, numbers

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from streamlit.runtime.uploaded_file_manager import UploadedFile

    from app.actions.mapping import Preview
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
            "dashboard on a store of your own with "
            f"`faultline serve --store {command_lines.own_store()}`, or remove the demo from "
            "this one."
        )
        demo.remove()
        return
    sources = actions.sources()
    file = upload.chosen("File (also .gz, .xz, .zst)", key="upload_file")
    source = st.selectbox(
        "Source",
        [AUTO, *sources],
        format_func=lambda name: (
            f"{name}: {sources[name].help if name in sources else 'found out from the file'}"
        ),
        key="upload_source",
    )
    with notice.explained():
        said = _stated(source)
        sent = st.button("Ingest", type="primary", key="upload_ingest", disabled=file is None)
        if sent and file is not None:
            _read(source, said.upload(file), said.options)
        elif file is not None and _matching(source, said):
            mapped = _mapped(source, file, said.options)
            if mapped is not None:
                _read(source, mapped, said.options)


def _matching(source: str, said: _Stated) -> bool:
    """Whether the columns are to be matched here: the source takes a mapping, none was stated."""
    takes = "mapping" in actions.known_options(source)
    unmapped = takes and said.mapping is None and said.options.mapping is None
    return unmapped and st.toggle("Match the columns of the file", key="wizard")


def _read(source: str, files: actions.Upload, options: actions.Options) -> None:
    """Reads it into the store, and shows the page anew."""
    st.session_state[RESULTS] = upload.ingest(source, files, options, key="upload")
    st.rerun()


class _Stated(NamedTuple):
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


def _stated(source: str) -> _Stated:
    """A field for each option that the source knows.

    Raises
    ------
    DataError
        Where a zone, a time or a number is none, or columns are named twice.
    """
    known = actions.known_options(source)
    stated = _asked(known)
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
    return _Stated(options, mapping, meta)


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


_TEXTS = {
    "cluster": ("Cluster", "as the records say"),
    "timezone": ("Zone of local times", "the cluster's, else UTC"),
    "columns": ("Columns, if no header", "JobID,State,..."),
    "delimiter": ("Delimiter", "the format's own"),
    "node": ("Host, if none is named", "as the lines say"),
    "job_id": ("Job, if none is named", "as the records say"),
    "run_id": ("Run, if none is named", "as the records say"),
    "at": ("When it was observed (UTC)", "as the records say, e.g. 2026-01-31 12:00"),
    "boot_at": ("When the host booted (UTC)", "for times since boot, e.g. 2026-01-31 12:00"),
    "year": ("Year of times without one", "found out from the file's time"),
    "pattern": ("Name of a job's log", "slurm-%j.out, in the words of sbatch"),
    "first_lines": ("First lines that are kept", "the program's own"),
    "last_lines": ("Last lines that are kept", "the program's own"),
}
"""Option -> its label, and what holds where nothing is stated."""
_EVERYWHERE = ("cluster", "timezone")


def _asked(known: Collection[str]) -> dict[str, Any]:
    """What was typed into a field for each option that the source knows.

    Raises
    ------
    DataError
        Where a zone, a time or a number is none.
    """
    shown = [name for name in _TEXTS if name in known or name in _EVERYWHERE]
    places = (place for _ in shown for place in st.columns(2))
    texts = {name: _text(place, name) for name, place in zip(shown, places, strict=False)}
    return {
        name: None if text is None else _READ.get(name, str)(text) for name, text in texts.items()
    }


def _text(place: Any, name: str) -> str | None:
    """What was written into a field; None where nothing was."""
    label, otherwise = _TEXTS[name]
    written = place.text_input(label, placeholder=otherwise, key=f"upload_{name}")
    return written.strip() or None if name != "delimiter" else written or None


def _moment(text: str) -> datetime:
    """A time as it was typed; one without a zone is UTC."""
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise actions.DataError(
            f"{text!r} is no time: write it as 2026-01-31 or 2026-01-31 12:00"
        ) from None


def _whole(text: str) -> int:
    """A whole number from 0 on."""
    if not text.isascii() or not text.isdecimal() or len(text) > 9:
        raise actions.DataError(f"{text!r} is no whole number from 0 to 999,999,999")
    return int(text)


_READ: dict[str, Callable[[str], Any]] = {
    "timezone": actions.checked_zone,
    "columns": lambda text: tuple(name.strip() for name in text.split(",")),
    **dict.fromkeys(("at", "boot_at"), _moment),
    **dict.fromkeys(("year", "first_lines", "last_lines"), _whole),
}
"""Option -> what reads it, where it is more than a text."""


def _mapped(source: str, file: UploadedFile, options: actions.Options) -> actions.Upload | None:
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
    columns = _columns(source, taken)
    time_format, words = _time_format(source), []
    if "state" in columns and mapping.takes_states(source):
        words = of_sample("mapping states", column=columns["state"])
    states = _states(columns.get("state"), words)
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


_FOUND_OUT = "ISO (2026-01-31 12:00) or seconds since 1970"
_EPOCH = "seconds since 1970"
_PATTERN = "by a pattern"


def _columns(source: str, taken: mapping.Sample) -> dict[str, str]:
    """Our name -> the file's column, for those that it has."""
    guesses = mapping.guessed(source, taken.header)
    chosen: dict[str, str] = {}
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
            chosen[field.name] = column
    return chosen


def _time_format(source: str) -> str | None:
    """How times are written; None as the reader finds out."""
    forms = [_FOUND_OUT, _EPOCH, _PATTERN]
    form = st.selectbox("How its times are written", forms, key=f"wizard_times_{source}")
    if form == _FOUND_OUT:
        return None
    if form == _EPOCH:
        return mapping.EPOCH
    pattern = st.text_input(
        "The pattern, in the words of strptime",
        placeholder="%d.%m.%Y %H:%M",
        key=f"wizard_pattern_{source}",
    )
    return pattern.strip() or None


def _states(column: str | None, words: Sequence[str]) -> dict[str, str]:
    """The file's word -> Slurm's state, for words of a column that are none."""
    meant = {
        word: st.selectbox(
            f"The state {escaping.escaped(word)} means",
            mapping.FINAL_STATES,
            index=None,
            placeholder="not said: such records are rejected",
            key=f"wizard_state_{column}_{word}",
        )
        for word in words
    }
    return {word: state for word, state in meant.items() if state is not None}
