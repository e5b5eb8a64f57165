"""Which report: its kind, what it is about, and whether it names people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import streamlit as st

from app import loaders
from app.components import notice
from app.reports.kinds import KINDS

if TYPE_CHECKING:
    from app.components.scope import Scope
    from app.reports.content import Report
    from app.reports.kinds import Kind

TITLES = {"fleet": "Fleet", "incident": "Incident", "node": "Node"}
PLACEHOLDERS = {
    "incident": "Incident id, latest or largest",
    "node": "Node, e.g. gpu0012",
}


@dataclass(frozen=True)
class Choice:
    """What was chosen."""

    kind: Kind
    about: str
    redact: bool


def choose() -> Choice:
    """The controls in one row."""
    with st.container(horizontal=True, vertical_alignment="center"):
        kind: Kind = st.segmented_control(
            "Kind",
            KINDS,
            format_func=TITLES.get,
            default="fleet",
            required=True,
            key="kind",
            bind="query-params",
            label_visibility="collapsed",
        )
        about = ""
        if kind != "fleet":
            about = st.text_input(
                TITLES[kind],
                key=kind,
                bind="query-params",
                placeholder=PLACEHOLDERS[kind],
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
    """The report; None where nothing is named yet, or what is named is not there."""
    if choice.kind != "fleet" and not choice.about:
        return None
    with notice.explained():
        return loaders.report(
            choice.kind, scope.selection, about=choice.about, redact=choice.redact
        )
    return None
