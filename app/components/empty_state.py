"""What stands where data are missing: what would fill the place, and the exact command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app.components import command_lines, verbatim
from app.figures.failures import domains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from analytics.failures.summary import FailureSummary


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
        remedy="Which jobs they ended, and how long a job of a given size runs until it fails, "
        "needs the scheduler's records:",
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


def no_attempts(filters: str) -> None:
    """No attempt ended in the selection."""
    show(
        "No attempt ended in this selection.",
        remedy="Choose a longer period, a smaller job size, or reset the filters "
        f"({verbatim.escaped(filters)}). Verdicts need the scheduler's records of jobs:",
        commands=("sacct -a -P --duplicates -S now-90days --format=ALL > sacct.txt",),
    )


def no_failures_of(shown: Sequence[str], summary: FailureSummary, filters: str) -> None:
    """Nothing failed in the chosen domains, though it may have in others."""
    others = [
        f"{domains.TITLES.get(d.domain, d.domain)} ({d.n_attempts:,})"
        for d in summary.by_domain
        if d.n_attempts and d.domain not in shown
    ]
    chosen = " or ".join(domains.TITLES[domain] for domain in shown)
    show(
        f"No failed attempt of {chosen} in this selection." if shown else "No domain is chosen.",
        remedy=f"There are failed attempts of {', '.join(others)}: choose it above."
        if others
        else f"Nothing failed at all ({verbatim.escaped(filters)}).",
    )


def no_checks() -> None:
    """No event of any check, so none can be calibrated."""
    show(
        "No health check or kernel event is known.",
        remedy="Without events every verdict rests on the scheduler and on logs alone. Kernel logs "
        "and health checks say more:",
        commands=(
            "journalctl -k -o short-iso-precise > kernel-$(hostname).log",
            "faultline ingest kernel-log kernel-*.log --cluster NAME",
            "faultline ingest gcm-health health.jsonl --cluster NAME",
        ),
    )


def no_confirmed_causes() -> None:
    """Nobody has said which verdicts are right."""
    show(
        "No cause was confirmed in this selection.",
        remedy="How right the verdicts are shows once people say the cause of some attempts: open "
        "an attempt and confirm or change its cause, or on the command line:",
        commands=("faultline annotate attempt:CLUSTER/KEY --cause gpu_memory",),
    )


def no_log() -> None:
    """No line of the attempt's log is known."""
    show(
        "No log of this attempt is in the store.",
        remedy="Logs of jobs often name the first cause:",
        commands=("faultline ingest job-log LOGS_DIRECTORY --cluster NAME",),
    )


def no_history(filters: str) -> None:
    """Nothing was recorded of a node in the period."""
    show(
        "Nothing was recorded of this node in the period.",
        remedy=f"Choose a longer period ({verbatim.escaped(filters)}), or ingest more about nodes:",
        commands=(
            "sacctmgr -P show event start=now-90days > events.txt",
            "faultline ingest sacctmgr-events events.txt",
            "faultline ingest kernel-log kernel-*.log --cluster NAME",
        ),
    )


def no_facts() -> None:
    """Nothing but its name is known of a node."""
    show(
        "Nothing but its name is known of this node.",
        remedy="Rack, pod and driver come from sources that name them, such as health checks.",
    )


def no_query() -> None:
    """Nothing was asked yet."""
    show(
        "No query was run yet.",
        remedy="Write one, or pick an example on the right: it answers when you press Run.",
    )


def nothing_to_draw() -> None:
    """The rows hold nothing that a chart could show."""
    show(
        "Nothing to draw.",
        remedy="A chart needs rows with at least one column of numbers and another one beside it.",
    )


def no_report(kind: str) -> None:
    """Nothing is named that a report could be about."""
    if kind == "incident":
        show(
            "Which incident?",
            remedy="Type its id, or `latest` or `largest`. The page Incidents and this command "
            "list them:",
            commands=("faultline incidents --first largest --limit 10 --format table",),
        )
    else:
        show("Which node?", remedy="Type its name, as the scheduler writes it.")


def no_runs(filters: str) -> None:
    """No run on several nodes in the selection."""
    show(
        "No run on several nodes in this selection.",
        remedy=f"Lower the smallest job, choose a longer period, or reset the filters "
        f"({verbatim.escaped(filters)}). Runs come from the scheduler's records of jobs with "
        "their GPUs:",
        commands=("sacct -a -P --duplicates --format=...,NNodes,AllocTRES,... > sacct.txt",),
    )
