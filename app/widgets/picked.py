"""Which one of several things of a kind is looked at: the one that the address names."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import streamlit as st

from app.words import escaping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

T = TypeVar("T")


def picked(
    named: Mapping[str, T], every: Callable[[], Mapping[str, T]], *, key: str, instead: str
) -> T | None:
    """The thing whose label stands in the address under its key, else the first; None without any.

    One that is not among `named` but among `every` is shown all the same.
    """
    names = dict(named)
    wanted = st.session_state.get(key, st.query_params.get(key))
    if wanted and wanted not in names:
        known = every()
        if wanted in known:
            names[wanted] = known[wanted]
            st.caption(f"This {key} lies outside the selection of the sidebar.")
        else:
            told = f": shown is {instead}" if names else ""
            st.warning(
                f"The store holds no {key} {escaping.escaped(wanted)}{told}.",
                icon=":material/warning:",
            )
    if not names:
        return None
    chosen = st.selectbox(
        key.capitalize(),
        list(names),
        key=key,
        bind="query-params",
        label_visibility="collapsed",
        width=420,
    )
    return names[chosen]
