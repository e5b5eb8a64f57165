"""The report: made, to take away, to look at."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.content import Missing
from app.answers.fleet.actions import listed
from app.ask.cached import ask, fresh, kept
from app.reports import kinds
from app.show import export, files, page
from app.widgets import notice

if TYPE_CHECKING:
    from app.reports.report import Report
    from app.show.scope import Scope
    from app.views.explore.report_page.choice import Choice

LABELS = {
    "html": "HTML", "pdf": "PDF", "xlsx": "XLSX", "md": "Markdown", "slack": "Slack",
    "json": "JSON",
}  # fmt: skip
PREVIEW_PX = 900
HASH = (
    "SHA-256 of versions, configuration, filters and everything printed: the same store and "
    "period have the same one on every machine."
)


def made(choice: Choice, scope: Scope) -> Report | None:
    """The report; None where nothing is named yet, or what is named is not there, as it says."""
    kind = choice.kind
    if kind.metavar and not choice.about:
        commands = kind.commands
        page.missing(Missing(kind.name, f"Which {kind.name}?", kind.remedy, commands))
        return None
    with notice.explained():
        more: dict[str, Any] = {"about": choice.about, "redact": choice.redact}
        if kind.weekly:  # what is to be done changes with what people put off, and by the hour
            now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
            more |= {"now": now, "put_off": tuple(fresh(listed.decisions))}
        return ask(kinds.report, kind.name, choice.of(scope.selection), **more)
    return None


def downloads(report: Report) -> None:
    """One button a form; a file is written when its button is pressed."""
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, label in LABELS.items():
            name = files.name(report, form)
            st.download_button(
                label,
                export.told(name, partial(files.render, report, form), action="report"),
                file_name=name,
                mime=files.MIME[form],
                key=f"report_{form}",
                on_click="ignore",
                icon=":material/download:",
            )
        st.caption(f"content {report.content_sha256[:12]}", help=HASH, width="content")


def preview(report: Report) -> None:
    """The page as it leaves; it has no script and may fetch nothing."""
    text = kept(files.render, report, "html").decode("utf-8")
    st.iframe(text, height=PREVIEW_PX, alt=f"Preview: {report.title}")
