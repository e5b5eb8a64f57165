"""Dashboards as `faultline serve` starts them, and a real Chromium that looks at them."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.journeys.chromium import find_chromium

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from playwright.sync_api import BrowserContext

PATIENCE_MS = 60_000
"""A busy machine may take its time: only a page that never comes fails."""


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
def link(demo_store: Path, serve: Callable[[Path], str]) -> str:
    """The address of the demo store's dashboard; only to be read."""
    return serve(demo_store)


@pytest.fixture
def browser() -> Iterator[BrowserContext]:
    """A browser that knows nothing yet and may use the clipboard."""
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=find_chromium(), args=["--no-sandbox"]
        )
        context = chromium.new_context(viewport={"width": 1280, "height": 800})
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield context
        chromium.close()
