"""What the questions of a page share is asked of the store once, and never of a stale one."""

from __future__ import annotations

import gc
import weakref
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from analytics.frames import RATE_GROUPS
from data.filters import Selection
from data.queries import rate_groups, reliability
from data.queries.exposure import LARGEST_KEPT, ROWS_KEPT, kept
from data.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from analytics.frames import Columns

BASE = datetime(2026, 1, 5, tzinfo=UTC)


@kept
def jobs(store: Store, selection: Selection, *, cluster: str = "gpu") -> Columns:
    """Jobs of a cluster."""
    return store.columns("SELECT * FROM jobs WHERE cluster = $cluster", {"cluster": cluster})


def test_the_same_question_is_answered_once_whatever_the_size_asked_for(empty_store: Path) -> None:
    store = Store.open(empty_store)
    first = jobs(store, Selection())
    assert jobs(store, Selection(min_gpus=129, by_size_min_gpus=9)) is first
    assert jobs(store, Selection(cluster="a")) is not first
    assert jobs(store, Selection(), cluster="b") is not first
    assert jobs(store, Selection()) is first
    store.close()


@pytest.mark.slow
def test_another_snapshot_is_asked_anew(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    first, second = store_of(random_rows(1)), store_of(random_rows(2))
    keys = [set(jobs(store, Selection())["attempt_key"]) for store in (first, second)]
    assert keys[0]
    assert keys[0].isdisjoint(keys[1])


@kept
def zeros(store: Store, selection: Selection, *, rows: int, place: int = 0) -> Columns:
    """So many rows."""
    return {"zero": np.zeros(rows)}


def test_answers_are_kept_up_to_their_rows_and_none_outlives_its_store(empty_store: Path) -> None:
    store = Store.open(empty_store)
    most = ROWS_KEPT // LARGEST_KEPT
    first, *_ = [zeros(store, Selection(), rows=LARGEST_KEPT, place=at) for at in range(most)]
    assert zeros(store, Selection(), rows=LARGEST_KEPT) is first
    small = [zeros(store, Selection(), rows=0, place=at) for at in range(2)]
    assert zeros(store, Selection(), rows=0) is small[0]
    assert zeros(store, Selection(), rows=LARGEST_KEPT) is not first
    large = zeros(store, Selection(), rows=LARGEST_KEPT + 1)
    assert zeros(store, Selection(), rows=LARGEST_KEPT + 1) is not large
    ghost = weakref.ref(store)
    store.close()
    del store
    gc.collect()
    assert ghost() is None


def test_questions_leave_what_is_kept_unchanged(
    random_rows: Callable[[int], Any], store_of: Callable[[Any], Store]
) -> None:
    store, selection = store_of(random_rows(3)), Selection(min_gpus=9)
    ran, failed = reliability.runs(store, selection), reliability.job_failures(store, selection)
    before = [{name: column.copy() for name, column in rows.items()} for rows in (ran, failed)]
    for by in RATE_GROUPS:
        rate_groups.groups(store, selection, by)
    reliability.failure_counts(store, selection)
    assert reliability.runs(store, selection) is ran
    for rows, copy in zip((ran, failed), before, strict=True):
        assert pd.DataFrame(rows).equals(pd.DataFrame(copy))
