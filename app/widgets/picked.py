"""Which one of several things of a kind is looked at: the one that the address names."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


def picked(
    what: str, named: Mapping[str, T], every: Callable[[], Mapping[str, T]], *, instead: str
) -> T | None:
    """The thing whose label stands in the address under `what`, else the first; None without any.

    One that is not among `named` but among `every` is shown all the same.
    """
    names, label = dict(named), what.capitalize()
    wanted = st.session_state.get(what, st.query_params.get(what))
    if wanted and wanted not in names:
        known = every()
        if wanted in known:
            names[wanted] = known[wanted]
            st.caption(f"This {what} lies outside the selection of the sidebar.")
        else:
            told = f": shown is {instead}" if names else ""
            st.warning(
                f"The store holds no {what} {escaping.escaped(wanted)}{told}.",
                icon=":material/warning:",
            )
    if not names:
        return None
    chosen = st.selectbox(
        label,
        list(names),
        key=what,
        bind="query-params",
        label_visibility="collapsed",
        width=420,
    )
    return names[chosen]
