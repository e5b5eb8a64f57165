"""What each definition counts as a failure, on records that no generator makes."""

from __future__ import annotations

import shutil
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from analytics.frames import FAILURE_DEFINITIONS
from analytics.reliability.mttf import mttf_report
from analytics.reliability.sensitivity import WITH_UNKNOWNS
from app.answers.efficiency import ledger
from app.answers.failures import verdicts
from app.answers.reliability import sensitivity
from app.ask import of_store
from app.reports import kinds
from data.filters import Selection
from data.publish import writer
from data.queries import failures, incidents, reliability
from data.state import State
from data.store import Store
from tests.written_current import as_earlier

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

DAY = datetime(2026, 1, 5, tzinfo=UTC)
COUNTED = {
    "done": set(),
    "remounted": {"infrastructure"},
    "critical": {"infrastructure", "paper", "hardware"},
    "overruled": {"paper"},
    "lost": {"infrastructure", "paper", "hardware", "scheduler"},
    "lost_later": {"infrastructure", "hardware", "scheduler"},
    "warned": set(),
    "timed_out": set(),
    "cancelled": set(),
    "cancelled_by_root": {"infrastructure", "hardware", "scheduler"},
    "silent": set(),
}
"""Attempt -> the definitions that count it; the ledger begins with the first end, which is no loss."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, empty_store: Path) -> Iterator[Store]:
    """One attempt of each kind on its own node; all end at noon of a day of their own."""
    root = shutil.copytree(empty_store, tmp_path_factory.mktemp("definitions") / "store")
    (root / "site.toml").write_text("[cluster.c]\ngpus_per_node = 8\n", encoding="utf-8")
    state = {"lost": "NODE_FAIL", "timed_out": "TIMEOUT", "done": "COMPLETED",
             "cancelled": "CANCELLED", "cancelled_by_root": "CANCELLED",
             "lost_later": "COMPLETED"}  # fmt: skip
    raw = {"cancelled": "CANCELLED by 1000", "cancelled_by_root": "CANCELLED by 0"}
    jobs, nodes, events, outages, logs = [], [], [], [], []
    for number, key in enumerate(COUNTED):
        end = DAY + timedelta(days=number, hours=12)
        base = {"cluster": "c", "attempt_key": key}
        lost = key in ("lost", "lost_later", "cancelled", "cancelled_by_root")
        jobs.append(
            base
            | {"job_id": key, "state": state.get(key, "FAILED"), "state_raw": raw.get(key),
               "n_gpus": 8, "n_nodes": 1, "node_list": key, "partition": "p", "account": "a",
               "submit_at": end - timedelta(hours=2), "start_at": end - timedelta(hours=2),
               "end_at": end, "failed_node": key if lost else None}
        )  # fmt: skip
        nodes.append(base | {"node": key, "n_gpus": 8, "start_at": end - timedelta(hours=2),
                             "end_at": end})  # fmt: skip
        if key in ("critical", "overruled", "warned", "timed_out", "cancelled", "done"):
            severity = "warning" if key == "warned" else "critical"
            events.append({"cluster": "c", "event_id": key, "node": key, "observed_at": end,
                           "source": "health_check", "check_name": "check-pci",
                           "severity": severity, "message": "GPU device missing from the PCI tree"})  # fmt: skip
        if key == "remounted":
            outages.append({"cluster": "c", "node": key, "start_at": end, "state": "DRAIN",
                            "reason": "operator: remounted", "planned": False})  # fmt: skip
        if key == "overruled":
            lines = ("Traceback (most recent call last):", "KeyError: 'attention_mask'")
            logs += [base | {"file": "log", "line_no": n, "text": line}
                     for n, line in enumerate(lines, 1)]  # fmt: skip
    with writer(root) as building:
        tables = {"jobs": jobs, "job_nodes": nodes, "health_events": events,
                  "node_events": outages, "job_logs": logs}  # fmt: skip
        building.load({name: _frame(rows) for name, rows in tables.items()})
        building.publish(ledger=True)
    with closing(Store.open(root)) as opened:
        yield opened


def _frame(rows: list[dict[str, Any]]) -> pd.DataFrame:
    frame = pd.DataFrame(rows)
    for name in frame.columns.intersection(["submit_at", "start_at", "end_at", "observed_at"]):
        frame[name] = pd.to_datetime(frame[name], utc=True).astype("datetime64[us, UTC]")
    return frame


def counted(store: Store, **chosen: Any) -> set[str]:
    return set(reliability.failure_rows(store, Selection(**chosen), 100)["attempt_key"])


@pytest.mark.parametrize("definition", FAILURE_DEFINITIONS)
def test_each_definition_counts_what_it_says(store: Store, definition: Any) -> None:
    expected = {key for key, definitions in COUNTED.items() if definition in definitions}
    assert counted(store, definition=definition) == expected
    assert verdicts.summarised(store, Selection(definition=definition)).counted.n == len(expected)


def test_what_its_user_cancelled_is_no_failure_whatever_its_evidence(store: Store) -> None:
    found = failures.verdict_rows(store, Selection()).set_index("attempt_key")
    assert found.loc["cancelled", "domain"] == "hardware"
    for definition in FAILURE_DEFINITIONS:
        assert "cancelled" not in counted(store, definition=definition)


def test_rate_ledger_and_incidents_count_the_same_failures(store: Store) -> None:
    by_default = counted(store)
    losses = [loss for loss in ledger.measured(store, Selection()).losses
              if loss.bucket == "lost_work"]  # fmt: skip
    assert sum(loss.n_attempts for loss in losses) == len(by_default)
    ids = incidents.incident_rows(store, Selection())["incident_id"].tolist()
    members = incidents.evidence_rows(store, ids)
    assert set(members.loc[members["kind"].eq("failure"), "key"]) == by_default


def test_the_sensitivity_table_holds_the_rate_of_every_definition(store: Store) -> None:
    found = sensitivity.measured(store, Selection())
    *named, last = found.rows
    for row, definition in zip(named, FAILURE_DEFINITIONS, strict=True):
        report = mttf_report(reliability.failure_counts(store, Selection(definition=definition)))
        assert (row.definition, row.failures) == (definition, report.rate.failures)
        assert row.rate_per_1000_node_days == report.rate.rate_per_1000_node_days
    assert last.definition == WITH_UNKNOWNS
    assert found.unexplained.unexplained == 2  # silent, and the one that was only warned of
    assert (found.unexplained.lost, found.unexplained.lost_explained) == (3, 0)
    rate, upper = named[0].rate_per_1000_node_days, last.rate_per_1000_node_days.upper
    assert last.failures is None
    assert last.rate_per_1000_node_days.lower == rate.lower
    assert upper == pytest.approx(rate.upper + 2 * 1000 * 12 / len(COUNTED))


def test_a_person_can_say_that_hardware_ended_what_was_cancelled(
    store: Store, tmp_path: Path
) -> None:
    root = shutil.copytree(store.root, tmp_path / "store")
    State(root).annotate("attempt:c/cancelled", "cause", "pcie", author="me")
    with closing(Store.open(root)) as said:
        assert counted(said) - counted(store) == {"cancelled"}


@pytest.mark.slow
def test_the_first_report_after_an_upgrade_names_the_former_definition(
    store: Store, tmp_path: Path
) -> None:
    root = shutil.copytree(store.root, tmp_path / "store")
    as_earlier(root, 5)
    with closing(Store.open(root)) as upgraded:
        assert upgraded.snapshot == store.snapshot + 1
        ask = of_store(upgraded)
        found = ask(sensitivity.measured, Selection())
        said = sensitivity.changed(ask, Selection(), found)
        later = Selection(from_at=datetime.now(UTC) + timedelta(days=1))
        assert sensitivity.changed(ask, later, found) == ""
        assert said in kinds.report(upgraded, "fleet").summary
    assert "by definition hardware, since then by infrastructure" in said
    assert "5 failures by infrastructure and 4 by hardware" in said
    assert sensitivity.changed(of_store(store), Selection(), found) == ""


def test_accounting_alone_says_what_no_definition_can_see(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    few = type(random_rows(0))(gpus_per_node={"gpu": 8})
    few.job("a", ("n1",), state="FAILED", start_at=DAY, end_at=DAY + timedelta(hours=1))
    few.job("b", ("n2",), state="NODE_FAIL", start_at=DAY, end_at=DAY + timedelta(hours=1))
    found = sensitivity.measured(store_of(few), Selection())
    assert [row.failures for row in found.rows] == [1, 1, 1, 1, None]
    assert (found.unchecked, found.unexplained.unexplained) == (1, 1)
    note = sensitivity.table(found).note
    assert "No health event is known: paper can count none of 1 attempt that ended FAILED." in note
    assert "from none to all" in note
