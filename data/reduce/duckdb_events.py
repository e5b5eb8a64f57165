"""Events on the engine of one machine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from data.publish.schema import literal
from data.reduce import events
from data.reduce.duckdb_engine import DuckDBEngine, sql_of
from data.reduce.engine import BURSTS, NO_LAST, Written
from data.reduce.event_columns import EventColumns, event_columns, judged, part_of, texts_of
from data.reduce.event_texts import beginning, is_read_by_line, unfold
from data.reduce.inputs import PARQUET
from data.reduce.scan import described, is_instant, micros_of, names_no_zone, quoted, rows_of

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from data.reduce.engine import Found, Period
    from data.reduce.inputs import Partition

_PATH = "faultline_path"
_COUNTED = """SELECT coalesce(sum(n), 0)::BIGINT, count(*) FILTER (is_split) FROM bursts"""


class EventShape(NamedTuple):
    """How tables of events are read; those of one shape are read together."""

    form: str
    columns: EventColumns
    time_type: str
    zone: str
    keys: tuple[str, ...] = ()
    """Of JSON the keys that its lines have."""


class DuckDBEvents(DuckDBEngine):
    """Reads partitions, and reduces their records to bursts."""

    most_rows = 2_000_000
    scanned = tuple(events.SCANNED)
    alike = events.ALIKE
    named = "check_name"

    def sample(self, partition: Partition, n_rows: int) -> Partition:
        """A partition of the first rows of one, laid aside."""
        if not is_read_by_line(partition):
            return super().sample(partition, n_rows)
        return beginning(partition, self._aside / "sample.log")

    def begin(self, names: Collection[str], minutes: Sequence[Path], since_us: int) -> None:
        """A day needs nothing of the day before: bursts end with their minute."""

    def keep_last(self, since_us: int) -> None:
        """Nothing is counted on."""

    def pass_on(self) -> None:
        """Nothing is counted on."""

    def last(self, minutes: Sequence[Path], since_us: int) -> str:
        """Nothing is counted on."""
        del minutes, since_us
        return NO_LAST

    def _reduced(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """Bursts of a period, with DuckDB's own errors."""
        self._view(found, period, share)
        self._table("bursts", sql_of(events.bursts))
        ((n_rows, several),) = self._connection.execute(_COUNTED).fetchall()
        n_once = n_rows
        if several:
            self._table("records", sql_of(events.once))
            self._table("told_once", sql_of(events.bursts_once))
            self._table("bursts", "FROM told_once")
            ((n_once, _),) = self._connection.execute(_COUNTED).fetchall()
        n_bursts = self._write(sql_of(events.finished, "bursts"), out / BURSTS)
        return Written({BURSTS: n_bursts} if n_bursts else {}, n_rows, n_rows - n_once)

    def _shape_of(self, partition: Partition) -> EventShape:
        keys, types = described(self._connection, partition)
        columns = event_columns(partition.path, types)
        return EventShape(partition.form, columns, types[columns.at], self._zone, keys)

    def _scan(
        self,
        shape: EventShape,
        paths: Sequence[str],
        period: Period | None = None,
        *,
        is_clean: bool = False,
    ) -> str:
        """A query of the rows of tables of one shape."""
        found, at = shape.columns, quoted(shape.columns.at)
        of_cluster = literal(self._cluster) if self._cluster else None
        texts = texts_of(found, _text, of_cluster)
        within, part = "true", str(part_of(paths[0]))
        if shape.form == PARQUET:
            rows = f"""SELECT * FROM read_parquet([{", ".join(map(literal, paths))}],
              hive_partitioning = false, filename = {literal(_PATH)})"""
            part = f"CAST(hash({_PATH}) >> 1 AS BIGINT)"
            if period is not None and is_instant(shape.time_type):
                begin, end = (
                    f"CAST(make_timestamptz({at_us}) AS {shape.time_type})" for at_us in period
                )
                within = f"{at} >= {begin} AND {at} < {end}"
        else:
            rows = rows_of(shape.form, paths, shape.keys)
        return judged(
            f"""SELECT {", ".join(f"{text} AS {name}" for name, text in texts.items())},
                  {micros_of(at, shape.time_type, shape.zone)} AS at_us, {part} AS part,
                  {names_no_zone(at, shape.time_type)} AS is_local
                FROM ({rows}) WHERE {within}""",
            is_clean=is_clean,
        )

    def _unfold(self, partition: Partition) -> Path:
        """Parquet of a text's rows; lines of logs are read one by one."""
        if partition.path not in self._unfolded and is_read_by_line(partition):
            path = self._aside / f"text-{len(self._unfolded)}.parquet"
            self.told += unfold(partition, path, self._zone, self._cluster)
            self._unfolded[partition.path] = path
        return super()._unfold(partition)


def _text(column: str | None) -> str:
    """A column as text without surrounding blanks, empty where there is none."""
    return "''" if column is None else f"coalesce(trim(CAST({quoted(column)} AS STRING)), '')"
