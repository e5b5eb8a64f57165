"""Targets: measured, their budgets, and alerts where a burn is beyond chance."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pytest

from app.alerts import budgets
from app.alerts.rule import Watch
from app.alerts.rules import availability_target, ettr_target, failure_rate_target
from app.answers.fleet import targets
from app.answers.fleet.actions.action import target
from app.ask import of_store, once
from data.filters import Selection
from data.publish import writer
from data.site_alerts import AlertSettings, Targets
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.alerts.rule import Found, Rule

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
N_NODES, N_DAYS, CHANGE = 40, 84, 56
AIMS = Targets(availability=0.95, ettr=0.9, failures_per_1000_node_days=20.0)


def tables(cluster: str, *, worse: bool) -> dict[str, list[dict[str, object]]]:
    """Nodes that go out by chance, and jobs of a day that fail by it; in the last four weeks seven
    and eight times as often."""
    rng = np.random.default_rng(6)
    found: dict[str, list[dict[str, object]]] = {"jobs": [], "job_nodes": [], "node_events": []}
    for day in range(N_DAYS):
        more = worse and day >= CHANGE
        for node in range(N_NODES):
            name, at = f"n{node:02}", START + day * DAY
            fails = rng.random() < (0.08 if more else 0.01)
            end_at = at + (rng.uniform(1, 23) if fails else 23.9) * HOUR
            key = f"{cluster}{day}.{node}"
            found["job_nodes"].append(
                {
                    "cluster": cluster,
                    "attempt_key": key,
                    "node": name,
                    "n_gpus": 8,
                    "start_at": at,
                    "end_at": end_at,
                }
            )
            found["jobs"].append({
                "cluster": cluster, "attempt_key": key,
                "job_id": f"{day}{node:02}", "state": "NODE_FAIL" if fails else "COMPLETED",
                "n_gpus": 8, "n_nodes": 1, "node_list": name, "submit_at": at, "start_at": at,
                "end_at": end_at,
            })  # fmt: skip
            if rng.random() < (0.3 if more else 0.04):
                out_at = at + rng.uniform(0, 12) * HOUR
                found["node_events"].append({
                    "cluster": cluster, "node": name, "start_at": out_at, "state": "DOWN",
                    "end_at": out_at + rng.exponential(14) * HOUR, "planned": False,
                })  # fmt: skip
    return found


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster that keeps its targets, one that no longer does, and one that is blind."""
    root = tmp_path_factory.mktemp("targets") / "store"
    parts = [tables("keeps", worse=False), tables("misses", worse=True)]
    blind = pd.DataFrame([row | {"cluster": "blind"} for row in parts[0]["jobs"][:400]])
    with writer(root) as building:
        jobs = [row for part in parts for row in part["jobs"]]
        building.load({
            "jobs": pd.concat([pd.DataFrame(jobs), blind]),
            "job_nodes": pd.DataFrame([row for part in parts for row in part["job_nodes"]]),
            "node_events": pd.DataFrame([row for part in parts for row in part["node_events"]]),
        })  # fmt: skip
        building.publish()
    (root / "site.toml").write_text(
        "[alerts.targets]\navailability = 0.95\nettr = 0.9\nfailures_per_1000_node_days = 20\n"
    )
    return root


@pytest.fixture(scope="module")
def store(root: Path) -> Iterator[Store]:
    with closing(Store.open(root)) as opened:
        yield opened


def found(rule: Rule, store: Store, cluster: str, days: float = N_DAYS) -> Found:
    watch = Watch(
        Selection(cluster), START, START + days * DAY, AlertSettings(targets=AIMS), 1 / 12
    )
    return rule.find(of_store(store), watch)


@pytest.mark.parametrize("rule", [availability_target.RULE, failure_rate_target.RULE])
def test_a_target_that_is_missed_from_some_day_on_is_told_once(store: Store, rule: Rule) -> None:
    (one,) = found(rule, store, "misses").episodes
    change_at = START + CHANGE * DAY
    assert change_at - 2 * DAY <= one.since_at <= change_at + 6 * DAY
    assert change_at < one.raised_at <= change_at + 14 * DAY
    assert one.ended_at is None
    assert one.target == target(rule.name, "misses")
    assert "times as fast as allowed" in one.sentence


@pytest.mark.parametrize("rule", [availability_target.RULE, failure_rate_target.RULE])
def test_a_target_that_is_kept_is_never_told(store: Store, rule: Rule) -> None:
    kept = found(rule, store, "keeps")
    assert (kept.episodes, kept.blind) == ((), None)


def test_what_would_have_fired_is_what_fired(store: Store) -> None:
    (whole,) = found(availability_target.RULE, store, "misses").episodes
    days = (whole.raised_at - START) / DAY
    assert not found(availability_target.RULE, store, "misses", days - 1 / 24).episodes
    (then,) = found(availability_target.RULE, store, "misses", days).episodes
    assert (then.raised_at, then.sentence) == (whole.raised_at, whole.sentence)


def test_without_sight_nothing_is_judged(store: Store) -> None:
    assert found(availability_target.RULE, store, "blind").blind == availability_target.BLIND
    for rule in (failure_rate_target.RULE, ettr_target.RULE):
        why = found(rule, store, "blind").blind
        assert why is not None
        assert why.startswith("cannot be judged: no kernel log, health check, node event")
    assert "the ledger of these records is not built" in (
        found(ettr_target.RULE, store, "keeps").blind or ""
    )
    nothing = Watch(Selection("keeps"), START, START + DAY, AlertSettings(), 1 / 3)
    assert availability_target.RULE.find(of_store(store), nothing).blind is not None


def test_the_answer_has_measured_value_budget_and_burns(store: Store) -> None:
    ask = once(of_store(store))
    shown = {(each.cluster, each.figure): each for each in ask(targets.measured, Selection())}
    assert len(shown) == 9
    missed, kept = shown["misses", "availability"], shown["keeps", "availability"]
    assert (missed.verdict, kept.verdict) == ("missed", "met")
    value, left = missed.measured.value, missed.left.value
    assert value is not None
    assert left == pytest.approx(1 - (1 - value) / 0.05)
    assert set(missed.budget.burns if missed.budget else ()) == {1, 6, 24, 72}
    assert shown["misses", "failure_rate"].verdict == "missed"
    for figure in ("availability", "failure_rate", "ettr"):
        assert shown["blind", figure].verdict == "unknown"
    answer = targets.answer(ask, Selection())
    assert answer.sentence.startswith("2 targets of 9 missed; first: ")
    assert any(note.startswith("Ledger ETTR of blind cannot be judged: ") for note in answer.notes)
    (record,) = (
        row
        for row in answer.record["targets"]
        if (row["cluster"], row["figure"]) == ("misses", "availability")
    )
    assert record["measured"].n == 40
    assert record["burn_72h"].lower is not None


def test_where_no_target_is_set_nothing_stands_on_a_page(empty_store: Path) -> None:
    with closing(Store.open(empty_store)) as opened:
        answer = targets.answer(of_store(opened), Selection())
    assert (answer.blocks, answer.sentence) == ((), targets.NO_TARGET)


def test_ettr_is_told_of_whole_days_once_less_is_productive() -> None:
    rng = np.random.default_rng(8)
    rows = pd.DataFrame([
        {"bucket": bucket, "at": START + day * DAY, "gpu_seconds": seconds,
         "lower_gpu_seconds": seconds, "upper_gpu_seconds": seconds, "shared_gpu_seconds": 0.0,
         "habit_gpu_s2": 0.0, "variance_gpu_s2": (seconds / 20) ** 2, "n_attempts": 10}
        for day in range(60)
        for lost in [rng.beta(*((2, 38) if day < 40 else (6, 24)))]
        for bucket, seconds in (("lost_work", 1e6 * lost), ("productive", 1e6 * (1 - lost)))
    ])  # fmt: skip
    rows["at"] = pd.to_datetime(rows["at"], utc=True)
    watch = Watch(Selection("c"), START, START + 60 * DAY, AlertSettings(targets=AIMS), 1 / 12)
    (one,) = budgets.found(ettr_target.course(rows, 0.9), watch).episodes
    assert START + 40 * DAY < one.raised_at <= START + 56 * DAY
    assert one.sentence.startswith("Ledger ETTR of c was ")
