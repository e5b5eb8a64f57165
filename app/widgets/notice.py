"""Notices: what the reader must know, and requests that cannot be answered."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import streamlit as st

from analytics.errors import AnalysisError
from app.words import escaping
from data.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def explained() -> Iterator[None]:
    """Turns the two families of errors that a request can cause into a notice.

    Anything else is a bug and shows as one.
    """
    try:
        yield
    except (AnalysisError, DataError) as error:
        st.warning(escaping.escaped(str(error)), icon=":material/warning:")
