"""What stands where there are no data at all: what would fill the store, and the exact commands."""

from __future__ import annotations

import streamlit as st

from app.show import command_lines


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
