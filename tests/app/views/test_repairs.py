"""Repairs: the demo, an empty store, the horizon."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE, TAB = "views/nodes/lemons.py", {"lemons_tab": "Repairs"}


def test_repairs_says_what_holds_and_the_horizon_changes_it(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", **TAB)
    assert not page.exception
    first = page.title[0].value
    assert first.startswith("No repair was watched for 28 days")  # the store of tests is shorter
    assert {metric.label for metric in page.metric} >= {"Fail again", "Nodes for the vendor"}
    assert any("action" in frame.value.columns for frame in page.dataframe)
    page.number_input(key="repair_days").set_value(2.0).run()
    assert not page.exception
    assert "fails again within 2 days" in page.title[0].value
    page = open_page(demo_store, PAGE, period="24h", repair_days="2", **TAB)
    assert page.title[0].value != first


def test_repairs_of_an_empty_store_says_what_fills_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE, **TAB)
    assert not page.exception
    assert page.title[0].value == "This store holds no data yet"
