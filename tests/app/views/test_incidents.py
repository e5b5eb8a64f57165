"""Incidents: what happened, and what needs me?"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from app import actions
from app.answers.failures import incidents
from data.filters import Selection
from data.store import Store
from tests.app.views.conftest import in_sight, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/failures/incidents.py"


def test_the_answer_stands_first_with_the_numbers_of_the_command(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    with closing(Store.open(demo_store)) as store:
        summary = incidents.summarised(store, Selection(), incidents.Kind())
    assert page.title[0].value.startswith(
        f"{summary.n_with_jobs} incidents hit jobs, failures lost"
    )
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["Open incidents"] == str(summary.n_open)
    rate = summary.rate_per_1000_node_days
    assert shown["Incidents that hit jobs per 1,000 node-days"] == f"{rate.value:.3g}"
    assert len(page.get("plotly_chart")) == 1
    assert len(page.dataframe[0].value) == summary.n_incidents


@pytest.mark.parametrize("tab", ["Causes", "Signals that come together"])
def test_every_tab_opens_from_a_link(
    open_page: Callable[..., AppTest], incident_store: Path, tab: str
) -> None:
    page = open_page(incident_store, PAGE, period="all", incidents_tab=tab)
    assert not page.exception
    columns = {"Causes": "ledger_gpu_hours", "Signals that come together": "lift"}
    assert columns[tab] in page.dataframe[0].value.columns


@pytest.mark.slow
@pytest.mark.parametrize(
    ("chosen", "changes"),
    [
        ({"of_status": "open"}, True),
        ({"of_status": "resolved"}, True),
        ({"period": "7d"}, True),
        ({"min_gpus": "64"}, True),
        ({"cluster": "demo"}, False),
    ],
    ids=str,
)
def test_each_filter_of_a_link_changes_the_answer_where_incidents_differ(
    answers: Callable[..., tuple[AppTest, bool]],
    demo_store: Path,
    chosen: dict[str, str],
    changes: bool,
) -> None:
    _, changed = answers(demo_store, PAGE, chosen, period="all")
    assert changed == changes  # all are of the one cluster; of a status the ledger knows no cost


@pytest.mark.parametrize("domain", ["hardware", "unknown"])
def test_a_domain_can_be_chosen_in_the_address(
    open_page: Callable[..., AppTest], incident_store: Path, domain: str
) -> None:
    page = open_page(incident_store, PAGE, period="all", of_domain=domain)
    assert not page.exception
    assert set(page.dataframe[0].value["domain"]) == {domain}


def test_a_cause_can_be_chosen(open_page: Callable[..., AppTest], demo_store: Path) -> None:
    page = open_page(demo_store, PAGE, period="all")
    box = next(box for box in page.selectbox if box.label == "Cause")
    page = box.select_index(1).run()
    assert not page.exception
    assert page.dataframe[0].value["cause"].nunique() == 1


def test_a_crash_loop_is_counted_and_a_loss_is_not_until_it_is_computed(
    open_page: Callable[..., AppTest], incident_store: Path
) -> None:
    page = open_page(incident_store, PAGE, period="all")
    assert not page.exception
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["Crash loops"] == "1"
    assert shown["Lost: failures, GPU-h"] == "not computed yet"  # nobody built the ledger
    assert page.button(key="compute").label == "Compute what failures cost"
    assert set(page.dataframe[0].value["incident_id"]) == _living(incident_store)


def _living(store: Path) -> set[str]:
    with closing(Store.open(store)) as opened:
        return {row[0] for row in opened.rows("FROM incidents WHERE NOT retired")}


def test_none_of_the_chosen_kind_says_so(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all", of_status="resolved")
    assert not page.exception
    assert "No incident of this kind (resolved)" in in_sight(page)[0]


def test_without_events_it_says_what_would_bring_them(
    open_page: Callable[..., AppTest], tmp_path: Path
) -> None:
    text = (
        "JobID|Cluster|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
        "1|c|COMPLETED|2026-01-05T00:00:00|2026-01-05T00:00:00|2026-01-06T00:00:00|1|gres/gpu=8|n1\n"
    )
    (tmp_path / "sacct.txt").write_text(text, encoding="utf-8")
    root = tmp_path / "store"
    actions.ingest_files(root, "sacct", [str(tmp_path / "sacct.txt")], actions.Options())
    page = open_page(root, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value == "Whether there was an incident cannot be judged"
    assert whole(page).startswith(f"{page.title[0].value}: no failure could be seen")
    assert "cannot be judged" in in_sight(page)[0]
    assert "faultline ingest kernel-log" in page.code[0].value


def test_an_empty_store_says_how_to_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE)
    assert not page.exception
    assert page.title[0].value == "This store holds no data yet"
