"""The values that a query can name, as the filters set them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import streamlit as st

from app import loaders

if TYPE_CHECKING:
    from app.components.scope import Scope


def show(scope: Scope) -> None:
    """The values that the filters give to the query."""
    with st.popover("Parameters", type="tertiary", icon=":material/data_object:"):
        st.caption("The filters on the left set these; a query names them. Times are in UTC.")
        st.dataframe(
            [
                {"name": f"${each.name}", "type": each.type, "value": _said(each)}
                for each in loaders.parameters(scope.selection)
            ],
            hide_index=True,
        )


def _said(parameter: loaders.Parameter) -> str:
    """The value in words."""
    if not parameter.open:
        value = parameter.value
        return f"{value:%Y-%m-%d %H:%M}" if parameter.type == "TIMESTAMPTZ" else str(value)
    if parameter.type == "TIMESTAMPTZ":
        return f"{parameter.value.year:04d}: all time"
    return "NULL: all" if parameter.value is None else f"{parameter.value}: all"
