"""What stands where there are no data at all: what would fill the store, and the exact commands."""

from __future__ import annotations

from pathlib import Path

import streamlit as st

from app.answers.reliability import sight
from app.show import command_lines
from app.words.menu import TITLES

NO_DATA = "This store holds no data yet"
PAGE = "page_shown"
"""Key of the session under which the name of the page stands."""
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
    st.title(NO_DATA, anchor=False)
    st.markdown(WHAT)


OR_DEMO = "[**Load the demo**](./) on the first page to look around, or add your own records:"


def commands() -> None:
    """The commands that fill it; pages follow by themselves."""
    command_lines.show([*COMMANDS, command_lines.demo_beside()])


PICTURES = Path(__file__).parents[1] / "pictures"
JOBS, EVENTS = COMMANDS[1], "faultline ingest sacctmgr-events events.txt"
KERNEL, LOGS = "faultline ingest kernel-log kernel-*.log", "faultline ingest job-log slurm-*.out"
SHOWS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "failures": (
        "what fails, how often, and whose fault it was",
        "accounting of jobs; kernel logs, health checks and logs of jobs add the causes",
        (JOBS, KERNEL, LOGS),
    ),
    "incidents": (
        "what happened when, what it hit and what it cost",
        "accounting of jobs and what nodes went through",
        (JOBS, EVENTS, KERNEL),
    ),
    "incident": (
        "one incident on one timeline, with its evidence, its cost and what to do",
        "accounting of jobs and what nodes went through",
        (JOBS, EVENTS, KERNEL),
    ),
    "job": ("why a job ended, and the lines that show it", "accounting and logs of jobs",
            (JOBS, LOGS)),
    "node": ("what happened on one node", "accounting of jobs and what nodes went through",
             (JOBS, EVENTS, KERNEL)),
    "mttf": ("how long a job of N GPUs runs until it fails", "accounting of jobs", (JOBS, KERNEL)),
    "trend": (
        "whether failures become more frequent, since when, what was changed then and what comes",
        "accounting of jobs, and what shows failures: kernel logs, health checks, node events",
        (JOBS, KERNEL, EVENTS),
    ),
    "availability": (
        "how much of their time nodes were up, and how long they take to return",
        "states of nodes, and an inventory or jobs that name them",
        (EVENTS, JOBS),
    ),
    "ettr": (
        "what large runs got out of their time",
        "accounting of jobs with their GPUs; training logs tell checkpoints",
        (JOBS, "faultline ingest training-metrics metrics.csv"),
    ),
    "ledger": ("where every GPU-hour went", "accounting of jobs and states of nodes",
               (JOBS, EVENTS)),
    "my_runs": ("what became of one user's jobs, and what to do next",
                "accounting and logs of jobs", (JOBS, LOGS)),
    "planner": (
        "what fewer lemons or another checkpoint interval would have regained",
        "accounting of jobs with their GPUs",
        (JOBS, KERNEL),
    ),
    "lemons": ("which nodes to drain, which repairs hold and what to test next",
               "accounting of jobs and what nodes went through", (JOBS, EVENTS, KERNEL)),
}  # fmt: skip
"""Page -> what it shows, what it needs, and the commands that bring it."""


def no_store() -> None:
    """Nothing was ingested yet: what this page would show, what it needs, and how it comes."""
    name = st.session_state.get(PAGE, "")
    if name not in SHOWS:
        head()
        st.markdown("[**Upload a file or load the demo**](./) on the first page, or run:")
        commands()
        return
    shows, needs, lines = SHOWS[name]
    title = TITLES[name]
    st.title(NO_DATA, anchor=False)
    st.markdown(f"**{title}** shows {shows}. It needs {needs}.")
    st.markdown("[**Upload a file or load the demo**](./) on the first page, or run:")
    command_lines.show([*lines, command_lines.demo_beside()])
    picture = PICTURES / f"{name}.png"
    if picture.exists():
        st.image(picture, caption=f"{title} on the synthetic demo", width=900)
