"""Incident: what happened here, why, what did it hit, and what next?"""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from app.answers.failures import incident, incidents
from data.filters import Selection
from data.publish import writer
from data.state import State
from data.store import Store
from tests.app.views.conftest import in_sight, whole

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from streamlit.testing.v1 import AppTest

PAGE = "views/failures/incident.py"


def _one(store: Path, condition: str) -> str:
    """An incident."""
    with closing(Store.open(store)) as opened:
        rows = opened.rows(
            f"SELECT incident_id FROM incidents WHERE {condition} ORDER BY lost_gpu_seconds DESC"
        )
    return str(rows[0][0])


@pytest.fixture
def own_demo(demo_store: Path, tmp_path: Path) -> Path:
    """A demo store that can be written."""
    return shutil.copytree(demo_store, tmp_path / "store")


def test_without_an_id_the_latest_can_be_picked(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    page = open_page(demo_store, PAGE, period="all")
    assert not page.exception
    assert page.title[0].value == "Which incident?"
    assert "incident_id" in page.dataframe[0].value.columns


def test_a_link_shows_what_happened_who_acts_and_the_evidence(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    name = _one(demo_store, "n_failures > 0 AND n_events > 0")
    page = open_page(demo_store, PAGE, incident=name)
    assert not page.exception
    with closing(Store.open(demo_store)) as store:
        found = incident.incident(store, name)
    where = found.cause.title.partition(" (")[0]
    assert page.title[0].value.startswith(f"{where} on node ")
    assert whole(page) == f"{found.row['summary']}."
    assert found.cause.title in whole(page)
    owner = next(text for text in in_sight(page) if text.startswith("**"))
    assert found.cause.action in owner
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["Jobs hit"] == str(found.row["n_jobs"])
    assert shown["Nodes"] == str(found.row["n_nodes"])
    assert shown["Confidence of the cause"] == f"{100 * found.confidence:.3g} %"
    assert len(page.get("plotly_chart")) == 2
    phases, evidence = (each.value for each in page.dataframe[:2])
    assert phases["phase"].tolist() == ["first event", "spread", "preemptions", "recovery"]
    assert len(evidence) == len(found.members)
    assert evidence["start_at"].is_monotonic_increasing


@pytest.fixture
def preempted_store(tmp_path: Path) -> Path:
    """The requeue of job 1, which lost its node, took the place of job 2."""
    at = datetime(2026, 1, 5, tzinfo=UTC)
    hours = {name: at + timedelta(hours=n) for n, name in enumerate(("began", "lost", "again"))}
    lost = {"cluster": "c", "attempt_key": "1", "job_id": "1", "attempt": 1, "state": "NODE_FAIL",
            "submit_at": at, "start_at": at, "end_at": hours["lost"], "node_list": "n1",
            "failed_node": "n1", "n_nodes": 1, "n_gpus": 8}  # fmt: skip
    requeue = {"attempt_key": "1-2", "attempt": 2, "state": "RUNNING", "node_list": "n2",
               "submit_at": hours["lost"], "start_at": hours["again"], "end_at": pd.NaT,
               "failed_node": None}  # fmt: skip
    aside = {"attempt_key": "2", "job_id": "2", "state": "PREEMPTED", "node_list": "n2",
             "end_at": hours["again"], "failed_node": None, "preempted_by": "1"}  # fmt: skip
    with writer(tmp_path / "store") as building:
        building.merge({"jobs": pd.DataFrame([lost, lost | requeue, lost | aside])})
        building.publish()
    return tmp_path / "store"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("condition", "store"),
    [
        ("n_jobs = 0", "incident_store"),
        ("cause = 'node_lost' AND NOT retired", "incident_store"),
        ("n_preempted > 0", "preempted_store"),
        ("domain = 'hardware'", "incident_store"),
    ],
)
def test_every_kind_of_incident_opens(
    open_page: Callable[..., AppTest], request: pytest.FixtureRequest, condition: str, store: str
) -> None:
    root = request.getfixturevalue(store)
    page = open_page(root, PAGE, incident=_one(root, condition))
    assert not page.exception
    assert page.metric


@pytest.mark.slow
def test_every_incident_of_the_list_opens(
    open_page: Callable[..., AppTest], incident_store: Path
) -> None:
    with closing(Store.open(incident_store)) as store:
        ids = incidents.rows(store, Selection(), incidents.Kind(), limit=9)["incident_id"]
    assert len(ids) == 2
    for name in ids:
        assert not open_page(incident_store, PAGE, incident=name).exception


@pytest.mark.slow
def test_a_crash_loop_says_how_often_and_what_it_preempted(
    open_page: Callable[..., AppTest], incident_store: Path
) -> None:
    page = open_page(incident_store, PAGE, incident=_one(incident_store, "loop_failures > 0"))
    assert not page.exception
    said = " ".join(f"{block.value} {block.help}" for block in page.caption)
    assert "One job failed 4 times in a row, with 3 requeues between" in said
    assert "They preempted no other job" in said


@pytest.mark.slow
def test_an_id_that_was_merged_leads_to_its_heir(
    open_page: Callable[..., AppTest], incident_store: Path
) -> None:
    old = _one(incident_store, "superseded_by IS NOT NULL")
    page = open_page(incident_store, PAGE, incident=old)
    assert not page.exception
    assert f"Incident {old} was merged into" in page.info[0].value


def test_an_incident_that_is_none_any_more_says_so(
    open_page: Callable[..., AppTest], incident_store: Path
) -> None:
    gone = _one(incident_store, "retired AND superseded_by IS NULL")
    page = open_page(incident_store, PAGE, incident=gone)
    assert not page.exception
    assert page.warning[0].value.startswith("Retired")


def test_an_unknown_id_names_one_that_is_near(
    open_page: Callable[..., AppTest], demo_store: Path
) -> None:
    name = _one(demo_store, "n_jobs > 0")
    page = open_page(demo_store, PAGE, incident=name[:6])
    assert not page.exception
    assert "did you mean" in page.warning[0].value
    assert page.title[0].value == "Which incident?"


@pytest.mark.slow
def test_people_decide_cause_and_status_and_can_take_it_back(
    open_page: Callable[..., AppTest], own_demo: Path
) -> None:
    name = _one(own_demo, "cause <> 'power' AND n_failures > 0")
    page = open_page(own_demo, PAGE, incident=name)
    box = {each.label: each for each in page.selectbox}
    box["Cause"].set_value("power")
    box["Status"].set_value("acknowledged")
    next(each for each in page.text_area if each.label == "Note").set_value("breaker *tripped*")
    page = page.button[_place(page, "Save")].click().run()
    assert not page.exception
    assert any("A person decided the cause" in caption.value for caption in page.caption)
    assert {each.field for each in State(own_demo).history(f"incident:{name}")} == {
        "cause", "status", "note",
    }  # fmt: skip
    shown = {metric.label: metric.value for metric in page.metric}
    assert shown["Confidence of the cause"] == "100 %"
    for _ in range(3):
        page = page.button[_place(page, "Undo")].click().run()
    assert not page.exception
    assert not any("A person decided" in caption.value for caption in page.caption)


@pytest.mark.slow
def test_two_incidents_are_merged_and_parted_on_the_page(
    open_page: Callable[..., AppTest], own_demo: Path
) -> None:
    with closing(Store.open(own_demo)) as store:
        rows = incidents.rows(store, Selection(), incidents.Kind(), limit=2)
    one, other = rows["incident_id"]
    page = open_page(own_demo, PAGE, incident=one)
    fields = {each.label: each for each in page.text_input}
    fields["This is the same as incident"].set_value(other)
    page = page.button[_place(page, "Merge into it")].click().run()
    assert not page.exception
    assert page.info[0].value == f"Incident {one} was merged into {other}, which is shown."
    assert {each.label: each.value for each in page.metric}["Jobs hit"] == str(rows["n_jobs"].sum())
    page = page.button[_place(page, "Undo")].click().run()
    assert not page.exception
    assert whole(page) == f"{rows['summary'][0]}."


def _place(page: AppTest, label: str) -> int:
    """Where the page, not the bar in its head, has a button of this label."""
    return next(
        n
        for n, button in enumerate(page.button)
        if button.label == label and "bar_" not in (button.key or "")
    )


def test_an_empty_store_says_how_to_fill_it(
    open_page: Callable[..., AppTest], empty_store: Path
) -> None:
    page = open_page(empty_store, PAGE, incident="abc")
    assert not page.exception
    assert page.title[0].value == "This store holds no data yet"
