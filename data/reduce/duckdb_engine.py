"""The engine of one machine: DuckDB runs what ibis compiles, a stretch of time after the other."""

from __future__ import annotations

import shutil
from collections import defaultdict
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb
import ibis

from data.errors import DataError
from data.metric_kinds import metric_kind
from data.publish.schema import literal
from data.reduce import metrics
from data.reduce.engine import CHANGES, HOURS, MINUTES, WINDOWS, Found, Written, last_hash, surveyed
from data.reduce.inputs import CSV, PARQUET, first_lines
from data.reduce.objects import is_address
from data.reduce.plan import HOUR_US
from data.reduce.scan import CSV_OF_LINES, scan, shape_of, told_of, unread
from data.reduce.windows import wanted_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    import ibis.expr.types as ir

    from data.reduce.engine import Period
    from data.reduce.inputs import Partition
    from data.reduce.manifest import Surveyed
    from data.reduce.windows import Windows

MOST_ROWS = 20_000_000
"""Samples that are reduced at once: what bounds the memory."""
_NAMED = 3
"""Files that are named in a message."""
_STATED = ", ".join(f"coalesce({name}, '') AS {name}" for name in metrics.SERIES)
_NO_SAMPLE = f"""SELECT {", ".join(f"'' AS {name}" for name in metrics.SERIES)},
  0::BIGINT AS at_us, 0::DOUBLE AS value LIMIT 0"""


_CROWDED = """SELECT coalesce(sum(n), 0)::BIGINT, count(*) FILTER (bit_count(seconds) < n)
  FROM minutes"""
"""How many samples there are, and minutes in which two may be of one time."""


class DuckDBEngine:
    """Reads partitions, and reduces their samples; what it lays aside goes with it."""

    most_rows = MOST_ROWS
    scanned: Collection[str] = tuple(metrics.SCANNED)
    """Columns of rows as they are scanned."""
    alike: Collection[str] = metrics.SERIES
    """Those that rows which are reduced together have in common."""
    named = "metric"
    """The one of which a survey lists the values."""

    def __init__(self, aside: Path, zone: str, cluster: str | None) -> None:
        self._aside, self._zone, self._cluster = aside, zone, cluster
        self._aside.mkdir(parents=True)
        self._connection = duckdb.connect(config={"temp_directory": str(aside / "spilled")})
        self._connection.execute(f"SET TimeZone = {literal(zone)}")
        self._connection.execute("SET preserve_insertion_order = false")
        self._windows: Windows | None = None
        self.told: list[str] = []
        self._shapes: dict[str, Any] = {}
        self._unfolded: dict[str, Path] = {}

    def close(self) -> None:
        """Lets go of everything."""
        self._connection.close()
        shutil.rmtree(self._aside, ignore_errors=True)

    def reach(self) -> None:
        """Lets it read objects of a storage."""
        from data.reduce.duckdb_objects import reach

        reach(self._connection, self._aside)

    def prepare(self, partitions: Sequence[Partition]) -> None:
        """Nothing: of each what it takes is as little."""

    def survey(self, partition: Partition) -> Surveyed:
        """Counts the rows of a partition: what becomes of them, and of which hours they are.

        Raises
        ------
        SourceError
            Where it cannot be read.
        """
        width = HOUR_US
        hour = f"at_us - ((at_us % {width}) + {width}) % {width}"
        with told_of(partition.path):
            rows = self._connection.execute(
                f"""SELECT verdict, CASE WHEN verdict IS NULL THEN {hour} END AS hour_us,
                      CASE WHEN verdict IS NULL THEN {self.named} END AS named, count(*),
                      count(*) FILTER (is_local), cluster, max(at_us)
                    FROM ({self._rows(partition)}) GROUP BY ALL ORDER BY ALL"""
            ).fetchall()
        return surveyed(partition.identity, rows)

    def count(self, paths: Sequence[str]) -> int:
        """Rows of Parquet, as the files say."""
        return count_of(self._connection, paths)

    def sample(self, partition: Partition, n_rows: int) -> Partition:
        """A partition of the first rows of one, laid aside."""
        path = self._aside / "sample.parquet"
        if partition.form != PARQUET and is_address(partition.path):
            partition = first_lines(partition, n_rows + 1, self._aside / "sample")
        with told_of(partition.path):
            self._copy(partition, path, f" LIMIT {n_rows}")
        found = partition._replace(path=str(path), form=CSV)  # read as what a text unfolds to
        self._unfolded[found.path] = path
        return found

    def try_out(self, sample: Partition, out: Path) -> int:
        """Reduces a sample as a whole to files in `out`; the rows that it holds."""
        found = self.survey(sample)
        hours = [int(begin) for begin in found.hours]
        if hours:
            self.begin(found.metrics, [], 0)
            self.reduce(Found([sample], ()), (min(hours), max(hours) + HOUR_US), (0, 1), out)
        return found.rows

    def begin(self, names: Collection[str], minutes: Sequence[Path], since_us: int) -> None:
        """Takes up where the day before ended, by its minutes from a time on.

        `names` are the metrics that will come.
        """
        kinds = [(name, metric_kind(name)) for name in sorted(names)]
        self._connection.execute(
            "CREATE OR REPLACE TEMP TABLE metric_kind "
            "(metric VARCHAR, is_counter BOOLEAN, unit VARCHAR, holds_at_most DOUBLE)"
        )
        for name, kind in kinds:
            row = [name, kind.is_counter, kind.unit, kind.holds_at_most]
            self._connection.execute("INSERT INTO metric_kind VALUES (?, ?, ?, ?)", row)
        self._table("before", _ended(minutes, since_us) if minutes else _NO_SAMPLE)
        self._table("ended", _NO_SAMPLE)

    def last(self, minutes: Sequence[Path], since_us: int) -> str:
        """Hash of the last samples of counters by the minutes of a day, from a time on."""
        rows = self._connection.execute(_ended(minutes, since_us)).fetchall()
        return last_hash(rows)

    def want(self, windows: Windows | None) -> None:
        """From here on samples of these windows are kept, too."""
        self._windows = windows

    def reduce(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """Reduces the samples of a period, which begins and ends with an hour, to files in `out`.

        Of `share` (k, n) those series whose hash leaves k when divided by n.
        """
        try:
            return self._reduced(found, period, share, out)
        except duckdb.Error as error:
            raise failed(found, error) from None

    def _reduced(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """The same, with DuckDB's own errors."""
        self._view(found, period, share)
        self._table("series", sql_of(metrics.series))
        self._table("samples", sql_of(metrics.samples))
        self._table("minutes", sql_of(metrics.aggregates, metrics.MINUTE_US))
        ((n_rows, crowded),) = self._connection.execute(_CROWDED).fetchall()
        n_once = self._keep_once() if crowded else n_rows
        self._table("increased", sql_of(metrics.increases))
        self._table("hours", sql_of(metrics.aggregates, metrics.HOUR_US))
        files = {
            MINUTES: sql_of(metrics.finished, "minutes", metrics.MINUTE_US, "minute_us"),
            HOURS: sql_of(metrics.finished, "hours", metrics.HOUR_US, "hour_us"),
            CHANGES: sql_of(metrics.changes),
        }
        if self._windows is not None:
            self._want(self._windows, period)
            files[WINDOWS] = sql_of(metrics.kept)
        written = {name: self._write(query, out / name) for name, query in files.items()}
        return Written({name: n for name, n in written.items() if n}, n_rows, n_rows - n_once)

    def _want(self, windows: Windows, period: Period) -> None:
        """Table `wanted`: the stretches of the nodes of the samples."""
        import pyarrow as pa

        hosts = self._connection.execute("SELECT DISTINCT cluster, node FROM series").fetchall()
        columns = wanted_columns(windows, hosts, period)
        self._connection.register("wanted_rows", pa.table(columns))
        self._table("wanted", "FROM wanted_rows")
        self._connection.unregister("wanted_rows")

    def places(self, parts: Sequence[Path]) -> list[tuple[int, int]]:
        """Samples by place in files of windows."""
        if not parts:
            return []
        return self._connection.execute(
            f"SELECT place, count(*) FROM {_files(parts)} GROUP BY place"
        ).fetchall()

    def join(self, parts: Sequence[Path], last_place: int, path: Path) -> int:
        """Writes the samples up to a place of files of windows to one; how many."""
        if not parts:
            return 0
        return self._write(
            f"""SELECT {", ".join(metrics.SERIES)}, at_us, value FROM {_files(parts)}
                WHERE place <= {last_place} ORDER BY {", ".join(metrics.SERIES)}, at_us""",
            path,
        )

    def _keep_once(self) -> int:
        """Leaves one sample a series and time, and makes the minutes anew; how many there are."""
        self._table("kept_once", sql_of(metrics.once))
        self._table("samples", "FROM kept_once")
        self._connection.execute("DROP TABLE kept_once")
        self._table("minutes", sql_of(metrics.aggregates, metrics.MINUTE_US))
        ((n_once,),) = self._connection.execute("SELECT count(*) FROM samples").fetchall()
        return int(n_once)

    def keep_last(self, since_us: int) -> None:
        """Keeps the last samples of the counters that were reduced, from a time on."""
        last = f"SELECT * FROM ({sql_of(metrics.last_of_counters)}) WHERE at_us >= {since_us}"
        self._connection.execute(f"INSERT INTO ended {last}")

    def pass_on(self) -> None:
        """Counts on from the samples that were kept."""
        self._table("before", "FROM ended")
        self._table("ended", _NO_SAMPLE)

    def _view(self, found: Found, period: Period, share: tuple[int, int]) -> None:
        """View `scanned`: the kept rows of a period."""
        partitions, clean = found
        texts = [partition for partition in partitions if partition.form != PARQUET]
        scans = [self._scan_texts(texts)] if texts else []
        alike: defaultdict[tuple[Any, bool], list[str]] = defaultdict(list)
        for partition in partitions:
            if partition.form == PARQUET:
                is_clean = partition.path in clean
                alike[self._shape(partition), is_clean].append(partition.path)
        for (shape, is_clean), paths in alike.items():
            scans.append(self._scan(shape, paths, period, is_clean=is_clean))
        columns = ", ".join(self.scanned)
        union = " UNION ALL ".join(
            f"""SELECT {columns} FROM ({query}) WHERE verdict IS NULL
                AND at_us >= {period[0]} AND at_us < {period[1]}"""
            for query in scans
        )
        k, n = share
        part = f" WHERE hash({', '.join(self.alike)}) % {n} = {k}" if n > 1 else ""
        self._connection.execute(
            f"CREATE OR REPLACE TEMP VIEW scanned AS SELECT * FROM ({union}){part}"
        )

    def _scan_texts(self, several: Sequence[Partition]) -> str:
        """A query of texts, each read once in all, into Parquet."""
        paths = ", ".join(literal(str(self._unfold(one))) for one in several)
        return f"SELECT * FROM read_parquet([{paths}])"

    def _rows(self, partition: Partition) -> str:
        """A query of all rows of a partition."""
        if partition.form == PARQUET:
            return self._scan(self._shape(partition), [partition.path])
        return self._scan_texts([partition])

    def _shape(self, partition: Partition) -> Any:
        if partition.path not in self._shapes:
            self._shapes[partition.path] = self._shape_of(partition)
        return self._shapes[partition.path]

    def _shape_of(self, partition: Partition) -> Any:
        return shape_of(self._connection, partition, self._zone)

    def _scan(
        self,
        shape: Any,
        paths: Sequence[str],
        period: Period | None = None,
        *,
        is_clean: bool = False,
    ) -> str:
        """A query of the rows of partitions of one shape: `scanned`, `verdict` and `is_local`."""
        return scan(shape, paths, self._cluster, period, is_clean=is_clean)

    def _unfold(self, partition: Partition) -> Path:
        """Parquet of a text's rows."""
        if partition.path not in self._unfolded:
            path = self._aside / f"text-{len(self._unfolded)}.parquet"
            with told_of(partition.path):
                self._copy(partition, path)
            self._unfolded[partition.path] = path
        return self._unfolded[partition.path]

    def _copy(self, partition: Partition, path: Path, limit: str = "") -> None:
        """Parquet of the rows of a partition; of CSV that several threads cannot read by one."""
        shape = self._shape(partition)
        try:
            self._copy_as(shape, partition, path, limit)
        except duckdb.Error:
            if shape.form != CSV:
                raise
            self._copy_as(shape._replace(form=CSV_OF_LINES), partition, path, limit)

    def _copy_as(self, shape: Any, partition: Partition, path: Path, limit: str) -> None:
        query = f"{self._scan(shape, [partition.path])}{limit}"
        self._connection.execute(f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet)")

    def _table(self, name: str, query: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")

    def _write(self, query: str, path: Path) -> int:
        """Writes rows to a file, none where there are none; how many."""
        ((n_rows,),) = self._connection.execute(
            f"COPY ({query}) TO {literal(str(path))} (FORMAT parquet, COMPRESSION zstd)"
        ).fetchall()
        if not n_rows:
            path.unlink()
        return int(n_rows)


@cache
def sql_of(question: Callable[..., ir.Table], *asked: str | int) -> str:
    """An expression as DuckDB takes it; ibis takes longer for it than DuckDB for a small answer."""
    return str(ibis.to_sql(question(*asked), dialect="duckdb"))


def count_of(connection: duckdb.DuckDBPyConnection, paths: Sequence[str]) -> int:
    """Rows of Parquet, as the files say."""
    with told_of(paths[0] if len(paths) == 1 else f"one of {len(paths):,} files"):
        ((n_rows,),) = connection.execute(
            f"SELECT sum(num_rows) FROM parquet_file_metadata([{', '.join(map(literal, paths))}])"
        ).fetchall()
    return int(n_rows)


def failed(found: Found, error: duckdb.Error) -> DataError:
    """What to say where samples that were counted cannot be reduced."""
    if (why := unread(error)) is not None:
        return why
    names = ", ".join(partition.path for partition in found.partitions[:_NAMED])
    more = f" and {len(found.partitions) - _NAMED:,} more" * (len(found.partitions) > _NAMED)
    reason = str(error).splitlines()[0][:200]
    return DataError(
        f"{names}{more}: cannot be reduced ({reason}): check the files, and room in memory and on "
        "disk; days that are done stay"
    )


def _files(paths: Sequence[Path]) -> str:
    """A table of the rows of Parquet."""
    listed = ", ".join(literal(str(path)) for path in paths)
    return f"read_parquet([{listed}], hive_partitioning = false)"


def _ended(minutes: Sequence[Path], since_us: int) -> str:
    """A query of the last samples of counters by their minutes, from a time on."""
    return f"""SELECT {_STATED}, max(last_us) AS at_us, max_by(last, last_us) AS value
      FROM {_files(minutes)}
      WHERE last_us >= {since_us} AND at_least IS NOT NULL GROUP BY ALL"""
