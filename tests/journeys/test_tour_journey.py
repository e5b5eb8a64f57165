"""The tour: once for a new browser, never again, opened from the glossary; in a real Chromium."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BY_HAND = """
Object.defineProperty(navigator, "webdriver", { get: () => false });
window.moved = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries())
    if (entry.sources.some(({ node }) => node?.closest?.("#faultline-tour"))) window.moved += 1;
}).observe({ type: "layout-shift", buffered: true });
"""
"""A browser that no program drives, which counts what the tour moved."""


def test_a_new_browser_is_shown_it_once(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    tour = page.get_by_role("region", name="Tour")
    page.goto(link)
    expect(page.get_by_test_id("stMetric").first).to_be_visible()
    expect(tour).to_have_count(0)  # a program drives it
    page.add_init_script(BY_HAND)
    page.reload()
    expect(tour).to_contain_text("1 of 5")
    page.get_by_role("button", name="Next").press("Enter")
    expect(tour).to_contain_text("Ctrl-K")
    expect(page.get_by_role("button", name="Next")).to_be_focused()
    page.keyboard.press("Enter")
    tour.get_by_role("link", name="Incidents").click()
    page.wait_for_url(re.compile("/incidents"))
    expect(page.locator("h1")).to_contain_text("incidents")
    expect(tour).to_contain_text("3 of 5")
    assert page.evaluate("window.moved") == 0
    page.get_by_role("button", name="Skip").click()
    expect(tour).to_have_count(0)
    page.reload()
    expect(page.get_by_test_id("stMetric").first).to_be_visible()
    page.goto(re.sub(r"/\?.*", "/glossary", link))
    expect(page.locator("h1")).to_contain_text("a search finds all")
    expect(tour).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("link", name="Take the tour").click()
    expect(page.get_by_role("button", name="Next")).to_be_focused()
    box = tour.bounding_box()
    assert box is not None
    assert 0 <= box["x"] <= box["x"] + box["width"] <= 390
    page.keyboard.press("Escape")
    expect(tour).to_have_count(0)


def test_an_empty_store_says_what_to_do_by_itself(
    empty_store: Path, serve: Callable[[Path], str], browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.add_init_script(BY_HAND)
    page.add_init_script("localStorage.removeItem('faultline_tour')")
    page.goto(serve(empty_store))
    expect(page.locator("h1")).to_have_text("This store holds no data yet")
    expect(page.get_by_role("region", name="Tour")).to_have_count(0)
