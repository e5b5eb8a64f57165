"""What hands do without thinking: Back, Forward, a link, a reload; in a real Chromium."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page, Route

pytestmark = pytest.mark.browser

PAGES = ["Failures", "Incidents", "MTTF", "SQL", "Diagnose"]


def look(page: Page) -> tuple[str, str]:
    """The address and the sentence."""
    return page.url, page.locator("h1").inner_text()


@pytest.mark.slow
def test_back_goes_through_five_pages_with_their_filters(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(link)
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days")
    whole = page.locator("h1").inner_text()
    page.get_by_test_id("stSidebar").get_by_role("radio", name="7d", exact=True).click()
    expect(page.locator("h1")).not_to_have_text(whole)
    at_first, seen = page.evaluate("history.length"), []
    for name in PAGES:
        before = page.locator("h1").inner_text()
        seen.append(look(page))
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page.locator("h1")).not_to_have_text(before)
        page.wait_for_url(re.compile(rf"/{name.lower()}\?period=7d"))
    assert page.evaluate("history.length") == at_first + len(PAGES)
    seen.append(look(page))
    for address, sentence in reversed(seen[:-1]):
        page.go_back()
        expect(page.locator("h1")).to_have_text(sentence)
        page.wait_for_url(address)
        expect(page.get_by_role("radio", name="7d", exact=True)).to_be_checked()
    for address, sentence in seen[1:]:
        page.go_forward()
        expect(page.locator("h1")).to_have_text(sentence)
        page.wait_for_url(address)


@pytest.mark.slow
def test_back_may_be_pressed_again_before_the_page_is_drawn(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(f"{link}&period=7d")
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days")
    done = page.locator("[data-test-script-state=notRunning]")
    expect(done).to_be_attached()
    addresses, first = [], look(page)
    for name in PAGES:
        addresses.append(page.url)
        before = page.locator("h1").inner_text()
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page.locator("h1")).not_to_have_text(before)
        expect(done).to_be_attached()
        expect(page).to_have_url(re.compile(rf"/{name.lower()}\?period=7d"))
    n_steps, went = page.evaluate("history.length"), []
    for _ in PAGES:
        page.go_back(wait_until="commit")
        went.append(page.url)
    assert went == addresses[::-1]
    expect(page.locator("h1")).to_have_text(first[1])
    expect(done).to_be_attached()
    assert look(page) == first
    assert page.evaluate("history.length") == n_steps


@pytest.mark.slow
def test_the_page_list_keeps_filters_that_are_not_drawn_yet(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    held: list[Route] = []

    def first_waits(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route(re.compile(r"/ButtonGroup\..*\.js"), first_waits)
    page.goto(f"{link}&period=7d")
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days")
    assert page.locator(".st-key-period button").count() == 0
    page.get_by_role("link", name="Failures", exact=True).first.click()
    expect(page.locator("h1")).to_contain_text("infrastructure failure")
    assert page.url.endswith("/failures?period=7d")
    expect(page.get_by_role("radio", name="7d", exact=True)).to_be_checked()
    page.go_back()
    expect(page).to_have_url(re.compile(r"/\?period=7d"))


@pytest.mark.slow
def test_a_link_in_a_text_opens_in_the_same_tab_without_loading_anew(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(f"{link}&period=all".replace("/?", "/stragglers?"))
    expect(page.locator("h1")).to_be_visible()
    stayed = page.evaluate("window.stayed = 1")
    page.get_by_test_id("stMain").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(r"/(job|node)\?(.*&)?(job|node)="))
    expect(page.locator("h1")).to_contain_text(re.compile(r"^(Job|Node|gpu)", re.IGNORECASE))
    assert page.evaluate("window.stayed") == stayed
    assert len(browser.pages) == 1
    page.go_back()
    expect(page).to_have_url(re.compile(r"/stragglers\?period=all"))


@pytest.mark.slow
def test_dragging_along_time_sets_the_period_and_back_undoes_it(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/failures?"))
    plot = page.locator(".js-plotly-plot .nsewdrag").first
    expect(plot).to_be_visible()
    whole = page.locator("h1").inner_text()
    place = plot.bounding_box()
    assert place is not None
    left, middle = place["x"], place["y"] + place["height"] / 2
    page.mouse.move(left + 0.5 * place["width"], middle)
    page.mouse.down()
    page.mouse.move(left + 0.8 * place["width"], middle, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile("period=custom&from=.*&to="))
    expect(page.locator("h1")).not_to_have_text(whole)
    page.go_back()
    expect(page.locator("h1")).to_have_text(whole)
    assert "period" not in page.url


@pytest.mark.slow
def test_the_same_row_opens_again_after_back(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/failures?failures_tab=Attempts&"))
    for _ in range(2):
        grid = page.get_by_test_id("stDataFrame").locator("canvas").first
        grid.scroll_into_view_if_needed()
        grid.click(position={"x": 15, "y": 50}, force=True)
        page.wait_for_url(re.compile(r"/job\?.*job=\d+"))
        expect(page.locator("h1")).to_contain_text(re.compile(r"Job \d+"))
        page.go_back()
        expect(page.locator("h1")).to_contain_text("infrastructure failure")
        expect(page.get_by_role("tab", name="Attempts")).to_have_attribute("aria-selected", "true")
