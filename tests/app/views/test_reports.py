"""Reports: make, look at and take away, whatever is asked for."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING

import pytest

from app.actions import put_off
from app.answers.fleet.actions import listed
from app.answers.fleet.choices import whole_weeks
from app.ask import of_store
from data.filters import Selection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/explore/reports.py"
FORMS = ["HTML", "PDF", "XLSX", "Markdown", "Slack", "JSON"]


def _page(test: AppTest) -> str:
    """The preview."""
    (frame,) = test.get("iframe")
    return str(frame.proto.srcdoc)


def _forms(test: AppTest) -> list[str]:
    return [button.proto.label for button in test.get("download_button")]


@pytest.mark.slow
def test_the_fleet_report_is_there_at_once(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    assert not page.exception
    assert page.title[0].value == "Reports to hand to others"
    assert _forms(page) == FORMS
    assert "<h1>Fleet reliability</h1>" in _page(page)
    assert "Synthetic" in _page(page)


FILTERS = {
    "all time": ({"period": "all"}, ["faultline report --as html,pdf --out report"]),
    "some jobs": (
        {"period": "all", "partition": "learn", "account": "vision", "min_gpus": "16"},
        ["--partition learn", "--account vision", "--min-gpus 16"],
    ),
    "a week, redacted": ({"period": "7d", "redact": "true"}, ["--from 2025-", "--redact"]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", FILTERS)
def test_filters_choose_what_it_is_about_and_the_command_says_so(
    open_page: Callable[..., AppTest], demo_store: Path, name: str
) -> None:
    filters, said = FILTERS[name]
    page = open_page(demo_store, PAGE, **filters)
    assert not page.exception
    assert [text for text in said if text not in page.code[0].value] == []


def test_a_link_opens_the_report_of_an_incident(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, kind="Incident", incident="largest")
    assert not page.exception
    assert "<h1>Incident " in _page(page)
    assert "--incident largest" in page.code[0].value
    assert "--from" not in page.code[0].value


@pytest.mark.slow
def test_the_monday_card_is_of_a_week_and_what_was_put_off_is_gone_at_once(
    open_page: Callable[..., AppTest], demo_store: Path, tmp_path: Path
) -> None:
    root = shutil.copytree(demo_store, tmp_path / "store")
    page = open_page(root, PAGE, kind="Monday")
    assert not page.exception
    (week,) = (box for box in page.selectbox if box.key == "week")
    assert str(week.value) in _page(page)
    assert "UTC" not in str(week.value), "the same week where a cluster has another zone"
    assert "--kind monday --last week" in page.code[0].value
    assert "UTC" not in page.caption[0].value
    with closing(Store.open(root)) as store:
        now = datetime.now(UTC)
        of_week = whole_weeks(store, None)[0]
        selection = Selection(from_at=of_week.from_at, to_at=of_week.to_at)
        first, *_ = listed.first(listed.listed(of_store(store), selection, now).due, listed.SHOWN)
    assert escape(first.what) in _page(page)
    put_off(root, first.target, days=7)
    assert escape(first.what) not in _page(page.run())
    other = week.options[-1]
    week.select(other).run()
    assert str(other) in _page(page)
    assert "--from 2025-" in page.code[0].value


@pytest.mark.parametrize("kind", ["Incident", "Node"])
def test_without_a_name_it_asks_for_one(
    open_page: Callable[..., AppTest], demo_store: Path, kind: str
) -> None:
    page = open_page(demo_store, PAGE, kind=kind)
    assert not page.exception
    assert f"**Which {kind.lower()}?**" in " ".join(text.value for text in page.markdown)
    assert _forms(page) == []


@pytest.mark.parametrize("kind", ["Incident", "Node"])
def test_a_name_that_is_not_there_is_a_notice(
    open_page: Callable[..., AppTest], demo_store: Path, kind: str
) -> None:
    page = open_page(demo_store, PAGE, kind=kind, **{kind.lower(): "nowhere"})
    assert not page.exception
    assert "'nowhere' is not in the store" in page.warning[0].value


def test_an_empty_store_says_what_would_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert page.title[0].value == "This store holds no data yet"
