"""What stands where data are missing: what would fill the place, and the exact command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.show import command_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


def show(finding: str, *, remedy: str, commands: Sequence[str] = ()) -> None:
    """Says what is missing, what would fill it, and which commands to run."""
    st.markdown(f"**{finding}** {remedy}")
    if commands:
        command_lines.show(commands)


def no_store() -> None:
    """Nothing was ingested yet: the whole page is this."""
    st.title("This store holds no data yet", anchor=False)
    st.markdown(
        "Your scheduler's accounting records are enough for failure rate and MTTF: export them, "
        "ingest them, and this page follows by itself. Or look at the demo cluster."
    )
    command_lines.show(
        (
            "sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",
            "faultline ingest sacct sacct.txt --cluster NAME --timezone Europe/Berlin",
            "faultline demo && faultline serve --store demo-store",
        )
    )
