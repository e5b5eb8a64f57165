"""Totals of all time that a publish keeps are those of rows, whatever came and went."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from data import running_time
from data.filters import Selection
from data.queries import exposure, failures
from data.stages import totals
from data.store import Store
from tests.data.queries.world import World

if TYPE_CHECKING:
    from pathlib import Path


def told(store: Store, selection: Selection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """What is asked of totals."""
    exposure._KEPT.clear()
    held = exposure.node_exposure(store, selection)
    return pd.DataFrame(held), failures.by_state(store, selection)


def told_by_rows(store: Store, selection: Selection) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The same where no total is asked."""
    with pytest.MonkeyPatch.context() as patch:
        for queries in (exposure, failures):
            patch.setattr(queries, "of_all_time", lambda *_: False)
        return told(store, selection)


@pytest.mark.parametrize(
    "seeds", [range(1), *(pytest.param(range(n, n + 25), marks=pytest.mark.slow)
                          for n in range(0, 200, 25))]
)  # fmt: skip
def test_totals_are_those_of_rows(
    tmp_path: Path, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_kept = 0
    for seed in seeds:
        # kept from the first job on, or as soon as, and as long as, there are so many
        monkeypatch.setattr(running_time, "LEAST_JOBS", (0, 20, 40)[seed % 3])
        (tmp_path / str(seed)).mkdir()
        world = World(tmp_path / str(seed), seed)
        world.happen()
        with closing(Store.open(world.root)) as store:
            for _ in range(4):
                selection = world.selection()
                ever = replace(selection, from_at=None, to_at=None)
                for asked in (Selection(), ever, replace(ever, account=None), selection):
                    for kept, rows in zip(
                        told(store, asked), told_by_rows(store, asked), strict=True
                    ):
                        pd.testing.assert_frame_equal(kept, rows, obj=f"{seed} {asked}")
            for table in totals.WRITES:
                n_kept += store.n_rows(table)
    assert n_kept


def test_attempts_that_come_are_added_and_one_that_goes_adds_all_up_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_time, "LEAST_JOBS", 0)
    rows: list[str] = []
    insert = totals._insert

    def watched(connection: Any, table: str, each: str, times: Any = None) -> None:
        rows.append(f"{table} {'added' if times else 'anew'}")
        insert(connection, table, each, times)

    monkeypatch.setattr(totals, "_insert", watched)
    world, seen = World(tmp_path, 5), []
    for told_again in (False, False, True):
        if not told_again:
            world.told.clear()  # nothing that ended is told otherwise
        world.read()
        seen.append(sorted(rows))
        rows.clear()
    anew, added = (
        [f"{table} {how}" for table in ("node_totals", "state_totals")] for how in ("anew", "added")
    )
    assert seen == [anew, added, anew]
