"""The first screen of every page is short: words, length of the title and requests, counted.

`pytest -s` prints the table.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from app.words.menu import FIRST, TITLES
from data.store import Store
from tests.journeys.test_access import settled

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]

SCREEN = {"width": 1440, "height": 900}
MOST_WORDS, MOST_TITLE_WORDS, MOST_REQUESTS = 150, 14, 150
"""Words of the first screen, menu and filters with them, and of its title; requests of a page that
a browser with a full cache opens."""
WORDS = (Path(__file__).parent / "words.js").read_text()
ONE = {
    "incident": "SELECT incident_id FROM incidents ORDER BY n_gpus DESC, 1 LIMIT 1",
    "job": "SELECT job_id FROM jobs WHERE state = 'FAILED' ORDER BY n_gpus DESC, 1 LIMIT 1",
    "node": "SELECT node FROM failures WHERE node IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1",
    "user": 'SELECT "user" FROM jobs GROUP BY 1 ORDER BY count(*) DESC, 1',
}
TABS = [
    ("lemons", "lemons_tab=Repairs"), ("lemons", "lemons_tab=Validation"),
    ("planner", "planner_tab=One+job"), ("diagnose", "diagnose_tab=Links"),
    ("incident", "incident=?"), ("job", "job=?"), ("node", "node=?"), ("my_runs", "user=?"),
]  # fmt: skip


def addresses(store: Path) -> list[str]:
    """Every page, its tabs, and pages about one thing."""
    with closing(Store.open(store)) as opened:
        named = {name: str(opened.rows(sql)[0][0]) for name, sql in ONE.items()}
    pages = ["" if name == FIRST else name for name in TITLES]
    return [
        *(f"{page}?period=all" for page in pages),
        *(f"{page}?period=all&{ask.replace('?', named.get(ask[:-2], ''))}" for page, ask in TABS),
    ]


def test_the_first_screen_of_every_page_is_short(
    browser: BrowserContext, link: str, demo_store: Path
) -> None:
    page = browser.new_page()
    page.set_viewport_size(SCREEN)  # type: ignore[arg-type]
    page.goto(link)
    settled(page)
    rows, base = [], link.partition("?")[0]
    for address in addresses(demo_store):
        requests: list[str] = []
        page.on("request", lambda request, requests=requests: requests.append(request.url))
        page.goto(f"{base}{address}")
        settled(page)
        expect(page.locator("h1")).to_be_visible()
        title = page.locator("h1").inner_text()
        rows.append((address, len(page.evaluate(WORDS)), len(title.split()), len(requests), title))
    print("\n| page | words | of the title | requests | title |\n|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    assert not [row for row in rows if row[1] > MOST_WORDS]
    assert not [row for row in rows if row[2] > MOST_TITLE_WORDS]
    assert not [row for row in rows if row[3] > MOST_REQUESTS]
