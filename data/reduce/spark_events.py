"""Events on the engine of many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.reduce import events
from data.reduce.engine import BURSTS, NO_LAST, Written
from data.reduce.event_columns import event_columns, judged, texts_of
from data.reduce.event_texts import is_read_by_line, unfold
from data.reduce.spark_engine import SparkEngine, sql_of
from data.reduce.spark_scan import (
    described,
    file_at,
    literal,
    micros_of,
    names_no_zone,
    quoted,
    trimmed,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from data.reduce.engine import Found, Period
    from data.reduce.inputs import Partition

_FILE = "_metadata.file_path"
_COUNTED = "SELECT coalesce(sum(n), 0), count_if(is_split) FROM bursts"


class SparkEvents(SparkEngine):
    """Reads partitions, and reduces their records to bursts; logs are read by this process."""

    scanned = tuple(events.SCANNED)
    alike = events.ALIKE
    named = "check_name"

    def __init__(self, aside: Path, zone: str, cluster: str | None, master: str | None) -> None:
        super().__init__(aside, zone, cluster, master)
        self._zone = zone
        self._unfolded: dict[str, Path] = {}

    def begin(self, names: Collection[str], minutes: Sequence[Path], since_us: int) -> None:
        """A day needs nothing of the day before: bursts end with their minute."""

    def keep_last(self, since_us: int) -> None:
        """Nothing is counted on; what was held goes."""
        del since_us
        self._held.let_go()

    def pass_on(self) -> None:
        """Nothing is counted on."""

    def last(self, minutes: Sequence[Path], since_us: int) -> str:
        """Nothing is counted on."""
        del minutes, since_us
        return NO_LAST

    def _reduced(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """Bursts of a period, with Spark's own errors."""
        self._view(found, period, share)
        self._held.keep("bursts", sql_of(events.bursts))
        n_rows, several = self._session.sql(_COUNTED).first()
        n_once = n_rows
        if several:
            self._held.keep("records", sql_of(events.once))
            self._held.keep("bursts", sql_of(events.bursts_once))
            n_once, _ = self._session.sql(_COUNTED).first()
        n_bursts = self._write(sql_of(events.finished, "bursts"), out / BURSTS)
        return Written({BURSTS: n_bursts} if n_bursts else {}, n_rows, n_rows - n_once)

    def _alike(self, partitions: Sequence[Partition]) -> list[list[Partition]]:
        """Partitions by what they have in common; what is read by line is alike."""
        lines = [one for one in partitions if is_read_by_line(one)]
        tables = [one for one in partitions if not is_read_by_line(one)]
        return [*super()._alike(tables), *([lines] if lines else [])]

    def _file(self, partition: Partition) -> str:
        """The file that Spark reads for a partition, as `file_of` tells it."""
        unfolded = self._unfolded.get(partition.path)
        return super()._file(partition) if unfolded is None else file_at(str(unfolded))

    def _frame(self, partitions: Sequence[Partition]) -> Any:
        """The rows of partitions that are alike: `scanned`, `verdict`, `is_local` and `path`."""
        if is_read_by_line(partitions[0]):
            files = [str(self._unfold(one)) for one in partitions]
            return self._session.read.parquet(*files).selectExpr("*", f"{_FILE} AS path")
        rows, types = described(self._session, partitions)
        found = event_columns(partitions[0].path, types)
        of_cluster = literal(self._cluster) if self._cluster else None
        texts = texts_of(found, _text, of_cluster)
        at, kind = quoted(found.at), types[found.at]
        stated = rows.selectExpr(
            *(f"{text} AS {name}" for name, text in texts.items()),
            f"{micros_of(at, kind)} AS at_us",
            f"xxhash64({_FILE}) AS part",
            f"{names_no_zone(at, kind)} AS is_local",
            f"{_FILE} AS path",
        )
        stated.createOrReplaceTempView("stated_rows")
        return self._session.sql(judged("SELECT * FROM stated_rows", carried=("path",)))

    def _unfold(self, partition: Partition) -> Path:
        """Parquet of a log's rows, where the workers reach it."""
        if partition.path not in self._unfolded:
            path = self._aside / f"text-{len(self._unfolded)}.parquet"
            self.told += unfold(partition, path, self._zone, self._cluster)
            self._unfolded[partition.path] = path
        return self._unfolded[partition.path]


def _text(column: str | None) -> str:
    """A column as text without surrounding blanks, empty where there is none."""
    if column is None:
        return "''"
    return f"coalesce({trimmed(f'CAST({quoted(column)} AS STRING)')}, '')"
