"""Commands to copy, for the store that the dashboard shows."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.fleet.choices import choices
from app.ask.cached import ask, snapshot, store_root

if TYPE_CHECKING:
    from collections.abc import Sequence


STORED = tuple(
    f"faultline {name}"
    for name in ("ingest ", "report", "ledger", "annotate ", "rollback ", "forget")
)
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
    if line.startswith("faultline ingest ") and snapshot() and ask(choices).synthetic:
        return f"{line} --store ./store"
    root = store_root().resolve()
    return line if root == Path("store").resolve() else f"{line} --store {shlex.quote(str(root))}"
