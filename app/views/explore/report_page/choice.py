"""Which report: its kind, what it is about, its week."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import streamlit as st

from app.answers.fleet.choices import whole_weeks
from app.ask.cached import ask
from app.reports import kinds
from app.widgets import choice, filter_bar

if TYPE_CHECKING:
    from app.reports.kinds import Kind
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
    name = choice.show(
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
        about = st.text_input(
            kind.name.capitalize(),
            key=kind.name,
            bind="query-params",
            placeholder=kind.placeholder,
            icon=":material/search:",
            label_visibility="collapsed",
            width=320,
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
    return Choice(kind, (about or "").strip(), redact, week, last)


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
