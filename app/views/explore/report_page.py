"""Which report, and a report to take away, to make again from the command line, to look at."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.content import Missing
from app.ask.cached import ask, kept
from app.reports import kinds
from app.show import command_lines, export, files, page
from app.widgets import notice

if TYPE_CHECKING:
    from app.reports.kinds import Kind
    from app.reports.report import Report
    from app.show.scope import Scope
    from data.filters import Selection

LABELS = {"html": "HTML", "pdf": "PDF", "xlsx": "XLSX", "md": "Markdown", "json": "JSON"}
PREVIEW_PX = 900
HASH = (
    "SHA-256 of versions, configuration, filters and everything printed: the same store and "
    "period have the same one on every machine."
)


@dataclass(frozen=True)
class Choice:
    """What was chosen."""

    kind: Kind
    about: str
    redact: bool


def choose() -> Choice:
    """The controls in one row."""
    with st.container(horizontal=True, vertical_alignment="center"):
        name = st.segmented_control(
            "Kind",
            [*kinds.kinds()],
            format_func=str.capitalize,
            default="fleet",
            required=True,
            key="kind",
            bind="query-params",
            label_visibility="collapsed",
        )
        kind, about = kinds.kinds()[name], ""
        if kind.metavar:
            about = st.text_input(
                name.capitalize(),
                key=name,
                bind="query-params",
                placeholder=kind.placeholder,
                icon=":material/search:",
                label_visibility="collapsed",
                width=320,
            )
        redact = st.toggle(
            "Redact names",
            key="redact",
            bind="query-params",
            help="Pseudonyms in place of users, accounts and names of jobs. A name has the same "
            "pseudonym in every report of this store.",
        )
    return Choice(kind, (about or "").strip(), redact)


def made(choice: Choice, scope: Scope) -> Report | None:
    """The report; None where nothing is named yet, or what is named is not there, as it says."""
    kind = choice.kind
    if kind.metavar and not choice.about:
        commands = kind.commands
        page.missing(Missing(kind.name, f"Which {kind.name}?", kind.remedy, commands))
        return None
    with notice.explained():
        about = choice.about
        return ask(kinds.report, kind.name, scope.selection, about=about, redact=choice.redact)
    return None


def downloads(report: Report, scope: Scope) -> None:
    """One button a form; a file is written when its button is pressed."""
    stem = scope.file_stem(report.stem)
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, label in LABELS.items():
            st.download_button(
                label,
                export.told(f"{stem}.{form}", partial(files.render, report, form), action="report"),
                file_name=f"{stem}.{form}",
                mime=files.MIME[form],
                key=f"report_{form}",
                on_click="ignore",
                icon=":material/download:",
            )
        st.caption(f"content {report.content_sha256[:12]}", help=HASH, width="content")


def command(choice: Choice, scope: Scope) -> None:
    """The command that writes the same, for cron."""
    options = [f"--{choice.kind.name}", choice.about] if choice.kind.metavar else []
    if choice.kind.filtered:
        options += _filters(scope.selection)
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


def preview(report: Report) -> None:
    """The page as it leaves; it has no script and may fetch nothing."""
    text = kept(files.render, report, "html").decode("utf-8")
    st.iframe(text, height=PREVIEW_PX, alt=f"Preview: {report.title}")
