"""The page Availability: of the demo, and of a time without records."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/reliability/availability.py"


def test_it_says_how_available_nodes_were_and_which_least(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value.startswith("Nodes were available")
    (nodes,) = (frame.value for frame in page.dataframe if "drained" in frame.value.columns)
    assert nodes["available"].is_monotonic_increasing


def test_a_time_without_records_has_no_availability(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(
        demo_store, PAGE, period="custom",
        **{"from": "1999-01-01T00:00", "to": "1999-02-01T00:00"},
    )  # fmt: skip
    assert not page.exception
    assert "which nodes there were is not known" in page.title[0].value
