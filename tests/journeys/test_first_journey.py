"""From the printed link through filter, row, job and back to a query, in a real Chromium."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser

FIRST_ROW = {"x": 15, "y": 50}
"""Where the first row of a table is picked: the grid is a canvas below others."""


def test_the_printed_link_leads_to_a_job_and_to_a_query(link: str, browser: BrowserContext) -> None:
    requests: list[str] = []
    browser.on("request", lambda request: requests.append(request.url))
    page = browser.new_page()
    page.goto(link)
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days")
    expect(page.get_by_text("synthetic data").first).to_be_visible()
    page.get_by_text("Weeks, availability, forecast", exact=True).click()
    page.wait_for_selector(".js-plotly-plot .main-svg")
    before = page.locator("h1").inner_text()
    page.get_by_test_id("stSidebar").get_by_role("radio", name="7d", exact=True).click()
    expect(page.locator("h1")).not_to_have_text(before)

    page.get_by_role("link", name="Failures", exact=True).click()
    expect(page.locator("h1")).to_contain_text("infrastructure failure")
    assert "period=7d" in page.url
    page.get_by_role("tab", name="Attempts").click()
    grid = page.get_by_test_id("stDataFrame").locator("canvas").first
    grid.scroll_into_view_if_needed()
    grid.click(position=FIRST_ROW, force=True)
    page.wait_for_url(re.compile(r"/job\?.*job=\d+"))
    expect(page.locator("h1")).to_contain_text(re.compile(r"Job \d+"))
    page.go_back()
    expect(page.locator("h1")).to_contain_text("infrastructure failure")

    page.get_by_role("link", name="SQL", exact=True).click()
    expect(page.locator("h1")).to_have_text("Ask the store in SQL")
    page.get_by_label("SQL query").fill("SELECT state, count(*) AS n FROM jobs GROUP BY ALL")
    page.get_by_label("SQL query").press("Control+Enter")
    expect(page.get_by_text(re.compile(r"^\d+ rows in "))).to_be_visible()
    own = link.split("?")[0]
    assert [url for url in requests if not url.startswith((own, "data:", "blob:"))] == []
