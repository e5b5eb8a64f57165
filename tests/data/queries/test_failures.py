"""Verdicts of a selection: which attempts count, in a list and in a rate."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from app.answers.failures import verdicts
from app.answers.reliability import mttf
from data.filters import Selection
from data.queries import failures

if TYPE_CHECKING:
    from collections.abc import Callable

    from analytics.failures.summary import FailureSummary
    from data.store import Store

BASE = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def rows(random_rows: Callable[[int], Any]) -> Any:
    """A cluster with GPUs, in which some jobs have none, and one without."""
    found = type(random_rows(0))(gpus_per_node={"gpu": 8})
    ran = {"start_at": BASE, "end_at": BASE + DAY}
    found.job("large", state="NODE_FAIL", n_gpus=16, **ran)
    found.job("small", state="FAILED", n_gpus=1, **ran)
    found.job("without", state="NODE_FAIL", n_gpus=0, **ran)
    found.job("unknown", state="TIMEOUT", n_gpus=None, **ran)
    found.job("bare", state="NODE_FAIL", n_gpus=None, cluster="cpu", **ran)
    return found


def summary(store: Store, **filters: Any) -> FailureSummary:
    return verdicts.summarised(store, Selection(**filters))


def test_attempts_without_gpus_fail_but_count_in_no_rate(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    store = store_of(rows)
    found = summary(store, cluster="gpu")
    assert (found.n_failed, found.counted.lost_node, found.counted.n) == (4, 1, 1)
    (lost,) = (cause for cause in found.by_cause if cause.cause == "node_lost")
    assert (lost.n_attempts, lost.rate_per_1000_node_days.n) == (2, 1)
    (limit,) = (cause for cause in found.by_cause if cause.cause == "time_limit")
    assert (limit.n_attempts, limit.rate_per_1000_node_days.value) == (1, 0.0)
    assert found.counted.n == mttf.measured(store, Selection(cluster="gpu")).rate.failures
    counted = failures.verdict_rows(store, Selection(cluster="gpu"), counted=True)
    assert counted["attempt_key"].tolist() == ["large"]


def test_the_smallest_job_is_ignored_where_no_attempt_has_gpus(
    rows: Any, store_of: Callable[[Any], Store]
) -> None:
    store = store_of(rows)
    found = summary(store, min_gpus=9)
    assert sorted(failures.verdict_rows(store, Selection(min_gpus=9))["attempt_key"]) == [
        "bare",
        "large",
    ]
    assert found.counted.n == mttf.measured(store, Selection(min_gpus=9)).rate.failures == 2
