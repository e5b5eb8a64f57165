"""Alerts: the same list as the command's; a rule is asked of the past and switched on."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from app import actions
from app.alerts import asked, evaluate, listing
from app.ask import of_store
from app.words import escaping
from app.words.plain import titled
from data.state import State
from data.store import Store

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


@pytest.fixture(scope="module")
def checked(demo_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the demo whose rules were asked when a large job had just failed."""
    root = tmp_path_factory.mktemp("alerts") / "store"
    shutil.copytree(demo_store, root)
    (root / "site.toml").write_text("[alerts]\nlarge_gpus = 8\n", encoding="utf-8")
    with closing(Store.open(root)) as store:
        found = asked.past(of_store(store), asked.rule_of("large_job"), datetime.now(UTC))
    evaluate.evaluate(root, now=found.told[0].episode.raised_at)
    return root


def press(page: AppTest, key: str) -> AppTest:
    """The page after a click on a button."""
    (button,) = [each for each in page.button if each.key == key]
    return button.click().run()


def test_the_page_lists_the_alerts_of_the_command(
    open_page: Callable[..., AppTest], checked: Path
) -> None:
    with closing(Store.open(checked)) as store:
        now = evaluate.clock(of_store(store), datetime.now(UTC))
        answer = listing.answer(listing.known(store, now), now)
    page = open_page(checked, PAGE)
    assert not page.exception
    assert page.title[0].value.replace("\N{NO-BREAK SPACE}", " ") == titled(answer.sentence)
    shown = " ".join(each.value for each in page.markdown)
    told = [alert["sentence"] for alert in answer.record["alerts"]]
    assert told, "the demo has something to tell"
    assert all(escaping.escaped(sentence) in shown for sentence in told)


def test_what_needs_somebody_is_the_list_of_overview(
    open_page: Callable[..., AppTest], checked: Path
) -> None:
    here = open_page(checked, PAGE, alerts_tab="All that needs somebody", period="28d")
    there = open_page(checked, period="28d")
    lines = [
        [each.value for each in page.markdown if each.value.startswith(":gray[:material/")]
        for page in (here, there)
    ]
    assert lines[0] == lines[1] != []


def test_a_rule_is_asked_of_the_past_and_switched_on(
    open_page: Callable[..., AppTest], checked: Path
) -> None:
    actions.switch(checked, "new_lemon", on=False, author="kim")
    page = press(open_page(checked, PAGE, alerts_tab="Rules"), "backtest_new_lemon")
    assert not page.exception
    assert any("would have told" in each.value for each in page.markdown)
    press(page, "backtest_on")
    assert State(checked).annotations()[-1][4:] == ("switched", "on")
