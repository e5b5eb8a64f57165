"""Sums by day that a publish keeps are those of rows, whatever came, went and was said."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from data import running_time
from data.queries import exposure
from data.store import Store
from tests.data.queries.world import World

if TYPE_CHECKING:
    from pathlib import Path

    from data.filters import Selection


def alike(store: Store, selection: Selection, *, by_partition: bool) -> bool:
    """Whether sums and rows alone give the same to the last digit."""
    kept = exposure.runs(store, selection, by_partition=by_partition)
    exposure._KEPT.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exposure, "LEAST_DAYS", 10**9)
        rows = exposure.runs(store, selection, by_partition=by_partition)
    exposure._KEPT.clear()
    return kept.keys() == rows.keys() and all(
        np.array_equal(kept[name], rows[name], equal_nan=rows[name].dtype.kind == "f")
        for name in rows
    )


@pytest.mark.parametrize(
    "seeds", [range(1), *(pytest.param(range(n, n + 25), marks=pytest.mark.slow)
                          for n in range(0, 200, 25))]
)  # fmt: skip
def test_sums_by_day_are_those_of_rows(
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
            for _ in range(6):
                selection = world.selection()
                assert alike(store, selection, by_partition=seed % 2 == 0), (seed, selection)
            ((n_rows,),) = store.rows("SELECT count(*) FROM running_time")
            n_kept += n_rows
    assert n_kept


def test_sums_are_kept_of_many_jobs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(tmp_path, 3)
    monkeypatch.setattr(running_time, "LEAST_JOBS", 40)
    sizes = []
    for _ in range(6):
        world.read()
        with closing(Store.open(world.root)) as store:
            ((jobs, days),) = store.rows(
                "SELECT (SELECT count(*) FROM jobs), (SELECT count(*) FROM running_time)"
            )
        sizes.append((jobs >= 40, days > 0))
    assert {*sizes} == {(False, False), (True, True)}


@pytest.mark.slow
def test_days_are_counted_where_the_cluster_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table beside a walk over days by another library."""
    monkeypatch.setattr(running_time, "LEAST_JOBS", 0)
    world = World(tmp_path, 7)
    for _ in range(3):
        world.read()
    world.site()
    world.read()
    with closing(Store.open(world.root)) as store:
        zones = dict(store.rows("SELECT cluster, timezone FROM clusters"))
        ran = store.rows("SELECT cluster, start_at, end_at FROM jobs WHERE end_at IS NOT NULL")
        held = store.rows("SELECT cluster, day, sum(running_us) FROM running_time GROUP BY ALL")
    days: dict[tuple[str, object], int] = {}
    for cluster, start, end in ran:
        at, zone = start.astimezone(UTC), ZoneInfo(zones[cluster])
        while at < end:
            local = at.astimezone(zone).date()
            midnight = datetime.combine(local + timedelta(days=1), datetime.min.time(), zone)
            until = min(midnight.astimezone(UTC), end.astimezone(UTC))
            days[cluster, local] = days.get((cluster, local), 0) + (until - at) // timedelta(
                microseconds=1
            )
            at = until
    assert {(cluster, day): int(us) for cluster, day, us in held} == days
