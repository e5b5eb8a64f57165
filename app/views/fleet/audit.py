"""The tab of who did what: by person and by action, to read and to download."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import streamlit as st

from app import actions
from app.answers.fleet import audit
from app.ask.cached import store_root
from app.show import page
from data.filters import Selection

if TYPE_CHECKING:
    from app.show.scope import Scope

WHAT = (
    "Logins, failed ones too, ingests, collecting, uploads, queries, exports, reports, backups, "
    "and all that people said, took back or deleted. Texts inside queries are left out. The "
    "filters of the sidebar do not apply."
)


def show(scope: Scope) -> None:
    """The filters and the table."""
    kept = actions.Audit(store_root())
    st.caption(WHAT)
    with st.container(horizontal=True):
        person = _one_of("Person", kept.people())
        action = _one_of("Action", kept.actions())
    found = kept.entries(person=person, action=action, limit=audit.SHOWN)
    unfiltered = replace(scope, selection=Selection())  # what its download says of filters
    page.blocks([audit.table(found)], unfiltered, titled=False)


def _one_of(label: str, names: list[str]) -> str | None:
    return st.selectbox(
        label,
        names,
        index=None,
        placeholder="all",
        key=f"audit_{label.lower()}",
        width=240,
    )
