"""Below the head of a page stands how the fleet is, whatever the page is about."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

MAIN = Path(__file__).resolve().parents[3] / "app" / "main.py"


@pytest.mark.parametrize(
    "view", ["reliability/mttf", "failures/incidents", "failures/failures", "nodes/lemons"]
)
def test_it_says_the_verdict_what_was_lost_and_whether_alerts_are_open(
    demo_store: Path, monkeypatch: pytest.MonkeyPatch, view: str
) -> None:
    monkeypatch.setenv("FAULTLINE_STORE", str(demo_store))
    page = AppTest.from_file(MAIN, default_timeout=60).switch_page(f"views/{view}.py").run()
    assert not page.exception
    (line,) = [each.value for each in page.caption if "Fleet: " in each.value]
    assert "lost to failures: " in line
    assert "alerts: [never looked for](" in line


@pytest.mark.slow
def test_it_goes_by_all_filters_of_the_address_whatever_the_page_uses(
    demo_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAULTLINE_STORE", str(demo_store))
    lost = {}
    for view in ("nodes/lemons", "reliability/mttf"):  # the one goes by period and cluster alone
        page = AppTest.from_file(MAIN, default_timeout=60).switch_page(f"views/{view}.py")
        page.query_params["period"], page.query_params["min_gpus"] = "all", "9"
        captions = [each.value for each in page.run().caption]
        (lost[view],) = [
            each.partition("lost to failures: ")[2] for each in captions if "Fleet: " in each
        ]
    assert len(set(lost.values())) == 1
