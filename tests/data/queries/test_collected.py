"""Which days were collected, and what that makes of a failure rate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from app.answers.fleet import coverage, ingests
from app.answers.reliability import mttf
from app.ask import of_store
from data.filters import Selection
from data.queries import collected

if TYPE_CHECKING:
    from collections.abc import Callable

    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
N_DAYS = 20


@pytest.fixture
def rows(rows_of: Callable[..., Any]) -> Any:
    """A job a day on each of four nodes, of which one fails without a cause."""
    found = rows_of(gpus_per_node={"gpu": 8})
    for day in range(N_DAYS):
        for node in range(4):
            found.job(
                f"{day}-{node}", (f"n{node}",), state="FAILED" if node == 0 else "COMPLETED",
                start_at=BASE + day * DAY, end_at=BASE + day * DAY + 12 * HOUR,
            )  # fmt: skip
    return found


def window(rows: Any, days: range, **values: Any) -> None:
    """The kernel log was asked for these days, and had nothing."""
    rows.collected_windows.append(
        {"source": "kernel", "cluster": "gpu", "reader": "kernel-log", "result": "empty",
         "covers": "health_events.kernel", "node": None, "whole_cluster": False, "n_rows": 0,
         "from_at": BASE + days.start * DAY, "until_at": BASE + days.stop * DAY,
         "collected_at": BASE + days.stop * DAY, "error": None, "asked": "x"} | values
    )  # fmt: skip


def seen(store: Store) -> float:
    """Share of the exposure during which failures could be seen."""
    record = mttf.answer(of_store(store), Selection()).record
    return float(record["detectable_exposure_node_days"]) / float(record["exposure_node_days"])


def test_collected_and_quiet_differs_from_not_collected(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    assert seen(store_of(rows)) == 0.0, "accounting alone"
    window(rows, range(10), whole_cluster=True)
    window(rows, range(10, 20), whole_cluster=True, result="failed", covers=None)
    store = store_of(rows)
    assert seen(store) == 0.5
    held = coverage.held(store, Selection())
    kernel = held.sources.set_index("source").loc["health_events.kernel"]
    assert (kernel["n_rows"], kernel["days_with_rows"], kernel["days_quiet"]) == (0, 0, 10)
    assert held.silent == ("health_events.kernel",)
    assert "health_events.kernel" not in held.missing
    told = coverage.answer(of_store(store), Selection())
    assert "; health_events.kernel was collected, without a record; " in told.sentence
    first = Selection(from_at=BASE + 8 * DAY, to_at=BASE + 9 * DAY)
    assert len(collected.collected_days(store, first)) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("nodes", "share"),
    [(["login1"], 0.0), (["n0"], 0.0), (["n0", "N1"], 1.0), (["n0", "login1"], 0.0)],
    ids=("a login node", "one of four", "two of four", "one and a login node"),
)
def test_the_log_of_one_host_speaks_for_no_other(
    rows: Any, store_of: Callable[[Any], Store], nodes: list[str], share: float
) -> None:
    for node in nodes:
        window(rows, range(N_DAYS), node=node)
    assert seen(store_of(rows)) == share


def test_what_makes_no_claim_counts_by_its_records_alone(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    window(rows, range(N_DAYS), covers=None)
    assert seen(store_of(rows)) == 0.0


def test_age_and_last_error_of_each_source_are_told(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    window(rows, range(2))
    window(rows, range(2, 3), result="failed", covers=None, error="no route to host")
    window(rows, range(3), source="sacct")
    store = store_of(rows)
    now = BASE + 2 * DAY + 6 * HOUR
    found = collected.until(store, Selection())
    assert found["source"].tolist() == ["kernel", "sacct"]
    assert found["collected_until"].tolist() == [BASE + 2 * DAY, BASE + 3 * DAY]
    assert list(ingests.collected_notes(found, now)) == [
        "kernel (gpu): collected until 6.00 h ago; the last attempt failed: no route to host"
    ]
    (stale,) = list(ingests.collected_notes(found.iloc[1:], now + 3 * DAY))
    assert stale == "sacct (gpu): collected until 2.25 d ago: does `faultline collect` still run?"
    table = ingests.collected_block(of_store(store), Selection(), now)
    assert [row[:2] for row in table.values] == [("kernel", "gpu"), ("sacct", "gpu")]
