"""Dashboards as `faultline serve` starts them, and a real Chromium that looks at them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.journeys.chromium import find_chromium

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from playwright.sync_api import BrowserContext

PATIENCE_MS = 120_000
"""A busy machine may take its time: only a page that never comes fails."""
WITHOUT_GPU = ("--disable-gpu", "--disable-software-rasterizer")
"""Nothing here is drawn by WebGL: to play a graphics card costs a tenth of the time."""
HERE = Path(__file__).parent


class _Running:
    """The Chromium that runs, if any."""

    def __init__(self) -> None:
        self.context: BrowserContext | None = None
        self.stack = ExitStack()

    def end(self) -> None:
        """Ends it."""
        self.stack.close()
        self.context = None


_running = _Running()


@contextmanager
def _served(store: Path) -> Iterator[str]:
    """The address that `faultline serve` prints."""
    command = [sys.executable, "-m", "app.cli", "serve", "--store", str(store), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        printed = re.search(r"http://\S+", server.stdout.readline())
        assert printed is not None
        try:
            yield printed[0]
        finally:
            server.terminate()


@pytest.fixture(scope="session")
def serve() -> Iterator[Callable[[Path], str]]:
    """Starts the dashboard of a store; its address."""
    with ExitStack() as servers:
        yield lambda store: servers.enter_context(_served(store))


@pytest.fixture(scope="session")
def link(
    demo_store: Path, serve: Callable[[Path], str], tmp_path_factory: pytest.TempPathFactory
) -> str:
    """The address of the dashboard of a copy of the demo store: one server for all journeys."""
    root = tmp_path_factory.mktemp("journeys") / "store"
    shutil.copytree(demo_store, root)
    return serve(root)


def _chromium() -> BrowserContext:
    """One Chromium for all journeys that follow one another: its start costs as much as a test.

    They share its cache as well: the dashboard's scripts are fetched and compiled once.
    """
    if _running.context is None:
        playwright = _running.stack.enter_context(sync_playwright())
        browser = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox", *WITHOUT_GPU]
        )
        _running.stack.callback(browser.close)
        _running.context = browser.new_context(viewport={"width": 1280, "height": 800})
        _running.context.grant_permissions(["clipboard-read", "clipboard-write"])
        _running.context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
    return _running.context


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, None, None]:
    """The last journey in a row ends the browser: other tests would meet Playwright's event loop."""
    yield
    if nextitem is None or not nextitem.path.is_relative_to(HERE):
        _running.end()


@pytest.fixture
def browser() -> Iterator[BrowserContext]:
    """A browser without an open page, which may use the clipboard; no journey ends at an error."""
    context = _chromium()
    yield context
    failed = [page.url for page in context.pages if page.get_by_test_id("stException").count()]
    for page in context.pages:
        page.close()
    assert failed == []
