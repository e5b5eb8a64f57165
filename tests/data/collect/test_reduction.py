"""Collecting from a reduction: days that are new or were made anew, each once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from data.collect import collect, load_sources
from data.ingest import Options
from data.reduce.records import reduce_records
from data.reduce.running import Request
from tests.data.collect.conftest import Host
from tests.data.reduce.samples import reduced

if TYPE_CHECKING:
    from pathlib import Path

    from data.collect import Outcome

HOURS = "SELECT CAST(count(*) AS BIGINT), CAST(sum(n) AS BIGINT) FROM node_metrics_hourly"


class Days:
    """A reduction that grows, and the store that it fills."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.host = folder, Host(folder, folder / "store")
        self.config = folder / "collect.toml"
        self.config.write_text(
            '[[source]]\nkind = "folder"\npath = "reduced"\nreader = "reduced-metrics"\n'
        )
        self.files: list[Path] = []

    def add(self, day: int, hour: int) -> None:
        """A file with two samples of an hour, reduced."""
        at = f"2026-01-{day:02}T{hour:02}"
        path = self.folder / f"{len(self.files)}.csv"
        rows = "".join(f"{at}:{minute}:00Z,n1,power_watts,400\n" for minute in (10, 20))
        path.write_text(f"at,node,metric,value\n{rows}")
        self.files.append(path)
        reduced(self.folder / "reduced", *self.files)

    def collect(self) -> Outcome:
        """Collects from the reduction."""
        now = datetime.now(UTC) + timedelta(hours=1)
        sources = load_sources(self.config)
        return collect(self.host.root, sources, Options(cluster="c"), now=now).outcomes[0]

    @property
    def held(self) -> tuple[int, int]:
        """Hours and samples that the store knows."""
        (found,) = self.host.rows(HOURS)
        return found


def read(outcome: Outcome) -> list[str]:
    """Days that were read."""
    assert outcome.error is None
    return [result.path.rpartition("/")[2] for result in outcome.results]


def test_each_day_is_read_once_and_again_when_it_was_made_anew(tmp_path: Path) -> None:
    days = Days(tmp_path)
    days.add(5, 1)
    days.add(6, 1)
    first = days.collect()
    assert read(first) == ["2026-01-05", "2026-01-06"]
    assert first.collected_until is not None
    assert (days.held, read(days.collect())) == ((2, 4), [])
    days.add(7, 1)
    assert (read(days.collect()), days.held) == (["2026-01-07"], (3, 6))
    days.add(5, 3)
    assert (read(days.collect()), days.held) == (["2026-01-05"], (4, 8))


LINES = {
    "events": ("node,at,xid\nn1,{}T01:00:00Z,79\nn1,{}T01:00:01Z,79\n", "health_events"),
    "jobs": (("JobID,Submit,Start,End,State,NodeList\n1,{0}T01:00:00,{0}T01:00:00,{0}T02:00:00,"
             "COMPLETED,n1\n"), "jobs"),
}  # fmt: skip


@pytest.mark.parametrize("kind", LINES)
def test_days_of_events_and_jobs_are_read_once_too(tmp_path: Path, kind: str) -> None:
    lines, table = LINES[kind]
    days, out = Days(tmp_path), tmp_path / "reduced"
    days.config.write_text(days.config.read_text().replace("metrics", kind))
    for day in ("2026-01-05", "2026-01-06"):
        (tmp_path / f"{day}.csv").write_text(lines.format(day, day))
        reduce_records(Request((str(tmp_path / "*.csv"),), out, kind))
        assert read(days.collect()) == [day]
    n_rows = days.host.rows(f"SELECT count(*) FROM {table}")
    assert (read(days.collect()), days.host.rows(f"SELECT count(*) FROM {table}")) == ([], n_rows)


def test_a_folder_without_a_reduction_is_told(tmp_path: Path) -> None:
    days = Days(tmp_path)
    (tmp_path / "reduced").mkdir()
    assert "holds no manifest.json of `faultline reduce`" in str(days.collect().error)


@pytest.mark.slow
def test_a_day_whose_files_are_gone_is_told_and_read_when_they_are_back(tmp_path: Path) -> None:
    days = Days(tmp_path)
    days.add(5, 1)
    (path,) = (tmp_path / "reduced" / "hours").rglob("*.parquet")
    path.rename(tmp_path / "away")
    assert "is absent, and manifest.json names it" in str(days.collect().error)
    (tmp_path / "away").rename(path)
    assert (read(days.collect()), days.held) == (["2026-01-05"], (1, 2))
