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
    page.goto(link.replace("/?", "/ettr?period=all&"))
    expect(page.locator("h1")).to_contain_text("of 129 GPUs and more trained")
    for label, value in (("GPUs", "12000"), ("Write (min)", "5")):
        box = page.get_by_role("spinbutton", name=label, exact=True)
        box.fill(value)
        box.press("Enter")
    expect(page.get_by_text("Daly-Young's rule says").first).to_be_visible()
    page.wait_for_url("**gpus=12000**")
    page.wait_for_url("**write=5**")
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "gpus=12000" in copied
    assert "write=5" in copied

    other = browser.new_page()
    other.goto(copied)
    answer = other.get_by_text("Daly-Young's rule says").first
    answer.wait_for()
    for label, value in (("GPUs", "12000"), ("Write (min)", "5")):
        box = other.get_by_role("spinbutton", name=label, exact=True)
        expect(box).to_have_value(value)
    # The sender's page may still be drawing: its address changes before its answer does.
    said = page.get_by_text("Daly-Young's rule says").first
    expect(said).to_have_text(answer.inner_text())


@pytest.mark.slow
def test_the_interval_of_1024_gpus_is_one_click_from_overview(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/?period=all&"))
    expect(page.get_by_text("Do this now").first).to_be_visible()
    page.get_by_role("link", name="1,024 GPUs").click()
    number = page.get_by_test_id("stMetric").filter(has_text="Best checkpoint interval, 1,024 GPUs")
    expect(number).to_contain_text(" min")
    assert "of_gpus=1024" in page.url
    expect(page.get_by_text("Save a job of 1,024 GPUs every").first).to_be_visible()
