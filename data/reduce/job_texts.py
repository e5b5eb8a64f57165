"""Texts of accounting, unfolded to Parquet of the same records: `sacct -P`, CSV and JSON lines.

Lines of sacct are read by its reader, which mends torn ones; CSV and JSON lines by DuckDB. A text
is read on the machine of the command, whatever the engine, as its lines are mended from what stands
around them.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from data.ingest.formats.delimited import MAX_LINE_BYTES
from data.ingest.formats.source import opened, without_long_lines
from data.ingest.reader import Options, Source
from data.ingest.readers.schedulers import sacct
from data.publish.schema import literal
from data.reduce.inputs import CSV, JSON, PARQUET, TEXT, Partition, on_disk
from data.reduce.job_columns import READ, known_columns
from data.reduce.scan import json_keys, json_lines, pointer, quoted, told_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from data.reduce.manifest import Surveyed

_DIVIDER = re.compile(r"\t|[^\w\s.%]+")
"""What may stand between the names of a header."""
_FIELDS = {"MISSING COLUMNS": "too few fields", "TOO MANY COLUMNS": "too many fields"}
_OTHER_FAULT = "no line of CSV"


class Unfolded(NamedTuple):
    """A text as Parquet."""

    partition: Partition
    rejected: Counter[str]
    """Records that are no row of it by reason; with `skipped` all that were rejected."""
    skipped: dict[str, int] | None
    """Rows that the reader of sacct skipped, by reason; None where it did not count them."""

    def counted(self, found: Surveyed, identity: list[int]) -> Surveyed:
        """What the text holds, by what its rows are."""
        skipped = found.skipped if self.skipped is None else self.skipped
        rejected = self.rejected + Counter(found.rejected if self.skipped is None else {})
        n_kept = sum(found.hours.values())
        return replace(
            found,
            identity=identity,
            rows=n_kept + sum(skipped.values()) + rejected.total(),
            skipped=skipped,
            rejected=dict(rejected),
        )


class Unfolding:
    """Unfolds each text once; what it wrote lies aside.

    Its connection keeps the order of rows: the reader of sacct finds a broken record in the file by
    its place among all of them.
    """

    def __init__(self, aside: Path, options: Options) -> None:
        self._aside, self._options = aside, options
        self._connection = duckdb.connect(config={"temp_directory": str(aside / "unfolding")})
        self._connection.execute("SET TimeZone = 'UTC'")
        self._unfolded: dict[str, Unfolded] = {}

    def close(self) -> None:
        """Lets go of the connection."""
        self._connection.close()

    def unfolded(self, partition: Partition) -> Unfolded:
        """Parquet of the records of a text; what is Parquet stays as it is.

        Raises
        ------
        SourceError
            Where it is empty, damaged, or lacks JobID or State.
        """
        if partition.form == PARQUET:
            return Unfolded(partition, Counter(), None)
        if partition.path not in self._unfolded:
            self._unfolded[partition.path] = self._unfold(partition)
        return self._unfolded[partition.path]

    def _unfold(self, partition: Partition) -> Unfolded:
        """The same, read anew."""
        path = self._aside / f"text-{len(self._unfolded)}.parquet"
        with (
            on_disk(partition, self._aside) as file,
            opened(str(file), self._aside, called=partition.path) as found,
        ):
            lines = without_long_lines(found, self._options.limits, self._aside)
            with told_of(partition.path), lines as source:
                delimiter = _divider(source.first_line()[1])
                skipped = None
                if partition.form == TEXT or (partition.form == CSV and "|" in delimiter):
                    rejected, skipped = self._of_sacct(source, delimiter, path)
                elif partition.form == JSON:
                    rejected = self._of_json(partition, source, path)
                else:
                    rejected = self._of_csv(source, delimiter, path)
                rejected = rejected + source.too_long.by_reason
        told = path.stat()
        parquet = Partition(str(path), PARQUET, told.st_size, told.st_mtime_ns)
        return Unfolded(parquet, rejected, skipped)

    def _of_sacct(
        self, source: Source, delimiter: str, path: Path
    ) -> tuple[Counter[str], dict[str, int]]:
        """What sacct printed: rejected and skipped records as its reader counts them."""
        options = Options(
            self._options.cluster, timezone=self._options.timezone, delimiter=delimiter
        )
        batch, fields = sacct.read_fields(source, options, self._connection)
        columns = sorted(name for name in READ if fields.has(name))
        self._write({name: quoted(name) for name in columns}, fields.records, path)
        return batch.rejected.by_reason, batch.skipped_by_reason

    def _of_csv(self, source: Source, delimiter: str, path: Path) -> Counter[str]:
        """Lines whose fields may stand in quotation marks; those of another number are lost."""
        index, first = source.first_line()
        names = next(csv.reader([first], delimiter=delimiter))
        found = known_columns(source.name, names)
        places = {plain: f'"c{names.index(name)}"' for plain, name in found.items()}
        columns = ", ".join(f"'c{place}': 'VARCHAR'" for place in range(len(names)))
        query = f"""SELECT * FROM read_csv({literal(str(source.path))}, header = false,
          skip = {index + 1}, auto_detect = false, delim = {literal(delimiter)}, quote = '"',
          escape = '"', columns = {{{columns}}}, null_padding = false, ignore_errors = true,
          store_rejects = true, max_line_size = {MAX_LINE_BYTES})"""
        self._write(places, query, path)
        rows = self._connection.execute(
            """SELECT CAST(error AS VARCHAR), count(*) FROM (
                 SELECT min(error_type) AS error FROM reject_errors GROUP BY line) GROUP BY 1"""
        ).fetchall()
        self._connection.execute("DROP TABLE reject_errors")
        self._connection.execute("DROP TABLE reject_scans")
        lost: Counter[str] = Counter()
        for error, n in rows:
            lost[_FIELDS.get(error, _OTHER_FAULT)] += n
        return lost

    def _of_json(self, partition: Partition, source: Source, path: Path) -> Counter[str]:
        """Lines of JSON; one that is none has no JobID, and is rejected for that."""
        there = partition._replace(path=str(source.path))
        keys = json_keys(self._connection, there)
        found = known_columns(source.name, keys)
        texts = {plain: _said(plain, literal(pointer(key))) for plain, key in found.items()}
        self._write(texts, json_lines([there.path]), path)
        return Counter()

    def _write(self, texts: Mapping[str, str], rows: str, path: Path) -> None:
        """Writes texts as Parquet, nothing as an empty one."""
        chosen = ", ".join(f"coalesce({text}, '') AS \"{name}\"" for name, text in texts.items())
        self._connection.execute(
            f"COPY (SELECT {chosen} FROM ({rows})) TO {literal(str(path))} (FORMAT parquet)"
        )


def _divider(first: str) -> str:
    """What stands between most names of a header.

    Examples
    --------
    >>> _divider("JobID|State|Req.Mem|"), _divider("JobID|#State"), _divider('"JobID","State"')
    ('|', '|#', ',')
    """
    found = Counter(_DIVIDER.findall(first.replace('"', "")))
    return found.most_common(1)[0][0] if found else sacct.DELIMITER


def _said(name: str, at: str) -> str:
    """The text of a value of a line of JSON; a number of a job is whole, whatever it looks like."""
    said = f"json_extract_string(line, {at})"
    if name in ("jobid", "jobidraw"):
        whole = f"CAST(TRY_CAST({said} AS BIGINT) AS VARCHAR)"
        said = f"CASE WHEN json_type(line, {at}) = 'DOUBLE' THEN {whole} ELSE {said} END"
    return f"CASE WHEN json_valid(line) THEN {said} END"
