"""The ledger is built where a page needs it, and only there."""

from __future__ import annotations

import contextlib
import shutil
from typing import TYPE_CHECKING

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app import actions
from app.actions import Options, ingest_files
from data.publish import writer
from data.queries import efficiency
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

PAGE = """
import streamlit as st
from app.ask import cached
from app.widgets import ledger_build

st.text_input("Name", key="name", bind="query-params")
ledger_build.ensure()
st.text_input("Other", key="other", bind="query-params")
st.title(f"Snapshot {cached.snapshot()}")
"""
SACCT = """\
JobID|Cluster|Partition|User|Account|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|p|u|a|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
"""


@pytest.fixture(scope="module")
def _ingested(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ledger")
    (folder / "sacct.txt").write_text(SACCT)
    ingest_files(folder / "store", "sacct", [str(folder / "sacct.txt")], Options())
    return folder / "store"


@pytest.fixture
def root(_ingested: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store of one job, whose ledger was never asked for."""
    st.cache_data.clear()
    st.cache_resource.clear()
    monkeypatch.setenv("FAULTLINE_STORE", str(tmp_path / "store"))
    return shutil.copytree(_ingested, tmp_path / "store")


def _has_ledger(root: Path) -> bool:
    with contextlib.closing(Store.open(root)) as store:
        return efficiency.has_ledger(store)


def _open(**filters: str) -> AppTest:
    page = AppTest.from_string(PAGE, default_timeout=60)
    for name, value in filters.items():
        page.query_params[name] = value
    return page.run()


def test_the_page_goes_on_with_the_snapshot_that_has_it(root: Path) -> None:
    page = _open()
    assert not page.exception
    assert not page.warning
    assert [title.value for title in page.title] == ["Snapshot 2"]
    assert _has_ledger(root)


def test_a_link_is_followed_past_the_build(root: Path) -> None:
    assert not _has_ledger(root)
    page = _open(name="first", other="second")
    assert [field.value for field in page.text_input] == ["first", "second"]


def test_what_is_built_is_not_built_again(root: Path) -> None:
    actions.build_ledger(root)
    assert _open().title[0].value == "Snapshot 2"


@pytest.mark.slow
def test_new_settings_of_runs_build_it_again(root: Path) -> None:
    actions.build_ledger(root)
    (root / "site.toml").write_text("[runs]\ngap_hours = 30\n")
    assert _open().title[0].value == "Snapshot 3"


@pytest.mark.slow
def test_what_people_say_builds_it_again(root: Path) -> None:
    with contextlib.closing(Store.open(root)) as store:
        ((key,),) = store.rows("SELECT attempt_key FROM jobs")
    actions.build_ledger(root)
    actions.annotate(root, f"attempt:c/{key}", "cause", "gpu_memory", author="x")
    assert _open().title[0].value == "Snapshot 3"


def test_another_writer_is_a_notice_with_the_command(root: Path) -> None:
    with writer(root):
        page = _open()
    assert not page.exception
    assert not page.title
    assert "is being written by" in page.warning[0].value
    assert page.code[0].value == f"faultline ledger --store {root}"
    assert page.run().title[0].value == "Snapshot 2"
