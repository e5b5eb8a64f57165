"""Verdicts by day that a publish keeps are those of rows, whatever came, went and was said."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

import pandas as pd
import pytest

from analytics.frames import FAILURE_DEFINITIONS
from app.actions import annotate
from data import running_time
from data.filters import Selection
from data.queries import exposure, verdict_sums
from data.queries.detection import unexplained
from data.queries.failures import by_cause
from data.queries.sensitivity import judged_days
from data.store import Store
from tests.data.queries.world import World

if TYPE_CHECKING:
    from pathlib import Path


def told(store: Store, selection: Selection) -> list[pd.DataFrame]:
    """What is asked of verdicts by day."""
    exposure._KEPT.clear()
    asked = unexplained(store, selection), judged_days(store, selection)
    return [by_cause(store, selection), *map(pd.DataFrame, asked)]


def told_by_rows(store: Store, selection: Selection) -> list[pd.DataFrame]:
    """The same where no day is told by its sum."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdict_sums, "LEAST_DAYS", 10**9)
        return told(store, selection)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [range(n, n + 25) for n in range(0, 200, 25)])
def test_sums_by_day_are_those_of_rows(
    tmp_path: Path, seeds: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_kept = 0
    for seed in seeds:
        monkeypatch.setattr(running_time, "LEAST_JOBS", (0, 20, 40)[seed % 3])
        (tmp_path / str(seed)).mkdir()
        world = World(tmp_path / str(seed), seed)
        world.happen()
        with closing(Store.open(world.root)) as store:
            for _ in range(6):
                selection = replace(
                    world.selection(),
                    definition=world.chance.choice(FAILURE_DEFINITIONS),
                    min_gpus=world.chance.choice([0, 0, 8]),
                )
                for sums, rows in zip(
                    told(store, selection), told_by_rows(store, selection), strict=True
                ):
                    pd.testing.assert_frame_equal(sums, rows, obj=f"{seed} {selection}")
            n_kept += store.rows("SELECT count(*) FROM verdict_days")[0][0]
    assert n_kept


def test_what_people_decide_counts_at_once_though_sums_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running_time, "LEAST_JOBS", 0)
    world = World(tmp_path, 4)
    world.read()
    world.read()
    every = Selection()
    with closing(Store.open(world.root)) as store:
        ((n_kept, n_failed),) = store.rows(
            "SELECT (SELECT sum(n_attempts) FROM verdict_days), (SELECT count(*) FROM failures)"
        )
        ((key,),) = store.rows(
            """SELECT cluster || '/' || attempt_key FROM failures WHERE cause <> 'power'
               ORDER BY ALL LIMIT 1"""
        )
        before, *_ = told(store, every)
    assert n_kept == n_failed > 1
    assert "power" not in before["cause"].tolist()
    annotate(world.root, f"attempt:{key}", "cause", "power", author="a")
    with closing(Store.open(world.root)) as store:
        after, *_ = told(store, every)
    assert after.loc[after["cause"] == "power", "n_attempts"].tolist() == [1]
    assert after["n_attempts"].sum() == n_failed
