"""One of a few, always one: the address may name which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from app.widgets import address

if TYPE_CHECKING:
    from collections.abc import Sequence

V = TypeVar("V")


def show(label: str, options: Sequence[V], *, default: V, key: str, **look: Any) -> V:
    """Draws the choice; `key` is its name in the address, too.

    An address that names it without a value (`?period=`) has Streamlit choose nothing, although
    something must be: there the default stands.
    """
    if address.says(key) == "":
        address.take_out(key)
    chosen: V = st.segmented_control(
        label, options, default=default, required=True, key=key, bind="query-params", **look
    )
    return chosen
