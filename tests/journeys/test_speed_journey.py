"""How long pages take beyond an empty page of Streamlit, and how soon a first page can be read.

`pytest -s -m benchmark tests/journeys/test_speed_journey.py` prints both, on the default demo.
"""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from app.words.menu import FIRST, TITLES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext, Page

pytestmark = [pytest.mark.browser, pytest.mark.benchmark]

ROUNDS = 3
EMPTY = """
import sys
from pathlib import Path
from app.server import serve
serve(Path(sys.argv[1]), script=Path(sys.argv[2]), port=0, auth=False)
"""
DONE = """() => {
  const drawn = document.querySelector('[data-testid="stMain"] h1')?.innerText;
  const rests = document.querySelector('[data-test-script-state="notRunning"]');
  return drawn && rests ? performance.now() / 1000 : 0;
}"""
READ = """() => document.querySelector('#first-sight b, [data-testid="stMetricValue"]')
  && performance.now() / 1000"""


@pytest.fixture(scope="module")
def home(serve: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory) -> str:
    """The printed address of the dashboard of the default demo, with its ledger."""
    root = tmp_path_factory.mktemp("speed") / "store"
    for said in (["demo"], ["ledger"]):
        command = [sys.executable, "-m", "app.cli", *said, "--store", str(root)]
        subprocess.run(command, capture_output=True, check=True)
    return serve(root)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a page with a title alone, from the same server."""
    folder = tmp_path_factory.mktemp("empty_page")
    (folder / "page.py").write_text('import streamlit as st\nst.title("Empty")\n')
    command = [sys.executable, "-c", EMPTY, str(folder / "store"), str(folder / "page.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        printed = re.search(r"http://\S+/", server.stdout.readline())
        assert printed is not None
        try:
            yield printed[0]
        finally:
            server.terminate()


def _seconds(page: Page, address: str, what: str = DONE) -> float:
    """From the request until something is there."""
    page.goto(address, wait_until="commit")
    return float(page.wait_for_function(what, polling=20).json_value())


def test_a_page_takes_a_second_more_than_an_empty_one(
    home: str, empty: str, browser: BrowserContext
) -> None:
    page = browser.new_page()
    base = home.partition("?")[0]
    page.goto(home)
    addresses = [base + ("" if name == FIRST else name) for name in TITLES]
    for address in (empty, *addresses):
        _seconds(page, address)
    more = sorted(
        _seconds(page, address) - _seconds(page, empty)
        for _ in range(ROUNDS)
        for address in addresses
    )
    late = more[int(0.95 * (len(more) - 1))]
    print(f"\n{len(more)} pages: median {statistics.median(more):.2f} s, p95 {late:.2f} s more")
    assert late <= 1.0


def test_a_first_page_is_read_before_its_scripts_have_run(
    home: str, browser: BrowserContext
) -> None:
    assert browser.browser is not None
    read, drawn = [], []
    for _ in range(ROUNDS + 1):
        new = browser.browser.new_context(viewport={"width": 1280, "height": 800})
        try:
            page = new.new_page()
            page.goto(home, wait_until="commit")
            page.wait_for_function(DONE)
            new.new_cdp_session(page).send("Network.clearBrowserCache")
            read.append(_seconds(page, home.partition("?")[0], READ))
            drawn.append(float(page.wait_for_function(DONE).json_value()))
        finally:
            new.close()
    first, last = (statistics.median(each[1:]) for each in (read, drawn))
    print(f"\nfirst number {first:.2f} s, all drawn {last:.2f} s")
    assert first <= last / 2
