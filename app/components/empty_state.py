"""What stands where data are missing: what would fill the place, and the exact command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

if TYPE_CHECKING:
    from collections.abc import Sequence


def show(finding: str, *, remedy: str, commands: Sequence[str] = ()) -> None:
    """Says what is missing, what would fill it, and which commands to run."""
    st.markdown(f"**{finding}** {remedy}")
    _commands(commands)


def no_store() -> None:
    """Nothing was ingested yet: the whole page is this."""
    st.title("This store holds no data yet", anchor=False)
    st.markdown(
        "Your scheduler's accounting records are enough for failure rate and MTTF: export them, "
        "ingest them, and this page follows by itself. Or look at the demo cluster."
    )
    _commands(
        (
            "sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",
            "faultline ingest sacct sacct.txt --cluster NAME --timezone Europe/Berlin",
            "faultline demo && faultline serve --store demo-store",
        )
    )


def _commands(commands: Sequence[str]) -> None:
    """Commands to copy."""
    if commands:
        st.code("\n".join(commands), language=None, wrap_lines=True)


def nothing_ran(filters: str) -> None:
    """The selection holds no attempt and no failure."""
    show(
        "Nothing ran and nothing failed in this selection.",
        remedy=f"Choose a longer period, a smaller job size, or reset the filters ({filters}).",
    )


def no_jobs() -> None:
    """Failures are known without jobs."""
    show(
        "Failures of nodes are known here, but no jobs.",
        remedy="How long a job of a given size runs until it fails needs the scheduler's records:",
        commands=("sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",),
    )


def no_gpus() -> None:
    """Exposure is counted in nodes, because no attempt says how many GPUs it had."""
    show(
        "No attempt says how many GPUs it had.",
        remedy="Rates count whole nodes and the smallest job size is ignored. With AllocTRES in "
        "the export, jobs are told apart by size:",
        commands=("sacct -a -P --duplicates --format=...,AllocTRES,... > sacct.txt",),
    )


def out_of_service_unknown() -> None:
    """No source tells the state of nodes."""
    show(
        "No source says which nodes are out of service.",
        remedy="Slurm's node events do:",
        commands=(
            "sacctmgr -P show event start=now-90days > events.txt",
            "faultline ingest sacctmgr-events events.txt",
        ),
    )


def no_groups(by: str) -> None:
    """No exposure is known of any group."""
    show(
        f"No failure rate by {by.replace('_', ' ')}.",
        remedy="It needs the time that jobs ran: choose a longer period, or ingest the "
        "scheduler's records of it.",
    )


def nothing_ingested() -> None:
    """The store was not made by ingesting files."""
    show(
        "No file was ingested into this store.",
        remedy="A demo store is generated. Your own records go into a store of their own:",
        commands=("faultline ingest sacct sacct.txt --store ./store",),
    )
