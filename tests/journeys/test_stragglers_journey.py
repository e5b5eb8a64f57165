"""From a traced run to the node that slows it, and its timeline, in a real Chromium."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_the_slow_workers_node_is_two_clicks_away(
    link: str, browser: BrowserContext, tmp_path: Path
) -> None:
    page = browser.new_page()
    page.goto(f"{link.replace('/?', '/stragglers?')}&period=all&stragglers_tab=All+traces")
    expect(page.get_by_text("Here and published")).to_be_visible()
    expect(page.get_by_role("heading", name="All traces")).to_be_visible()
    expect(page.locator(".js-plotly-plot .main-svg").last).to_be_visible()  # then nothing moves
    table = page.get_by_test_id("stDataFrame").last
    table.scroll_into_view_if_needed()
    table.click(position={"x": 18, "y": 90})
    page.wait_for_url(re.compile("trace="))
    expect(page.locator("h1")).to_contain_text("times its ideal")

    page.get_by_role("tab", name="Fix and timelines").click()
    expect(page.get_by_text("of the step time")).to_be_visible()
    with page.expect_download() as found:
        page.get_by_role("button", name="With this fixed").click()
    file = tmp_path / "timeline.json"
    found.value.save_as(file)
    assert json.loads(file.read_text())["traceEvents"]

    page.locator("h1").click()  # the list that opens right after a download closes at once
    page.locator(".st-key-trace input").click()
    page.get_by_role("option", name="slow worker").click()
    expect(page.locator("h1")).to_contain_text("Worker dp ")
    page.locator('a[href*="node?"]').first.click()
    page.wait_for_url(re.compile("/node\\?.*period=custom"))
    assert len(browser.pages) == 1
