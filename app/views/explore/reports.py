"""What do I hand to people who never open this dashboard?"""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import streamlit as st

from app.answers.content import Missing
from app.answers.fleet.actions import listed
from app.answers.fleet.choices import whole_weeks
from app.ask.cached import ask, fresh, kept
from app.reports import kinds
from app.show import command_lines, export, files, page
from app.widgets import empty_state, filter_bar, inputs, notice, page_head

if TYPE_CHECKING:
    from app.reports.kinds import Kind
    from app.reports.report import Report
    from app.show.scope import Scope
    from app.words.periods import Period
    from data.filters import Selection


@dataclass(frozen=True)
class Choice:
    """What was chosen."""

    kind: Kind
    about: str
    redact: bool
    week: Period | None = None
    """The calendar week chosen; None where the period of the filters counts."""
    last: bool = False
    """It is the last whole one."""

    def of(self, selection: Selection) -> Selection:
        """What the report counts."""
        if self.week is None:
            return selection
        return replace(selection, from_at=self.week.from_at, to_at=self.week.to_at)


def chosen_kind() -> Kind:
    """Which kind."""
    name = inputs.choice(
        "Kind",
        [*kinds.kinds()],
        format_func=str.capitalize,
        default="fleet",
        key="kind",
        label_visibility="collapsed",
    )
    return kinds.kinds()[name]


def uses(kind: Kind) -> tuple[str, ...]:
    """Filters that it goes by: one of a week has a choice of weeks in place of the period."""
    return tuple(name for name in filter_bar.USES if not (kind.weekly and name == "period"))


def choose(kind: Kind, scope: Scope) -> Choice:
    """What it is about, its week, and whether names are replaced."""
    about, week, last = "", None, False
    if kind.metavar:
        about = inputs.searched(
            kind.name.capitalize(), key=kind.name, placeholder=kind.placeholder, width=320
        )
    if kind.weekly:
        week, last = _week(scope)
    redact = st.toggle(
        "Redact names",
        key="redact",
        bind="query-params",
        help="Pseudonyms in place of users, accounts and names of jobs. A name has the same "
        "pseudonym in every report of this store.",
    )
    return Choice(kind, about, redact, week, last)


def _week(scope: Scope) -> tuple[Period | None, bool]:
    """One of the weeks that the records cover to their end, and whether it is the last.

    It is named without its zone: it stays the same week where another cluster is chosen.
    """
    found = ask(whole_weeks, scope.selection.cluster)
    weeks = {each.words.removesuffix(f" ({each.timezone})"): each for each in found}
    chosen = st.selectbox(
        "Week",
        [*weeks],
        key="week",
        bind="query-params",
        label_visibility="collapsed",
        width=320,
    )
    return weeks.get(chosen or ""), chosen == next(iter(weeks), None)


def command_line(choice: Choice, scope: Scope) -> None:
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


LABELS = {
    "html": "HTML", "pdf": "PDF", "xlsx": "XLSX", "md": "Markdown", "slack": "Slack",
    "json": "JSON",
}  # fmt: skip
PREVIEW_PX = 900
HASH = (
    "SHA-256 of versions, configuration, filters and everything printed: the same store and "
    "period have the same one on every machine."
)


def make(choice: Choice, scope: Scope) -> Report | None:
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
            more |= {"now": now, "beside": fresh(listed.kept)}
        return ask(kinds.report, kind.name, choice.of(scope.selection), **more)
    return None


def downloads(report: Report) -> None:
    """One button a form; a file is written when its button is pressed."""
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, label in LABELS.items():
            export.button(
                label,
                files.name(report, form),
                partial(files.render, report, form),
                mime=files.MIME[form],
                key=f"report_{form}",
                action="report",
                icon=":material/download:",
            )
        st.caption(f"content {report.content_sha256[:12]}", help=HASH, width="content")


def preview(report: Report) -> None:
    """The page as it leaves; it has no script and may fetch nothing."""
    text = kept(files.render, report, "html").decode("utf-8")
    st.iframe(text, height=PREVIEW_PX, alt=f"Preview: {report.title}")


head, controls = st.container(), st.empty()
row = controls.container(horizontal=True, vertical_alignment="center")
with row:
    kind = chosen_kind()
scope = filter_bar.show(uses=uses(kind))
if scope.empty:
    controls.empty()
    empty_state.no_store()
    st.stop()
with head:
    page_head.of_one(
        "Reports to hand to others",
        f"Files that open without this dashboard · {scope.filters}",
        scope,
    )
with row:
    chosen = choose(kind, scope)
made = make(chosen, scope)
if made is None:
    st.stop()
downloads(made)
command_line(chosen, scope)
preview(made)
