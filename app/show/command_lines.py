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


NOT_OF_A_STORE = (
    *("classify", "config", "demo", "hangs", "lab", "links", "machines", "serve", "stability"),
    "stragglers",
)
"""Commands that read files, or say themselves which store they are for."""
FILLS = ("ingest", "collect")


def show(lines: Sequence[str]) -> None:
    """Commands, one a line."""
    st.code("\n".join(map(of_store, lines)), language=None, wrap_lines=True)


def of_store(line: str) -> str:
    """A command of faultline with the store that is shown, quoted for the shell.

    The demo takes no records: they go into a store of their own.
    """
    command, mark, comment = line.partition("   #")
    words = command.split()
    if words[:1] != ["faultline"] or not words[1:] or words[1] in NOT_OF_A_STORE:
        return line
    if any(word.startswith("--store") for word in words):
        return line
    fills_own = words[1] in FILLS and snapshot() and ask(choices).synthetic
    store = own_store() if fills_own else shlex.quote(str(store_root().resolve()))
    return f"{command} --store {store}{mark}{comment}"


def own_store() -> str:
    """A store for records of one's own, which is not the one that is shown."""
    return "./store" if store_root().resolve() != Path("store").resolve() else "./own-store"


def demo_beside() -> str:
    """Builds the demo beside the store that is shown, and shows it beside this dashboard."""
    demo = "./demo-store" if store_root().resolve() != Path("demo-store").resolve() else "./demo-2"
    return f"faultline demo --store {demo} && faultline serve --store {demo} --port 0"
