"""What the first reader of a snapshot will ask is made before they come, once, by another process."""

from __future__ import annotations

import shutil
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from app.ask import ahead as files
from app.ask.cached import ask, opened
from app.server import ahead
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

VIEWS = ("", "views/reliability/mttf.py", "views/failures/failures.py",
         "views/failures/incidents.py")  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "ahead"
    made.mkdir()
    monkeypatch.setenv(files.FOLDER, str(made))
    return made


def rows(store: Store) -> list[tuple[Any, ...]]:
    return store.rows("SELECT count(*) FROM jobs")


def test_a_result_is_read_from_its_file_and_written_by_the_maker_alone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, demo_store: Path
) -> None:
    monkeypatch.setenv("FAULTLINE_STORE", str(demo_store))
    st.cache_data.clear()
    told = ask(rows)
    assert list(folder.iterdir()) == []
    monkeypatch.setenv(files.MAKES, "1")
    st.cache_data.clear()
    ask(rows)
    monkeypatch.delenv(files.MAKES)
    monkeypatch.setattr(Store, "rows", lambda *_: pytest.fail("asked again"))
    st.cache_data.clear()
    assert ask(rows) == told
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"no pickle", b"capp.ask.cached\ngone\n."])
def test_what_another_version_left_is_as_if_it_were_not_there(folder: Path, content: bytes) -> None:
    (folder / "key").write_bytes(content)
    assert files.read("key") is None
    assert files.read("other") is None


def test_what_people_say_makes_another_standing_and_no_store_has_none(
    demo_store: Path, tmp_path: Path
) -> None:
    demo_store = shutil.copytree(demo_store, tmp_path / "store")
    before = ahead.standing(demo_store)
    assert before is not None
    assert before[0] == 1
    assert ahead.standing(demo_store) == before
    State(demo_store).annotate("node:demo/gpu0001", "note", "looked at", author="a")
    assert ahead.standing(demo_store) != before
    assert ahead.standing(demo_store / "nowhere") is None


def test_the_next_snapshot_gives_up_what_is_made_and_its_files(
    folder: Path, demo_store: Path
) -> None:
    maker = ahead.Maker(demo_store, folder)
    (folder / "old").write_text("")
    maker.start_over()
    first = maker.process
    assert first is not None
    maker.start_over()
    assert first.poll() is not None
    assert maker.process is not first
    assert not (folder / "old").exists()
    maker.end()
    assert maker.process is not None
    assert maker.process.poll() is not None


@pytest.mark.slow
def test_the_first_reader_asks_the_store_for_nothing_and_nothing_is_made_for_them(
    folder: Path, demo_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maker = ahead.Maker(demo_store, folder)
    maker.start_over()
    assert maker.process is not None
    assert maker.process.wait(timeout=300) == 0
    monkeypatch.setenv("FAULTLINE_STORE", str(demo_store))
    asked: list[str] = []
    for name in ("frame", "columns", "rows"):
        _counted(monkeypatch, name, asked)
    made: list[Any] = []
    monkeypatch.setattr(files, "kept", lambda _, result: made.append(result) or result)
    for view, period in product(VIEWS, ("28d", "all")):
        st.cache_data.clear()
        st.cache_resource.clear()
        page = AppTest.from_file(ahead.SCRIPT, default_timeout=60)
        page.query_params["period"] = period
        assert not (page.switch_page(view) if view else page).run().exception
    assert asked == []
    assert made == []


def test_the_snapshot_is_open_before_its_first_reader_comes(
    folder: Path, demo_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_STORE", str(demo_store))
    st.cache_resource.clear()
    opened()
    monkeypatch.setattr(Store, "open", lambda *_: pytest.fail("opened again"))
    assert ask(rows)


def _counted(monkeypatch: pytest.MonkeyPatch, name: str, asked: list[str]) -> None:
    """Notes the queries of derived tables; what people said is read on every run."""
    before = getattr(Store, name)

    def counted(self: Store, sql: str, *args: Any) -> Any:
        if "annotations" not in sql:
            asked.append(sql)
        return before(self, sql, *args)

    monkeypatch.setattr(Store, name, counted)
