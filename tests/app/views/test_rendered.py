"""What pages show of the demo: one form of dates, and each number rounded once."""

from __future__ import annotations

import json
import re
from contextlib import closing
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest

from app.words import menu, moments, numbers
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

MONTHS = "Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec"
STRAY = re.compile(
    rf"\b\d{{4}}-\d\d-\d\d\b|\b({MONTHS})[a-z]* \d{{1,2}}(st|nd|rd|th)?,? \d{{4}}|\b0\d ({MONTHS})\b"
    rf"|\b\d{{1,2}}/\d{{1,2}}/\d{{2,4}}\b|\b\d{{1,2}}\.\d{{1,2}}\.\d{{4}}\b|\b\d{{1,2}} ({MONTHS})\b(?! \d{{4}})"
)
"""ISO, American, German, with a zero before the day, or without its year."""
CODE = re.compile(r"`[^`]*`|\]\([^)]*\)")
"""Commands and addresses, which programs read."""
TICKS = {
    moments.TICK_MONTH, moments.TICK_DAY, moments.TICK_MINUTE, moments.TICK_SECOND,
}  # fmt: skip
FIGURE = re.compile(
    r"(?<![\d.,-])(?<!about )(?<!every )(\d[\d,]*(?:\.\d+)?)[\s\xa0](GPU-h(?:ours)?|node-days|node-hours|%|h|d|min|failures"
    r"|failed attempts|attempts|incidents|runs|jobs|nodes|GPUs)(?![\w-])"
)
ASKED = {
    "incident": {"incident": "?"},
    "job": {"job": "?"},
    "node": {"node": "?"},
    "my_runs": {"user": "?"},
    "find": {"find": "gpu"},
}
"""Pages of one thing, and what they are asked for."""
PAGES = [
    ("", {}),
    *(
        (menu.view(section, page), {"period": "all"} | ASKED.get(page.name, {}))
        for section, pages in menu.MENU.items()
        for page in pages
    ),
    ("views/nodes/lemons.py", {"period": "all", "lemons_tab": "Repairs"}),
    ("views/nodes/lemons.py", {"period": "all", "lemons_tab": "Validation"}),
    ("views/recovery/planner.py", {"period": "all", "planner_tab": "One job"}),
]
ONE = {
    "incident": "SELECT incident_id FROM incidents ORDER BY lost_gpu_seconds DESC, 1 LIMIT 1",
    "job": "SELECT job_id FROM jobs WHERE state = 'FAILED' ORDER BY job_id LIMIT 1",
    "node": "SELECT node FROM node_events ORDER BY node LIMIT 1",
    "user": """SELECT "user" FROM jobs WHERE state = 'FAILED' ORDER BY 1 LIMIT 1""",
}


def _named(store: Path, address: dict[str, str]) -> dict[str, str]:
    """The address with something that the store knows."""
    with closing(Store.open(store)) as opened:
        return {
            name: str(opened.rows(ONE[name])[0][0]) if value == "?" else value
            for name, value in address.items()
        }


def _of_figure(value: Any, key: str = "") -> Iterator[str]:
    """Texts of a figure that a reader sees: titles, labels, ticks, and what marks say."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("x", "y", "base", "range", "selections"):
                yield from _of_figure(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _of_figure(inner, key)
    elif isinstance(value, str) and key in ("text", "customdata", "ticktext", "hovertemplate"):
        yield value


def _texts(page: AppTest) -> Iterator[str]:
    """Texts of a page outside of its tables."""
    for each in (*page.title, *page.header, *page.caption, *page.markdown):
        yield CODE.sub("", each.value)
    for metric in page.metric:
        yield f"{metric.label} {metric.value}"
    for button in page.button:
        yield button.label


def _figures(page: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in page.get("plotly_chart")]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "address"), PAGES)
def test_dates_have_one_form_and_numbers_are_rounded_once(
    open_page: Callable[..., AppTest], demo_store: Path, name: str, address: dict[str, str]
) -> None:
    page = open_page(demo_store, name, **_named(demo_store, address))
    assert not page.exception
    drawn = _figures(page)
    told = [*_texts(page), *(text for figure in drawn for text in _of_figure(figure))]
    cells = [
        text
        for frame in page.dataframe
        for column in frame.value.select_dtypes("object")
        if column not in ("evidence", "line", "reason", "text", "command", "version", "comment")
        for text in frame.value[column].dropna().astype(str)
    ]
    assert told
    assert [text for text in (*told, *cells) if STRAY.search(text)] == []
    for figure in drawn:
        axes = [axis for key, axis in figure["layout"].items() if key.startswith("xaxis")]
        for axis in axes:
            form = axis.get("tickformat", "")
            assert "%" not in form or form in TICKS, form
            assert axis.get("type") != "date" or form in TICKS
    assert _rounded_twice(told) == set()


def _rounded_twice(texts: list[str]) -> set[tuple[str, str, str]]:
    """Numbers of one unit that are the same to three digits, and written differently."""
    found = {
        (value, unit.replace("GPU-hours", "GPU-h"))
        for t in texts
        for value, unit in FIGURE.findall(t)
    }
    return {
        (one, other, unit)
        for (one, unit), (other, same) in combinations(sorted(found), 2)
        if unit == same
        and one != other
        and numbers.number(_value(one)) == numbers.number(_value(other))
    }


def _value(text: str) -> float:
    return float(text.replace(",", ""))


def test_a_number_that_is_rounded_twice_is_found() -> None:
    assert _rounded_twice(["5,299 GPU-hours lost", "5,300 GPU-h"]) == {("5,299", "5,300", "GPU-h")}
    assert _rounded_twice(["5,300 GPU-hours", "5,300 GPU-h, 53 %", "5,290 GPU-h"]) == set()
    assert STRAY.search("on 2026-02-01")
    assert STRAY.search("since 5 Oct")
    assert not STRAY.search("from 5 Oct 2026 12:00 UTC")
