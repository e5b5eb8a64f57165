"""Write, run, cancel, chart, save, share and download a query, in a real Chromium."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING

import openpyxl
import pyarrow.parquet as pq
import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.browser

QUERY = "SELECT state, count(*) AS n\nFROM jobs\nGROUP BY ALL\nORDER BY n DESC"
ENDLESS = "SELECT count(*) FROM range(100000000000000)"


@pytest.fixture(scope="module")
def link(link: str) -> str:
    """The SQL page of the demo store."""
    return link.replace("/?", "/sql?")


def _write(page: Page, sql: str) -> None:
    """Writes a query in place of the one in the editor."""
    page.get_by_label("SQL query").fill(sql)


def _download(page: Page, kind: str) -> bytes:
    """The bytes of the answer as a file."""
    if page.get_by_test_id("stPopoverBody").count() == 0:
        page.locator(".st-key-sql_answered").get_by_role("button", name="Download").click()
    with page.expect_download() as download:
        page.get_by_test_id("stPopoverBody").get_by_role("button", name=kind, exact=True).click()
    suffix = kind.lower()
    assert download.value.suggested_filename == (
        f"faultline-demo-synthetic-all-time-query.{suffix}"
    ), "the query names no filter"
    return download.value.path().read_bytes()


@pytest.mark.slow
def test_a_query_is_written_run_drawn_and_downloaded(link: str, browser: BrowserContext) -> None:
    requests: list[str] = []
    browser.on("request", lambda request: requests.append(request.url))
    page = browser.new_page()
    page.goto(link)
    expect(page.locator("h1")).to_have_text("Ask the store in SQL")
    _write(page, QUERY)
    page.get_by_label("SQL query").press("Control+Enter")
    expect(page.get_by_text(re.compile(r"^\d+ rows in "))).to_be_visible()

    assert _download(page, "CSV").startswith(b"state,n,faultline_selection\r\nCOMPLETED,")
    assert json.loads(_download(page, "JSON"))["query"] == QUERY
    assert pq.read_table(io.BytesIO(_download(page, "Parquet"))).column_names == ["state", "n"]
    book = openpyxl.load_workbook(io.BytesIO(_download(page, "XLSX")))
    assert book["Rows"]["A2"].value == "COMPLETED"
    page.keyboard.press("Escape")

    page.get_by_role("tab", name="Chart").click()
    page.wait_for_selector(".js-plotly-plot .main-svg")
    expect(page.locator(".js-plotly-plot .gtitle")).to_contain_text("n by state")
    own = link.split("/sql")[0]
    assert [url for url in requests if not url.startswith((own, "data:", "blob:"))] == []


@pytest.mark.slow
def test_a_mistake_is_underlined_until_it_is_mended_and_names_go_where_the_cursor_is(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(link)
    editor = page.get_by_label("SQL query")
    _write(page, "SELECT job_id,\n  colour\nFROM jobs")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("(line 2, column 3, at: colour)")
    expect(page.locator(".wrong")).to_have_text("colour")
    editor.press("End")
    editor.type(" ")
    expect(page.locator(".wrong")).to_have_count(0)

    page.get_by_role("tab", name="Tables").click()
    _write(page, "SELECT  FROM failures")
    editor.press("Home")
    for _ in range(len("SELECT ")):
        editor.press("ArrowRight")
    page.get_by_role("button", name="failed_at", exact=True).click()
    expect(editor).to_have_value("SELECT failed_at FROM failures")


@pytest.mark.slow
def test_a_runaway_is_cancelled(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link)
    _write(page, ENDLESS)
    page.get_by_label("SQL query").press("Control+Enter")
    expect(page.get_by_text(re.compile(r"Running for \d+\.\d s of at most 20 s"))).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text(re.compile("The query was cancelled after"))).to_be_visible()
    expect(page.get_by_role("button", name="Run", exact=True)).to_be_enabled()


@pytest.mark.slow
def test_a_shared_link_shows_what_was_seen_once_run_is_pressed(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(link)
    _write(page, QUERY)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_text(re.compile(r"^\d+ rows in "))).to_be_visible()
    page.get_by_role("tab", name="Chart").click()
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "token" not in copied

    other = browser.new_page()
    other.goto(copied)
    expect(other.get_by_label("SQL query")).to_have_value(QUERY)
    expect(other.get_by_text("This query came with the link")).to_be_visible()
    expect(other.locator(".js-plotly-plot")).to_have_count(0)
    other.get_by_role("button", name="Run", exact=True).click()
    expect(other.locator(".js-plotly-plot")).to_be_visible()
    expect(other.get_by_text("This query came with the link")).to_have_count(0)


@pytest.mark.slow
def test_a_query_is_saved_and_taken_back_out(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link)
    _write(page, QUERY)
    page.get_by_role("tab", name="Saved").click()
    page.get_by_label("Name", exact=True).fill("By state")
    page.get_by_role("button", name="Save the query").click()
    expect(page.get_by_role("button", name="By state")).to_be_visible()

    other = browser.new_page()
    other.goto(link.split("?")[0])
    other.get_by_role("tab", name="Saved").click()
    other.get_by_role("button", name="By state").click()
    expect(other.get_by_label("SQL query")).to_have_value(QUERY)
