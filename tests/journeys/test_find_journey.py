"""Ctrl-K or / on any page, a name, a click: its page; in a real Chromium."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]


def test_keys_open_the_search_with_the_filters_and_back_returns(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(f"{link}&period=all".replace("/?", "/mttf?"))
    expect(page.locator("h1")).to_contain_text("between failures")
    box = page.get_by_role("textbox", name="Find")
    page.keyboard.press("Control+k")
    page.wait_for_url(re.compile(r"/find\?period=all"))
    expect(box).to_be_focused()
    page.keyboard.type("KeyError: 'a/b'")
    expect(box).to_have_value("KeyError: 'a/b'")
    page.keyboard.press("Control+Enter")
    expect(page.locator("h1")).to_have_text("Found 1 verdict")
    page.wait_for_url(re.compile(r"/find\?.*find=KeyError"))
    page.go_back()
    expect(page.locator("h1")).to_contain_text("between failures")
    page.locator("h1").click()
    page.keyboard.press("/")
    expect(box).to_be_focused()
