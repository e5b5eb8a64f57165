"""The tab Hangs: what the stored dumps of a run show, and what stands where there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from streamlit.testing.v1 import AppTest

from app.actions import Options, ingest_files
from tests.app.cli.golden import hung_dumps

if TYPE_CHECKING:
    from pathlib import Path


def tab() -> None:
    """The tab alone, of the run 4711."""
    from types import SimpleNamespace

    from app.show.scope import Scope
    from app.views.training.runs_page import hangs
    from data.filters import Selection

    scope = Scope(Selection(), "UTC", synthetic=False, snapshot=1, mode="light", empty=False)
    hangs.hangs(SimpleNamespace(cluster="c", run_id="4711"), scope)


def drawn(root: Path, monkeypatch: pytest.MonkeyPatch) -> AppTest:
    monkeypatch.setenv("FAULTLINE_STORE", str(root))
    return AppTest.from_function(tab, default_timeout=60).run()


@pytest.mark.slow
def test_the_tab_names_the_rank_or_says_how_to_store_dumps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, folder = tmp_path / "store", hung_dumps(tmp_path / "dumps")
    ingest_files(root, "flight-recorder", [str(folder)], Options(job_id="7", cluster="c"))
    page = drawn(root, monkeypatch)
    assert not page.exception
    assert any("No dump of a rank is stored" in each.value for each in page.markdown)
    ingest_files(root, "flight-recorder", [str(folder)], Options(job_id="4711", cluster="c"))
    page = drawn(root, monkeypatch)
    assert not page.exception
    assert any("Rank 1 never joined" in each.value for each in [*page.markdown, *page.title])
    assert [metric.label for metric in page.metric] == [
        "Ranks seen", "Ranks waiting", "Ranks at fault",
    ]  # fmt: skip
