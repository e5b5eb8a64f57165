"""A loss opens the attempts that lost it, those of its cause alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.actions import Options, build_ledger, ingest_files

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """
from app.answers.content import Part
from app.answers.efficiency.ledger_parts import behind_loss
from app.widgets import filter_bar
from app.show import page

scope = filter_bar.show()
page.opened(Part("Loss", behind_loss, (scope.selection, "lost_work", {cause!r})), scope)
"""
SACCT = """\
JobID|Cluster|Partition|User|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|p|u|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
2|c|p|u|b|NODE_FAIL|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n1
3|c|p|u|b|FAILED|2026-01-02T00:00:00|2026-01-02T00:00:00|2026-01-03T00:00:00|1|gres/gpu=8|n2
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with its ledger; only to be read."""
    folder = tmp_path_factory.mktemp("ledger")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    build_ledger(folder / "store")
    return folder / "store"


@pytest.mark.parametrize(("cause", "jobs"), [("node_lost", ["2"]), ("pcie", []), (None, [])])
def test_a_loss_opens_the_attempts_of_its_cause(
    root: Path, monkeypatch: pytest.MonkeyPatch, cause: str | None, jobs: list[str]
) -> None:
    st.cache_data.clear()
    st.cache_resource.clear()
    monkeypatch.setenv("FAULTLINE_STORE", str(root))
    page = AppTest.from_string(PAGE.format(cause=cause), default_timeout=60)
    page.query_params["period"] = "all"
    page.run()
    assert not page.exception
    shown = [str(job) for frame in page.dataframe for job in frame.value["job_id"]]
    assert shown == jobs
    assert "Pick a job to open it" in page.caption[0].value
