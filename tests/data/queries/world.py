"""Random stores of jobs, to which random things happen: sums by day are put beside their rows."""

from __future__ import annotations

import random
import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import TYPE_CHECKING

from app.actions import Options, annotate, forget, ingest_files
from data.filters import Selection
from data.publish import roll_back
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

    def happen(self) -> None:
        """Reads, then some of all this happens, and reads again."""
        self.read()
        for _ in range(self.chance.randint(1, 4)):
            self.chance.choice([self.read, self.read, self.go_back, self.forget, self.site,
                                self.say])()  # fmt: skip
        self.read()

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
