"""From the printed link to MTTF and back by a copied link, in a real Chromium."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from app.actions import Options, ingest_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.browser

SACCT = """\
JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
"""


def _numbers(page: Page) -> list[str]:
    """The first sentence and every headline number with its interval, once they stay."""
    page.wait_for_selector(".js-plotly-plot .main-svg")
    before: list[str] = []
    while before != (shown := _read(page)):
        before = shown
        page.wait_for_timeout(700)
    return shown


def _read(page: Page) -> list[str]:
    """The same as they stand now."""
    expect(page.get_by_test_id("stStatusWidget")).to_have_count(0)
    found = ("h1", '[data-testid="stMetricValue"]', '[class*="st-key-rows_"] button')
    texts = [text for css in found for text in page.locator(css).all_inner_texts()]
    return ["".join(text.split()) for text in texts]


@pytest.mark.slow
def test_a_copied_link_restores_the_view(link: str, browser: BrowserContext) -> None:
    requests: list[str] = []
    browser.on("request", lambda request: requests.append(request.url))
    page = browser.new_page()
    page.goto(link)
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days")
    expect(page.get_by_text("synthetic data").first).to_be_visible()
    before = page.locator("h1").inner_text()

    page.get_by_test_id("stSidebar").get_by_role("radio", name="7d", exact=True).click()
    expect(page.locator("h1")).not_to_have_text(before)
    assert "period=7d" in page.url

    page.get_by_role("link", name="MTTF", exact=True).click()
    expect(page.locator("h1")).to_contain_text("A job of")
    shown = _numbers(page)
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "token" not in copied
    assert "period=7d" in copied

    other = browser.new_page()
    other.goto(copied)
    expect(other.locator("h1")).to_have_text(page.locator("h1").inner_text())
    assert _numbers(other) == shown
    own = link.split("?")[0]
    assert [url for url in requests if not url.startswith((own, "data:", "blob:"))] == []


@pytest.mark.slow
def test_a_figure_leaves_as_svg_png_and_csv(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", "/mttf?"))
    page.wait_for_selector(".js-plotly-plot .main-svg")
    begin = {"SVG": b"<svg ", "PNG": b"\x89PNG", "CSV": b"series,gpus_from"}
    for kind, first_bytes in begin.items():
        if page.get_by_test_id("stPopoverBody").count() == 0:
            page.get_by_role("button", name="Download").first.click()
        with page.expect_download() as download:
            page.get_by_test_id("stPopoverBody").get_by_role("button", name=kind).click()
        assert re.fullmatch(
            rf"faultline-demo-synthetic-[\d-]+-to-[\d-]+-mttf_by_size\.{kind.lower()}",
            download.value.suggested_filename,
        )
        assert download.value.path().read_bytes().startswith(first_bytes)


@pytest.mark.slow
def test_an_open_page_follows_a_new_snapshot_and_theme(
    serve: Callable[[Path], str], browser: BrowserContext, tmp_path: Path
) -> None:
    export = tmp_path / "sacct.txt"
    export.write_text(SACCT)
    page = browser.new_page()
    page.goto(f"{serve(tmp_path / 'store')}&by_week=true")
    expect(page.locator("h1")).to_have_text("This store holds no data yet")
    ingest_files(tmp_path / "store", "sacct", [str(export)], Options())
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days")

    paper = page.locator(".js-plotly-plot .main-svg").first
    expect(paper).to_have_css("background-color", "rgb(255, 255, 255)")
    page.get_by_test_id("stMainMenu").click()
    page.get_by_test_id("stMainMenuPopover").get_by_text("Dark").last.click()
    expect(paper).to_have_css("background-color", "rgb(17, 22, 29)")
