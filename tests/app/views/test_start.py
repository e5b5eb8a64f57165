"""The first page of an empty store: the demo is loaded with a click, and removed again."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app import actions
from data.audit import Audit
from data.publish.rollback import roll_back
from data.store import Store
from data.synthetic import DemoSpec

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

SACCT = """\
JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList
1|c|COMPLETED|2026-01-01T00:00:00|2026-01-01T00:00:00|2026-01-02T00:00:00|1|gres/gpu=8|n1
"""


@pytest.mark.slow
def test_the_demo_is_loaded_into_an_empty_store_and_removed_again(
    open_page: Callable[..., AppTest], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        actions,
        "load_demo",
        lambda root, progress, *, author: actions.build_demo(
            root, DemoSpec.of(400, 8, None, 0), progress, author=author or "ann"
        ),
    )
    store = tmp_path / "store"
    page = open_page(store)
    page.button(key="load_demo").click().run()
    assert not page.exception
    assert "synthetic data" in page.caption[0].value
    assert "loaded" in page.toast[0].value
    assert not [button for button in page.button if button.key == "load_demo"]
    page = open_page(store, "views/fleet/data.py", data_tab="Add data")
    assert any("never mixes with real data" in text.value for text in page.markdown)
    page.button(key="remove_demo").click().run()
    assert not page.exception
    assert page.title[0].value == "This store holds no data yet"
    assert page.get("file_uploader")
    page = open_page(store)
    assert page.button(key="load_demo")
    assert [(entry.action, entry.person) for entry in Audit(store).entries()][-1] == ("demo", "ann")


def test_no_demo_over_records_or_where_nobody_may_write(
    open_page: Callable[..., AppTest],
    incident_store: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not actions.takes_demo(incident_store)
    with pytest.raises(actions.DataError, match="holds real data"):
        actions.build_demo(incident_store, DemoSpec.of(400, 8, None, 0))
    with pytest.raises(actions.DataError, match="holds no demo"):
        actions.remove_demo(incident_store)
    monkeypatch.setattr("os.access", lambda path, mode: False)
    page = open_page(tmp_path / "nowhere")
    assert not page.exception
    assert not [button for button in page.button if button.key == "load_demo"]
    assert any("faultline serve --store ./demo-store" in code.value for code in page.code)


def test_no_demo_where_it_would_take_away_what_an_undo_can_bring_back(tmp_path: Path) -> None:
    (tmp_path / "sacct.txt").write_text(SACCT)
    store = tmp_path / "store"
    actions.ingest_files(store, "sacct", [str(tmp_path / "sacct.txt")], actions.Options())
    roll_back(store, snapshot=None, ingest_id="1.1")
    assert not actions.takes_demo(store)
    with pytest.raises(actions.DataError, match="taken back, as snapshot 1: the demo goes else"):
        actions.build_demo(store, DemoSpec.of(400, 8, None, 0))
    roll_back(store, snapshot=1)
    with closing(Store.open(store)) as found:
        assert found.rows("SELECT count(*) FROM jobs") == [(1,)]


def test_other_pages_lead_to_where_it_can_be_filled(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, "views/reliability/mttf.py")
    assert any("(./)" in text.value for text in page.markdown)
