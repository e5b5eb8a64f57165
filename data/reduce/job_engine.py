"""What an engine does for a reduction of jobs, and how DuckDB does it on one machine."""

from __future__ import annotations

import shutil
from collections import Counter, defaultdict
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import duckdb
import ibis

from data.ingest.reader import Options
from data.publish.schema import literal
from data.reduce import jobs
from data.reduce.duckdb_engine import count_of, failed
from data.reduce.engine import Found, Surveying
from data.reduce.inputs import PARQUET, Partition, first_lines
from data.reduce.job_choice import chosen_otherwise
from data.reduce.job_columns import WRITTEN
from data.reduce.job_scan import JobScan
from data.reduce.job_texts import Unfolding
from data.reduce.kinds import JOBS
from data.reduce.plan import UNKNOWN, day_of
from data.reduce.scan import told_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence
    from pathlib import Path

    import ibis.expr.types as ir

    from data.reduce.manifest import Surveyed

MOST_ROWS = 10_000_000
"""Records that are reduced at once: what bounds the memory."""
_TEXTS = ", ".join(f'"{name}"' for name in WRITTEN)
_FLUSHED_ROWS = 4_000_000
"""Rows held until files of days are written on: fewer make many small pieces of each."""


class OfDay(NamedTuple):
    """What was made of the records of a day."""

    files: list[Path]
    rows_in: int
    rows_out: int
    superseded: Counter[str]


class JobEngine(Surveying, Protocol):
    """An engine that reduces records of accounting."""

    def reduce(
        self, found: Found, days: Collection[int | None], share: tuple[int, int], out: Path
    ) -> dict[str, OfDay]:
        """Reduces the records of some days, told by their begin, to files in `out`.

        Of `share` (k, n) those jobs whose hash leaves k when divided by n.
        """


class DuckDBJobs:
    """Reads partitions of accounting and reduces them; what it lays aside goes with it."""

    def __init__(self, aside: Path, zone: str, cluster: str | None) -> None:
        self.most_rows = MOST_ROWS
        self._n_tied = 0
        self._aside = aside
        self._aside.mkdir(parents=True)
        self._options = Options(cluster, timezone=zone)
        self._connection = duckdb.connect(config={"temp_directory": str(aside / "spilled")})
        self._connection.execute("SET TimeZone = 'UTC'")
        self._connection.execute("SET preserve_insertion_order = false")
        self._connection.execute(f"SET partitioned_write_flush_threshold = {_FLUSHED_ROWS}")
        self._unfolding = Unfolding(aside, self._options)
        self._scan = JobScan(self._connection, self._options)

    @property
    def told(self) -> list[str]:
        """What has to be known of what was reduced."""
        return told_tied(self._n_tied)

    def close(self) -> None:
        """Lets go of everything."""
        self._unfolding.close()
        self._connection.close()
        shutil.rmtree(self._aside, ignore_errors=True)

    def reach(self) -> None:
        """Lets it read objects of a storage."""
        from data.reduce.duckdb_objects import reach

        reach(self._connection, self._aside)

    def prepare(self, partitions: Sequence[Partition]) -> None:
        """Nothing: each is read by itself."""

    def survey(self, partition: Partition) -> Surveyed:
        """Counts the records of a partition."""
        unfolded = self._unfolding.unfolded(partition)
        return unfolded.counted(self._scan.survey(unfolded.partition), partition.identity)

    def as_parquet(self, partition: Partition) -> Partition:
        """What a partition was unfolded to, which it is itself where it is Parquet."""
        return self._unfolding.unfolded(partition).partition

    def count(self, paths: Sequence[str]) -> int:
        """Rows of Parquet, as the files say."""
        return count_of(self._connection, paths)

    def sample(self, partition: Partition, n_rows: int) -> Partition:
        """A partition of the first rows of one, of a text its first lines, laid aside."""
        path = self._aside / "sample"
        if partition.form != PARQUET:
            return first_lines(partition, n_rows + 1, path)
        with told_of(partition.path):
            self._connection.execute(
                f"""COPY (SELECT * FROM read_parquet({literal(partition.path)},
                    hive_partitioning = false) LIMIT {n_rows})
                    TO {literal(str(path))} (FORMAT parquet)"""
            )
        told = path.stat()
        return Partition(str(path), partition.form, told.st_size, told.st_mtime_ns)

    def try_out(self, sample: Partition, out: Path) -> int:
        """Reduces a sample as a whole to files in `out`; the records that it holds."""
        found = self.survey(sample)
        days = [None if begin == UNKNOWN else int(begin) for begin in found.hours]
        if days:
            self.reduce(Found([sample], ()), days, (0, 1), out / JOBS)
        return found.rows

    def reduce(
        self, found: Found, days: Collection[int | None], share: tuple[int, int], out: Path
    ) -> dict[str, OfDay]:
        """Reduces the records of some days to files in `out`."""
        try:
            return self._reduced(found, days, share, out)
        except duckdb.Error as error:
            raise failed(found, error) from None

    def _reduced(
        self, found: Found, days: Collection[int | None], share: tuple[int, int], out: Path
    ) -> dict[str, OfDay]:
        """The same, with DuckDB's own errors."""
        texts = self._view(found, share)
        chosen = ", ".join(str(jobs.NONE if day is None else day) for day in days)
        self._table("records", f"SELECT * FROM ({_sql(jobs.records)}) WHERE day_us IN ({chosen})")
        self._table("doubted", _sql(jobs.doubted))
        self._table("placed", _sql(jobs.placed))
        self._table("lost", _sql(jobs.lost))
        self._choose(texts)
        self._connection.execute("CREATE OR REPLACE TEMP VIEW gone AS SELECT id FROM lost")
        self._connection.execute(
            f"""COPY (SELECT day_us, {_TEXTS} FROM ({texts}) JOIN ({_sql(jobs.left)}) USING (id))
                TO {literal(str(out))} (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day_us),
                  OVERWRITE_OR_IGNORE)"""
        )
        return self._told(out)

    def _choose(self, texts: str) -> None:
        """Adds to table `lost` what gives way by all that it says."""
        self._table("tied", _sql(jobs.tied))
        ((n_tied,),) = self._connection.execute("SELECT count(*) FROM tied").fetchall()
        if not n_tied:
            return
        self._table(
            "compared",
            f"""SELECT id, day_us, tie, CAST(hash({_TEXTS}) >> 1 AS BIGINT) AS text
                FROM ({texts}) JOIN tied USING (id)""",
        )
        self._connection.execute(f"INSERT INTO lost {_sql(jobs.repeated)}")
        self._table("contested", _sql(jobs.contested))
        said = f"SELECT id, day_us, tie, {_TEXTS} FROM ({texts}) JOIN contested USING (id)"
        self._table("contested_texts", said)
        texts = "FROM contested_texts"
        rows, n_left = chosen_otherwise(self._connection, self._options, texts)
        self._n_tied += n_left
        if rows:
            self._connection.executemany("INSERT INTO lost VALUES (?, ?, ?)", rows)

    def _view(self, found: Found, share: tuple[int, int]) -> str:
        """View `scanned`: the kept records; and a query of the texts of all."""
        unfolded = {one.path: self.as_parquet(one) for one in found.partitions}
        clean = {unfolded[path].path for path in found.clean}
        telling, texts = self._scan.queries(list(unfolded.values()), clean)
        k, n = share
        part = f" WHERE hash(of_job) % {n} = {k}" if n > 1 else ""
        self._connection.execute(
            f"CREATE OR REPLACE TEMP VIEW scanned AS SELECT * FROM ({telling}){part}"
        )
        return texts

    def _told(self, out: Path) -> dict[str, OfDay]:
        """What was made of each day."""
        counts = self._connection.execute(_sql(jobs.days)).fetchall()
        gone = self._connection.execute(
            "SELECT day_us, reason, count(*) FROM lost GROUP BY ALL ORDER BY ALL"
        ).fetchall()
        return of_days(out, counts, gone)

    def _table(self, name: str, query: str) -> None:
        self._connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {query}")


def of_days(
    out: Path, counts: Iterable[tuple[int, int]], gone: Iterable[tuple[int, str, int]]
) -> dict[str, OfDay]:
    """What was made of each day, by counts of its records, and of those that gave way by reason."""
    superseded: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for day_us, reason, n in gone:
        superseded[day_us][reason] += n
    return {
        day_of(None if day_us == jobs.NONE else day_us): OfDay(
            sorted((out / f"day_us={day_us}").glob("*.parquet")),
            n,
            n - superseded[day_us].total(),
            superseded[day_us],
        )
        for day_us, n in sorted(counts)
    }


def told_tied(n: int) -> list[str]:
    """What to say of records that stay beside others, as nobody says of which cluster they are."""
    told = (
        f"{n:,} records that name no cluster differ from another one of their attempt and end as "
        "it does: all stay, and a store takes one (pass --cluster)"
    )
    return [told] if n else []


@cache
def _sql(question: Callable[[], ir.Table]) -> str:
    """An expression as DuckDB takes it."""
    return str(ibis.to_sql(question(), dialect="duckdb"))
