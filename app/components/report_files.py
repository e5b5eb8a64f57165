"""A report to take away, to make again from the command line, and to look at."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import command_lines
from app.reports import writers

if TYPE_CHECKING:
    from app.components.report_choice import Choice
    from app.components.scope import Scope
    from app.reports.content import Report

LABELS = {"html": "HTML", "pdf": "PDF", "xlsx": "XLSX", "md": "Markdown", "json": "JSON"}
PREVIEW_PX = 900


def downloads(report: Report, scope: Scope) -> None:
    """One button a form; a file is written when its button is pressed."""
    stem = scope.file_stem(report.stem)
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, label in LABELS.items():
            st.download_button(
                label,
                lambda form=form: writers.render(report, form),
                file_name=f"{stem}.{form}",
                mime=writers.MIME[form],
                key=f"report_{form}",
                on_click="ignore",
                icon=":material/download:",
            )
        st.caption(f"content {report.content_sha256[:12]}", help=HASH, width="content")


HASH = (
    "SHA-256 of versions, configuration, filters and everything printed: the same store and "
    "period have the same one on every machine."
)


def command(choice: Choice, scope: Scope) -> None:
    """The command that writes the same, for cron."""
    selection = loaders.Selection() if choice.kind == "incident" else scope.selection
    options: list[str] = []
    if choice.kind != "fleet":
        options += [f"--{choice.kind}", choice.about]
    for name in ("cluster", "partition", "account"):
        if value := getattr(selection, name):
            options += [f"--{name}", value]
    for name, at in (("from", selection.from_at), ("to", selection.to_at)):
        if at is not None:
            options += [f"--{name}", at.isoformat(timespec="minutes").replace("+00:00", "Z")]
    if selection.min_gpus:
        options += ["--min-gpus", str(selection.min_gpus)]
    if choice.redact:
        options.append("--redact")
    with st.expander("The same on the command line"):
        line = shlex.join(["faultline", "report", *options, "--as", "html,pdf", "--out", "report"])
        command_lines.show([line])


def preview(report: Report) -> None:
    """The page as it leaves; it has no script and may fetch nothing."""
    page = writers.render(report, "html").decode("utf-8")
    st.iframe(page, height=PREVIEW_PX, alt=f"Preview: {report.title}")
