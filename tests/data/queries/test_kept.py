"""What the questions of a page share is asked of the store once, and never of a stale one."""

from __future__ import annotations

import gc
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from data.queries import kept as kept_module
from data.queries import reliability
from data.queries.kept import ANSWERS_KEPT, kept
from data.queries.selection import Selection
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

BASE = datetime(2026, 1, 5, tzinfo=UTC)


@kept
def jobs(store: Store, selection: Selection, *, cluster: str = "gpu") -> pd.DataFrame:
    """Jobs of a cluster."""
    return store.frame("SELECT * FROM jobs WHERE cluster = $cluster", {"cluster": cluster})


def test_the_same_question_is_answered_once_whatever_the_size_asked_for(empty_store: Path) -> None:
    store = Store.open(empty_store)
    first = jobs(store, Selection())
    assert jobs(store, Selection(min_gpus=129, by_size_min_gpus=9)) is first
    assert jobs(store, Selection(cluster="a")) is not first
    assert jobs(store, Selection(), cluster="b") is not first
    assert jobs(store, Selection()) is first
    store.close()


def test_another_snapshot_is_asked_anew(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    first, second = store_of(random_rows(1)), store_of(random_rows(2))
    keys = [set(jobs(store, Selection())["attempt_key"]) for store in (first, second)]
    assert keys[0]
    assert keys[0].isdisjoint(keys[1])


def test_only_the_latest_answers_are_kept_and_none_outlives_its_store(empty_store: Path) -> None:
    store = Store.open(empty_store)
    answers = [jobs(store, Selection(cluster=str(index))) for index in range(ANSWERS_KEPT + 3)]
    assert jobs(store, Selection(cluster="6")) is answers[6]
    assert jobs(store, Selection(cluster="0")) is not answers[0]
    ghost = weakref.ref(store)
    store.close()
    del store
    gc.collect()
    assert ghost() is None
    assert all(len(found) <= ANSWERS_KEPT for found in kept_module._KEPT.values())


def test_questions_leave_what_is_kept_unchanged(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    store, selection = store_of(random_rows(3)), Selection(min_gpus=9)
    ran, failed = reliability.runs(store, selection), reliability.job_failures(store, selection)
    before = ran.copy(deep=True), failed.copy(deep=True)
    for by in reliability.GROUPINGS:
        reliability.groups(store, selection, by)
    reliability.failure_counts(store, selection)
    assert reliability.runs(store, selection) is ran
    assert ran.equals(before[0])
    assert failed.equals(before[1])
