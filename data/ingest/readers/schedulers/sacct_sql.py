"""The view sacct_typed: text columns of sacct as rows of the table jobs, and their summary."""

from __future__ import annotations

from typing import TYPE_CHECKING

from data.ingest.formats.text_columns import (
    BROKEN,
    Asked,
    Broken,
    changes_clocks,
    first_broken,
    instant_sql,
    literal,
    one_of,
    summary,
    zone_sql,
)
from data.ingest.readers.schedulers import sacct_fields as known
from data.tables.jobs import STATES

if TYPE_CHECKING:
    from collections.abc import Sequence

    import duckdb

    from data.ingest.reader import Batch, Options

CLUSTER = '"#cluster"'
"""Column of the cluster while records are typed."""
NUMBERS = ("nnodes", "allocnodes", "ncpus", "alloccpus")
COUNT = r"([0-9.]+[KMG]?)?"
TIMES = ("submit", "eligible", "start", "end")
_FREQUENT = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "PREEMPTED")
STATES_BY_USE = (*_FREQUENT, *sorted(STATES.difference(_FREQUENT)))
CHECKED = frozenset(("jobid", "jobidraw", "state", *TIMES, *NUMBERS))
"""Columns that tell whether a record is one; the others are read where it is taken."""


class Fields:
    """Expressions over the columns that a file has, and the query of its records as text."""

    def __init__(
        self,
        columns: Sequence[str],
        options: Options,
        text: str,
        *,
        any_id: bool = False,
        carried: Sequence[str] = (),
    ) -> None:
        self._columns, self.options = set(columns), options
        self.records = text
        self._carried = carried
        """Further columns of the records, which stay beside those of jobs as they are."""
        self._any_id = any_id
        """Whether any text is the id of a job, which says nothing of arrays then."""

    def has(self, *names: str) -> str | None:
        """The first of these columns that the file has, quoted."""
        return next((f'"{name}"' for name in names if name in self._columns), None)

    def text(self, *names: str) -> str:
        """A text column; placeholders for nothing are NULL."""
        column = self.has(*names)
        if column is None:
            return "NULL"
        return f"CASE WHEN {one_of(column, known.NO_TEXT)} THEN NULL ELSE {column} END"

    def cluster(self) -> str:
        """The cluster of a record: as stated, else its own, else the default."""
        stated, column = self.options.cluster, self.has("cluster")
        default = literal(stated or self.options.default_cluster)
        own = "" if stated or column is None else f"nullif(trim({column}), ''), "
        return f"coalesce({own}{default})"

    def may_repeat(self) -> bool:
        """Whether a time may lie in an hour that comes twice, and the elapsed time tells which."""
        return changes_clocks(self.options) and self.has("elapsed", "elapsedraw") is not None

    def times(self) -> str:
        """Columns #submit ... #end: UTC times, NULL where there is none or it is broken."""
        zone = zone_sql(self.options, CLUSTER)
        times = (f'{self._time(name)} AS "#{name}"' for name in TIMES)
        return f'{", ".join(times)}, {zone} AS "#zone"'

    def _time(self, name: str) -> str:
        column = self.has(name)
        if column is None:
            return "CAST(NULL AS TIMESTAMPTZ)"
        instant = instant_sql(column, self.options, CLUSTER)
        rest = f"substr({column}, 20)"  # behind the seconds; a pattern over all takes long to plan
        return f"""CASE
            WHEN length({column}) = 19 THEN {instant}
            WHEN {one_of(column, known.NO_TIME)} THEN NULL
            WHEN regexp_full_match({column}, '[0-9]{{9,11}}')
              THEN to_timestamp(TRY_CAST({column} AS BIGINT))
            WHEN regexp_full_match({rest}, '(\\.[0-9]+)?(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)')
              THEN TRY_CAST(regexp_replace({column}, '([+-][0-9]{{2}})([0-9]{{2}})$', '\\1:\\2')
                            AS TIMESTAMPTZ)
            WHEN regexp_full_match({rest}, '\\.[0-9]+') THEN {instant} END"""

    def is_local(self) -> str:
        """Whether a time of the record names no zone."""
        tests = [f"length({column}) = 19" for name in TIMES if (column := self.has(name))]
        return " OR ".join(tests) or "false"

    def kind(self, *, whole_headers: bool) -> str:
        """What a record is by its JobID: NULL a job, else job_step, header or broken."""
        job_id = self.has("jobid", "jobidraw")
        if self._any_id:
            return f"CASE WHEN {job_id} = '' THEN 'broken' END"
        return f"""CASE WHEN regexp_full_match({job_id}, '[0-9]+') THEN NULL
            WHEN regexp_full_match({job_id}, {literal(known.JOB_ID)})
              THEN CASE WHEN contains({job_id}, '.') THEN 'job_step' END
            WHEN {self._is_header(whole_headers)} THEN 'header'
            ELSE 'broken' END"""

    def _is_header(self, whole: bool) -> str:
        """Whether every named column holds its name; of the checked ones where that will do."""
        chosen = self._columns if whole else self._columns & CHECKED
        names = sorted(name for name in chosen if name.isidentifier())
        columns = ", ".join(f'"{name}"' for name in names)
        values = f"lower(replace(concat_ws('|', {columns}), '\ufeff', ''))"
        return f"{values} = {literal('|'.join(names))}"

    def state(self) -> str:
        """The state without who cancelled the job and without the sign that it was cut."""
        state = self.has("state")
        return f"""CASE WHEN NOT contains({state}, ' ') AND NOT contains({state}, '+') THEN {state}
            WHEN starts_with({state}, 'CANCELLED by ') THEN 'CANCELLED'
            ELSE split_part(rtrim({state}, '+'), ' ', 1) END"""

    def reason(self) -> str:
        """Why a record is broken, NULL where it is not."""
        state = one_of('"#state"', STATES_BY_USE)
        tests = [
            ("\"#kind\" = 'broken'", "JobID is no job id"),
            (f"NOT {state}", "State is no Slurm state"),
        ]
        tests += [
            (f'"#{name}" IS NULL AND NOT {one_of(column, known.NO_TIME)}', f"{name} is no time")
            for name in TIMES
            if (column := self.has(name))
        ]
        tests += [
            (f"NOT regexp_full_match({column}, '{COUNT}')", f"{name} is no number")
            for name in NUMBERS
            if (column := self.has(name))
        ]
        cases = " ".join(f"WHEN {test} THEN {literal(reason)}" for test, reason in tests)
        return f"CASE {cases} END"

    def count(self, *names: str) -> str:
        """A whole number that sacct may shorten with K, M or G (1K = 1024)."""
        column = self.has(*names)
        if column is None:
            return "CAST(NULL AS INTEGER)"
        unit = f"""CASE right({column}, 1) WHEN 'K' THEN 1024 WHEN 'M' THEN 1048576
            WHEN 'G' THEN 1073741824 ELSE 1 END"""
        return f"""CASE WHEN TRY_CAST({column} AS INTEGER) IS NOT NULL
            THEN TRY_CAST({column} AS INTEGER)
            ELSE TRY_CAST(TRY_CAST(rtrim({column}, 'KMG') AS DOUBLE) * {unit} AS INTEGER) END"""

    def seconds(self, raw: str | None, raw_unit: int, text: str | None) -> str:
        """A duration in seconds: a plain number of units, else D-HH:MM:SS, else NULL."""
        parts = [f"TRY_CAST({raw} AS INTEGER) * {raw_unit}::BIGINT"] if raw else []
        if text:
            clock = f"CAST(epoch(TRY_CAST(right({text}, 8) AS TIME)) AS BIGINT)"
            parts.append(
                f"""CASE WHEN {text} IN ('', 'UNLIMITED', 'Partition_Limit') THEN NULL
                WHEN contains({text}, '-')
                  THEN TRY_CAST(split_part({text}, '-', 1) AS INTEGER) * 86400::BIGINT + {clock}
                WHEN length({text}) = 8 AND TRY_CAST({text} AS TIME) IS NOT NULL THEN {clock}
                WHEN regexp_full_match({text}, '([0-9]{{1,6}}:)?[0-9]+:[0-9]+([.][0-9]+)?')
                  THEN list_reduce(list_transform(
                    string_split(split_part({text}, '.', 1), ':'),
                    lambda part: TRY_CAST(part AS INTEGER)::BIGINT), lambda a, b: a * 60 + b) END"""
            )
        return f"coalesce({', '.join(parts)})" if parts else "CAST(NULL AS BIGINT)"

    def key(self) -> str:
        """The attempt: its SLUID, else a hash of cluster, job id, submit and start."""
        sluid = self.text("sluid")
        hashed = f"""substr(md5(concat_ws('|', "#cluster", {self.has("jobid", "jobidraw")},
            coalesce(epoch_us("#submit"), -1), coalesce(epoch_us("#start"), -1))), 1, 20)"""
        return hashed if sluid == "NULL" else f"coalesce({sluid}, {hashed})"

    def taken(self, expression: str, name: str, kind: str) -> str:
        """An expression over COLUMN, which is the file's column of that name; else NULL."""
        column = self.has(name)
        return f"CAST(NULL AS {kind})" if column is None else expression.replace("COLUMN", column)

    def expressions(self) -> dict[str, str]:
        """Column of jobs -> expression over the text columns."""
        job_id = self.has("jobid", "jobidraw")
        part = "CASE WHEN contains({0}, '{1}') THEN TRY_CAST({2} AS INTEGER) END"
        number = "TRY_CAST(split_part(COLUMN, ':', {}) AS INTEGER)"
        number = f"CASE COLUMN WHEN '0:0' THEN 0 ELSE {number} END"
        of_array = {
            "array_job_id": f"CASE WHEN contains({job_id}, '_') "
            f"THEN split_part({job_id}, '_', 1) END",
            "array_task_id": part.format(job_id, "_", f"regexp_extract({job_id}, '_([0-9]+)', 1)"),
            "het_offset": part.format(job_id, "+", f"regexp_extract({job_id}, '[+]([0-9]+)', 1)"),
        }
        return {
            "cluster": '"#cluster"',
            "attempt_key": self.key(),
            "job_id": f"{job_id}",
            **({} if self._any_id else of_array),
            **{name: self.text(column) for name, column in known.TEXTS.items()},
            "state": '"#state"',
            "state_raw": f"{self.has('stateraw', 'state')}",
            "exit_code": self.taken(number.format(1), "exitcode", "INTEGER"),
            "exit_signal": self.taken(number.format(2), "exitcode", "INTEGER"),
            "restarts": self.count("restarts", "restartcnt"),
            "submit_at": '"#submit"',
            "eligible_at": '"#eligible"',
            "start_at": '"#start"',
            "end_at": '"#end"',
            "elapsed_s": self.seconds(self.has("elapsedraw"), 1, self.has("elapsed")),
            "timelimit_s": self.seconds(self.has("timelimitraw"), 60, self.has("timelimit")),
            "n_nodes": self.count("nnodes", "allocnodes"),
            "n_gpus": self.taken(known.GPUS, "alloctres", "INTEGER"),
            "n_cpus": self.count("ncpus", "alloccpus"),
            "node_list": self.taken(known.NODES, "nodelist", "VARCHAR"),
            "excluded_nodes": self.text("excludednodes")
            if self.has("excludednodes")
            else self.taken(known.EXCLUDED, "submitline", "VARCHAR"),
            "priority": self.taken("TRY_CAST(COLUMN AS BIGINT)", "priority", "BIGINT"),
            **{name: f'"{name}"' for name in self._carried},
        } | ({"#zone": '"#zone"'} if self.may_repeat() else {})


def _comes_twice(column: str) -> str:
    """Whether the same local time comes again an hour later."""
    return f'(({column} + INTERVAL 1 HOUR) AT TIME ZONE "#zone") = ({column} AT TIME ZONE "#zone")'


_LAG = "date_diff('second', start_at, end_at) - elapsed_s"
_END = f"""CASE WHEN {_LAG} = -3600 AND {_comes_twice("end_at")}
    THEN end_at + INTERVAL 1 HOUR ELSE end_at END"""
_START = f"""CASE WHEN {_LAG} = 3600 AND {_comes_twice("start_at")}
    THEN start_at + INTERVAL 1 HOUR ELSE start_at END"""


_ASKED = Asked(
    "jobs",
    "* EXCLUDE (skip, broken, is_local)",
    first="least(submit_at, start_at, end_at)",
    last="greatest(submit_at, start_at, end_at)",
    skips=("job_step", "header"),
    noted=(
        f"NOT regexp_full_match(node_list, {literal(known.CHECKS['nodelist'])})",
        "node lists that cannot be expanded, kept as text",
    ),
)


def typed(fields: Fields, connection: duckdb.DuckDBPyConnection, *, few: bool) -> tuple[Batch, int]:
    """View sacct_typed over the records of a file; its good ones, and how many it has.

    Headers are told by the columns that are checked anyway; only where that finds some are all
    columns looked at. Of a few records the view is of a table: to plan the query, which is done
    anew at every reading, costs more than to hold them.
    """
    _create_typed(fields, connection, few=few, whole_headers=False)
    batch, n_seen = summary("sacct_typed", _ASKED, fields.options, connection=connection)
    if "header" in batch.skipped_by_reason:
        _create_typed(fields, connection, few=few, whole_headers=True)
        return summary("sacct_typed", _ASKED, fields.options, connection=connection)
    return batch, n_seen


def _create_typed(
    fields: Fields, connection: duckdb.DuckDBPyConnection, *, few: bool, whole_headers: bool
) -> None:
    """View sacct_typed: columns of jobs, skip, broken, is_local."""
    query = typed_sql(fields, whole_headers=whole_headers)
    if few:
        connection.execute(f"CREATE OR REPLACE TEMP TABLE sacct_few AS {query}")
        query = "FROM sacct_few"
    connection.execute(f"CREATE OR REPLACE TEMP VIEW sacct_typed AS {query}")


def typed_sql(fields: Fields, *, whole_headers: bool) -> str:
    """A query of all records: columns of jobs, skip, broken, is_local."""
    typed = ", ".join(f'{value} AS "{name}"' for name, value in fields.expressions().items())
    shifted = f'* EXCLUDE ("#zone") REPLACE ({_START} AS start_at, {_END} AS end_at)'
    kind = fields.kind(whole_headers=whole_headers)
    return f"""
            WITH raw AS NOT MATERIALIZED ({fields.records}),
            text AS NOT MATERIALIZED (
              SELECT *, {kind} AS "#kind", {fields.cluster()} AS "#cluster",
                {fields.state()} AS "#state" FROM raw),
            timed AS NOT MATERIALIZED (SELECT *, {fields.times()} FROM text),
            typed AS NOT MATERIALIZED (
              SELECT CASE WHEN "#kind" <> 'broken' THEN "#kind" END AS skip,
                {fields.reason()} AS broken, {fields.is_local()} AS is_local, {typed}
              FROM timed)
            SELECT {shifted if fields.may_repeat() else "*"} FROM typed"""


def broken(connection: duckdb.DuckDBPyConnection, most: int) -> Broken:
    """The records that do not fit; `most` says of how many the place is wanted."""
    return first_broken(
        f"""SELECT place, broken FROM (
             SELECT row_number() OVER () - 1 AS place, skip, broken FROM sacct_typed)
           WHERE {BROKEN}""",
        most,
        connection,
    )
