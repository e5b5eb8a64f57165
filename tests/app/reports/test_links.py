"""Reports lead back to the dashboard where its address is configured, and nowhere without one."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import UTC, datetime
from html import unescape
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import pandas as pd
import pytest
from pypdf import PdfReader

from app.answers.content import Chart, Table
from app.show import html, pdf
from app.words.addresses import Dashboard
from app.words.cells import Column
from app.words.periods import Period

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.reports.report import Report

BASE = "https://faultline.example.org/ops/"
WEEK = Period(datetime(2025, 12, 7, 23, tzinfo=UTC), datetime(2025, 12, 14, 23, tzinfo=UTC))
THERE = Dashboard(BASE, WEEK, {"cluster": "demo"}, {"demo": "Europe/Berlin", "far": "Asia/Tokyo"})


def _of_html(page: str) -> list[str]:
    return [unescape(found) for found in re.findall(r'href="(http[^"]*)"', page)]


def _of_pdf(content: bytes) -> list[str]:
    pages = PdfReader(io.BytesIO(content)).pages
    actions = [
        each.get_object().get("/A", {}) for page in pages for each in page.get("/Annots", [])
    ]
    return [str(action["/URI"]) for action in actions if "/URI" in action]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["incident", "fleet", "node"])
def test_charts_and_rows_lead_to_their_pages_in_the_period(
    reports: dict[str, Report], written: Callable[[str, str], bytes], kind: str
) -> None:
    assert _of_html(written(kind, "html").decode()) == _of_pdf(written(kind, "pdf")) == []
    report = replace(reports[kind], dashboard=THERE)
    page = html.render(report)
    found, on_paper = _of_html(page), _of_pdf(pdf.render(report))
    assert set(found) == set(on_paper)
    for address in found:
        assert address.startswith(BASE)
        named = parse_qs(urlsplit(address).query)
        assert named["period"] == ["custom"]
        assert (named["from"], named["to"]) == (["2025-12-08T00:00"], ["2025-12-15T00:00"])
    charts = sum(isinstance(block, Chart) for part in report.sections for block in part.blocks)
    assert page.count('<a class="chart"') == charts > 0
    printed = {
        column.link: {row[place] for row in table.values} - {None}
        for table in report.tables
        for place, column in enumerate(table.columns)
        if column.link in ("job", "node") and column in table.visible
    }
    assert printed
    for link, names in printed.items():
        led = {parse_qs(urlsplit(each).query).get(str(link), [""])[0] for each in found}
        assert {str(name) for name in names} <= led


def test_a_link_is_told_in_the_zone_of_the_page_that_it_opens() -> None:
    table = Table(
        "t",
        "A table",
        (Column("node", "Node", link="node"), Column("cluster", "Cluster")),
        pd.DataFrame({"node": ["n1", None, "\u5185 1"], "cluster": ["far", "far", None]}),
    )
    (far, _), (unnamed, _), (strange, _) = table.linked(THERE)
    assert "from=2025-12-08T08%3A00" in far
    assert "cluster=far" in far
    assert unnamed == ""
    assert "node=%E5%86%85+1" in strange
    assert [*table.linked(None)[0]] == ["", ""]
