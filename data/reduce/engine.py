"""What an engine does for a reduction: reads partitions, and reduces their samples by stretches."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from data.reduce.plan import day_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from data.reduce.inputs import Partition
    from data.reduce.manifest import Surveyed
    from data.reduce.windows import Windows

MINUTES, HOURS, CHANGES = "minutes", "hours", "changes"
"""What is written: aggregates, and the samples of the gauge of XIDs at which it changes."""
WINDOWS, KEPT = "windows", "kept"
"""Raw samples that are kept, and of which stretches of which nodes these are all."""
BURSTS = "bursts"
"""What is written of events."""
REJECTED, SKIPPED = "rejected: ", "skipped: "
"""How a verdict on a row begins; NULL where the row is kept."""
_OF_INGEST = re.compile(r"pass (?=--(?!cluster|timezone))")
NO_LAST = "none"
"""Instead of a hash, where a day ends without a counter."""
Period: TypeAlias = "tuple[int, int]"
"""From, and up to before, in microseconds since 1970."""


def told_here(text: str) -> str:
    """What a reader of `ingest` tells, whose options a reduction mostly has not.

    >>> told_here("no host on the line: pass --node")
    'no host on the line: `faultline ingest` takes --node'
    >>> told_here("times without a zone, read as UTC (pass --timezone)")
    'times without a zone, read as UTC (pass --timezone)'
    """
    return _OF_INGEST.sub("`faultline ingest` takes ", text)


class Found(NamedTuple):
    """Partitions that hold the samples of a day."""

    partitions: Sequence[Partition]
    clean: Collection[str]
    """Paths of those of which all rows are kept."""


class Written(NamedTuple):
    """What was made of a stretch of time."""

    files: dict[str, int]
    """minutes, hours, changes, windows -> rows; each in a file of that name, none where there are
    none. Windows have the column `place`, and are joined once the day is over."""
    rows_in: int
    repeated: int
    """Samples of a series and time of which another one counts."""


class Surveying(Protocol):
    """An engine that was started; what it lays aside goes when it is closed."""

    most_rows: int
    """Rows that it reduces at once."""

    @property
    def told(self) -> Sequence[str]:
        """What has to be known of what was read."""

    def close(self) -> None:
        """Lets go of everything."""

    def prepare(self, partitions: Sequence[Partition]) -> None:
        """Says which partitions will be surveyed, so that they can be read together."""

    def survey(self, partition: Partition) -> Surveyed:
        """Counts the rows of a partition: what becomes of them, and of which hours they are.

        Raises
        ------
        SourceError
            Where it cannot be read.
        """


class Engine(Surveying, Protocol):
    """An engine that reduces samples."""

    def begin(self, names: Collection[str], minutes: Sequence[Path], since_us: int) -> None:
        """Takes up where the day before ended, by its minutes from a time on.

        `names` are the metrics that will come.
        """

    def want(self, windows: Windows | None) -> None:
        """From here on samples of these windows are kept, too."""

    def reduce(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """Reduces the samples of a period, which begins and ends with an hour, to files in `out`.

        Of `share` (k, n) those series whose hash leaves k when divided by n.
        """

    def keep_last(self, since_us: int) -> None:
        """Keeps the last samples of the counters that were reduced, from a time on."""

    def pass_on(self) -> None:
        """Counts on from the samples that were kept."""

    def last(self, minutes: Sequence[Path], since_us: int) -> str:
        """Hash of the last samples of counters by the minutes of a day, from a time on."""

    def places(self, parts: Sequence[Path]) -> list[tuple[int, int]]:
        """Samples by place in files of windows."""

    def join(self, parts: Sequence[Path], last_place: int, path: Path) -> int:
        """Writes the samples up to a place of files of windows to one; how many."""


class Sampling(Protocol):
    """An engine that reduces a sample of what is to be reduced."""

    most_rows: int
    """Rows that it reduces at once."""

    def close(self) -> None:
        """Lets go of everything."""

    def count(self, paths: Sequence[str]) -> int:
        """Rows of Parquet, as the files say."""

    def sample(self, partition: Partition, n_rows: int) -> Partition:
        """A partition of the first rows of one, laid aside."""

    def try_out(self, sample: Partition, out: Path) -> int:
        """Reduces a sample as a whole to files in `out`; the rows that it holds."""


def last_hash(rows: Collection[tuple[object, ...]]) -> str:
    """Hash of last samples, on every engine the same."""
    if not rows:
        return NO_LAST
    return hashlib.sha256(repr(sorted(map(tuple, rows))).encode()).hexdigest()[:16]


def surveyed(identity: list[int], rows: Collection[tuple[Any, ...]]) -> Surveyed:
    """What a partition holds, by verdict, hour, metric, count, times without zone, cluster and last
    time.
    """
    from data.reduce.manifest import Surveyed

    counts: dict[str, dict[str, int]] = {REJECTED: {}, SKIPPED: {}}
    hours: dict[str, int] = {}
    ends: dict[str, dict[str, int]] = {}
    for verdict, hour_us, _, n, _, cluster, last_us in rows:
        if verdict is None:
            hours[str(hour_us)] = hours.get(str(hour_us), 0) + n
            of_cluster, day = ends.setdefault(cluster, {}), day_of(hour_us)
            of_cluster[day] = max(of_cluster.get(day, last_us), last_us)
        else:
            begin = REJECTED if verdict.startswith(REJECTED) else SKIPPED
            reason = verdict.removeprefix(begin)
            counts[begin][reason] = counts[begin].get(reason, 0) + n
    return Surveyed(
        identity,
        sum(row[3] for row in rows),
        counts[SKIPPED],
        counts[REJECTED],
        sum(row[4] for row in rows if row[0] is None),
        hours,
        sorted({str(row[2]) for row in rows if row[0] is None}),
        ends=ends,
    )
