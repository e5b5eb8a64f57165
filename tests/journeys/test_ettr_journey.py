"""From all runs to one and back, and a calculation that a link shares, in a real Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_a_run_is_typed_opened_and_left_again(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/ettr?period=all&"))
    expect(page.locator("h1")).to_contain_text("of 129 GPUs and more trained")
    page.wait_for_selector(".js-plotly-plot .main-svg")
    every = page.locator("h1").inner_text()

    with page.expect_download() as download:
        page.locator(".st-key-csv_table_runs button").click()
    rows = download.value.path().read_text().splitlines()
    run = rows[1].split(",")[0]

    box = page.get_by_placeholder("Open a run, e.g. 4711")
    box.fill(run)
    box.press("Enter")
    expect(page.locator("h1")).to_contain_text(f"Run {run} trained")
    expect(page.get_by_text("whole run so far").first).to_be_visible()
    assert f"run={run}" in page.url

    page.get_by_role("button", name="All runs").click()
    expect(page.locator("h1")).to_have_text(every)
    page.wait_for_url(lambda url: "run=" not in url)


@pytest.mark.slow
def test_a_calculation_is_shared_by_its_link(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/planner?period=all&planner_tab=One+job&"))
    for label, value in (("GPUs", "12000"), ("Write (min)", "5")):
        box = page.get_by_role("spinbutton", name=label, exact=True)
        box.fill(value)
        box.press("Enter")
    page.wait_for_url("**gpus=12000**")
    page.wait_for_url("**write=5**")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "gpus=12000" in copied
    assert "write=5" in copied

    other = browser.new_page()
    other.goto(copied)
    expect(other.locator("h1")).to_contain_text("for an ETTR of")
    for label, value in (("GPUs", "12000"), ("Write (min)", "5")):
        box = other.get_by_role("spinbutton", name=label, exact=True)
        expect(box).to_have_value(value)
    # The sender's page may still be drawing: its address changes before its answer does.
    expect(page.locator("h1")).to_have_text(other.locator("h1").inner_text())
