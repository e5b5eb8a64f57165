"""What stands where there are no data at all: what would fill the store, and the exact commands."""

from __future__ import annotations

import streamlit as st

from app.answers.reliability import sight
from app.show import command_lines

WHAT = (
    "Faultline says how often and why GPU jobs fail, what that costs and what to do about it, from "
    "the records that a cluster keeps anyway. Your scheduler's accounting records alone are enough "
    "for failure rate and MTTF; every further source adds causes."
)
COMMANDS = (
    sight.JOBS[0],
    "faultline ingest sacct sacct.txt --timezone Europe/Berlin",
)


def head() -> None:
    """That nothing is there yet, and what would come of records."""
    st.title("This store holds no data yet", anchor=False)
    st.markdown(WHAT)


def commands() -> None:
    """The commands that fill it; pages follow by themselves."""
    command_lines.show([*COMMANDS, command_lines.demo_beside()])


def no_store() -> None:
    """Nothing was ingested yet: the whole page is this, with the way to where it can be done."""
    head()
    st.markdown("[**Upload a file or load the demo**](./) on the first page, or run:")
    commands()
