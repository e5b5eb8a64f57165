"""Lemon nodes: the demo, an empty store, filters; the Node page tells the verdict."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/nodes/lemons.py"


def test_the_demo_is_judged(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert " by " in page.title[0].value
    labels = {metric.label for metric in page.metric}
    assert labels >= {"Lemon nodes", "GPU-hours saved by draining", "Failed jobs avoided"}
    assert any("Failed jobs" in frame.value.to_csv() for frame in page.dataframe)
    page.number_input(key="days").set_value(2).run()
    assert not page.exception
    assert "by 2 days" in page.title[0].value


@pytest.mark.slow
def test_the_smallest_job_changes_nothing_and_the_period_does(
    answers: Callable[..., tuple[AppTest, bool]], demo_store: Path
) -> None:
    _, changed = answers(demo_store, PAGE, {"min_gpus": "64"}, period="all")
    assert not changed
    _, changed = answers(demo_store, PAGE, {"period": "24h"})
    assert changed


def test_an_empty_store_says_what_would_fill_it(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "none", PAGE)
    assert not page.exception
    assert any("faultline" in code.value for code in page.code)


def test_the_page_of_a_node_tells_its_verdict(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    with closing(Store.open(demo_store)) as store:
        ((node,),) = store.rows("SELECT min(node) FROM job_nodes")
    page = open_page(demo_store, "views/failures/node.py", node=node, period="all")
    assert not page.exception
    assert any(header.value == "Is it a lemon?" for header in page.header)
