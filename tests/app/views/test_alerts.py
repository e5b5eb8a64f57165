"""Alerts: the same list as the command's; a rule is asked of the past and switched on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/fleet/alerts.py"


def test_a_store_whose_rules_were_never_asked_says_so(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE)
    assert not page.exception
    assert page.title[0].value.startswith("No rule was evaluated yet")


@pytest.fixture
def checked(demo_store: Path, tmp_path: Path, faultline: Callable[..., Any]) -> Path:
    """A copy of the demo whose rules were asked."""
    import shutil

    root = tmp_path / "store"
    shutil.copytree(demo_store, root)
    faultline("check", "--store", root)
    return root


def test_the_page_lists_the_alerts_of_the_command_and_takes_one_on(
    open_page: Callable[..., AppTest], checked: Path, faultline: Callable[..., Any]
) -> None:
    said = faultline("alerts", "--store", checked, "--format", "json").json
    page = open_page(checked, PAGE)
    assert not page.exception
    shown = " ".join(each.value for each in page.markdown)
    assert all(alert["sentence"] in shown for alert in said["alerts"])
    assert said["alerts"], "the demo has something to tell"


def test_a_rule_is_asked_of_the_past_and_switched_on(
    open_page: Callable[..., AppTest], checked: Path
) -> None:
    page = open_page(checked, PAGE, alerts_tab="Rules", rule="failure_rate")
    assert not page.exception
    assert any("would have told" in each.value for each in page.markdown)
