"""Make a report, look at it, take it away, and open it where there is no network."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import openpyxl
import pytest
from playwright.sync_api import expect
from pypdf import PdfReader

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Download, Page

pytestmark = pytest.mark.browser


@pytest.fixture
def page(link: str, browser: BrowserContext) -> Page:
    """The dashboard's page of reports."""
    opened = browser.new_page()
    opened.goto(link)
    opened.get_by_role("link", name="Reports", exact=True).click()
    return opened


def _taken(page: Page, form: str) -> Download:
    page.wait_for_timeout(500)  # what was clicked before may be about to run the page again
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning")
    with page.expect_download() as download:
        page.get_by_role("button", name=form, exact=True).click()
    return download.value


@pytest.mark.slow
def test_last_weeks_report_is_two_clicks_from_overview(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(link)
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days")
    page.get_by_role("link", name="Reports", exact=True).click()
    page.get_by_role("radio", name="Monday", exact=True).click()
    card = page.frame_locator("iframe")
    expect(card.locator("h1")).to_have_text("Monday card")
    week = re.compile(r"Week \d+, .* 20\d\d \(UTC\)")
    expect(card.locator("header .muted")).to_have_text(week)
    expect(card.get_by_role("heading", name="Do this now")).to_be_visible()
    assert re.fullmatch(
        r"faultline-demo-synthetic-20\d\d-W\d\d-monday\.pdf", _taken(page, "PDF").suggested_filename
    )


@pytest.mark.slow
def test_a_report_is_made_looked_at_and_taken_away(page: Page) -> None:
    preview = page.frame_locator("iframe")
    expect(preview.locator("h1")).to_have_text("Fleet reliability")
    answer = preview.locator(".answer").inner_text()
    page.get_by_test_id("stSidebar").get_by_role("radio", name="7d", exact=True).click()
    expect(preview.locator(".answer")).not_to_have_text(answer)
    answer = preview.locator(".answer").inner_text()
    values = preview.locator(".numbers .value").all_inner_texts()

    pdf = _taken(page, "PDF")
    assert re.fullmatch(
        r"faultline-demo-synthetic-[\d-]+-to-[\d-]+-fleet\.pdf", pdf.suggested_filename
    )
    text = "".join(found.extract_text() for found in PdfReader(pdf.path()).pages)
    flat = re.sub(r"\s+", " ", text)
    assert answer in flat
    assert values
    assert all(value in flat for value in values)

    book = openpyxl.load_workbook(io.BytesIO(_taken(page, "XLSX").path().read_bytes()))
    assert "causes" in book.sheetnames

    away = page.context.browser.new_context(offline=True).new_page()
    asked: list[str] = []
    away.on("request", lambda request: asked.append(request.url))
    saved = _taken(page, "HTML").path().rename(pdf.path().with_suffix(".html"))
    away.goto(saved.as_uri())
    assert away.locator(".answer").inner_text() == answer
    assert asked == [saved.as_uri()]


@pytest.mark.slow
def test_a_report_of_one_account_goes_without_its_name(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(f"{link.replace('/?', '/reports?')}&account=alignment")
    preview = page.frame_locator("iframe").locator("body")
    expect(preview).to_contain_text("account alignment")
    page.get_by_text("Redact names").click()
    expect(page).to_have_url(re.compile("redact=true"))
    expect(preview).not_to_contain_text("alignment")
    document = _taken(page, "Markdown").path().read_text()
    assert re.search(r"\baccount-[a-z2-7]{10}\b", document)
    assert "alignment" not in document
