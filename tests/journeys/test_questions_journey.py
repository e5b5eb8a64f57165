"""What people come for, and the clicks that it takes from Overview, on the default demo in Chromium.

`pytest -s -m slow tests/journeys/test_questions_journey.py` prints the clicks of each.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from tests.journeys.test_access import settled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COUNT = """addEventListener("pointerdown", () =>
  sessionStorage.setItem("clicks", Number(sessionStorage.getItem("clicks") || 0) + 1), true);"""


def faultline(*said: str) -> Any:
    """What a command prints as JSON."""
    command = [sys.executable, "-m", "app.cli", *said, "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo as `make run` makes it, with its ledger."""
    root = tmp_path_factory.mktemp("clicks") / "store"
    faultline("demo", "--store", str(root))
    faultline("ledger", "--store", str(root))
    return root


@pytest.fixture(scope="module")
def home(store: Path, serve: Callable[[Path], str]) -> str:
    """The printed address of the dashboard of that store."""
    return serve(store)


@pytest.fixture
def page(home: str, browser: BrowserContext, request: pytest.FixtureRequest) -> Iterator[Page]:
    """Overview, read to its end; the clicks are counted from here, and printed."""
    found = browser.new_page()
    found.add_init_script(COUNT)
    found.goto(home)
    expect(found.get_by_text("Do this now", exact=True)).to_be_visible()
    expect(found.locator('[class*="st-key-action_"]').first).to_be_visible()
    settled(found)  # what moves while it is clicked is clicked twice
    yield found
    print(f"\n{request.node.name}: {clicks(found)} clicks")


def clicks(page: Page) -> int:
    """Presses of the mouse since Overview was opened."""
    return int(page.evaluate("sessionStorage.getItem('clicks') || 0"))


def test_why_a_job_died(page: Page, store: Path) -> None:
    died = faultline("failures", "--store", str(store), "--list", "--limit", "1")[0]
    page.keyboard.press("/")
    box = page.get_by_role("textbox", name="Find")
    expect(box).to_be_focused()
    page.keyboard.type(str(died["job_id"]))
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_contain_text(f"Job {died['job_id']}")
    assert clicks(page) == 0


def test_which_nodes_to_drain(page: Page, store: Path) -> None:
    lemons = [
        row["node"]
        for row in faultline("lemons", "--store", str(store))
        if row["verdict"] == "lemon"
    ]
    assert lemons
    for node in lemons:
        row = page.locator('[class*="st-key-action_"]').filter(has_text=node)
        expect(row.get_by_text(re.compile(r"^[\d,.]+$"))).to_be_visible()
    assert clicks(page) == 0


def test_the_cost_of_this_month_and_its_first_cause(page: Page, store: Path) -> None:
    lost = page.get_by_test_id("stMetric").filter(has_text="Lost: failures, GPU-h")
    expect(lost).to_be_visible()
    expect(page.get_by_text(re.compile(r"^costliest: \w+")).first).to_be_visible()
    assert clicks(page) == 0


def test_the_report_of_last_week(page: Page) -> None:
    page.get_by_role("link", name="Reports", exact=True).click()
    page.get_by_role("radio", name="Monday", exact=True).click()
    card = page.frame_locator("iframe")
    expect(card.get_by_role("heading", name="Do this now")).to_be_visible()
    expect(card.locator("header .muted")).to_have_text(re.compile(r"Week \d+, "))
    assert clicks(page) == 2


def test_the_checkpoint_interval_of_the_usual_large_job(page: Page) -> None:
    page.get_by_test_id("stMain").get_by_role(
        "link", name=re.compile("^Checkpoint .* GPUs every")
    ).click()
    page.wait_for_url(re.compile("planner"))
    best = page.get_by_test_id("stMetric").filter(has_text=re.compile("Best checkpoint interval"))
    expect(best.get_by_test_id("stMetricValue")).to_have_text(re.compile(r"[\d.]+ min"))
    expect(page.get_by_text(re.compile(r"^[\d.]+ to [\d.]+ min$")).first).to_be_visible()
    assert clicks(page) == 1


def test_the_bad_worker(page: Page) -> None:
    page.get_by_test_id("stMain").get_by_role(
        "link", name=re.compile("^Fix .* of job")
    ).first.click()
    expect(page.locator("h1")).to_contain_text(re.compile("slows? the run"))
    assert clicks(page) == 1


def test_an_incident_is_acknowledged_and_assigned(
    home: str, browser: BrowserContext, store: Path
) -> None:
    largest = faultline("incidents", "--store", str(store), "--first", "largest", "--limit", "1")[0]
    page = browser.new_page()
    page.add_init_script(COUNT)
    page.goto(f"{home}&incident={largest['incident_id']}".replace("/?", "/incident?"))
    page.get_by_role("button", name="Acknowledge", exact=True).click()
    expect(page.get_by_text(re.compile("Acknowledged by"))).to_be_visible()
    page.get_by_role("button", name="Assign", exact=True).click()
    page.get_by_label("Who works on it").fill("ana")
    page.get_by_label("Who works on it").press("Enter")
    expect(page.get_by_text(re.compile("Assigned to ana"))).to_be_visible()
    assert clicks(page) == 2


def test_a_shared_link_asks_for_the_token_and_opens_its_page(
    home: str, browser: BrowserContext
) -> None:
    shared, _, token = home.partition("?token=")
    recipient = browser.browser.new_context() if browser.browser else browser
    page = recipient.new_page()
    page.add_init_script(COUNT)
    page.goto(f"{shared}mttf?period=7d")
    page.get_by_role("textbox").fill(token)
    page.get_by_role("button").click()
    expect(page.locator("h1")).to_contain_text("between failures")
    page.wait_for_url(re.compile(r"/mttf\?period=7d"))
    assert clicks(page) == 1


@pytest.mark.parametrize(
    ("column", "saved", "most"), [("state", True, 0), ("partition", False, 1)], ids=["saved", "new"]
)
def test_a_query_becomes_a_chart_that_its_recipient_sees(
    page: Page, browser: BrowserContext, *, column: str, saved: bool, most: int
) -> None:
    page.get_by_role("link", name="SQL", exact=True).click()
    page.get_by_label("SQL query").fill(f"SELECT {column}, count(*) AS n FROM jobs GROUP BY ALL")
    page.get_by_label("SQL query").press("Control+Enter")
    expect(page.get_by_text(re.compile(r"^\d+ rows in "))).to_be_visible()
    if saved:
        page.get_by_role("tab", name="Saved").click()
        page.get_by_label("Name", exact=True).fill("By state")
        page.get_by_role("button", name="Save the query").click()
        expect(page.get_by_role("button", name="By state")).to_be_visible()
    page.get_by_role("tab", name="Chart").click()
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    page.get_by_role("button", name="Copy link").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    recipient = browser.new_page()
    recipient.add_init_script(COUNT)
    recipient.goto(page.evaluate("navigator.clipboard.readText()"))
    if not saved:
        expect(recipient.get_by_text("This query came with the link")).to_be_visible()
        recipient.get_by_role("button", name="Run", exact=True).click()
    expect(recipient.locator(".js-plotly-plot")).to_be_visible()
    assert clicks(recipient) == most


def test_back_through_five_pages_with_the_filters(page: Page) -> None:
    whole = page.locator("h1").inner_text()
    page.get_by_test_id("stSidebar").get_by_role("radio", name="7d", exact=True).click()
    expect(page.locator("h1")).not_to_have_text(whole)
    page.wait_for_url(re.compile("period=7d"))
    seen = [(page.url, page.locator("h1").inner_text())]
    for name in ("Failures", "Incidents", "MTTF", "ETTR", "Ledger"):
        page.get_by_role("link", name=name, exact=True).first.click()
        expect(page.locator("h1")).not_to_have_text(seen[-1][1])
        page.wait_for_url(re.compile(rf"/{name.lower()}\?period=7d"))
        seen.append((page.url, page.locator("h1").inner_text()))
    for address, sentence in reversed(seen[:-1]):
        page.go_back()
        expect(page.locator("h1")).to_have_text(sentence)
        page.wait_for_url(address)
        expect(page.get_by_role("radio", name="7d", exact=True)).to_be_checked()
