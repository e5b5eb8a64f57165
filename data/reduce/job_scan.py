"""Records of accounting as DuckDB reads them from Parquet, by the rules of the reader of sacct."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from data.errors import SourceError
from data.ingest.readers.schedulers.sacct_sql import Fields, typed_sql
from data.publish.schema import literal
from data.reduce.job_columns import known_columns, written_as
from data.reduce.jobs import DAY_US, SCANNED
from data.reduce.manifest import Surveyed
from data.reduce.plan import UNKNOWN
from data.reduce.scan import INT96, of_int96, quoted, told_of

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    import duckdb

    from data.ingest.reader import Options
    from data.reduce.inputs import Partition

FILE_ROWS = 1 << 40
"""Ids that are kept for one file: they are its number times this, and the row."""
WHOLE_BELOW = 1e15
"""Floating numbers up to which whole ones are written as such."""
_KEPT = "skip IS NULL AND broken IS NULL"
_TELLING = """cluster AS of_cluster, job_id AS of_job, coalesce(sluid, '') AS of_sluid,
  state AS of_state, epoch_us(submit_at) AS submit_us, epoch_us(start_at) AS start_us,
  epoch_us(end_at) AS end_us"""
_DAY = f"epoch_us(submit_at) - ((epoch_us(submit_at) % {DAY_US}) + {DAY_US}) % {DAY_US}"


class Kind(NamedTuple):
    """How files are read; those of one kind are read together."""

    types: tuple[tuple[str, str], ...]
    """All columns and their types."""
    is_clean: bool
    """Whether all rows are known to be kept."""

    @property
    def columns(self) -> dict[str, str]:
        """Columns of sacct in lower case, and the expressions of their texts."""
        types = dict(self.types)
        found = known_columns("", types)
        return {name: text_of(quoted(of), types[of]) for name, of in found.items()}


class JobScan:
    """Reads Parquet whose columns are those of sacct, of any types."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, options: Options) -> None:
        self._connection, self._options = connection, options
        self._types: dict[str, tuple[tuple[str, str], ...]] = {}

    def survey(self, partition: Partition) -> Surveyed:
        """Counts the rows: what becomes of them, and of which days they are.

        Headers are looked at as a whole only where there seem to be some, as the reader does.

        Raises
        ------
        SourceError
            Where the file cannot be read.
        """
        files = f"read_parquet({literal(partition.path)}, hive_partitioning = false)"
        columns = Kind(self._types_of(partition), is_clean=False).columns
        fields = self._fields(columns, f"0 AS id, {_texts(columns)} FROM {files}")
        found = self._counted(partition, columns, typed_sql(fields, whole_headers=False))
        if "header" in found.skipped:
            return self._counted(partition, columns, typed_sql(fields, whole_headers=True))
        return found

    def queries(self, partitions: Sequence[Partition], clean: Collection[str]) -> tuple[str, str]:
        """Of the kept records with their ids what tells them apart, and the texts to be written.

        The texts are of all rows. Of clean partitions, named by path, all rows are kept.
        """
        alike: dict[Kind, list[str]] = {}
        for one in partitions:
            alike.setdefault(Kind(self._types_of(one), one.path in clean), []).append(one.path)
        telling, texts, first = [], [], 0
        for kind, paths in alike.items():
            columns = kind.columns
            place = f"(file_index + {first}) * {FILE_ROWS} + file_row_number AS id"
            files = f"""read_parquet([{", ".join(map(literal, paths))}], hive_partitioning = false,
              file_row_number = true)"""
            fields = self._fields(columns, f"{place}, {_texts(columns)} FROM {files}")
            where = "true" if kind.is_clean else _KEPT
            typed = typed_sql(fields, whole_headers=False)
            telling.append(f"SELECT id, {_TELLING} FROM ({typed}) WHERE {where}")
            chosen = written_as(columns)
            if self._options.cluster:
                chosen["cluster"] = literal(self._options.cluster)
            texts.append(f"SELECT {place}, {_texts(chosen)} FROM {files}")
            first += len(paths)
        names = ", ".join(SCANNED)
        return (
            " UNION ALL ".join(f"SELECT {names} FROM ({query})" for query in telling),
            " UNION ALL ".join(texts),
        )

    def _types_of(self, partition: Partition) -> tuple[tuple[str, str], ...]:
        """Columns and types of a partition.

        Raises
        ------
        SourceError
            Where it is empty, damaged, or lacks JobID or State.
        """
        if partition.path not in self._types:
            if not partition.size:
                raise SourceError(f"{partition.path}: is empty: leave it out or write it again")
            with told_of(partition.path):
                rows = self._connection.execute(
                    f"""DESCRIBE SELECT * FROM read_parquet({literal(partition.path)},
                        hive_partitioning = false)"""
                ).fetchall()
                int96 = of_int96(self._connection, partition.path)
            known_columns(partition.path, [row[0] for row in rows])
            self._types[partition.path] = tuple((n, int96.get(n, kind)) for n, kind, *_ in rows)
        return self._types[partition.path]

    def _fields(self, columns: Collection[str], rows: str) -> Fields:
        """Columns as the reader of sacct takes them; rows have their id."""
        return Fields(list(columns), self._options, f"SELECT {rows}", carried=("id",))

    def _counted(self, partition: Partition, columns: Collection[str], typed: str) -> Surveyed:
        """What becomes of typed records."""
        with told_of(partition.path):
            rows = self._connection.execute(
                f"""SELECT skip, broken, CASE WHEN {_KEPT} THEN {_DAY} END AS day_us, count(*),
                      count(*) FILTER (is_local AND {_KEPT})
                    FROM ({typed}) GROUP BY 1, 2, 3 ORDER BY ALL"""
            ).fetchall()
        return surveyed_jobs(partition.identity, rows, columns)


def _texts(columns: Mapping[str, str]) -> str:
    """Columns of texts, as SQL selects them."""
    return ", ".join(f"{text} AS {quoted(name)}" for name, text in columns.items())


def surveyed_jobs(
    identity: list[int],
    rows: Collection[tuple[str | None, str | None, int | None, int, int]],
    columns: Collection[str],
) -> Surveyed:
    """What a partition holds, by counts of skip, broken and day, and of times without zone."""
    skipped: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    days: Counter[str] = Counter()
    for skip, broken, day_us, n, _ in rows:
        if skip is not None:
            skipped[skip] += n
        elif broken is not None:
            rejected[broken] += n
        else:
            days[UNKNOWN if day_us is None else str(day_us)] += n
    return Surveyed(
        identity,
        sum(row[3] for row in rows),
        dict(skipped),
        dict(rejected),
        sum(row[4] for row in rows),
        dict(days),
        [],
        columns=list(columns),
    )


def text_of(column: str, kind: str) -> str:
    """A value as sacct would print it, nothing as an empty text.

    A whole number is one though its column is of floating numbers: `4711.0` would be a step.
    """
    text = f"CAST({column} AS VARCHAR)"
    if kind in ("FLOAT", "DOUBLE"):
        text = f"""CASE WHEN isnan({column}) THEN NULL
          WHEN {column} = trunc({column}) AND abs({column}) < {WHOLE_BELOW!r}
            THEN CAST(CAST({column} AS BIGINT) AS VARCHAR) ELSE {text} END"""
    elif kind == INT96:
        text = f"replace(CAST({column} AS VARCHAR), ' ', 'T') || '+00'"
    elif kind.startswith("TIMESTAMP"):
        text = f"replace({text}, ' ', 'T')"
    return f"coalesce({text}, '')"
