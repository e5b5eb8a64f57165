"""Links and Validation: files that a reader sends, the demo, an empty store, filters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

LINKS, VALIDATION = "views/nodes/diagnose.py", "views/nodes/lemons.py"
OF_LINKS, PLAN = {"diagnose_tab": "Links"}, {"lemons_tab": "Validation"}


def delays() -> bytes:
    rng = np.random.default_rng(5)
    rows = [
        f"<b>n{a}</b>,<b>n{b}</b>,{20 * rng.lognormal(0, 0.03) * (3 if a == 2 else 1):.3f}"
        for a in range(6) for b in range(6) if a != b for _ in range(4)
    ]  # fmt: skip
    return "\n".join(["source,destination,delay_us", *rows]).encode()


@pytest.mark.slow
def test_links_asks_for_delays_and_judges_them(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, LINKS, **OF_LINKS)
    assert page.title[0].value == "Which link is slow?"
    assert any("faultline links delays.csv" in code.value for code in page.code)
    page.file_uploader(key="delays").set_value(("delays.csv", delays(), "text/csv")).run()
    assert not page.exception
    assert "n2" in page.title[0].value
    assert "is slow: 3" in page.title[0].value.replace("\\", "")
    assert {metric.label for metric in page.metric} >= {"Delay over usual", "Pairs measured"}
    page.number_input(key="least_ratio").set_value(5.0).run()
    assert page.title[0].value.startswith("No slow link")


def test_links_says_in_one_line_what_is_wrong(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "none", LINKS, **OF_LINKS)
    page.file_uploader(key="delays").set_value(
        ("delays.csv", b"source,destination,delay\na,b,1\n", "text/csv")
    ).run()
    assert not page.exception
    (warning,) = page.warning
    assert "/tmp" not in warning.value
    assert "delay" in warning.value


def test_validation_plans_and_judges_results(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, VALIDATION, **PLAN, period="all")
    assert not page.exception
    assert page.title[0].value.startswith("Test ")
    before = [metric.value for metric in page.metric]
    page.number_input(key="horizon_days").set_value(7.0).run()
    assert [metric.value for metric in page.metric] != before
    nodes = page.dataframe[0].value["node"].tolist()
    lines = [
        {"node": node, "mem-bw/h2d_bw:0": 20.0 if at == 4 else 26.0}
        for at, node in enumerate(nodes)
    ]
    sent = "\n".join(map(json.dumps, lines)).encode()
    page.file_uploader(key="results").set_value(("results.jsonl", sent, "application/json")).run()
    assert not page.exception
    assert page.title[0].value.startswith(
        f"Of {len(nodes)} nodes with results {nodes[4]} is regressed"
    )


def test_validation_of_an_empty_store_says_what_fills_it(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    page = open_page(tmp_path / "none", VALIDATION, **PLAN)
    assert not page.exception
    assert page.title[0].value == "This store holds no data yet"


def test_validation_of_a_short_period_counts_fewer_incidents(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, VALIDATION, **PLAN, period="24h")
    assert not page.exception
    whole = open_page(demo_store, VALIDATION, **PLAN, period="all")
    assert page.metric[3].value != whole.metric[3].value
