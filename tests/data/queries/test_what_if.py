"""Attempts that are played again: those of incidents alone are those that all of them name."""

from __future__ import annotations

from contextlib import closing
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pandas.testing import assert_frame_equal

from analytics.efficiency.incidents_weighed import Incidents
from data.filters import Selection
from data.queries.what_if import attempts
from data.store import Store
from tests.data.queries.conftest import BASE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd

    from tests.data.queries.conftest import Rows


def named(found: pd.DataFrame) -> pd.DataFrame:
    """Attempts of incidents with a failure or a node that is named, incident by incident."""
    return found.take(Incidents.of(found).named.order).reset_index(drop=True)


def same(store: Store, selection: Selection) -> int:
    """How many attempts of named incidents there are, either way."""
    every, few = (attempts(store, selection, incidents=alone) for alone in (False, True))
    assert_frame_equal(named(every), named(few), check_dtype=False)
    return len(named(few))


@pytest.mark.parametrize("seed", range(3))
def test_attempts_of_incidents_alone_are_those_that_are_named(
    store_of: Callable[[Rows], Store], random_rows: Callable[[int], Rows], seed: int
) -> None:
    store = store_of(random_rows(seed))
    assert same(store, Selection())
    same(store, Selection(from_at=BASE + timedelta(days=2), to_at=BASE + timedelta(days=7)))


def test_in_the_demo_too_where_requeues_take_the_place_of_others(demo_store: Path) -> None:
    with closing(Store.open(demo_store)) as store:
        assert same(store, Selection())
