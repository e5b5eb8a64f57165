"""Collecting from folders: files that grow, are rotated, are being written, or hold nothing."""

from __future__ import annotations

import gzip
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from data.collect import collect, load_sources
from data.collect.folder import TAIL
from data.ingest import Options
from tests.data.collect.conftest import Host

if TYPE_CHECKING:
    from pathlib import Path

    from data.collect import Outcome

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
EVENTS = "SELECT count(*), count(DISTINCT message) FROM health_events"


def line(second: int, text: str = "GPU has fallen off the bus") -> str:
    """A kernel line of a node."""
    at = datetime(2026, 3, 2, 6, tzinfo=UTC) + timedelta(seconds=second)
    return f"{at:%Y-%m-%dT%H:%M:%S}+00:00 n1 kernel: NVRM: Xid (PCI:0000:3b:00): 79, {text}\n"


QUIET = "2026-03-02T05:00:00+00:00 n1 kernel: usb 1-1: new device\n"


class Logs:
    """A folder of kernel logs, and the store that it fills."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.host = folder, Host(folder, folder / "store")
        (folder / "logs").mkdir()
        self.more = ""

    def write(self, name: str, text: str | bytes, *, age: timedelta = 60 * MINUTE) -> Path:
        """A log that was last written to so long ago."""
        path = self.folder / "logs" / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        at = (NOW - age).timestamp()
        os.utime(path, (at, at))
        return path

    def collect(self, now: datetime = NOW, **asked: Any) -> Outcome:
        """Collects from the folder."""
        config = self.folder / "collect.toml"
        config.write_text(
            f'[[source]]\nkind = "folder"\npath = "logs/*"\nreader = "kernel-log"\n{self.more}'
        )
        (outcome,) = collect(
            self.host.root, load_sources(config), Options(cluster="c"), now=now, **asked
        ).outcomes
        return outcome

    @property
    def events(self) -> tuple[int, int]:
        """Events in the store, and texts that differ."""
        (found,) = self.host.rows(EVENTS)
        return found


@pytest.fixture
def logs(tmp_path: Path) -> Logs:
    return Logs(tmp_path)


def read(outcome: Outcome) -> list[str]:
    """Names of the files that were read."""
    return [result.path.rpartition("/")[2] for result in outcome.results]


def test_what_is_as_it_was_is_not_read_again_under_any_name(logs: Logs) -> None:
    path = logs.write("kern.log", line(0))
    logs.write("other.log", line(1))
    assert read(logs.collect()) == ["kern.log", "other.log"]
    path.rename(path.with_name("kern.log.1"))
    logs.write("kern.log", line(2), age=30 * MINUTE)
    assert read(logs.collect()) == ["kern.log"]
    assert read(logs.collect()) == []
    assert logs.events == (3, 1)
    paths = logs.host.rows("SELECT path FROM collected_files ORDER BY 1")
    assert [name.rpartition("/")[2] for (name,) in paths] == ["kern.log", "kern.log.1", "other.log"]


@pytest.mark.slow
def test_a_line_that_is_still_being_written_waits_until_it_is_whole(logs: Logs) -> None:
    half = line(1)[:-20]
    logs.write("kern.log", line(0) + half, age=timedelta(seconds=5))
    logs.collect()
    assert logs.events == (1, 1)
    logs.write("kern.log", line(0) + line(1), age=timedelta(seconds=2))
    logs.collect(NOW + MINUTE)
    assert logs.events == (2, 1), "the half line was no event of its own"
    logs.write("kern.log", line(0) + line(1) + line(2).rstrip("\n"), age=60 * MINUTE)
    logs.collect(NOW + 2 * MINUTE)
    assert logs.events == (3, 1), "nobody will end that line"


@pytest.mark.slow
def test_of_a_log_that_grew_only_the_end_is_read(logs: Logs) -> None:
    long = QUIET * (3 * TAIL // len(QUIET))
    logs.write("kern.log", long + line(0) + line(0))
    logs.collect()
    logs.write("kern.log", long + line(0) + line(0) + line(0) + line(1), age=MINUTE)
    outcome = logs.collect(NOW + MINUTE)
    assert outcome.results[0].path.rpartition("/")[2].startswith("kern.log from byte 1")
    assert outcome.results[0].rows_read < len(long) / len(QUIET) / 2
    assert logs.events == (4, 1), "lines that are alike were counted together"
    # the same file, emptied and filled beyond where it was
    logs.write("kern.log", line(7, "new") + long + long)
    assert read(logs.collect(NOW + 2 * MINUTE)) == ["kern.log"]
    assert logs.events == (5, 2)


def test_an_empty_file_and_a_folder_without_files_are_quiet(logs: Logs) -> None:
    outcome = logs.collect()
    assert (outcome.error, outcome.collected_until) == (None, None)
    assert not logs.host.root.exists()
    logs.write("kern.log", "")
    logs.write("kern.log.gz", gzip.compress(b""))
    outcome = logs.collect()
    assert (outcome.error, outcome.results) == (None, [])
    assert outcome.collected_until == NOW - 60 * MINUTE, "as far as the file says"
    assert logs.host.rows("SELECT result, covers FROM collected_windows") == [("empty", None)]


def test_a_folder_that_is_not_there_is_told(logs: Logs) -> None:
    (logs.folder / "logs").rmdir()
    outcome = logs.collect()
    assert outcome.error is not None
    assert outcome.error.endswith("logs/*: no such file or folder: check the path")


@pytest.mark.slow
def test_a_damaged_file_is_told_each_time_and_the_others_are_read(logs: Logs) -> None:
    logs.write("a.gz", gzip.compress(line(0).encode() * 50)[:-10])
    logs.write("b.log", line(1))
    for _ in range(2):
        outcome = logs.collect()
        assert "a.gz: gzip data ends early or is broken" in str(outcome.error)
        assert outcome.collected_until is None
    assert logs.events == (1, 1)
    logs.write("a.gz", gzip.compress(line(0).encode()))
    assert logs.collect().error is None
    assert logs.events == (2, 1)


def test_an_archive_that_is_still_being_written_waits(logs: Logs) -> None:
    logs.write("a.gz", gzip.compress(line(0).encode() * 50)[:-10], age=timedelta(seconds=5))
    assert (logs.collect().error, logs.host.root.exists()) == (None, True)
    logs.write("a.gz", gzip.compress(line(0).encode()))
    assert read(logs.collect(NOW + MINUTE)) == ["a.gz"]


def test_a_quiet_folder_of_all_nodes_counts_as_collected(logs: Logs) -> None:
    logs.more = "whole_cluster = true\n"
    logs.write("kern.log", QUIET, age=24 * 60 * MINUTE)
    logs.collect()
    logs.write("kern.log", QUIET + QUIET)
    logs.collect()
    windows = logs.host.rows(
        "SELECT covers, result, from_at, until_at FROM collected_windows ORDER BY until_at"
    )
    assert windows[1] == (
        "health_events.kernel", "empty", NOW - 24 * 60 * MINUTE, NOW - 60 * MINUTE,
    )  # fmt: skip


def test_a_day_that_is_stated_is_read_again(logs: Logs) -> None:
    logs.write("kern.log", line(0))
    logs.collect()
    assert read(logs.collect(since=NOW - 24 * 60 * MINUTE)) == ["kern.log"]
    assert logs.events == (1, 1)
