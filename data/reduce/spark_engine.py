"""The engine of many machines: Spark runs what ibis compiles; its cluster is the site's."""

from __future__ import annotations

import shutil
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

import ibis

from data.errors import SourceError
from data.metric_kinds import metric_kind
from data.reduce import metrics
from data.reduce.engine import CHANGES, HOURS, MINUTES, WINDOWS, Written, last_hash, surveyed
from data.reduce.spark_scan import broken, by_likeness, file_at, file_of, scanned, united
from data.reduce.spark_session import failed, spark_errors, spark_session
from data.reduce.windows import wanted_columns

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path

    import ibis.expr.types as ir

    from data.reduce.engine import Found, Period
    from data.reduce.inputs import Partition
    from data.reduce.manifest import Surveyed
    from data.reduce.windows import Windows

MOST_ROWS = 2_000_000_000
"""Samples that are reduced at once: an hour of 60,000 series a second takes a tenth."""
_SHUFFLED_BYTES = 64_000_000
"""Of the inputs, that one task of Spark takes: 10 million samples of Parquet."""
_SAMPLE = ", ".join([*(f"{name} STRING" for name in metrics.SERIES), "at_us BIGINT, value DOUBLE"])
_KIND = "metric STRING, is_counter BOOLEAN, unit STRING, holds_at_most DOUBLE"
_COLUMNS = ", ".join(metrics.SCANNED)
_NAMED = ", ".join(f"coalesce({name}, '') AS {name}" for name in metrics.SERIES)
_WANTED = ", ".join(
    f"{name} {'STRING' if kind == 'string' else 'BIGINT'}" for name, kind in metrics.WANTED.items()
)


class SparkEngine:
    """Reads partitions and reduces their samples, on a master that runs or in this process.

    Partitions and the folder of the reduction lie where every worker reaches them.
    """

    scanned: Collection[str] = tuple(metrics.SCANNED)
    """Columns of rows as they are scanned."""
    alike: Collection[str] = metrics.SERIES
    """Those that rows which are reduced together have in common."""
    named = "metric"
    """The one of which a survey lists the values."""

    def __init__(self, aside: Path, zone: str, cluster: str | None, master: str | None) -> None:
        self.most_rows = MOST_ROWS
        self._aside, self._cluster = aside.absolute(), cluster
        self._windows: Windows | None = None
        self._session = spark_session("faultline reduce", zone, master)
        self._aside.mkdir(parents=True)
        shuffle_for(self._session, ())
        self._likeness: dict[str, str] = {}
        self._frames: dict[tuple[str, ...], Any] = {}
        self._surveyed: dict[str, Surveyed] = {}
        self._lasts: dict[tuple[Any, ...], list[tuple[Any, ...]]] = {}
        self._ended: list[tuple[Any, ...]] = []
        self._held = Held(self._session)
        self.told: list[str] = []

    def close(self) -> None:
        """Lets go of everything."""
        self._session.stop()
        shutil.rmtree(self._aside, ignore_errors=True)

    def prepare(self, partitions: Sequence[Partition]) -> None:
        """Counts the rows of those that are alike at once: each job of Spark takes its time."""
        for alike in self._alike(partitions):
            if len(alike) > 1:
                with suppress(SourceError):  # which of them it is comes out one by one
                    self._surveyed |= self._survey(alike)

    def survey(self, partition: Partition) -> Surveyed:
        """Counts the rows of a partition."""
        if partition.path not in self._surveyed:
            self._surveyed |= self._survey([partition])
        return self._surveyed.pop(partition.path)

    def _survey(self, partitions: Sequence[Partition]) -> dict[str, Surveyed]:
        """Path -> what the partition holds, of some that are alike."""
        width = metrics.HOUR_US
        hour = f"at_us - ((at_us % {width}) + {width}) % {width}"
        self._scanned(partitions).createOrReplaceTempView("partition_read")
        try:
            rows = self._session.sql(
                f"""SELECT path, verdict, CASE WHEN verdict IS NULL THEN {hour} END AS hour_us,
                      CASE WHEN verdict IS NULL THEN {self.named} END AS named, count(*) AS n,
                      count_if(is_local) AS n_local, cluster, max(at_us) AS last_us
                    FROM partition_read GROUP BY 1, 2, 3, 4, cluster"""
            ).collect()
        except spark_errors() as error:
            raise broken(partitions[0], error) from None
        of_file: dict[str, list[tuple[Any, ...]]] = {self._file(one): [] for one in partitions}
        for url, *row in rows:
            of_file[file_of(url)].append(tuple(row))
        return {one.path: surveyed(one.identity, of_file[self._file(one)]) for one in partitions}

    def _file(self, partition: Partition) -> str:
        """The file that Spark reads for a partition, as `file_of` tells it."""
        return file_at(partition.path)

    def _alike(self, partitions: Sequence[Partition]) -> list[list[Partition]]:
        """Partitions by what they have in common."""
        return by_likeness(partitions, self._likeness)

    def _scanned(self, partitions: Sequence[Partition]) -> Any:
        """A frame of the rows of partitions that are alike; to make one takes jobs of its own."""
        paths = tuple(one.path for one in partitions)
        if paths not in self._frames:
            self._frames[paths] = self._frame(partitions)
        return self._frames[paths]

    def _frame(self, partitions: Sequence[Partition]) -> Any:
        """The rows of partitions that are alike: `scanned`, `verdict`, `is_local` and `path`."""
        return scanned(self._session, partitions, self._cluster)

    def begin(self, names: Collection[str], minutes: Sequence[Path], since_us: int) -> None:
        """Takes up where the day before ended, by its minutes from a time on."""
        kinds = [
            (name, kind.is_counter, kind.unit, None if most is None else float(most))
            for name in sorted(names)
            for kind in [metric_kind(name)]
            for most in [kind.holds_at_most]
        ]
        self._session.createDataFrame(kinds, _KIND).createOrReplaceTempView("metric_kind")
        self._ended = self._last(minutes, since_us)
        self.pass_on()

    def reduce(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """Reduces the samples of a period of whole hours to files in `out`."""
        try:
            return self._reduced(found, period, share, out)
        except spark_errors() as error:
            raise failed(error) from error

    def _reduced(self, found: Found, period: Period, share: tuple[int, int], out: Path) -> Written:
        """The same, with Spark's own errors."""
        self._view(found, period, share)
        numbered = str(self._aside / "series")  # numbers stay what they are if a worker is lost
        self._session.sql(sql_of(metrics.series)).write.mode("overwrite").parquet(numbered)
        self._session.read.parquet(numbered).createOrReplaceTempView("series")
        self._held.keep("samples", sql_of(metrics.samples))
        self._held.keep("minutes", sql_of(metrics.aggregates, metrics.MINUTE_US))
        n_rows, crowded = self._session.sql(
            "SELECT coalesce(sum(n), 0), count_if(bit_count(seconds) < n) FROM minutes"
        ).first()
        n_once = n_rows
        if crowded:
            self._held.keep("samples", sql_of(metrics.once))
            self._held.keep("minutes", sql_of(metrics.aggregates, metrics.MINUTE_US))
            n_once = self._session.table("samples").count()
        self._held.keep("increased", sql_of(metrics.increases))
        self._held.keep("hours", sql_of(metrics.aggregates, metrics.HOUR_US))
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

    def want(self, windows: Windows | None) -> None:
        """From here on samples of these windows are kept, too."""
        self._windows = windows

    def _want(self, windows: Windows, period: Period) -> None:
        """View `wanted`: the stretches of the nodes of the samples."""
        hosts = self._session.sql("SELECT DISTINCT cluster, node FROM series").collect()
        columns = wanted_columns(windows, [tuple(host) for host in hosts], period)
        rows = list(zip(*(columns[name].tolist() for name in metrics.WANTED), strict=True))
        self._session.createDataFrame(rows, _WANTED).createOrReplaceTempView("wanted")

    def places(self, parts: Sequence[Path]) -> list[tuple[int, int]]:
        """Samples by place in files of windows."""
        if not parts:
            return []
        counted = self._parts(parts).groupBy("place").count()
        return [tuple(row) for row in counted.collect()]

    def join(self, parts: Sequence[Path], last_place: int, path: Path) -> int:
        """Writes the samples up to a place of files of windows to one; how many."""
        if not parts:
            return 0
        self._parts(parts).createOrReplaceTempView("windows")
        columns = ", ".join(metrics.SERIES)
        return self._write(
            f"""SELECT {columns}, at_us, value FROM windows WHERE place <= {last_place}
                ORDER BY {columns}, at_us""",
            path,
        )

    def _parts(self, parts: Sequence[Path]) -> Any:
        """Rows of files of windows."""
        return self._session.read.parquet(*(str(path.absolute()) for path in parts))

    def keep_last(self, since_us: int) -> None:
        """Keeps the last samples of the counters that were reduced, from a time on."""
        last = self._session.sql(sql_of(metrics.last_of_counters)).where(f"at_us >= {since_us}")
        self._ended += [tuple(row) for row in last.select(*metrics.SCANNED).collect()]
        self._held.let_go()

    def pass_on(self) -> None:
        """Counts on from the samples that were kept."""
        self._session.createDataFrame(self._ended, _SAMPLE).createOrReplaceTempView("before")
        self._ended = []

    def last(self, minutes: Sequence[Path], since_us: int) -> str:
        """Hash of the last samples of counters by the minutes of a day, from a time on."""
        return last_hash(self._last(minutes, since_us))

    def _last(self, minutes: Sequence[Path], since_us: int) -> list[tuple[Any, ...]]:
        """The last samples of counters by their minutes, from a time on."""
        if not minutes:
            return []
        files = [str(path.absolute()) for path in minutes]
        asked = (*files, since_us)
        if asked in self._lasts:  # the day before was the last that was made
            return self._lasts[asked]
        self._session.read.parquet(*files).createOrReplaceTempView("minutes_before")
        rows = self._session.sql(
            f"""SELECT {_COLUMNS} FROM (
                  SELECT {_NAMED}, max(last_us) AS at_us, max_by(last, last_us) AS value
                  FROM minutes_before WHERE last_us >= {since_us} AND at_least IS NOT NULL
                  GROUP BY 1, 2, 3, 4, 5)"""
        ).collect()
        self._lasts = {asked: [tuple(row) for row in rows]}
        return self._lasts[asked]

    def _view(self, found: Found, period: Period, share: tuple[int, int]) -> None:
        """View `scanned`: the kept rows of a period."""
        kept = f"verdict IS NULL AND at_us >= {period[0]} AND at_us < {period[1]}"
        whole = united(
            [
                self._scanned(alike).where(kept).select(*self.scanned)
                for alike in self._alike(found.partitions)
            ]
        )
        shuffle_for(self._session, found.partitions)
        k, n = share
        if n > 1:
            whole = whole.where(f"pmod(hash({', '.join(self.alike)}), {n}) = {k}")
        whole.createOrReplaceTempView("scanned")

    def _write(self, query: str, path: Path) -> int:
        """Writes rows to one file, none where there are none; how many."""
        import pyarrow.parquet as pq

        folder = self._aside / "written"
        self._session.sql(query).coalesce(1).write.mode("overwrite").option(
            "compression", "zstd"
        ).parquet(str(folder))
        files = sorted(folder.glob("part-*.parquet"))
        n_rows = sum(pq.read_metadata(file).num_rows for file in files)
        if n_rows:
            (file,) = (file for file in files if pq.read_metadata(file).num_rows)
            shutil.move(file, path)
        return int(n_rows)


class Held:
    """Answers that are held, as far as there is room, until all are let go."""

    def __init__(self, session: Any) -> None:
        self._session, self._frames = session, list[Any]()

    def keep(self, name: str, query: str) -> None:
        """A view of an answer that is held."""
        frame = self._session.sql(query).persist()
        frame.createOrReplaceTempView(name)
        self._frames.append(frame)

    def let_go(self) -> None:
        """Lets go of the answers that are held."""
        for frame in self._frames:
            frame.unpersist()
        self._frames = []


def shuffle_for(session: Any, partitions: Sequence[Partition]) -> None:
    """Parts a shuffle by the size of the inputs, one to a core at least, not 200 for a sum."""
    wanted = sum(one.size for one in partitions) // _SHUFFLED_BYTES
    parts = max(session.sparkContext.defaultParallelism, wanted)
    session.conf.set("spark.sql.shuffle.partitions", parts)


@cache
def sql_of(question: Callable[..., ir.Table], *asked: str | int) -> str:
    """An expression as Spark takes it."""
    ibis.pyspark  # noqa: B018  registers options that the compiler asks for
    return str(ibis.to_sql(question(*asked), dialect="pyspark"))
