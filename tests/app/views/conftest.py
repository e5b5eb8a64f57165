"""Opening pages of the dashboard without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAIN = Path(__file__).resolve().parents[3] / "app" / "main.py"


@pytest.fixture(autouse=True)
def _nothing_cached() -> Iterator[None]:
    """Streamlit's caches outlive an AppTest (streamlit issue 9139)."""
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Callable[..., AppTest]:
    """Runs a page on a store, with filters as a link holds them."""

    def run(store: Path, page: str = "", **filters: str) -> AppTest:
        monkeypatch.setenv("FAULTLINE_STORE", str(store))
        test = AppTest.from_file(MAIN, default_timeout=60)
        for name, value in filters.items():
            test.query_params[name] = value
        if page:
            test.switch_page(page)
        return test.run()

    return run
