"""Whatever an address says, its page answers: a value that is none counts as not said."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from app.words import menu
from tests.app.views.conftest import MAIN, answer

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

APP = MAIN.parent
PAGES = sorted(menu.view(section, page) for section, pages in menu.MENU.items() for page in pages)
TYPED = {"find", "incident", "job", "node", "run", "sql", "term", "user", "without"}
"""Names whose value is looked for, whatever it is: there it may change the answer."""
NUMBERS = [
    "1e999",
    "-1e999",
    "nan",
    "1e400",
    "0x10",
    "-1",
    "9" * 300,
    "true",
    "٣",
    "8\x00",
    "1e300",
]
TEXTS: list[Any] = [
    "", "\x00", "a" * 400, "[" * 400, "%' OR 1=1 --", "<script>alert(1)</script>", "None",
    "0000-00-00T00:00", "99999-01-01T00:00", ["1e999", "1e999"], ["", ""], "\u202e\ufffd", " \n",
]  # fmt: skip
LONG = ["a" * 20_000, "[" * 20_000]
"""Three of them make an address as long as the server takes one, 64 KB."""
DATES = ["1969-12-31T23:59", "1970-01-01T00:00", "2099-12-31T23:59", "2100-01-01T00:00",
         "0001-01-01T00:00", "9999-12-31T23:59", "2026-02-30T00:00", "2026-01-01", "noon"]  # fmt: skip


def names() -> set[str]:
    """What addresses may name: the keys of all widgets, and what pages read themselves."""
    texts = [path.read_text("utf-8") for path in APP.rglob("*.py")]
    asked = re.compile(r'\bkey="(\w+)"|query_params(?:\.get\(|\[)"(\w+)"')
    found = {name for text in texts for pair in asked.findall(text) for name in pair if name}
    return found | {"from", "to", "cluster", "partition", "account", "restart", "write", "interval",
                    "queue", "sql", "sql_chart", "job_gpus", "node", "job", "incident"}  # fmt: skip


NAMES = sorted(names() - {"token"})
FOLDED = {
    name
    for path in APP.rglob("*.py")
    for name in re.findall(r'\bfolded\(.*\bkey="(\w+)"', path.read_text("utf-8"))
}
"""Parts of a page that are open where the address says `true`."""
REVEALED = [
    ("views/fleet/overview.py", {"period": "custom"}),
    ("views/failures/failures.py", {"failures_tab": "Right and wrong"}),
    ("views/recovery/planner.py", {"every": "minutes"}),
    ("views/recovery/planner.py", {"planner_tab": "One job"}),
    ("views/nodes/lemons.py", {"lemons_tab": "Repairs"}),
    ("views/nodes/lemons.py", {"lemons_tab": "Validation"}),
    ("views/nodes/diagnose.py", {"diagnose_tab": "Links"}),
    ("views/efficiency/ledger.py", {"ledger_tab": "By group"}),
    ("views/training/stragglers.py", {"stragglers_tab": "Fix and timelines"}),
    ("views/explore/sql.py", {"sql": "SELECT 1 AS a, 2 AS b", "sql_tab": "Chart"}),
    ("views/explore/reports.py", {"kind": "monday"}),
    ("views/explore/reports.py", {"kind": "node"}),
]
"""Widgets that are drawn only once another is set so."""
VALUES = [*NUMBERS, *TEXTS]
CASES = [(page, {}, value) for value in VALUES for page in PAGES]
CASES += [(page, said, value) for value in VALUES for page, said in REVEALED]


@pytest.fixture(scope="module")
def plain() -> dict[str, list[str]]:
    """Answers of pages whose address says nothing wrong."""
    return {}


def opened(open_page: Callable[..., AppTest], store: Path, page: str, **said: Any) -> list[str]:
    """The answer of a page, which broke at nothing."""
    shown = open_page(store, page, **said)
    assert not [each.message for each in shown.exception], (page, str(said)[:200])
    return answer(shown)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "right", "value"), CASES)
def test_a_page_answers_as_if_the_address_had_not_said_it(
    open_page: Callable[..., AppTest],
    demo_store: Path,
    plain: dict[str, list[str]],
    page: str,
    right: dict[str, str],
    value: Any,
) -> None:
    key = f"{page} {right}"
    if key not in plain:
        plain[key] = opened(open_page, demo_store, page, **right)
    said_well = TYPED | (FOLDED if value == "true" else set())
    wrong = {name: value for name in NAMES if name not in said_well}
    assert opened(open_page, demo_store, page, **(wrong | right)) == plain[key]


@pytest.mark.slow
@pytest.mark.parametrize(("page", "right", "value"), CASES)
def test_a_page_looks_for_whatever_was_typed(
    open_page: Callable[..., AppTest],
    demo_store: Path,
    page: str,
    right: dict[str, str],
    value: Any,
) -> None:
    opened(open_page, demo_store, page, **(dict.fromkeys(NAMES, value) | right))


@pytest.mark.parametrize("text", LONG, ids=["letters", "brackets"])
@pytest.mark.slow
def test_a_long_text_breaks_no_page(
    open_page: Callable[..., AppTest], demo_store: Path, text: str
) -> None:
    for page in ("views/explore/sql.py", "views/fleet/overview.py", "views/explore/reports.py"):
        opened(open_page, demo_store, page, sql_chart=text, min_gpus=text, period=text)


@pytest.mark.slow
@pytest.mark.parametrize("date", DATES)
def test_a_period_may_begin_and_end_whenever_it_is_said_to(
    open_page: Callable[..., AppTest], demo_store: Path, date: str
) -> None:
    for said in ({"from": date}, {"to": date}, {"from": date, "to": date}):
        opened(open_page, demo_store, "views/nodes/lemons.py", period="custom", **said)


def test_every_page_and_the_names_that_it_reads_are_asked_for() -> None:
    assert {"min_gpus", "period", "gpus", "worst", "days", "failures_tab", "trace"} <= {*NAMES}
    assert {"node_groups", "out_of_service"} <= FOLDED
    assert len(PAGES) > 15
