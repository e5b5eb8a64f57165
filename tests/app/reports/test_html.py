"""One page that opens offline: nothing to fetch, nothing to run, every text as it was recorded."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import sync_playwright

from app.reports import kinds
from app.show import html, markdown
from data.filters import Selection
from tests.journeys.chromium import find_chromium

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from app.reports.report import Report
    from data.store import Store

VOID = {"meta", "br", "img", "link", "input", "hr", "circle", "line", "rect", "path", "use"}


class _Page(HTMLParser):
    """Tags, ids and what is asked for."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []
        self.asked: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            if name in ("src", "href", "xlink:href", "srcset", "data") and not (
                value or ""
            ).startswith("#"):
                self.asked.append(value or "")
            assert not name.startswith("on")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds.kinds())
def test_it_has_no_script_and_nothing_to_fetch(
    written: Callable[[str, str], bytes], kind: str
) -> None:
    text = written(kind, "html").decode()
    page = _Page(text)
    assert not {"script", "link", "img", "iframe", "object", "embed", "base"} & set(page.tags)
    assert page.asked == []
    assert not re.search(r"url\((?!#)|@import", text)
    assert "default-src 'none'" in text


@pytest.mark.parametrize("kind", kinds.kinds())
def test_its_tags_are_closed_and_its_names_differ(
    written: Callable[[str, str], bytes], kind: str
) -> None:
    page = _Page(written(kind, "html").decode())
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    assert page.tags.count("h1") == 1


@pytest.mark.slow
@pytest.mark.browser
def test_it_opens_in_chromium_without_one_request(
    reports: dict[str, Report], written: Callable[[str, str], bytes], tmp_path: Path
) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        context = browser.new_context(offline=True)
        for kind, report in reports.items():
            path = tmp_path / f"{kind}.html"
            path.write_bytes(written(kind, "html"))
            page = context.new_page()
            asked: list[str] = []
            said: list[str] = []
            page.on("request", lambda request, asked=asked: asked.append(request.url))
            page.on("console", lambda message, said=said: said.append(message.text))
            page.goto(path.as_uri())
            page.wait_for_load_state("networkidle")
            assert asked == [path.as_uri()]
            assert said == []
            assert page.locator("h1").inner_text() == report.title
            text = page.locator("body").inner_text()
            assert all(headline.value in text for headline in report.headlines)
            for chart in page.locator("svg").all():
                box = chart.bounding_box()
                assert box is not None
                assert box["width"] > 300
                assert box["height"] > 50
            wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert wide <= 0
        browser.close()


@pytest.mark.parametrize("kind", ["node", "fleet", "incident"])
def test_records_are_texts_and_never_markup(awkward: Store, kind: str) -> None:
    about = {"fleet": "", "incident": "latest", "node": "n2"}
    report = kinds.report(awkward, kind, Selection(), about=about[kind])
    page = html.render(report)
    assert "<b>smoke" not in page
    assert "<script" not in page
    document = markdown.render(report)
    assert not re.search(r"(?<!\\)<", document)
    if kind != "fleet":
        assert "&lt;b&gt;smoke" in page
        assert r"\<b\>smoke" in document


def test_markdown_has_a_heading_only_where_there_is_something_to_read(
    reports: dict[str, Report],
) -> None:
    for report in reports.values():
        text = markdown.render(report)
        assert not re.search(r"^#+ .*\n+(## |\Z)", text, re.MULTILINE)
        for headline in report.headlines:
            assert markdown.escaped(headline.value) in text
        assert report.content_sha256 in text


def test_markdown_tables_have_as_many_cells_as_headers(reports: dict[str, Report]) -> None:
    for report in reports.values():
        counts: list[int] = []
        for line in markdown.render(report).splitlines():
            if not line.startswith("|"):
                counts = []
                continue
            counts.append(len(re.findall(r"(?<!\\)\|", line)))
            assert len(set(counts)) == 1, line
