"""From a link to a store without a ledger to a job that lost work, in a real Chromium."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from app.actions import Options, ingest_files

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser

SACCT = """\
JobID|Cluster|Partition|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|p|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|p|b|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
"""


@pytest.mark.slow
def test_a_link_builds_the_ledger_and_leads_to_the_job(
    serve: Callable[[Path], str], browser: BrowserContext, tmp_path: Path
) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT)
    ingest_files(tmp_path / "store", "sacct", [str(tmp_path / "sacct.txt")], Options())
    link = serve(tmp_path / "store")
    page = browser.new_page()
    page.goto(f"{link.replace('/?', '/ledger?')}&period=all&account=b&ledger_tab=Lost+work")
    expect(page.locator("h1")).to_contain_text("of 192 GPU-hours that jobs held were productive")
    for name in ("period=all", "account=b", "ledger_tab=Lost+work"):
        assert name in page.url
    expect(page.get_by_text("Lost work by cause")).to_be_visible()

    page.wait_for_timeout(7_000)  # longer than the page takes to look for a new snapshot
    assert "account=b" in page.url
    losses = page.get_by_test_id("stDataFrame").first
    losses.click(position={"x": 18, "y": 55})
    expect(page.get_by_role("dialog")).to_contain_text("Pick a job to open it")
    attempts = page.get_by_role("dialog").get_by_test_id("stDataFrame").first
    attempts.click(position={"x": 18, "y": 55})
    expect(page.locator("h1")).to_contain_text("Job 2")
    assert "/job?" in page.url
    assert "period=all" in page.url
