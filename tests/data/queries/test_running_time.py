"""Sums by day that a publish keeps are those of rows, whatever came, went and was said."""

from __future__ import annotations

import random
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from app.actions import Options, annotate, forget, ingest_files
from data import running_time
from data.filters import Selection
from data.publish import roll_back
from data.queries import exposure
from data.snapshots import kept_snapshots
from data.store import Store

if TYPE_CHECKING:
    from pathlib import Path

HEADER = "JobID|Cluster|User|Account|Partition|State|Submit|Start|End|NNodes|AllocTRES|NodeList\n"
ZONES = ("UTC", "America/New_York", "Europe/Berlin", "Pacific/Kiritimati", "Asia/Kathmandu")
SPRING = datetime(2026, 3, 1, tzinfo=UTC)
"""Clocks change within the 60 days from here."""


class World:
    """A store to which random things happen."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.chance, self.root, self.folder = random.Random(seed), folder / "store", folder
        self.ids, self.files = count(1), count(1)
        self.open, self.told = list[str](), list[str]()

    def read(self) -> None:
        """Reads jobs of some days; some that ran have ended since, some ended later than told."""
        later = f"|{SPRING + timedelta(days=61 + self.chance.random()):%Y-%m-%dT%H:%M:%S}|"
        lines = [
            line.replace("|RUNNING|", "|NODE_FAIL|").replace("|Unknown|", later)
            for line in self.open[:5]
        ]
        lines += [
            re.sub(r"\|[^|]+\|(\d+\|[^|]*\|n)", later + r"\1", line) for line in self.told[:3]
        ]
        self.open, self.told = self.open[5:], self.told[3:]
        for _ in range(self.chance.randint(1, 30)):
            line = self.line()
            (self.open if "|Unknown|" in line else self.told).append(line)
            lines.append(line)
        file = self.folder / f"{next(self.files)}.txt"
        file.write_text(HEADER + "".join(lines))
        ingest_files(self.root, "sacct", [str(file)], Options(timezone="UTC"))

    def line(self) -> str:
        """A job; one in ten has not ended, one in ten ends as it begins."""
        chance, day = self.chance, timedelta(days=1)
        start = SPRING + chance.random() * 59 * day
        lasts = chance.choice([0, 0.01, 0.2, 1, 3, 30]) * chance.random() * day
        runs, gpus = chance.random() < 0.1, chance.choice([0, 1, 4, 8, 16, 64])
        nodes = max(1, gpus // 8)
        state = "RUNNING" if runs else chance.choice(["COMPLETED", "FAILED", "NODE_FAIL"])
        end = "Unknown" if runs else f"{start + lasts:%Y-%m-%dT%H:%M:%S}"
        tres = f"gres/gpu={gpus}" if gpus else ""
        return (
            f"{next(self.ids)}|{chance.choice('cd')}|u|{chance.choice('xy')}|{chance.choice('ab')}|"
            f"{state}|{start:%Y-%m-%dT%H:%M:%S}|{start:%Y-%m-%dT%H:%M:%S}|{end}|{nodes}|{tres}|"
            f"n[1-{nodes}]\n"
        )

    def go_back(self) -> None:
        """Goes back to a snapshot that is kept, if any is."""
        if earlier := kept_snapshots(self.root)[:-1]:
            roll_back(self.root, snapshot=self.chance.choice(earlier).current.snapshot)

    def forget(self) -> None:
        """Forgets what is older than some days."""
        self.site(f"[retention]\njobs = {self.chance.randint(20, 60)}\n")
        forget(self.root, SPRING + timedelta(days=60), author="a")

    def site(self, further: str = "") -> None:
        """States other zones, and on some days how many GPUs a node has."""
        gpus = self.chance.choice(["", "gpus_per_node = 8\n", "gpus_per_node = 4\n"])
        (self.root / "site.toml").write_text(
            f'[cluster.c]\ntimezone = "{self.chance.choice(ZONES)}"\n{gpus}'
            f'[cluster.d]\ntimezone = "{self.chance.choice(ZONES)}"\n{further}'
        )

    def say(self) -> None:
        """Says what ended a job."""
        with closing(Store.open(self.root)) as store:
            ((key,),) = store.rows(
                "SELECT cluster || '/' || attempt_key FROM jobs ORDER BY ALL LIMIT 1"
            )
        annotate(self.root, f"attempt:{key}", "cause", "gpu_fault", author="a")

    def selection(self) -> Selection:
        """Any period, cluster and partition."""
        chance = self.chance
        begin = SPRING + timedelta(days=chance.uniform(-10, 50))
        end = begin + timedelta(days=chance.choice([1, 8, 9.5, 28, 90]))
        return Selection(
            cluster=chance.choice([None, None, "c", "d"]),
            partition=chance.choice([None, None, "a"]),
            account=chance.choice([None, None, "x"]),
            from_at=chance.choice([None, begin, begin.replace(hour=0, minute=0, second=0)]),
            to_at=chance.choice([None, end, end]),
        )


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
        world.read()
        for _ in range(world.chance.randint(1, 4)):
            world.chance.choice([world.read, world.read, world.go_back, world.forget, world.site,
                                 world.say])()  # fmt: skip
        world.read()
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
