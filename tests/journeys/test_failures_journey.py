"""From the failures of the fleet to one job and its node, in a real Chromium."""

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


@pytest.mark.slow
def test_a_row_leads_to_its_job_and_back(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/failures?period=all&failures_tab=Attempts&"))
    expect(page.locator("h1")).to_contain_text("infrastructure failure")
    grid = page.get_by_test_id("stDataFrame").locator("canvas").first
    grid.scroll_into_view_if_needed()
    grid.click(position=FIRST_ROW, force=True)
    page.wait_for_url(re.compile(r"/job\?.*job=\d+"))
    expect(page.locator("h1")).to_contain_text(re.compile(r"Job \d+"))
    assert "period=all" in page.url
    assert "attempt=attempt" in page.url
    page.go_back()
    expect(page.locator("h1")).to_contain_text("infrastructure failure")


@pytest.mark.slow
def test_a_number_leads_to_its_failures_their_evidence_its_lines_and_back(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/failures?period=all&"))
    expect(page.locator("h1")).to_contain_text("infrastructure failure")
    number = page.get_by_test_id("stMetric").filter(has_text="Infrastructure failures")
    number.locator("xpath=ancestor::*[@data-testid='stColumn'][1]").get_by_role(
        "button"
    ).last.click()
    rows = page.get_by_role("dialog")
    expect(rows).to_be_visible()
    grid = rows.get_by_test_id("stDataFrame").locator("canvas").first
    grid.click(position=FIRST_ROW, force=True)
    page.wait_for_url(re.compile(r"/(job|incident)\?"))
    expect(page.get_by_text("Evidence", exact=True)).to_be_visible()
    line = page.locator("td", has_text=re.compile("NVRM: Xid|check-"))
    expect(line.first).to_be_attached()  # as the node wrote it
    page.go_back()
    expect(page.locator("h1")).to_contain_text("infrastructure failure")
