"""What every kind of source takes and gives: what is known of it in, files to read out."""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from data.inside import Inside
    from data.limits import Limits

DAY = timedelta(days=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class ReadFile:
    """A file of a folder as it was when it was read last."""

    path: str
    inode: int
    n_bytes: int
    modified_ns: int
    tail_sha256: str | None = None
    """Of the bytes before `n_bytes`, where what comes behind them can be read alone."""


@dataclass(frozen=True)
class Known:
    """What the store holds of a source before it is asked."""

    from_at: datetime | None = None
    """Since when it was collected."""
    until_at: datetime | None = None
    """Until when it was collected."""
    looked_back_at: datetime | None = None
    """When it was last asked for days that had been collected before."""
    clusters: tuple[str, ...] = ()
    files: tuple[ReadFile, ...] = ()
    open_jobs: tuple[str, ...] = ()
    """Jobs of its clusters that had not ended, by their number."""


@dataclass(frozen=True)
class Window:
    """A stretch of time that a source was asked for, [from_at, until_at)."""

    from_at: datetime | None
    """None where only the records tell."""
    until_at: datetime


@dataclass(frozen=True)
class Input:
    """A file to be read."""

    path: Path
    called: str
    """What people know it as: a command, an address or its own path."""
    read: ReadFile | None = None
    """What to remember of it once it was read."""
    inside: Inside | None = None
    """The folder out of which it must not lead when it is read; None of a file of our own."""


@dataclass(frozen=True)
class Fetched:
    """What a source gave at once."""

    inputs: tuple[Input, ...]
    window: Window | None
    """None where it says nothing on a stretch of time."""
    asked: str
    """The command, address or files."""
    renamed: tuple[ReadFile, ...] = ()
    """Files that are as they were when they were read, under another name."""
    there: tuple[str, ...] | None = None
    """Paths of all its files; None where they are not all known."""
    notices: tuple[str, ...] = ()

    @property
    def n_bytes(self) -> int:
        """Bytes of its files."""
        return sum(each.path.stat().st_size for each in self.inputs if each.path.is_file())


@dataclass(frozen=True)
class Timing:
    """How a source is asked again and again."""

    first_days: int = 90
    """How far back it is asked the first time."""
    overlap_s: int = 0
    """What is asked again each time: records come late."""
    look_back_days: int = 0
    """What is asked again once a day: records that came very late, or were corrected."""
    margin_s: int = 60
    """What is not asked yet: clocks differ, and records are under way."""
    slice_s: int | None = None
    """Longest stretch asked for at once; None for any."""

    def windows(self, known: Known, now: datetime, since: datetime | None = None) -> list[Window]:
        """The stretches to ask for, one after the other; those of whole days end at midnight UTC.

        From where the source was collected until (the first time `first_days` ago), less what is
        asked again, to now less the margin. A begin that is stated is taken as it stands; nothing
        before the first is asked for later, so that it does not matter how often one asks.

        Examples
        --------
        >>> at = datetime(2026, 1, 3, 1, tzinfo=UTC)
        >>> daily = Timing(overlap_s=3600, margin_s=0, slice_s=86400)
        >>> for each in daily.windows(Known(until_at=datetime(2026, 1, 2, tzinfo=UTC)), at):
        ...     print(f"{each.from_at:%d %H} to {each.until_at:%d %H}")
        01 23 to 02 00
        02 00 to 03 00
        03 00 to 03 01
        """
        until = now.replace(microsecond=0) - timedelta(seconds=self.margin_s)
        begin = since
        if begin is None and known.until_at is None:
            begin = until - self.first_days * DAY
        elif begin is None and known.until_at is not None:
            begin = min(known.until_at, until) - self._again(known, now)
            begin = max(begin, known.from_at or begin)
        found: list[Window] = []
        while begin is not None and begin < until:
            end = until
            if self.slice_s is not None:  # slices are counted from 1970
                slice_ = timedelta(seconds=self.slice_s)
                end = min(until, EPOCH + ((begin - EPOCH) // slice_ + 1) * slice_)
            found.append(Window(begin, end))
            begin = end
        return found

    def _again(self, known: Known, now: datetime) -> timedelta:
        """How much of what was collected is asked again."""
        looked = known.looked_back_at
        if self.look_back_days and (looked is None or now - looked >= DAY):
            return self.look_back_days * DAY
        return timedelta(seconds=self.overlap_s)


@dataclass(frozen=True)
class Settings:
    """What is common to all kinds of sources."""

    name: str
    """What it is called; its windows bear it."""
    reader: str
    options: dict[str, Any] = field(default_factory=dict)
    """What readers are told: cluster, timezone, mapping and so on."""
    timing: Timing = field(default_factory=Timing)
    timeout_s: int = 300
    whole_cluster: bool = False
    """Whether it brings the records of all nodes, so that its silence says that nothing was."""
    node: str | None = None
    """Host whose log alone it is."""


@dataclass(frozen=True)
class Asking:
    """What a source is asked, and where what it answers may lie."""

    known: Known
    now: datetime
    since: datetime | None
    """Begin, where it is not that which was collected last."""
    folder: Path
    """Of this source alone; emptied once its files were read."""
    limits: Limits


class Source(Protocol):
    """A source of any kind."""

    @property
    def settings(self) -> Settings:
        """What it is called, and how it is asked and read."""

    @property
    def of_slurm(self) -> bool:
        """Whether its records are of the cluster to which this host belongs."""

    def fetches(self, asking: Asking) -> Iterator[Fetched]:
        """What is new, in the order of time, as files in the folder or where they lie.

        Raises
        ------
        DataError
            Where it cannot be had; what was yielded before holds.
        """


def host() -> str:
    """Name of this host, without its domain."""
    return socket.gethostname().partition(".")[0]
