"""What a page is about: named in the address or typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from app.ask.cached import ask
from app.widgets import notice

if TYPE_CHECKING:
    from collections.abc import Callable

R = TypeVar("R")


def named(what: str) -> str | None:
    """What a page will be about; None where nothing is named yet."""
    key = what.lower()
    name = st.session_state[key] if key in st.session_state else st.query_params.get(key)
    return name.strip() if name and name.strip() else None


def one(
    what: str, question: Callable[..., R], *, example: str, width: int = 420, **asked: Any
) -> R | None:
    """The thing that is named; None, with a notice where there is none of that name."""
    name = st.text_input(
        what,
        key=what.lower(),
        bind="query-params",
        placeholder=f"{what}, e.g. {example}",
        icon=":material/search:",
        label_visibility="collapsed",
        width=width,
    )
    if name and name.strip():
        with notice.explained():
            return ask(question, name.strip(), **asked)
    return None
