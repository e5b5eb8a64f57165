"""Events on the engine of many machines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from data.reduce import events
from data.reduce.engine import BURSTS, NO_LAST, Written
from data.reduce.event_columns import CODES, code_of, event_columns, judged, part_of
from data.reduce.event_texts import is_read_by_line, unfold
from data.reduce.spark_engine import SparkEngine, sql_of
from data.reduce.spark_scan import described, literal, micros_of, names_no_zone, quoted, trimmed

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from data.reduce.engine import Found, Period
    from data.reduce.inputs import Partition

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
        self._let_go()

    def pass_on(self) -> None:
        """Nothing is counted on."""

    def last(self, minutes: Sequence[Path], since_us: int) -> str:
        """Nothing is counted on."""
        del minutes, since_us
        return NO_LAST

    def _reduced(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """Bursts of a period, with Spark's own errors."""
        self._view(found, period, share)
        self._keep("bursts", sql_of(events.bursts))
        n_rows, several = self._session.sql(_COUNTED).first()
        n_once = n_rows
        if several:
            self._keep("records", sql_of(events.once))
            self._keep("bursts", sql_of(events.bursts_once))
            n_once, _ = self._session.sql(_COUNTED).first()
        n_bursts = self._write(sql_of(events.finished, "bursts"), out / BURSTS)
        return Written({BURSTS: n_bursts} if n_bursts else {}, n_rows, n_rows - n_once)

    def _alike(self, partitions: Sequence[Partition]) -> list[list[Partition]]:
        """Each by itself: a record knows the number of its file."""
        return [[one] for one in partitions]

    def _frame(self, partitions: Sequence[Partition]) -> Any:
        """The rows of a partition: `scanned`, `verdict`, `is_local` and `path`."""
        return self._rows(partitions[0]).selectExpr("*", "CAST(NULL AS STRING) AS path")

    def _rows(self, partition: Partition) -> Any:
        """The rows without `path`."""
        if is_read_by_line(partition):
            return self._session.read.parquet(str(self._unfold(partition)))
        rows, types = described(self._session, [partition])
        found = event_columns(partition.path, types)
        texts = {
            name: _text(column)
            for name, column in found._asdict().items()
            if name != "at" and name not in CODES
        }
        texts["severity"] = f"lower({texts['severity']})"
        if self._cluster:
            texts["cluster"] = literal(self._cluster)
        for name in CODES:
            stated = _text(getattr(found, name))
            number = f"try_cast({stated} AS DOUBLE)"
            texts[name] = code_of(stated, number, f"try_cast({number} AS BIGINT)")
        at, kind = quoted(found.at), types[found.at]
        view = f"rows_{part_of(partition.path)}"
        rows.createOrReplaceTempView(view)
        columns = ", ".join(f"{text} AS {name}" for name, text in texts.items())
        return self._session.sql(
            judged(
                f"""SELECT {columns}, {micros_of(at, kind)} AS at_us,
                  CAST({part_of(partition.path)} AS BIGINT) AS part,
                  {names_no_zone(at, kind)} AS is_local FROM {view}"""
            )
        )

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
