"""The page Trend: its numbers, its chart, and a time in which nothing could be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/reliability/trend.py"


def test_it_says_whether_there_is_a_trend_and_what_was_changed(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert {metric.label for metric in page.metric} >= {"End over begin", "Growth (Crow-AMSAA)"}
    (rollouts,) = (frame.value for frame in page.dataframe if "of_nodes" in frame.value.columns)
    assert "driver 535.161.08 to 550.127.05" in rollouts["what"].tolist()


def test_where_no_failure_could_be_seen_it_is_not_judged(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(
        demo_store, PAGE, period="custom",
        **{"from": "1999-01-01T00:00", "to": "1999-02-01T00:00"},
    )  # fmt: skip
    assert not page.exception
    assert "cannot be judged" in page.title[0].value


def test_a_job_has_a_card_and_parts_are_kept_once_they_are_opened(
    open_page: Callable[..., AppTest], watched_store: Path
) -> None:
    page = open_page(watched_store, PAGE, period="all", job_odds="true", shelf="true", gpus="256")
    assert not page.exception
    assert page.code[0].value.startswith("# A job of 256 GPUs that computes 14 days meets")
    assert any("what to keep cannot be told" in each.value for each in page.markdown)
