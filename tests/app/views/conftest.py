"""Opening pages of the dashboard without a browser."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.widgets import fleet_line
from app.widgets.page_head import KNOWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MAIN = Path(__file__).resolve().parents[3] / "app" / "main.py"


@pytest.fixture(autouse=True, scope="session")
def _nothing_cached() -> Iterator[None]:
    """Streamlit's caches outlive an AppTest (streamlit issue 9139): pages share them."""
    st.cache_data.clear()
    st.cache_resource.clear()
    yield
    st.cache_data.clear()
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def _own_answer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without the line that says of each what Overview says, which was two fifths of what
    these tests took: `tests/app/widgets/test_fleet_line.py` has it."""
    monkeypatch.setattr(fleet_line, "show", lambda *_: None)


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


def behind(page: AppTest, *labels: str) -> str:
    """The text and the captions that the popover of one of these labels opens."""
    (popover,) = [each for each in page.get("popover") if each.proto.popover.label in labels]
    return "\n".join(each.value for each in (*popover.markdown, *popover.caption))


def in_sight(page: AppTest) -> list[str]:
    """The texts of a page that no popover hides."""
    hidden = {id(text) for popover in page.get("popover") for text in popover.markdown}
    return [text.value for text in page.markdown if id(text) not in hidden]


def whole(page: AppTest) -> str:
    """The whole sentence of a page whose title is its first clauses alone."""
    return behind(page, KNOWN).partition("\n")[0]


def answer(page: AppTest) -> list[str]:
    """What a page answers: its sentence, its numbers and its tables, without what it rests on."""
    numbers = [f"{metric.label}: {metric.value}" for metric in page.metric]
    return (
        [title.value for title in page.title]
        + numbers
        + [frame.value.to_csv() for frame in page.dataframe]
    )


@pytest.fixture(scope="session")
def _unfiltered() -> dict[tuple[str, ...], list[str]]:
    """Answers of pages without the filter that a test looks at."""
    return {}


@pytest.fixture
def answers(
    open_page: Callable[..., AppTest], _unfiltered: dict[tuple[str, ...], list[str]]
) -> Callable[..., tuple[AppTest, bool]]:
    """A page with filters beside others it has anyway, and whether they change its answer."""

    def compare(
        store: Path, page: str, filters: dict[str, str], **anyway: str
    ) -> tuple[AppTest, bool]:
        filtered = open_page(store, page, **(anyway | filters))
        assert not filtered.exception
        key = (str(store), page, *map(str, sorted(anyway.items())))
        if key not in _unfiltered:
            _unfiltered[key] = answer(open_page(store, page, **anyway))
        return filtered, answer(filtered) != _unfiltered[key]

    return compare
