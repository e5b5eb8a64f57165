"""Alerts in Chromium: take one on, mute it, take that back; ask a rule of the past, switch it on."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Locator, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, serve: Callable[[Path], str]) -> str:
    """The dashboard of the demo as `make run` makes it, whose rules were asked."""
    root = tmp_path_factory.mktemp("alerts") / "store"
    subprocess.run(
        [sys.executable, "-m", "app.cli", "demo", "--store", str(root)],
        check=True,
        capture_output=True,
    )
    return serve(root)


@pytest.fixture
def page(home: str, browser: BrowserContext) -> Page:
    found = browser.new_page()
    found.goto(home)
    found.get_by_role("link", name="Alerts", exact=True).click()
    expect(found.locator('[class*="st-key-alert_"]').first).to_be_visible()
    return found


def choose(page: Page, row: Locator, option: str) -> None:
    """A click on the menu of a row, and on one of its options."""
    row.get_by_test_id("stMenuButton").get_by_role("button").first.click()
    page.get_by_text(option, exact=True).last.click()


def stands(row: Locator, state: str) -> Locator:
    """The badge of a row, which ends with what it says, after its sign."""
    return row.get_by_text(re.compile(rf"^\w+ {state}$")).first


def test_an_alert_is_taken_on_muted_and_both_are_taken_back(page: Page) -> None:
    key = page.locator('[class*="st-key-alert_"]').first.get_attribute("class") or ""
    name = next(part for part in key.split() if part.startswith("st-key-alert_"))
    row = page.locator(f".{name}")
    for option, state in (("Acknowledge", "Acknowledged"), ("Mute for a day", "Muted")):
        expect(stands(row, "Open")).to_be_visible()
        choose(page, row, option)
        expect(stands(row, state)).to_be_visible()
        row.get_by_role("button", name="Undo").click()
    expect(stands(row, "Open")).to_be_visible()


def test_a_rule_is_asked_of_the_past_and_switched_on(page: Page) -> None:
    page.get_by_role("tab", name="Rules").click()
    row = page.locator(".st-key-rule_large_job")
    choose(page, row, "Switch off")
    expect(stands(row, "Off")).to_be_visible()
    row.get_by_role("button", name="Back-test").click()
    panel = page.locator(".st-key-backtest")
    expect(panel.get_by_text("would have told")).to_be_visible()
    panel.get_by_role("button", name="Switch on").click()
    expect(stands(row, "On")).to_be_visible()
