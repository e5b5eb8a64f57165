"""Find: a text gives what is called so, by kind, with links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.app.views.conftest import whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/explore/find.py"


def test_the_page_asks_then_answers(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE)
    assert not page.exception
    assert page.title[0].value == "What are you looking for?"
    page.text_area(key="find").set_value("gpu0001").run()
    assert not page.exception
    assert page.title[0].value == "Found 1 node"
    assert page.dataframe[0].value["node"].tolist() == ["gpu0001"]
    page.text_area(key="find").set_value("KeyError: 'mask'").run()
    assert page.dataframe[0].value["title"].tolist() == ["Missing key (KeyError)"]
    page.text_area(key="find").set_value("nothing_so").run()
    assert page.title[0].value == "Nothing has this name"
    assert whole(page).startswith("Nothing has this name. Ask for a job, node, user")


def test_a_link_shows_the_search_and_the_address_never_holds_a_log(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, find="gpu0001")
    assert page.text_area(key="find").value == "gpu0001"
    assert page.title[0].value == "Found 1 node"
    page.text_area(key="find").set_value("gpu0002 ").run()
    assert page.dataframe[0].value["node"].tolist() == ["gpu0002"]
    assert page.query_params["find"] == "gpu0002"
    page.text_area(key="find").set_value("KeyError: 'mask'\nof a log").run()
    assert page.title[0].value.startswith("Found 1 verdict")
    assert "find" not in page.query_params
    page.query_params["find"] = "gpu0003"
    page.run()
    assert page.dataframe[0].value["node"].tolist() == ["gpu0003"], "another link was opened"


def test_an_empty_store_says_which_commands_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert "faultline ingest" in page.code[0].value
