"""Upload a file and cancel its reading, in a real Chromium."""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from app.actions import Options, ingest_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import BrowserContext

pytestmark = [pytest.mark.browser, pytest.mark.slow]

HEADER = "JobID|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
PATIENCE_S = 60
"""A busy machine may take its time: that cancelling is quick is tested by processor time."""
JOB = "1|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1||n1\n"


def _readers(store: Path) -> list[Path]:
    """Processes that read an upload into a store: they stand in a folder of it."""
    found = []
    for standing in Path("/proc").glob("[0-9]*/cwd"):
        with suppress(OSError):  # it has ended
            if standing.readlink().is_relative_to(store):
                found.append(standing.parent)
    return found


def test_cancel_ends_the_reading(
    tmp_path: Path, serve: Callable[[Path], str], browser: BrowserContext
) -> None:
    (tmp_path / "sacct.txt").write_text(HEADER + JOB)
    store = tmp_path / "store"
    ingest_files(store, "sacct", [str(tmp_path / "sacct.txt")], Options())
    before = (store / "CURRENT").read_bytes()
    torn = {
        "name": "torn.txt",
        "mimeType": "text/plain",
        "buffer": (HEADER + JOB.replace("1|", "2|", 1) + "x\n" * 10_000_000).encode(),
    }
    page = browser.new_page()
    page.goto(serve(store).replace("/?", "/data?data_tab=Add+data&"))
    page.locator(".st-key-upload_file input").set_input_files([torn])
    expect(page.get_by_text("torn.txt")).to_be_visible()
    page.get_by_role("button", name="Ingest").click()
    expect(page.get_by_text("to mend")).to_be_visible()
    assert _readers(store)
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_text("to mend")).to_have_count(0)
    begin = time.monotonic()
    while _readers(store) or (store / "uploads").exists():  # its folder goes after the process
        assert time.monotonic() - begin < PATIENCE_S
        time.sleep(0.02)
    assert (store / "CURRENT").read_bytes() == before  # read to its end it would be published
    assert not list(store.glob("building-*"))
