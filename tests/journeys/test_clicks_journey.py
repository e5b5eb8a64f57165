"""A click anywhere on a mark or row opens what it stands for; an empty store; a link to a chart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

pytestmark = pytest.mark.browser

PLACES = """chart => {
  const area = chart.querySelector(".nsewdrag").getBoundingClientRect();
  const { xaxis, yaxis } = chart._fullLayout;
  const place = chart._fullData.findIndex((trace) => trace.mode?.includes("markers"));
  return chart.calcdata[place].map((mark) =>
    [area.left + xaxis.c2p(mark.x), area.top + yaxis.c2p(mark.y)]);
}"""
"""Where the marks of a chart lie on the page."""
CELL = """chart => {
  const bar = chart.querySelector(".barlayer .point path").getBoundingClientRect();
  return [bar.left + bar.width / 2, bar.top + bar.height / 2];
}"""
QUERY = "SELECT state, count(*) AS n FROM jobs GROUP BY ALL ORDER BY n DESC"


def _click(page: Page, place: list[float]) -> None:
    """Clicks where a mark lies, once the chart says that one is there."""
    page.mouse.move(*place)
    expect(page.locator(".hoverlayer .hovertext").first).to_be_visible()
    page.mouse.click(*place)


@pytest.mark.slow
def test_a_mark_of_a_chart_along_time_and_a_cell_of_a_heat_map_open(
    link: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    page.goto(f"{link}&period=all&by_week=true")
    chart = page.locator(".js-plotly-plot").first
    expect(chart.locator(".points path").first).to_be_attached()
    chart.scroll_into_view_if_needed()
    _click(page, chart.evaluate(PLACES)[0])
    expect(page.get_by_role("dialog")).to_contain_text("per 1,000 node-days")
    page.goto(f"{link}&period=all".replace("/?", "/lemons?"))
    chart = page.locator(".js-plotly-plot").first
    expect(chart.locator(".barlayer .point").first).to_be_attached()
    chart.scroll_into_view_if_needed()
    _click(page, chart.evaluate(CELL))
    page.wait_for_url(re.compile(r"/node\?.*node=gpu"))


@pytest.mark.slow
def test_the_same_cell_opens_as_often_as_it_is_clicked(link: str, browser: BrowserContext) -> None:
    page = browser.new_page()
    page.goto(f"{link}&period=all".replace("/?", "/mttf?"))
    for _ in range(2):
        app = page.get_by_test_id("stApp")
        expect(app).to_have_attribute("data-test-script-state", "notRunning")
        grid = page.get_by_test_id("stDataFrame").locator("canvas").first
        grid.scroll_into_view_if_needed()
        grid.hover(position={"x": 200, "y": 50}, force=True)  # a hand moves before it presses,
        page.wait_for_timeout(200)  # and a table takes a click only once it saw the pointer come
        grid.click(position={"x": 200, "y": 50}, force=True)
        expect(page.get_by_role("dialog")).to_contain_text("Attempts behind the number")
        page.get_by_role("dialog").get_by_label("Close").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.wait_for_timeout(7_000)  # an open page asks for what is new: that opens nothing again
        expect(page.get_by_role("dialog")).to_have_count(0)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["my_runs?user=foun01", "lemons?"])
def test_a_click_on_the_head_of_a_column_sorts_and_opens_nothing(
    link: str, browser: BrowserContext, view: str
) -> None:
    page = browser.new_page()
    page.goto(link.replace("/?", f"/{view}&"))
    grid = page.get_by_test_id("data-grid-canvas").first
    expect(grid).to_be_visible()
    grid.scroll_into_view_if_needed()
    middle = (grid.bounding_box() or {})["width"] / 2
    address = page.url
    for right, arrow in ((20, "↑"), (20, "↓"), (middle, "↑")):
        grid.click(position={"x": right, "y": 18}, force=True)
        expect(grid.locator("th", has_text=arrow)).to_have_count(1)
        page.wait_for_timeout(1_000)  # a pick is told after a moment
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert page.url == address
    grid.click(position={"x": 30, "y": 60}, force=True)
    if view.startswith("lemons"):
        page.wait_for_url(re.compile(r"/node\?"))
    else:
        expect(page.get_by_role("dialog")).to_be_visible()


@pytest.mark.slow
def test_a_link_to_a_chart_of_a_query_draws_it_for_who_runs_it_first(
    link: str, browser: BrowserContext
) -> None:
    assert browser.browser is not None
    address = f"{link}&sql={quote(QUERY)}&sql_tab=Chart".replace("/?", "/sql?")
    recipient = browser.browser.new_context()
    try:
        page = recipient.new_page()
        page.goto(address)
        page.get_by_role("button", name="Run", exact=True).click()
        expect(page.locator(".js-plotly-plot .gtitle")).to_contain_text(
            "n by state", timeout=60_000
        )
        expect(page.get_by_label("SQL query")).to_have_value(QUERY)
    finally:
        recipient.close()


@pytest.mark.slow
def test_an_empty_store_loads_the_demo_by_keyboard_and_removes_it(
    serve: Callable[[Path], str], tmp_path: Path, browser: BrowserContext
) -> None:
    address = serve(tmp_path / "store")
    page = browser.new_page()
    page.goto(address.replace("/?", "/mttf?"))
    page.get_by_role("link", name="Upload a file or load the demo").click()
    load = page.get_by_role("button", name="Load the demo")
    expect(load).to_be_visible()
    load.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Building the synthetic cluster").first).to_be_visible()
    expect(page.locator("h1")).to_contain_text("per 1,000 node-days", timeout=300_000)
    expect(page.get_by_test_id("stMain").get_by_text("synthetic data").first).to_be_visible()
    page.goto(address.replace("/?", "/data?data_tab=Add+data&"))
    page.get_by_role("button", name="Remove the demo").click()
    page.get_by_role("button", name="Remove it").click()
    expect(page.locator("h1")).to_have_text("This store holds no data yet")
