"""Commands to copy, for the store that the dashboard shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders

if TYPE_CHECKING:
    from collections.abc import Sequence


STORED = ("faultline ingest ", "faultline report", "faultline ledger", "faultline annotate ")
"""Commands that need the store."""


def show(lines: Sequence[str]) -> None:
    """Commands, one a line."""
    st.code("\n".join(map(of_store, lines)), language=None, wrap_lines=True)


def of_store(line: str) -> str:
    """A command of faultline with the store that is shown, where it names none.

    Nothing is added where that is the one that faultline takes by itself, ./store. The demo takes
    no records: they go into a store of their own.
    """
    if not line.startswith(STORED) or "--store" in line:
        return line
    choices = loaders.choices()
    if line.startswith("faultline ingest ") and choices is not None and choices.synthetic:
        return f"{line} --store ./store"
    root = loaders.store_root().resolve()
    return line if root == Path("store").resolve() else f"{line} --store {shlex.quote(str(root))}"
