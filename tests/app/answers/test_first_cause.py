"""Failures have one cost, the ledger's: every page names the same first cause by it."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from app.answers.efficiency import ettr, ledger
from app.answers.failures import incidents, summary
from app.answers.fleet import overview
from app.ask import of_store
from app.reports import kinds
from data.filters import Selection
from data.publish import writer
from data.state import State
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

DAY = datetime(2026, 1, 5, tzinfo=UTC)
LONG_USER, SHORT_DEAR, LONG_CHEAP = "KeyError: 'mask'", "nvlink down", "PSU 2 failure"


@pytest.fixture(scope="module")
def contrary(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Path:
    """Three ways to rank causes, each with another first.

    A user's error held most GPU-hours, and lost nothing. A power supply ended most attempts and
    held more than NVLink; most is lost by NVLink, on one job of several nodes that saved last five
    hours before, which the 30-minute rule takes for half an hour as every other.
    """
    root = shutil.copytree(empty_store, tmp_path_factory.mktemp("contrary") / "store")
    (root / "site.toml").write_text("[cluster.c]\ngpus_per_node = 8\n", encoding="utf-8")
    rows: dict[str, list[dict[str, Any]]] = {
        name: [] for name in ("jobs", "job_nodes", "health_events", "job_logs", "training_metrics")
    }
    _attempt(rows, "first", hours=1, start=DAY)
    _attempt(rows, "user", hours=200, start=DAY, log=LONG_USER)
    for n in range(4):
        _attempt(rows, f"power{n}", hours=0.5, start=DAY + timedelta(days=n), n_nodes=2,
                 check=LONG_CHEAP)  # fmt: skip
    _attempt(rows, "nvlink", hours=6, start=DAY, n_nodes=2, check=SHORT_DEAR)
    _save(rows["training_metrics"], "nvlink", hour=1)
    with writer(root) as building:
        building.load({name: _frame(of) for name, of in rows.items()})
        building.publish(ledger=True)
    return root


def _attempt(
    rows: dict[str, list[dict[str, Any]]], key: str, *, hours: float, start: datetime,
    n_nodes: int = 1, **shows: str,
) -> None:  # fmt: skip
    base, end = {"cluster": "c", "attempt_key": key}, start + timedelta(hours=hours)
    held = [f"{key}-{n}" for n in range(n_nodes)]
    rows["jobs"].append(
        base | {"job_id": key, "state": "FAILED" if shows else "COMPLETED", "n_gpus": 8 * n_nodes,
                "n_nodes": n_nodes, "node_list": ",".join(held), "partition": "p", "account": "a",
                "submit_at": start, "eligible_at": start, "start_at": start, "end_at": end}
    )  # fmt: skip
    rows["job_nodes"] += [
        base | {"node": node, "n_gpus": 8, "start_at": start, "end_at": end} for node in held
    ]
    if "check" in shows:
        rows["health_events"].append(
            {"cluster": "c", "event_id": key, "node": held[0], "observed_at": end,
             "source": "health_check", "check_name": "check-node", "severity": "critical",
             "message": shows["check"]}
        )  # fmt: skip
    if "log" in shows:
        lines = ("Traceback (most recent call last):", shows["log"])
        rows["job_logs"] += [
            base | {"file": key, "line_no": n, "text": text} for n, text in enumerate(lines, 1)
        ]


def _save(rows: list[dict[str, Any]], key: str, *, hour: int) -> None:
    """A step every ten minutes from the start on; one save, at an hour."""
    rows += [{"cluster": "c", "attempt_key": key, "job_id": key, "step": minute, "rank": 0,
              "logged_at": DAY + timedelta(minutes=minute), "step_time_s": 60.0,
              "checkpoint_event": None, "loss": 1.0} for minute in range(10, 360, 10)]  # fmt: skip
    rows.append({"cluster": "c", "attempt_key": key, "job_id": key, "step": hour * 60, "rank": 0,
                 "logged_at": DAY + timedelta(hours=hour, seconds=30), "step_time_s": None,
                 "checkpoint_event": "saved", "loss": None})  # fmt: skip


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for name in frame.columns.intersection(
        ["submit_at", "eligible_at", "start_at", "end_at", "observed_at", "logged_at"]
    ):
        frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
    return frame


def first_causes(root: Path) -> dict[str, Any]:
    """The first cause of each page and of the report, and its cost."""
    with closing(Store.open(root)) as store:
        ask, everything = of_store(store), Selection()
        of_ledger = ledger.answer(ask, everything)
        of_failures = summary.answer(ask, everything)
        of_incidents = incidents.answer(ask, everything, incidents.Kind())
        report = kinds.report(store, "fleet")
        tables = {table.key: table for table in report.tables}
        headlines = (*of_ledger.numbers, *of_failures.numbers, *of_incidents.numbers,
                     *report.headlines, *overview.answer(ask, everything).numbers)  # fmt: skip
        return {
            "causes": {
                of_ledger.table("lost_work").values[0][-1],
                of_failures.table("causes").values[0][-1],
                of_incidents.table("incident_causes").values[0][-1],
                tables["causes"].values[0][-1],
                tables["incident_causes"].values[0][-1],
                tables["lost_work"].values[0][-1],
                *(answer.record["costliest_cause"]
                  for answer in (of_ledger, of_failures, of_incidents)),
            },
            "definitions": {
                answer.record["definition"]
                for answer in (of_ledger, of_failures, of_incidents, ettr.answer(ask, everything))
            },
            "costs": [n.exact for n in headlines if n.term.label == "Lost: failures, GPU-h"],
        }  # fmt: skip


@pytest.mark.slow
def test_every_page_names_the_first_cause_of_the_ledger_where_other_costs_rank_otherwise(
    contrary: Path,
) -> None:
    found = first_causes(contrary)
    assert found["causes"] == {"nvlink"}
    assert found["definitions"] == {"infrastructure"}
    assert len(found["costs"]) == 5
    assert len(set(found["costs"])) == 1
    with closing(Store.open(contrary)) as store:
        ask = of_store(store)
        held = {one["cause"]: one["gpu_hours"]
                for one in summary.answer(ask, Selection()).record["by_cause"]}  # fmt: skip
        ruled = dict(
            store.rows("SELECT cause, sum(lost_gpu_seconds) FROM incidents GROUP BY cause")
        )
    assert max(held, key=held.__getitem__) == "key_error"
    assert max(ruled, key=ruled.__getitem__) == "power"


@pytest.mark.slow
def test_every_page_of_the_demo_names_the_first_cause_of_the_ledger(demo_store: Path) -> None:
    found = first_causes(demo_store)
    assert len(found["causes"]) == 1
    assert None not in found["causes"]
    assert len(set(found["costs"])) == 1


@pytest.mark.slow
def test_without_a_ledger_no_other_cost_takes_its_place(contrary: Path, tmp_path: Path) -> None:
    root = shutil.copytree(contrary, tmp_path / "store")
    State(root).annotate("attempt:c/user", "cause", "key_error", author="me")  # newer than it
    with closing(Store.open(root)) as store:
        ask, everything = of_store(store), Selection()
        answers = (
            summary.answer(ask, everything),
            incidents.answer(ask, everything, incidents.Kind()),
            overview.answer(ask, everything),
        )
        report = kinds.report(store, "fleet")
    for numbers in (*(answer.numbers for answer in answers), report.headlines):
        shown = {number.term.label: number for number in numbers}
        assert shown["Lost: failures, GPU-h"].value == "not computed yet"
        assert not {"Incidents by the 30-minute rule, GPU-h", "Held by failed jobs, GPU-h"} & set(
            list(shown)[:3]
        )
    assert answers[0].record["costliest_cause"] is None
    assert "GPU-hours" not in answers[1].sentence
