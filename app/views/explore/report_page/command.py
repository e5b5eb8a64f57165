"""The report from the command line."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from app.show import command_lines

if TYPE_CHECKING:
    from app.show.scope import Scope
    from app.views.explore.report_page.choice import Choice
    from data.filters import Selection


def show(choice: Choice, scope: Scope) -> None:
    """The command that writes the same, for cron."""
    kind, selection = choice.kind, choice.of(scope.selection)
    options = [f"--{kind.name}", choice.about] if kind.metavar else ["--kind", kind.name]
    options = [] if kind.name == "fleet" else options
    if choice.last:
        options += ["--last", "week"]
        selection = replace(selection, from_at=None, to_at=None)
    if kind.filtered:
        options += _filters(selection)
    if choice.redact:
        options.append("--redact")
    with st.expander("The same on the command line"):
        line = shlex.join(["faultline", "report", *options, "--as", "html,pdf", "--out", "report"])
        command_lines.show([line])


def _filters(selection: Selection) -> list[str]:
    """The filters that are set, as options."""
    options = []
    for name in ("cluster", "partition", "account"):
        if value := getattr(selection, name):
            options += [f"--{name}", value]
    for name, at in (("from", selection.from_at), ("to", selection.to_at)):
        if at is not None:
            options += [f"--{name}", at.isoformat(timespec="minutes").replace("+00:00", "Z")]
    if selection.min_gpus:
        options += ["--min-gpus", str(selection.min_gpus)]
    return options
