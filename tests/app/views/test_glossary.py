"""Glossary: its page, and every tooltip of a number or column on every page of the demo."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from app.answers.explore import glossary
from app.words import menu, terms
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from streamlit.testing.v1 import AppTest

PAGE = "views/explore/glossary.py"
ZONE = re.compile(r" ?In .*; the download is in UTC\.$")
"""What follows the help of a column of times."""
NO_TERM = re.compile(r"$|Interval of .*\.$|UTC$")
"""Help of a column that says no more than its name, is an interval, or a time in UTC."""
BY_DEFINITION = {terms.failure_rate(each).definition for each in terms.DEFINITIONS}
"""The entry of the failure rate, with the definition that is chosen."""
SHOWN: dict[str, list[dict[str, str]]] = {
    "failures": [{"failures_tab": tab}
                 for tab in ("Attempts", "Causes", "Checks", "Right and wrong")],
    "incidents": [{"incidents_tab": tab}
                  for tab in ("Incidents", "Causes", "Signals that come together")],
    "data": [{"data_tab": tab}
             for tab in ("Sources", "Collected", "Clocks", "Ingests", "Rejected rows")],
    "incident": [{"incident": "INCIDENT"}],
    "job": [{"job": "JOB"}],
    "node": [{"node": "NODE", "node_tab": tab} for tab in ("Jobs", "Events", "Metrics")],
    "my_runs": [{"user": "USER"}],
    "ettr": [{}, {"run": "RUN"}],
    "lemons": [{"lemons_tab": tab} for tab in ("Lemons", "Repairs", "Validation")],
    "planner": [{"planner_tab": tab} for tab in ("The period again", "One job")],
    "ledger": [{"ledger_tab": tab} for tab in ("Lost work", "All buckets")],
    "stragglers": [{"stragglers_tab": tab}
                   for tab in ("Causes and parts", "Steps and workers", "All traces")],
}  # fmt: skip
"""Pages that show different terms as they are asked, and how."""
PAGES = [
    (menu.view(section, page), filters)
    for section, pages in menu.MENU.items()
    for page in pages
    for filters in SHOWN.get(page.name, [{}])
]


NAMED = {
    "JOB": "SELECT job_id FROM jobs JOIN failures USING (attempt_key) WHERE failures.domain = "
    "'hardware' ORDER BY n_gpus DESC, job_id LIMIT 1",
    "NODE": "SELECT node FROM failures WHERE node IS NOT NULL GROUP BY node "
    "ORDER BY count(*) DESC, node LIMIT 1",
    "INCIDENT": "SELECT incident_id FROM incidents ORDER BY n_jobs DESC, incident_id LIMIT 1",
    "USER": "SELECT user FROM jobs GROUP BY user ORDER BY count(*) DESC, user LIMIT 1",
    "RUN": "SELECT run_id FROM job_runs ORDER BY run_id LIMIT 1",
}
"""What each page of one thing is about -> how it is found in the demo."""


@pytest.fixture(scope="module")
def named(demo_store: Path) -> dict[str, str]:
    """Their names."""
    with closing(Store.open(demo_store)) as store:
        return {name: str(store.frame(sql).iloc[0, 0]) for name, sql in NAMED.items()}


def test_an_address_names_an_entry(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, term="node_mttf")
    assert not page.exception
    assert page.title[0].value == "MTTF of one node"
    (entry,) = [each.value for each in page.markdown if "term=node_mttf" in each.value]
    assert "24 h / (failures per node-day)" in entry
    assert "on [MTTF](mttf" in entry
    page.text_input(key="term").set_value("").run()
    everything = glossary.found(demo_store)
    table = page.dataframe[0].value
    assert page.title[0].value == f"{len(table)} terms; a search finds all {everything.n}"
    assert not page.header
    assert len(table) == len(glossary.listed(everything)) < everything.n
    assert {"label", "definition", "group"} <= set(table.columns)
    assert sorted(table["label"], key=str.casefold) == list(table["label"])


def test_it_needs_no_store(open_page: Callable[..., AppTest], empty_store: Path) -> None:
    page = open_page(empty_store, PAGE, term="ledger")
    assert not page.exception
    assert "terms hold 'ledger'" in page.title[0].value


@pytest.mark.slow
@pytest.mark.parametrize(("page", "filters"), PAGES)
def test_every_tooltip_is_an_entry_that_names_its_page(
    page: str,
    filters: dict[str, str],
    open_page: Callable[..., AppTest],
    demo_store: Path,
    named: dict[str, str],
) -> None:
    known = {each.term.definition: each.term for each in glossary.entries()}
    filters = {key: named.get(value, value) for key, value in filters.items()}
    shown = open_page(demo_store, page, period="all", **filters)
    assert not shown.exception
    told = [*_told(shown)]
    for name, text in told:
        if text in BY_DEFINITION:
            text = terms.FAILURE_RATE.definition
        assert text in known, f"{name}: {text!r} is no entry of the glossary"
        assert Path(page).stem in known[text].pages, f"{name}: {known[text].label}"


def _told(page: AppTest) -> Iterator[tuple[str, str]]:
    """Tooltips of the numbers and columns of a page, without what all of their kind say."""
    for metric in page.metric:
        yield metric.label, metric.proto.help.partition("\n\n")[0]
    for frame in page.dataframe:
        for name, column in json.loads(frame.proto.columns or "{}").items():
            text = ZONE.sub("", column.get("help") or "")
            if not NO_TERM.match(text):
                yield name, text
