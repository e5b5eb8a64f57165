"""Reducing accounting by Spark: workers read Parquet; texts are unfolded on this machine before."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import duckdb

from data.ingest.reader import Options
from data.publish.schema import literal
from data.reduce import duckdb_engine, jobs
from data.reduce.inputs import PARQUET
from data.reduce.job_choice import chosen_otherwise
from data.reduce.job_columns import WRITTEN
from data.reduce.job_engine import DuckDBJobs, OfDay, of_days, told_tied
from data.reduce.job_scan import surveyed_jobs
from data.reduce.job_spark_scan import DAY, KEPT, Read, kept, read_texts, typed, written
from data.reduce.spark_engine import Held, shuffle_for, sql_of
from data.reduce.spark_scan import broken, by_likeness, quoted, united
from data.reduce.spark_session import failed, spark_errors, spark_session

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from pathlib import Path

    from data.reduce.engine import Found
    from data.reduce.inputs import Partition
    from data.reduce.manifest import Surveyed

MOST_ROWS = 1_000_000_000
"""Records that are reduced at once."""
_LOST = "id BIGINT, day_us BIGINT, reason STRING"
_TEXTS = ", ".join(map(quoted, WRITTEN))


class SparkJobs:
    """Reads partitions and reduces them, on a master that runs or in this process.

    Partitions and the folder of the reduction lie where every worker reaches them.
    """

    def __init__(self, aside: Path, zone: str, cluster: str | None, master: str | None) -> None:
        self.most_rows = MOST_ROWS
        self._n_tied = 0
        self._aside = aside.absolute()
        self._options = Options(cluster, timezone=zone)
        self._session = spark_session("faultline reduce", "UTC", master)
        shuffle_for(self._session, ())
        self._texts = DuckDBJobs(self._aside, zone, cluster)
        self._likeness: dict[str, str] = {}
        self._held = Held(self._session)

    @property
    def told(self) -> list[str]:
        """What has to be known of what was reduced."""
        return told_tied(self._n_tied)

    def close(self) -> None:
        """Lets go of everything."""
        self._session.stop()
        self._texts.close()
        shutil.rmtree(self._aside, ignore_errors=True)

    def prepare(self, partitions: Sequence[Partition]) -> None:
        """Nothing: each is read by itself."""

    def survey(self, partition: Partition) -> Surveyed:
        """Counts the records of a partition."""
        if partition.form != PARQUET:
            return self._texts.survey(partition)
        try:
            found = self._surveyed(partition, whole_headers=False)
            if "header" in found.skipped:
                return self._surveyed(partition, whole_headers=True)
        except spark_errors() as error:
            raise broken(partition, error) from None
        return found

    def _surveyed(self, partition: Partition, *, whole_headers: bool) -> Surveyed:
        """The same, with Spark's own errors."""
        read = read_texts(self._session, [partition])
        found = typed(read, self._options, whole_headers=whole_headers)
        told = found.selectExpr(
            "skip", "broken", f"CASE WHEN {KEPT} THEN {DAY} END AS day_us",
            f"is_local AND {KEPT} AS is_local",
        )  # fmt: skip
        told.createOrReplaceTempView("told")
        rows = self._session.sql(
            """SELECT skip, broken, day_us, count(*) AS n, count_if(is_local) AS n_local
               FROM told GROUP BY 1, 2, 3 ORDER BY 1, 2, 3"""
        ).collect()
        return surveyed_jobs(partition.identity, [tuple(row) for row in rows], read.columns)

    def reduce(
        self, found: Found, days: Collection[int | None], share: tuple[int, int], out: Path
    ) -> dict[str, OfDay]:
        """Reduces the records of some days to files in `out`."""
        try:
            return self._reduced(found, days, share, out.absolute())
        except spark_errors() as error:
            raise failed(error) from error
        except duckdb.Error as error:
            raise duckdb_engine.failed(found, error) from None
        finally:
            self._held.let_go()

    def _reduced(
        self, found: Found, days: Collection[int | None], share: tuple[int, int], out: Path
    ) -> dict[str, OfDay]:
        """The same, with Spark's own errors."""
        self._view(found, share)
        chosen = ", ".join(str(jobs.NONE if day is None else day) for day in days)
        self._held.keep(
            "records", f"SELECT * FROM ({sql_of(jobs.records)}) WHERE day_us IN ({chosen})"
        )
        self._session.sql(sql_of(jobs.doubted)).createOrReplaceTempView("doubted")
        self._held.keep("placed", sql_of(jobs.placed))
        self._choose()
        self._session.sql("SELECT id FROM lost").createOrReplaceTempView("gone")
        whole = self._session.sql(
            f"SELECT day_us, {_TEXTS} FROM texts JOIN ({sql_of(jobs.left)}) USING (id)"
        )
        parted = whole.repartition("day_us").write.mode("overwrite").option("compression", "zstd")
        parted.partitionBy("day_us").parquet(str(out))
        return self._told(out)

    def _choose(self) -> None:
        """View `lost`: what gives way, at last by all that it says."""
        self._session.sql(sql_of(jobs.lost)).createOrReplaceTempView("ranked_out")
        self._session.sql(sql_of(jobs.tied)).createOrReplaceTempView("tied")
        self._held.keep(
            "compared",
            f"SELECT id, day_us, tie, xxhash64({_TEXTS}) AS text FROM texts JOIN tied USING (id)",
        )
        self._session.sql(sql_of(jobs.repeated)).createOrReplaceTempView("again")
        self._session.sql(sql_of(jobs.contested)).createOrReplaceTempView("contested")
        self._session.createDataFrame(self._chosen(), _LOST).createOrReplaceTempView("otherwise")
        self._held.keep(
            "lost",
            """SELECT id, day_us, reason FROM ranked_out
               UNION ALL SELECT id, day_us, reason FROM again
               UNION ALL SELECT id, day_us, reason FROM otherwise""",
        )

    def _chosen(self) -> list[tuple[int, int, str]]:
        """What gives way by its hash, which DuckDB makes, as in a store; few records do."""
        path = self._aside / "contested"
        query = f"SELECT id, day_us, tie, {_TEXTS} FROM texts JOIN contested USING (id)"
        self._session.sql(query).write.mode("overwrite").parquet(str(path))
        if not list(path.glob("*.parquet")):
            return []
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            rows = f"SELECT * FROM read_parquet({literal(str(path / '*.parquet'))})"
            chosen, n_left = chosen_otherwise(connection, self._options, rows)
        self._n_tied += n_left
        return chosen

    def _view(self, found: Found, share: tuple[int, int]) -> None:
        """Views `scanned`, the kept records, and `texts`, all texts."""
        unfolded = [self._texts.as_parquet(one) for one in found.partitions]
        read: list[Read] = []
        n_files = 0
        for alike in by_likeness(unfolded, self._likeness):
            read.append(read_texts(self._session, alike, n_files))
            n_files += len(alike)
        scanned = united([kept(one, self._options) for one in read])
        texts = united([written(one, self._options) for one in read])
        shuffle_for(self._session, found.partitions)
        k, n = share
        if n > 1:
            scanned = scanned.where(f"pmod(hash(of_job), {n}) = {k}")
        scanned.createOrReplaceTempView("scanned")
        texts.createOrReplaceTempView("texts")

    def _told(self, out: Path) -> dict[str, OfDay]:
        """What was made of each day."""
        gone = self._session.sql(
            "SELECT day_us, reason, count(*) FROM lost GROUP BY 1, 2 ORDER BY 1, 2"
        ).collect()
        return of_days(out, map(tuple, self._session.sql(sql_of(jobs.days)).collect()), gone)
