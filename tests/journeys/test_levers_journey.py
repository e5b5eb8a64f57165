"""Four sliders move together without a word to the server, in a real Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_sliders_show_the_row_of_the_table_and_ask_nothing(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    sent: list[object] = []

    def heard(frame: object) -> None:
        sent.append(frame)

    page.on("websocket", lambda socket: socket.on("framesent", heard))
    page.goto(link.replace("/?", "/planner?period=all&planner_tab=Levers&"))
    expect(page.locator("h1")).to_contain_text("Draining 3 nodes takes the MTTF")
    mttf, ettr = page.locator('[data-of="mttf"] strong'), page.locator('[data-of="ettr"] strong')
    expect(mttf).not_to_be_empty()
    before, was = mttf.inner_text(), ettr.inner_text()
    assert before in page.locator("h1").inner_text()
    page.wait_for_timeout(1000)  # the page is still
    assert sent
    sent.clear()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))

    drained = page.get_by_role("slider", name="Nodes drained")
    drained.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    assert mttf.inner_text() in page.locator("h1").inner_text()
    assert mttf.inner_text() != before
    expect(page.locator('[data-of="capacity"] strong')).not_to_be_empty()
    page.get_by_role("slider", name="Checkpoint interval").focus()
    page.keyboard.press("ArrowLeft")
    expect(page.get_by_role("slider", name="Checkpoint interval")).to_have_attribute(
        "aria-valuetext", "45 min"
    )
    assert ettr.inner_text() != was
    page.wait_for_timeout(500)
    assert (sent, asked) == ([], [])
