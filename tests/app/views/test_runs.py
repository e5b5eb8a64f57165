"""Runs: the run of the address, whatever the period; the same answer as the command's."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app.answers.training import runs, stability
from app.ask import of_store
from app.words.plain import titled
from data.filters import Selection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/training/runs.py"


def test_the_run_of_the_address_is_shown_with_what_the_command_says(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    with closing(Store.open(demo_store)) as store:
        first = runs.listed(store, Selection()).iloc[-1]
        found = of_store(store)(stability.measured, first["cluster"], first["run_id"])
    page = open_page(demo_store, PAGE, period="7d", run=first["run_id"])
    assert not page.exception
    answer = stability.answer(found)
    shown = page.title[0].value.replace("\N{NO-BREAK SPACE}", " ")
    assert shown == titled(answer.sentence)
    assert {each.label: each.value for each in page.metric} == {
        number.term.label: number.value for number in answer.numbers
    }
    assert any("outside the selection" in each.value for each in page.caption)
    assert len(page.get("plotly_chart")) == 1


@pytest.mark.slow
def test_a_run_that_logged_nothing_is_told_and_another_shown(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", run="nobody")
    assert not page.exception
    assert (
        "The store holds no run nobody: shown is the one that logged last" in page.warning[0].value
    )
    every = open_page(demo_store, PAGE, period="all", runs_tab="All runs")
    assert not every.exception
    with closing(Store.open(demo_store)) as store:
        assert len(every.dataframe[0].value) == len(runs.listed(store, Selection()))


def test_a_store_without_steps_says_how_to_get_some(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert page.title[0].value == "No run logged its steps in this selection"
    assert "faultline ingest metrics.csv --job-id 4711" in "".join(e.value for e in page.code)
