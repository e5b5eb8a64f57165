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

    Nothing is added where that is the one that faultline takes by itself, ./store.
    """
    root = loaders.store_root().resolve()
    if not line.startswith(STORED) or "--store" in line or root == Path("store").resolve():
        return line
    return f"{line} --store {shlex.quote(str(root))}"
