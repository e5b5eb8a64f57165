"""Records of accounting as Spark reads them from Parquet, by the rules of the reader of sacct.

The rules are those of `data/ingest/readers/schedulers/sacct_sql.py`, which speaks DuckDB's SQL;
`tests/data/reduce/test_spark_jobs.py` holds the two together. The session's zone is UTC.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from data.ingest.readers.schedulers import sacct_fields as known
from data.ingest.readers.schedulers.sacct_sql import (
    CHECKED,
    COUNT,
    NUMBERS,
    STATES_BY_USE,
    TIMES,
)
from data.reduce.job_columns import known_columns, written_as
from data.reduce.job_scan import FILE_ROWS, WHOLE_BELOW
from data.reduce.jobs import DAY_US, SCANNED
from data.reduce.plan import HOUR_US
from data.reduce.spark_scan import NANOSECONDS, described, literal, quoted, trimmed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from data.ingest.reader import Options
    from data.reduce.inputs import Partition

_BEGIN, _END = r"\A(?:", r")\z"
_ID_OF_JOB = "[0-9]+"
_SECONDS_SINCE_1970 = "[0-9]{9,11}"
_OF_ZONE = r"(\.[0-9]+)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_FRACTION = r"\.[0-9]+"
_CLOCK = r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?"
DAY = f"submit_us - ((submit_us % {DAY_US}) + {DAY_US}) % {DAY_US}"
KEPT = "skip IS NULL AND broken IS NULL"


class Read(NamedTuple):
    """A file as Spark reads it."""

    rows: Any
    """Frame of `id` and the texts of its columns of sacct, by their names in lower case."""
    columns: list[str]


def read_texts(session: Any, partitions: Sequence[Partition], first: int = 0) -> Read:
    """The rows of files that are alike, which are numbered from `first`.

    Raises
    ------
    SourceError
        Where one is empty, damaged, or lacks JobID or State.
    """
    rows, types = described(session, partitions)
    found = known_columns(partitions[0].path, types)
    texts = [f"{_text(quoted(of), types[of])} AS {quoted(name)}" for name, of in found.items()]
    if len(partitions) == 1:
        place = f"_metadata.row_index + {first * FILE_ROWS} AS id"
        return Read(rows.selectExpr(place, *texts), list(found))
    file = "replace(_metadata.file_path, '///', '/') AS file"  # file:/ and file:/// are one
    placed = rows.selectExpr(file, "_metadata.row_index AS row", *texts)
    files = [(url.replace("///", "/"), k) for k, url in enumerate(rows.inputFiles(), first)]
    numbers = session.createDataFrame(files, "file STRING, number BIGINT").hint("broadcast")
    place = f"row + {FILE_ROWS} * number AS id"
    return Read(placed.join(numbers, "file").selectExpr(place, *map(quoted, found)), list(found))


def typed(read: Read, options: Options, *, whole_headers: bool) -> Any:
    """A frame of all records: the columns of SCANNED, `skip`, `broken` and `is_local`."""
    columns = set(read.columns)
    job = quoted("jobid" if "jobid" in columns else "jobidraw")
    default = literal(options.cluster or options.default_cluster)
    has_own = "cluster" in columns and not options.cluster
    own = f"nullif({trimmed('cluster')}, ''), " if has_own else ""
    sluid = f"CASE WHEN {_in('sluid', known.NO_TEXT)} THEN '' ELSE {quoted('sluid')} END"
    told = read.rows.selectExpr(
        "*",
        f"{_kind(job, columns, whole=whole_headers)} AS kind",
        f"coalesce({own}{default}) AS of_cluster",
        f"{_state()} AS of_state",
        f"{sluid if 'sluid' in columns else repr('')} AS of_sluid",
        *(
            f"{_time(quoted(name), _zone(options)) if name in columns else 'CAST(NULL AS BIGINT)'}"
            f" AS {name}_us"
            for name in TIMES
        ),
    )
    elapsed = _elapsed(columns) if _zone(options) != "UTC" else None
    shifted = _shifted(elapsed, _zone(options)) if elapsed else ("start_us", "end_us")
    local = " OR ".join(f"length({quoted(name)}) = 19" for name in TIMES if name in columns)
    return told.selectExpr(
        "id", "of_cluster", f"{job} AS of_job", "of_sluid", "of_state", "submit_us",
        f"{shifted[0]} AS start_us", f"{shifted[1]} AS end_us",
        "CASE WHEN kind <> 'broken' THEN kind END AS skip",
        f"{_reason(columns)} AS broken",
        f"{local or 'false'} AS is_local",
    )  # fmt: skip


def kept(read: Read, options: Options) -> Any:
    """What tells the kept records apart: a frame with the columns of SCANNED."""
    return typed(read, options, whole_headers=False).where(KEPT).select(*SCANNED)


def written(read: Read, options: Options) -> Any:
    """The texts of all rows, with their ids, as they are written."""
    chosen = written_as({name: quoted(name) for name in read.columns})
    if options.cluster:
        chosen["cluster"] = literal(options.cluster)
    texts = [f"{text} AS {quoted(name)}" for name, text in chosen.items()]
    return read.rows.selectExpr("id", *texts)


def _text(column: str, kind: str) -> str:
    """A value as sacct would print it, nothing as an empty text."""
    text, whole = f"CAST({column} AS STRING)", f"CAST({column} AS BIGINT)"
    if kind in ("float", "double"):
        text = f"""CASE WHEN isnan({column}) THEN NULL
          WHEN abs({column}) < {WHOLE_BELOW!r}D AND {column} = CAST({whole} AS DOUBLE)
            THEN CAST({whole} AS STRING) ELSE {text} END"""
    elif kind in NANOSECONDS.values():
        text = f"replace(CAST(timestamp_micros({column} DIV 1000) AS STRING), ' ', 'T')"
    elif kind.startswith("timestamp"):
        text = f"replace({text}, ' ', 'T')"
    if kind in ("timestamp", NANOSECONDS[True]):
        text = f"concat({text}, '+00')"
    return f"coalesce({text}, '')"


def _fits(text: str, pattern: str) -> str:
    """Whether a text fits a pattern as a whole."""
    return f"{text} RLIKE {literal(_BEGIN + pattern + _END)}"


def _in(column: str, words: Iterable[str]) -> str:
    """Whether a column is one of some words."""
    return f"{quoted(column)} IN ({', '.join(map(literal, words))})"


def _kind(job: str, columns: set[str], *, whole: bool) -> str:
    """What a record is by its JobID: NULL a job, else job_step, header or broken."""
    names = sorted(columns if whole else columns & CHECKED)
    values = f"concat_ws('|', {', '.join(map(quoted, names))})"
    header = f"lower(replace({values}, '\ufeff', '')) = {literal('|'.join(names))}"
    return f"""CASE WHEN {_fits(job, _ID_OF_JOB)} THEN NULL
      WHEN {_fits(job, known.JOB_ID)} THEN CASE WHEN contains({job}, '.') THEN 'job_step' END
      WHEN {header} THEN 'header' ELSE 'broken' END"""


def _state() -> str:
    """The state without who cancelled the job and without the sign that it was cut."""
    return """CASE WHEN NOT contains(state, ' ') AND NOT contains(state, '+') THEN state
      WHEN startswith(state, 'CANCELLED by ') THEN 'CANCELLED'
      ELSE split_part(trim(TRAILING '+' FROM state), ' ', 1) END"""


def _zone(options: Options) -> str:
    """The zone of local times."""
    return options.timezone or "UTC"


def _time(column: str, zone: str) -> str:
    """Microseconds since 1970, NULL where there is no time or it is broken."""
    midnight = f"substr({column}, 12, 8) = '24:00:00'"  # as DuckDB takes it
    day = f"substr({column}, 1, 10)"
    plain = f"replace(CASE WHEN {midnight} THEN {day} ELSE {column} END, '/', '-')"
    later = f"CASE WHEN {midnight} THEN INTERVAL '1' DAY ELSE INTERVAL '0' DAY END"
    wall = f"CAST(try_cast({plain} AS TIMESTAMP_NTZ) + {later} AS TIMESTAMP)"
    local = wall if zone == "UTC" else f"to_utc_timestamp({wall}, {literal(zone)})"
    rest = f"substr({column}, 20)"
    mended = (
        f"regexp_replace({column}, {literal(r'([+-][0-9]{2})([0-9]{2})$')}, {literal('$1:$2')})"
    )
    return f"""CASE WHEN length({column}) = 19 THEN unix_micros({local})
      WHEN {_fits(column, _SECONDS_SINCE_1970)} THEN CAST({column} AS BIGINT) * 1000000
      WHEN {_fits(rest, _OF_ZONE)}
        THEN unix_micros(try_cast({mended} AS TIMESTAMP))
      WHEN {_fits(rest, _FRACTION)} THEN unix_micros({local}) END"""


def _reason(columns: set[str]) -> str:
    """Why a record is broken, NULL where it is not."""
    states = ", ".join(map(literal, STATES_BY_USE))
    tests = [
        ("kind = 'broken'", "JobID is no job id"),
        (f"NOT of_state IN ({states})", "State is no Slurm state"),
    ]
    tests += [
        (f"{name}_us IS NULL AND NOT {_in(name, known.NO_TIME)}", f"{name} is no time")
        for name in TIMES
        if name in columns
    ]
    tests += [
        (f"NOT {_fits(quoted(name), COUNT)}", f"{name} is no number")
        for name in NUMBERS
        if name in columns
    ]
    return f"CASE {' '.join(f'WHEN {test} THEN {literal(why)}' for test, why in tests)} END"


def _elapsed(columns: set[str]) -> str | None:
    """Running time in seconds, as it is stated; None where no column does."""
    parts = []
    if "elapsedraw" in columns:
        parts.append("try_cast(`elapsedraw` AS BIGINT)")
    if "elapsed" in columns:
        found = [
            f"coalesce(try_cast(regexp_extract(`elapsed`, {literal(_CLOCK)}, {k}) AS BIGINT), 0)"
            for k in (1, 2, 3, 4)
        ]
        clock = f"(({found[0]} * 24 + {found[1]}) * 60 + {found[2]}) * 60 + {found[3]}"
        parts.append(f"CASE WHEN {_fits('`elapsed`', _CLOCK)} THEN {clock} END")
    return f"coalesce({', '.join(parts)})" if parts else None


def _shifted(elapsed: str, zone: str) -> tuple[str, str]:
    """Start and end, an hour later where the clock came twice and the running time says so."""
    lag = f"(end_us DIV 1000000 - start_us DIV 1000000 - {elapsed})"

    def comes_twice(us: str) -> str:
        now, later = (
            f"from_utc_timestamp(timestamp_micros({at}), {literal(zone)})"
            for at in (us, f"{us} + {HOUR_US}")
        )
        return f"{later} = {now}"

    def moved(us: str, by_s: int) -> str:
        later = f"{us} + {HOUR_US}"
        return f"CASE WHEN {lag} = {by_s} AND {comes_twice(us)} THEN {later} ELSE {us} END"

    return moved("start_us", 3600), moved("end_us", -3600)
