"""What a page says first is sent with the page: of the same address, while the store says the same."""

from __future__ import annotations

import asyncio
import html
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.answers.content import Number
from app.ask import cached
from app.server.disk import Disk
from app.show import first_sight
from app.words.terms import Term
from data.state import State

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlit.testing.v1 import AppTest


@pytest.fixture(scope="module")
def store(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo's, of which people may say something."""
    return Path(shutil.copytree(demo_store, tmp_path_factory.mktemp("sight") / "store"))


def held(page: str, **query: str) -> str:
    """What is sent with a page, as the server asks for it."""
    standing = asyncio.run(Disk(cached.store_root()).standing())
    return first_sight.held(first_sight.address_of(page, [*query.items()]), standing)


def test_a_page_that_was_opened_is_held_until_somebody_says_something(
    open_page: Callable[..., AppTest], store: Path
) -> None:
    page = open_page(store, "views/failures/failures.py", min_gpus="64")
    sight = html.unescape(held("/failures", min_gpus="64"))
    assert page.title[0].value.replace("\xa0", " ") in sight
    assert "synthetic data" in sight
    numbers = [(each.label, each.value) for each in page.metric]
    assert numbers
    for label, value in numbers:
        assert f"<p>{label}</p><b>{value}</b>" in sight
    assert not held("/failures"), "without the filter it is another answer"
    assert not held("/", min_gpus="64")
    State(store).annotate("attempt:demo/1", "cause", "host_oom", author="ann")
    assert not held("/failures", min_gpus="64")


def test_a_click_leaves_what_is_held(open_page: Callable[..., AppTest], store: Path) -> None:
    page = open_page(store, "views/failures/failures.py")
    before = held("/failures")
    page.sidebar.number_input(key="min_gpus").set_value(256).run()
    assert held("/failures") == before


def test_what_a_reader_typed_before_the_server_started_anew_is_for_no_other(
    open_page: Callable[..., AppTest], store: Path
) -> None:
    page = open_page(store, "views/explore/find.py")
    before = held("/find")
    assert "What are you looking for?" in before
    page.text_area(key="find").set_value("NCCL WARN of my own run")
    del page.session_state["opened"]  # a new session, to which the browser sends what it holds
    page.run()
    assert page.title[0].value != "What are you looking for?"
    assert held("/find") == before


def test_a_page_is_sent_without_it_where_the_store_cannot_be_read(
    open_page: Callable[..., AppTest], store: Path
) -> None:
    open_page(store, "views/explore/glossary.py")
    assert held("/glossary")
    current = store / "CURRENT"
    written = current.read_text()
    current.write_text("cut of")
    assert held("/glossary") == ""
    current.write_text(written)
    assert held("/glossary")


def test_what_records_say_is_text_and_no_markup() -> None:
    number = Number(Term("MTTF", ""), "<b>1</b>", "n = 3 & more")
    sight = first_sight.Sight("Node <script>alert(1)</script> failed", "a & b", False, (number,))
    assert sight.written() == (
        '<main id="first-sight"><p role="heading" aria-level="1">'
        "Node &lt;script&gt;alert(1)&lt;/script&gt; failed</p>"
        "<p>a &amp; b</p><div><div><p>MTTF</p><b>&lt;b&gt;1&lt;/b&gt;</b>"
        "<p>n = 3 &amp; more</p></div></div></main>"
    )
