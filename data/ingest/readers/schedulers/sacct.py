"""Reader of Slurm accounting: `sacct -P` text, parsed in DuckDB.

A record is an attempt of a job; steps are skipped. Traps met here (facts of Slurm's own manual):
newlines and delimiters inside JobName and SubmitLine, `CANCELLED by UID`, times that are Unknown
or None, local times with an hour twice a year, `Partition_Limit`, arrays `123_4` and heterogeneous
jobs `123+0`, columns named twice, several outputs in one file.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from data.errors import SourceError
from data.ingest.formats.delimited import Scan, repaired, scan
from data.ingest.formats.text_columns import Broken, Layout, lines_sql, records_table
from data.ingest.reader import (
    RAW_LIMIT,
    Batch,
    Options,
    Reader,
    Rejected,
    Rejections,
    Source,
    refuse_wide_header,
)
from data.ingest.readers.schedulers.sacct_fields import PRESETS, Shape, missing
from data.ingest.readers.schedulers.sacct_sql import Fields, broken, typed

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb
    from numpy.typing import NDArray

DELIMITER = "|"
FEW = 10_000
"""Lines below which the records are held in memory rather than read again."""
MAX_DOUBTED = 200_000
"""Whole lines with an impossible value up to which they are held against their neighbours."""
_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_ID = re.compile(r"\bjobid(raw)?\b")
_OF_JOBS = re.compile(
    r"\b(state|submit|eligible|start|end|exitcode|nodelist|nnodes|alloctres|reqtres)\b"
)
"""What accounting states of a job, and the log of its training does not."""
_HEADING = re.compile(r"[^\d\s][^\r]{0,63}")


def sniff(head: str) -> bool:
    """Whether a file begins with a header of sacct."""
    line = next((line for line in head.splitlines() if line.strip()), "").lower()
    named = _ID.search(line) is not None and _OF_JOBS.search(line) is not None
    return named and not re.search(r'[{"]|\s\s', line.strip())


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs from accounting text.

    Raises
    ------
    SourceError
        Where the file has no header and no columns are given, lacks JobID or State, or holds
        outputs with different columns.
    """
    return read_fields(source, options, connection)[0]


def read_fields(
    source: Source, options: Options, connection: duckdb.DuckDBPyConnection
) -> tuple[Batch, Fields]:
    """The same, and the texts of all its records, as long as no other file is read."""
    layout, notices = _layout(source, options)
    scanned = scan(source.path, layout.delimiter, len(layout.columns))
    reading = _Reading(source, layout, scanned, options, connection)
    batch = reading.batch(~scanned.whole)
    if reading.n_seen != reading.n_records:  # DuckDB saw other lines than the scan
        batch = reading.batch(np.ones_like(scanned.whole))
    doubted = reading.doubted()
    if doubted is not None:
        batch = reading.batch(~scanned.whole | doubted)
    batch.rejected = reading.rejected().ordered()
    _refuse_other_header(source, layout.delimiter, batch.rejected)
    batch.notices += notices + reading.notices() + missing(layout.columns)
    return batch, reading.fields


class _Reading:
    """One file on its way into the view sacct_typed: whole lines and mended records."""

    def __init__(
        self,
        source: Source,
        layout: Layout,
        scanned: Scan,
        options: Options,
        connection: duckdb.DuckDBPyConnection,
    ) -> None:
        self._source, self._layout, self._scan = source, layout, scanned
        self._options, self._connection = options, connection
        self._shape = Shape(layout.columns, layout.delimiter, options.limits)
        self._whole = scanned.whole
        self._records: list[tuple[int, list[str]]] = []
        self._lost = Rejections()
        self._broken = Broken([], Counter())
        self.fields = Fields(layout.columns, options, "")
        self.n_seen = 0
        """Records that DuckDB saw."""

    @property
    def n_records(self) -> int:
        """Records that went to DuckDB."""
        return int(self._whole.sum()) + len(self._records)

    def batch(self, odd: NDArray[np.bool_]) -> Batch:
        """Reads the file; `odd` lines are mended, the others taken as they stand."""
        suspects = self._scan.suspects(odd, self._layout.first)
        n_torn = np.count_nonzero(suspects)
        self._options.progress(f"{self._source.name}: {len(odd):,} lines, {n_torn:,} to mend")
        torn = self._scan.lines(suspects)
        self._records, self._lost = repaired(
            torn, self._shape.resolve, begins=self._shape.begins, ends=self._shape.ends
        )
        self._whole = ~(odd | suspects)
        self._whole[: self._layout.first] = False
        columns, connection = self._layout.columns, self._connection
        text = lines_sql(self._scan, self._whole, self._layout, connection)
        if self._records:
            connection.register("sacct_mended", records_table(self._records, columns))
            text = f"{text} UNION ALL FROM sacct_mended"
        self.fields = Fields(columns, self._options, text)
        batch, self.n_seen = typed(self.fields, connection, few=len(odd) < FEW)
        if self.n_seen > batch.rows_read:
            self._broken = broken(connection, MAX_DOUBTED + 1)
        else:
            self._broken = Broken([], Counter())
        return batch

    def doubted(self) -> NDArray[np.bool_] | None:
        """Whole lines with an impossible value, if they may be parts of torn records."""
        places = np.flatnonzero(self._whole)
        numbers = np.array([number for number, _ in self._records], dtype=np.int64)
        places = np.concatenate((places, numbers - 1))  # whole lines, then mended ones
        impossible = [places[at] for at, _ in self._broken.first if self._scan.whole[places[at]]]
        if not 0 < len(impossible) <= MAX_DOUBTED:
            return None
        doubted = np.zeros_like(self._whole)
        doubted[impossible] = True
        beside = ~self._scan.whole | doubted
        beside[: self._layout.first] = False
        touching = bool((beside[1:] & beside[:-1]).any())
        return doubted if touching or self._shape.open_ended else None

    def rejected(self) -> Rejections:
        """Everything that could not be read."""
        places = np.flatnonzero(self._whole)
        whole = {int(places[at]): reason for at, reason in self._broken.first if at < len(places)}
        chosen = np.zeros_like(self._whole)
        chosen[list(whole)] = True
        rejected = Rejections(
            Rejected(line.number, whole[line.number - 1], line.text[:RAW_LIMIT])
            for line in self._scan.lines(chosen)
        )
        for at, reason in self._broken.first:
            if at >= len(places):
                number, fields = self._records[at - len(places)]
                raw = self._layout.delimiter.join(fields)
                rejected.append(Rejected(number, reason, raw[:RAW_LIMIT]))
        rejected.by_reason += self._broken.further
        rejected.extend(self._lost)
        return rejected

    def notices(self) -> list[str]:
        """What the user should know."""
        n_torn = sum(
            not self._scan.whole[number - 1] or any(r"\n" in field for field in fields)
            for number, fields in self._records
        )
        text = "records torn by line breaks or delimiters in their text, put together again"
        return [f"{text}: {n_torn:,}"] if n_torn else []


def _layout(source: Source, options: Options) -> tuple[Layout, list[str]]:
    """Columns, delimiter and where the records begin; and what the user should know.

    Names of columns are in lower case; a second column of one name is called `name 2`.
    """
    delimiter = _delimiter(options)
    index, first = source.first_line()
    refuse_wide_header(source, first.count(delimiter) + 1, options.limits)
    names = [name.strip().lower() for name in first.split(delimiter)]
    given = [re.sub(r"%.*", "", name.strip().lower()) for name in options.columns or ()]
    if _is_header(names):
        notice = "its header was used, not --columns, which names other fields"
        differs = bool(given) and given != [name for name in names if name]
        layout = Layout(_unique(names, source), delimiter, index + 1)
        return layout, [notice] if differs else []
    if not given:
        raise SourceError(
            f"{source.name}: has no header with JobID between {delimiter!r}: {_advice(first)}"
        )
    if len(names) == len(given) + 1 and names[-1] == "":
        given.append("")  # sacct -p ends each line with a delimiter
    return Layout(_unique(given, source), delimiter, index), []


def _is_header(names: Sequence[str]) -> bool:
    """Whether fields are names of columns, JobID or State among them."""
    filled = [name for name in names if name]
    known = {"jobid", "jobidraw", "state"} & set(names)
    return bool(known) and len(filled) > 1 and all(map(_HEADING.fullmatch, filled))


def _delimiter(options: Options) -> str:
    """The delimiter, as `--delimiter` states it."""
    delimiter = DELIMITER if options.delimiter is None else options.delimiter
    delimiter = "\t" if delimiter == r"\t" else delimiter
    if not delimiter or set(delimiter) & set("\r\n"):
        raise SourceError(f"--delimiter {delimiter!r} cannot divide fields: pass e.g. '|'")
    return delimiter


def _advice(first: str) -> str:
    """What to do about a file without a header that can be read."""
    pattern = r"jobid(?:raw)?([^\w%.]+)(?=\w)|(?<=\w)([^\w%.]+)jobid"
    beside_id = re.search(pattern, first.lower())
    divider = (beside_id[1] or beside_id[2]) if beside_id else None
    if divider is not None and divider.isspace() and divider != "\t":
        return "give the output of sacct -P"
    if divider is not None and divider != DELIMITER:
        return f"pass --delimiter {divider!r}"
    return "pass --columns with the names of its fields, or --delimiter"


def _unique(names: Sequence[str], source: Source) -> tuple[str, ...]:
    """Names that are fit for SQL and differ; refuses them where JobID or State is missing."""
    for needed, names_of_it in (("JobID", ("jobid", "jobidraw")), ("State", ("state",))):
        if not any(name in names for name in names_of_it):
            raise SourceError(
                f"{source.name}: column {needed} is missing (found {', '.join(names)[:200]}): "
                "add it to sacct --format, or pass --delimiter"
            )
    return tuple(
        name if _NAME.fullmatch(name) and name not in names[:index] else f"{name[:20]} {index}"
        for index, name in enumerate(names)
    )


def _refuse_other_header(source: Source, delimiter: str, rejected: Sequence[Rejected]) -> None:
    """Refuses a file that goes on with other columns than it began with."""
    for row in rejected:
        names = [name.strip("\ufeff \t").lower() for name in row.raw.split(delimiter)]
        if "state" in names and "jobid" in names and _is_header(names):
            raise SourceError(
                f"{source.name}: line {row.line_no:,} is a header with other columns than the "
                "first: give the outputs as separate files"
            )


READER = Reader(
    "sacct",
    "Slurm accounting",
    export="sacct -P text, with header or --columns",
    reads=(
        "`sacct -P` text, with a header, `--columns` or `--preset xdmod` (the files of "
        "Open XDMoD's `xdmod-slurm-helper`); job steps are skipped"
    ),
    script=(
        "sacct -a -P --duplicates -S {start} -E {end} \\\n"
        "  --format=\\\n"
        "JobID,JobIDRaw,Cluster,User,Account,Partition,QOS,\\\n"
        "JobName,State,ExitCode,Reason,FailedNode,Restarts,\\\n"
        "Submit,Eligible,Start,End,ElapsedRaw,TimelimitRaw,\\\n"
        "NNodes,NCPUS,AllocTRES,ReqTRES,NodeList,Flags,SubmitLine \\\n"
        "  > sacct.txt"
    ),
    example="sacct.txt",
    advice=(
        "Alone enough for failure rate and MTTF. Without `--duplicates` only the last "
        "attempt of a requeued job appears and failures are undercounted. Slurm 25.11 and "
        "later: add SLUID to the columns."
    ),
    fills=("jobs",),
    place=1,
    options=("columns", "delimiter"),
    covers="jobs",
    presets=lambda: {name: {"columns": columns} for name, columns in PRESETS.items()},
    sniff=sniff,
    read=read,
)
