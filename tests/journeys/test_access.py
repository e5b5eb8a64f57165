"""Every page on a phone, by keyboard alone, and as assistive technology finds it, in a real Chromium."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from app.words.menu import FIRST, TITLES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.browser

PAGES = ["" if name == FIRST else name for name in TITLES]
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 800}
RULES = {"resultTypes": ["violations"], "rules": {"target-size": {"enabled": True}}}
ALLOWED: dict[str, str] = {}
"""Rule of axe -> why it cannot be kept. Nothing of the kind is left."""
QUIET = """() => {
    const app = document.querySelector("[data-testid=stApp]");
    const plots = [...document.querySelectorAll(".js-plotly-plot")];
    const styled = getComputedStyle(document.querySelector("[data-testid=stMainBlockContainer]"));
    const busy = !styled.paddingTop.startsWith("41") || app.dataset.testScriptState !== "notRunning" ||
        document.querySelector("[data-stale=true], [data-testid=stSkeleton]") ||
        plots.some((plot) => !plot._fullLayout?._size);
    window.quietSince = busy ? undefined : window.quietSince ?? performance.now();
    return performance.now() - window.quietSince > 800;
}"""
SLOWEST = """() => Math.max(...[...document.querySelectorAll("[data-testid=stApp] *")].flatMap((each) =>
    getComputedStyle(each).transitionDuration.split(",").map(parseFloat)))"""
"""Seconds that the slowest change of what is drawn takes, of a reader who asked for no motion."""
LAYOUT = (Path(__file__).parent / "layout.js").read_text()
FOCUS = (Path(__file__).parent / "focus.js").read_text()


def opened(browser: BrowserContext, address: str, size: dict[str, int], theme: str) -> Page:
    """A page that has drawn all it draws, without the fading of what is drawn anew."""
    page = browser.new_page()
    page.set_viewport_size(size)  # type: ignore[arg-type]
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
    page.goto(address)
    settled(page)
    return page


def settled(page: Page) -> None:
    """Waits until nothing has run and nothing was left to be drawn for a moment from now on."""
    expect(page.locator("h1")).to_be_visible()
    page.evaluate("window.quietSince = undefined")
    page.wait_for_function(QUIET)


def violations(page: Page) -> list[tuple[str, str, str]]:
    """Serious and critical ones: rule, element, what is wrong."""
    found: dict[str, Any] = Axe().run(page, options=RULES).response
    return [
        (rule["id"], str(node["target"]), node["failureSummary"])
        for rule in found["violations"]
        if rule["impact"] in ("serious", "critical") and rule["id"] not in ALLOWED
        for node in rule["nodes"]
    ]


def usable(page: Page) -> None:
    """No error, nothing sideways, no number cut, charts that are charts, controls for a thumb."""
    assert page.get_by_test_id("stException").count() == 0
    found = page.evaluate(LAYOUT)
    assert found["sideways"] <= PHONE["width"]
    assert found["outside"] == []
    assert found["cut"] == []
    assert found["narrow"] == []
    assert found["small"] == []
    if found["n_numbers"] > 1:
        assert found["n_columns"] == 2


@pytest.mark.parametrize(("name", "theme"), [("mttf", "light")])
def test_a_page_is_usable_on_a_phone_and_to_assistive_technology(
    link: str, browser: BrowserContext, name: str, theme: str
) -> None:
    page = opened(browser, link.replace("/?", f"/{name}?"), PHONE, theme)
    assert page.locator(".js-plotly-plot").count() > 0
    assert page.evaluate(SLOWEST) < 0.001
    usable(page)
    assert violations(page) == []


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_usable_on_a_phone_and_to_assistive_technology(
    link: str, browser: BrowserContext, name: str, theme: str
) -> None:
    page = opened(browser, link.replace("/?", f"/{name}?"), PHONE, theme)
    for _ in of_each_tab(page):
        usable(page)
        assert violations(page) == []
    assert violations(opened(browser, link.replace("/?", f"/{name}?"), DESK, theme)) == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["incident", "node", "stragglers"])
def test_a_page_about_one_thing_is_too(link: str, browser: BrowserContext, kind: str) -> None:
    page = opened(browser, link, PHONE, "light")
    page.goto(page.locator(f"main a[href*='{kind}?']").first.evaluate("link => link.href"))
    settled(page)
    for _ in of_each_tab(page):
        usable(page)
        assert violations(page) == []


def of_each_tab(page: Page) -> Iterator[None]:
    """The page with each of its tabs open in turn."""
    tabs = page.get_by_test_id("stMain").get_by_role("tab")
    yield
    for place in range(1, tabs.count()):
        tabs.nth(place).click()
        settled(page)
        yield


@pytest.mark.slow
def test_the_keyboard_reaches_every_control_and_shows_where_it_is(
    link: str, browser: BrowserContext
) -> None:
    page = opened(browser, link.replace("/?", "/ettr?"), DESK, "light")
    page.evaluate(FOCUS)
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to main content")
    expect(skip).to_be_focused()
    assert (skip.bounding_box() or {})["width"] > 24
    for _ in range(200):
        if page.evaluate("window.focusTest.step()"):
            break
        page.keyboard.press("Tab")
    assert page.evaluate("window.focusTest.unreached()") == []
    assert page.evaluate("window.focusTest.unseen()") == []
    skip.focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('[data-testid=stMain]') !== null")
    page.get_by_role("button", name="Fullscreen").first.focus()
    page.keyboard.press("Tab")
    expect(page.get_by_test_id("data-grid-canvas").first).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("Runs of this size")
