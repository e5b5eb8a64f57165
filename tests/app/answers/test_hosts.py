"""Hosts that no job used: which of them need somebody, and what their page says."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import pytest

from app.answers.failures import node
from app.answers.fleet.actions import listed
from app.answers.fleet.actions.rows import of_hosts
from app.answers.nodes import lemons
from app.answers.reliability import mttf
from app.ask import of_store
from app.cli import main
from app.words import terms
from data.current import replace_file
from data.filters import Selection
from data.publish import writer
from data.sampled import sampled
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


DAY = datetime(2026, 1, 5, tzinfo=UTC)
NOBODY = "nobody"
NOW = DAY + timedelta(days=30)


def _events(
    host: str, check: str, severity: str, *minutes: float, cluster: str = "gpu"
) -> list[dict[str, Any]]:
    """Lines of a kernel's log, so many minutes after midnight."""
    return [
        {"cluster": cluster, "event_id": f"{host}-{check}-{minute}", "node": host,
         "observed_at": DAY + timedelta(minutes=minute), "source": "kernel", "check_name": check,
         "severity": severity, "message": f"{check} told"}
        for minute in minutes
    ]  # fmt: skip


EVENTS = [
    *_events("n1", "edac_uncorrected", "critical", 1),  # it runs jobs
    *_events("login1", "hung_task", "warning", 0, 0.2, 0.4, 2, 4),
    *_events("login1", "oom_kill", "warning", 10, 20, 30, 40),  # a program's own doing
    *_events("burst1", "hung_task", "warning", *(n / 100 for n in range(90))),  # one moment
    *_events("seldom1", "nic_link_down", "warning", 0, 1, 90 * 1440),
    *_events("corrected1", "edac_corrected", "info", 1, 2, 3, 4, 5),
    *_events("dtn1", "nic_link_down", "warning", 0, 1, 27 * 1440, cluster="blind"),
    *_events("mds1", "mce_uncorrected", "critical", 3, cluster="alone"),
    *_events("oss1", "filesystem_stopped", "critical", 7, cluster=NOBODY),
    *_events("oss1", "filesystem_hang", "warning", 1, 2, 3, cluster=NOBODY),
]
RAN = {"cluster": "gpu", "attempt_key": "a", "node": "n1", "n_gpus": 8, "start_at": DAY,
       "end_at": DAY + timedelta(days=2)}  # fmt: skip
JOB = {"cluster": "gpu", "attempt_key": "a", "job_id": "1", "state": "COMPLETED", "n_gpus": 8,
       "n_nodes": 1, "node_list": "n1", "submit_at": DAY, "start_at": DAY,
       "end_at": DAY + timedelta(days=2)}  # fmt: skip
UNPLACED = JOB | {"cluster": "blind", "attempt_key": "b", "job_id": "2", "node_list": None}


def _written(root: Path, **tables: list[dict[str, Any]]) -> Path:
    with writer(root) as building:
        frames = {name: pd.DataFrame(rows) for name, rows in tables.items()}
        for frame in frames.values():
            for name in frame.columns[frame.columns.str.endswith("_at")]:
                frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
        building.load(frames)
        current = building.publish()
    with duckdb.connect(
        str(root / current.file)
    ) as connection:  # hosts of which nobody knows whose
        for table in ("health_events", "nodes", "node_names", "incidents", "coverage"):
            connection.execute(f"UPDATE {table} SET cluster = NULL WHERE cluster = '{NOBODY}'")
        connection.execute(f"DELETE FROM clusters WHERE cluster = '{NOBODY}'")
    size, sample = sampled(root / current.file)  # else it is not what was published
    replace_file(root / "CURRENT", replace(current, size=size, sample=sample).to_json())
    return root


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Hosts of a cluster with a job on n1, of one whose job names no node, of one without jobs, and
    one of which nobody knows whose it is.
    """
    root = tmp_path_factory.mktemp("hosts") / "store"
    _written(root, jobs=[JOB, UNPLACED], job_nodes=[RAN], health_events=EVENTS)
    with closing(Store.open(root)) as opened:
        yield opened


def test_what_recurs_or_is_grave_is_told_and_nothing_is_said_to_be_at_stake(store: Store) -> None:
    everything = listed.listed(of_store(store), Selection(), NOW).due
    found = {row.named["node"]: row for row in everything if row.kind == "host"}
    assert {name: row.what for name, row in found.items()} == {
        "mds1": "Look after host mds1: mce uncorrected",
        "oss1": "Look after host oss1: filesystem stopped",
        "login1": "Look after host login1: hung task",
        "dtn1": "Look after host dtn1: nic link down",
    }
    assert {*list(found)[:2]} == {"mds1", "oss1"}, "what is grave comes first"
    login1, oss1 = found["login1"], found["oss1"]
    assert login1.why == (
        "hung task 3 times, 5 Jan 2026 00:00 to 5 Jan 2026 00:04 UTC; at risk: all that runs there, "
        "as it can stop at any time; no job ran here in the records"
    )
    assert "filesystem hang 3 times" in oss1.why
    assert "cluster unknown" in oss1.why
    assert login1.named == {"node": "login1", "cluster": "gpu"}
    assert oss1.named == {"node": "oss1"}
    assert {row.stake for row in found.values()} == {None}
    assert "at risk: what is stored there or served from there" in oss1.why
    assert [row.kind for row in everything if "mds1" in row.what] == ["host"], (
        "no other row tells it"
    )
    places = [row.gpu_hours is None for row in everything if not row.is_over]
    assert places == sorted(places), "what is known comes first"


def test_filters_and_a_year_of_nothing_leave_no_host(store: Store) -> None:
    for selection, names in (
        (Selection("gpu"), ["login1"]),
        (Selection(partition="a"), []),
        (Selection(from_at=DAY + timedelta(days=365)), []),
    ):
        assert [row.named["node"] for row in of_hosts(of_store(store), selection)] == names


@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "whose", "events", "jobs"),
    [
        ("login1", "cluster gpu", "9 health events, 0 of them", "no job ran here in the records"),
        ("oss1", "cluster unknown", "4 health events, 1 of them", "no job is known to have run"),
        ("dtn1", "cluster blind", "3 health events, 0 of them",
         "no job is known to have run here; nothing says where 1 of 1 attempts ran"),
        ("mds1", "cluster alone", "1 health event, 1 of them",
         "the records hold no job of cluster alone"),
    ],
)  # fmt: skip
def test_the_page_of_a_host_without_jobs_shows_its_events_and_judges_nothing(
    store: Store, host: str, whose: str, events: str, jobs: str
) -> None:
    ask, one = of_store(store), node.node(store, host, Selection())
    answer = node.answer(ask, host, Selection())
    assert answer.sentence.startswith(
        f"{host} had {events} critical or fatal in this period; {jobs}"
    )
    numbers = {number.term: number for number in answer.numbers}
    assert ask(mttf.measured, Selection()).rate.failures == 0, "a host of no cluster breaks no rate"
    for term in (terms.NODE_FAILURES, terms.NODE_OUTAGES, terms.NODE_TICKETS):
        assert (numbers[term].value, numbers[term].exact) == ("unknown", None)
    assert len(node.events(one)) == len(one.events) > 0
    assert lemons.of_node(ask, one.cluster, one.node, Selection()) is None
    assert node.basis(one).startswith(whose)


def test_of_incidents_too_nobody_says_that_there_was_none_where_none_could_be_seen(
    store: Store,
) -> None:
    ask = of_store(store)
    assert node.in_no_incident(ask, None).endswith("cannot be judged: its cluster is not known.")
    assert node.in_no_incident(ask, "gpu") == "No incident names this node."
    assert "no failure could be seen" in node.in_no_incident(ask, "nowhere")


@pytest.mark.slow
def test_the_report_of_a_host_of_no_known_cluster_says_so(store: Store, tmp_path: Path) -> None:
    command = ["report", "--store", str(store.root), "--kind", "node", "--node", "oss1"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    (written,) = tmp_path.glob("*.html")
    assert "node oss1 of cluster unknown" in written.read_text(encoding="utf-8")
