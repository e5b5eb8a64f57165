"""Which column of this file means what, how are its times written, what do its states mean?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.actions import mapping
from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Sequence

_FOUND_OUT = "ISO (2026-01-31 12:00) or seconds since 1970"
_EPOCH = "seconds since 1970"
_PATTERN = "by a pattern"


def columns(source: str, taken: mapping.Sample) -> dict[str, str]:
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


def time_format(source: str) -> str | None:
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


def states(column: str | None, words: Sequence[str]) -> dict[str, str]:
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
