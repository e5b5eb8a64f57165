"""The replay of an incident by keyboard and pointer, in a real Chromium."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_the_replay_moves_by_keyboard_and_a_node_opens_at_its_time(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/incident?incident=largest&"))
    figure = page.locator(".st-key-figure_incident_replay")
    expect(figure.locator(".js-plotly-plot")).to_be_visible()
    expect(figure).to_contain_text("first event")
    slider = page.get_by_role("slider", name="Moment of the replay")
    slider.focus()
    page.keyboard.press("Home")
    expect(figure).to_contain_text("before")
    assert "before" in str(slider.get_attribute("aria-valuetext"))
    page.keyboard.press("ArrowRight")
    expect(figure).to_contain_text("first event")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    expect(figure).not_to_contain_text("· first event")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name=re.compile("First event")).click()
    expect(figure).to_contain_text("· first event")
    figure.locator(".scatterlayer .trace").first.locator(".point").first.click(force=True)
    page.wait_for_url(re.compile(r"/node\?.*period=custom"))
    page.go_back()
    expect(figure.locator(".js-plotly-plot")).to_be_visible()
