"""Logs of jobs: a folder of files whose names hold the job id, or one such file.

Rows name the job, not the attempt: every publish finds the attempt anew, so that logs may come
before or after the accounting records of their jobs.
"""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from data.errors import DataError, SourceError
from data.ingest.formats.log_lines import lines_of_log
from data.ingest.formats.source import opened
from data.ingest.reader import Batch, Options, Reader, Source
from data.ingest.rows import LocalClock, Tally
from data.inside import Inside, LeftOutError

if TYPE_CHECKING:
    import duckdb

FIRST_LINES, LAST_LINES = 200, 1_800
"""Lines of a file that are stored where the caller says nothing else."""
LONGEST_LINE = 4_000
"""Characters of a line that are stored: of a longer one its end, which a terminal would show."""
SCHEMA = pa.schema(
    [("cluster", pa.string()), ("job_id", pa.string()), ("file", pa.string()),
     ("line_no", pa.int64()), ("logged_at", pa.timestamp("us", tz="UTC")), ("node", pa.string()),
     ("rank", pa.int32()), ("text", pa.string())]
)  # fmt: skip
"""Columns of `job_logs` that readers fill."""


def sniff(head: str) -> bool:  # noqa: ARG001 - the signature of every reader
    """Never: a job may write anything, so its log is known by its name alone."""
    return False


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """The first and last lines of one log as rows of `job_logs`.

    Raises
    ------
    SourceError
        Where the file's name does not hold a job id.
    """
    name = log_name(Path(source.name).name, options.pattern)
    if name is None:
        raise SourceError(f"{source.name}: its name holds no job id: {_remedy(options)}")
    reading = _Reading(options, Inside(Path(source.name).parent))
    reading.add(source, Path(source.name).name, name)
    return reading.whole(connection)


def read_folder(
    folder: Path,
    options: Options,
    connection: duckdb.DuckDBPyConnection,
    workdir: Path,
    *,
    called: str | None = None,
) -> tuple[Source, Batch]:
    """The logs below a folder, as `read` reads each; what they came from, and their rows.

    Files whose name holds no job id are skipped, and so are links that lead out of the folder;
    files and folders that cannot be read are rejected.

    Raises
    ------
    SourceError
        Where no file below the folder is the log of a job.
    DataError
        Where the pattern cannot name a job.
    """
    if options.pattern:
        compiled(options.pattern)
    shown = called or str(folder)
    reading, digest = _Reading(options, Inside(folder)), hashlib.sha256()
    for number, path in enumerate(reading.inside.files(reading.refuse), 1):
        reading.take(path, digest, workdir)
        options.progress(f"{shown}: {number:,} files")
    for reason, names in reading.inside.left_out.items():
        reading.skipped[reason] += len(names)
    if reading.n_files == 0:
        raise SourceError(f"{shown}: {_nothing_found(reading, options)}")
    modified_at = datetime.fromtimestamp(folder.stat().st_mtime, UTC)
    source = Source(folder, shown, modified_at, sha256=digest.hexdigest())
    return source, reading.whole(connection)


def _remedy(options: Options) -> str:
    return "mend --pattern" if options.pattern else "pass --pattern, e.g. --pattern 'run-%j.txt'"


def _nothing_found(reading: _Reading, options: Options) -> str:
    """Why a folder gave nothing, in one line."""
    if reading.rejected:
        first = reading.rejected[0]
        return f"no log in it can be read: {first.raw}: {first.reason}"
    if reading.skipped["empty_file"]:
        return f"all logs in it are empty ({reading.skipped['empty_file']:,})"
    n_files = reading.skipped["name_without_job_id"]
    if n_files == 0 and (left_out := reading.inside.notices()):
        return f"no log lies in it: {'; '.join(left_out)}"
    if n_files == 0:
        return "holds no files: give the folder of the jobs' logs"
    return f"no name of its {n_files:,} files holds a job id: {_remedy(options)}"


class _Reading(Tally):
    """What has been read of the logs so far."""

    def __init__(self, options: Options, inside: Inside) -> None:
        super().__init__(options, LocalClock(options))
        self.inside = inside
        """The folder of the logs."""
        self.n_files = 0
        self.tables: list[pa.Table] = []
        self.jobs: set[str] = set()
        self.cluster = options.cluster_of()
        self.first = FIRST_LINES if options.first_lines is None else options.first_lines
        self.last = LAST_LINES if options.last_lines is None else options.last_lines

    def take(self, path: Path, digest: hashlib._Hash, workdir: Path) -> None:
        """Reads one file below the folder into the rows and the hash of all, or skips it."""
        try:
            held = self.inside.take(path)
        except LeftOutError:
            return
        except OSError as error:
            self.refuse(error)
            return
        relative = path.relative_to(self.inside.folder).as_posix()
        name = log_name(relative, self.options.pattern)
        with held:
            if name is None:
                self.skipped["name_without_job_id"] += 1
            elif held.told.st_size == 0:
                self.skipped["empty_file"] += 1
            elif not self.inside.is_again(path, held):
                digest.update(relative.encode(errors="replace") + b"\0")
                digest.update(self._add_file(held.path, relative, name, workdir).encode())

    def refuse(self, error: OSError) -> None:
        """Rejects a file or folder that cannot be looked at."""
        place = os.path.relpath(error.filename, self.inside.folder)
        self.rejected.reject(1, f"cannot be read ({error.strerror})", place)

    def _add_file(self, path: Path, relative: str, name: LogName, workdir: Path) -> str:
        """Reads one file below the folder, or rejects it; the hash of its bytes."""
        try:
            with opened(
                str(path),
                workdir,
                called=relative,
                partial=self.options.partial,
                limits=self.options.limits,
            ) as found:
                self.add(found, relative, name)
                self.told["bytes that are not UTF-8, replaced by U+FFFD"] += found.n_replaced
                self.told["files that end early, read up to there"] += bool(found.truncated)
                return found.sha256
        except SourceError as error:
            reason = str(error).removeprefix(f"{relative}: ").removeprefix(f"{path}: ")
            self.rejected.reject(1, reason, relative)
            return ""

    def add(self, source: Source, relative: str, name: LogName) -> None:
        """Takes the first and last lines of a log, and what may matter of those between."""
        log = lines_of_log(source.path, self.first, self.last, longest=LONGEST_LINE)
        n_kept = len(log.lines)
        table = pa.table(
            {
                "cluster": [self.cluster] * n_kept,
                "job_id": [name.job_id] * n_kept,
                "file": [relative] * n_kept,
                "line_no": log.numbers,
                "logged_at": [line_time(text, self.clock, self.cluster) for text in log.lines],
                "node": [name.node or line_host(text) or self.options.node for text in log.lines],
                "rank": [
                    name.rank if name.rank is not None else line_rank(text) for text in log.lines
                ],
                "text": log.lines,
            },
            schema=SCHEMA,
        )
        self.tables.append(table)
        self.skipped["between_first_and_last_lines"] += log.n_lines - n_kept
        self.n_files += 1
        self.jobs.add(name.job_id)

    def whole(self, connection: duckdb.DuckDBPyConnection) -> Batch:
        """All of the logs."""
        rows = pa.concat_tables(self.tables)
        self.n_kept = rows.num_rows
        self.saw(self.cluster, *pc.min_max(rows["logged_at"]).as_py().values())
        self.notices += [*self.inside.notices(), *self._unknown_jobs(connection)]
        return self.batch("job_logs", rows)

    def _unknown_jobs(self, connection: duckdb.DuckDBPyConnection) -> list[str]:
        """A sentence where the store does not know jobs yet."""
        known = connection.execute(
            """SELECT count(DISTINCT id) FROM (SELECT unnest($ids) AS id) WHERE
                 id IN (SELECT job_id FROM jobs WHERE cluster = $cluster)
                 OR id IN (SELECT job_id_raw FROM jobs WHERE cluster = $cluster)""",
            {"ids": sorted(self.jobs), "cluster": self.cluster},
        ).fetchall()[0][0]
        n_unknown = len(self.jobs) - int(known)
        told = "jobs that the store does not know, whose logs wait for their records"
        return [f"{told}: {n_unknown:,} of {len(self.jobs):,}"] if n_unknown else []


_STEMS = (
    "slurm-%A_%a", "slurm-%j", "slurm-%j.%s", "slurm-%j-%t", "slurm-%j_%t", "slurm-%j-%N",
    "slurm-%j_%N", "slurm-%j.%N", "slurm-%x-%j", "slurm-%x.%j", "slurm_%j", "slurm_%A_%a",
    "%A_%a_%t_log", "%j_%t_log", "%A_%a_log", "%j_log",  # submitit
    "job-%j", "job_%j", "job.%j",
)  # fmt: skip
_FREE_STEMS = (
    "%A_%a", "%j", "%x-%A_%a", "%x_%A_%a", "%x.%A_%a",
    "%x-%j", "%x_%j", "%x.%j", "%j-%x", "%j_%x", "%j.%x",
)  # fmt: skip
_ENDINGS = ("out", "err", "log", "txt")
PATTERNS = (*(f"{stem}.{end}" for stem in _STEMS for end in _ENDINGS), "%x.o%j", "%x.e%j")
"""Names that say themselves that they hold a job id; `slurm-%j.out` is what sbatch writes."""
FREE_PATTERNS = tuple(f"{stem}.{end}" for stem in _FREE_STEMS for end in _ENDINGS)
"""Tried after those, in this order: the number in such a name may be another thing's."""
LARGEST_JOB_ID = 67_108_863
"""Of Slurm, which has 26 bits for it; seconds since 1970 are more."""
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d(?:[01]\d(?:[0-3]\d)?)?(?!\d)")
_COUNTED = frozenset(
    ("attempt", "checkpoint", "ckpt", "client", "device", "epoch", "fold", "gpu", "host", "iter",
     "iteration", "layer", "level", "node", "part", "pid", "port", "proc", "process", "rank",
     "seed", "server", "shard", "stage", "step", "task", "trial", "v", "version", "worker")
)  # fmt: skip
"""Words before a number that is no job's."""
_COMPRESSED = re.compile(r"\.(?:gz|xz|zst)$")
_GROUPS = {
    "j": ("job", r"\d+"),
    "J": ("job", r"\d+(?=\.)"),
    "A": ("array", r"\d+"),
    "a": ("task", r"\d+"),
    "t": ("rank", r"\d+"),
    "N": ("node", r"[A-Za-z0-9.-]+?"),
}
_OTHERS = {"x": r"[^/]+?", "u": r"[^/]+?", "n": r"\d+", "s": r"\w+", "b": r"\d+", "%": "%"}
_FIELD = re.compile(r"%(\d*)(.)|(\*)|([^%*]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class LogName:
    """What the name of a log says."""

    job_id: str
    """As the scheduler prints it: 4711, array task 4711_3."""
    node: str | None = None
    rank: int | None = None


def log_name(path: str, pattern: str | None = None) -> LogName | None:
    """What a path below the folder says by `pattern`, or by the first of the usual ones that fits.

    A pattern without a slash is held against the file's name, one with slashes against as many
    folders above it. Endings .gz, .xz and .zst do not count. Without a pattern, a date and the
    number of a rank, step or the like are no job: `train-2024.log`, `rank-3.log`.

    Raises
    ------
    DataError
        Where the pattern cannot name a job.

    Examples
    --------
    >>> log_name("run7/slurm-4711.out.gz").job_id, log_name("pre-4711_3.err").job_id
    ('4711', '4711_3')
    >>> log_name("notes.txt") is None
    True
    """
    path = _COMPRESSED.sub("", path)
    for candidate in (pattern,) if pattern else (*PATTERNS, *FREE_PATTERNS):
        parts = path.split("/")[-(candidate.count("/") + 1) :]
        found = compiled(candidate).fullmatch("/".join(parts))
        if found is not None and (pattern or candidate in PATTERNS or _is_of_job(found)):
            return _read(found.groupdict())
    return None


def _is_of_job(found: re.Match[str]) -> bool:
    """Whether the number in a free name may be a job's."""
    group = "array" if "array" in found.groupdict() else "job"
    words = re.split(r"[\W_]+", found.string[: found.start(group)].lower())
    counted = len(words) > 1 and words[-2] in _COUNTED  # the last one is the empty text before it
    is_id = 0 < int(found[group]) <= LARGEST_JOB_ID
    return is_id and not counted and _DATE.search(found.string) is None


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """A pattern of sbatch as a regular expression; DataError where it cannot name a job."""
    written: set[str] = set()
    expression = "".join(_expression(pattern, part, written) for part in _FIELD.finditer(pattern))
    if not written & {"job", "array"}:
        raise DataError(
            f"pattern {pattern!r} must hold the job id, %j or %A: pass e.g. --pattern slurm-%j.out"
        )
    return re.compile(expression)


def _expression(pattern: str, part: re.Match[str], written: set[str]) -> str:
    """One field, star or literal of a pattern."""
    _, letter, star, literal = part.groups()
    if literal is not None:
        return re.escape(literal)
    if star is not None:
        return "[^/]*"
    if letter in _OTHERS:
        return _OTHERS[letter]
    if letter not in _GROUPS:
        known = ", ".join(f"%{one}" for one in (*_GROUPS, *_OTHERS))
        raise DataError(f"pattern {pattern!r}: %{letter} is unknown: use {known}, or *")
    name, expression = _GROUPS[letter]
    if name in written:
        return f"(?P={name})"
    written.add(name)
    return f"(?P<{name}>{expression})" + (r"\.\d+" if letter == "J" else "")


def _read(groups: dict[str, str | None]) -> LogName:
    array, task, rank = groups.get("array"), groups.get("task"), groups.get("rank")
    if array is not None:
        job = str(int(array)) + (f"_{int(task)}" if task is not None else "")
    else:
        job = str(int(groups.get("job") or 0))
    return LogName(job, groups.get("node"), None if rank is None else int(rank))


_DATED = 80  # characters within which a line's time stands
_TIME = re.compile(
    r"(?<!\d)(\d{4})[-/](\d\d)[-/](\d\d)[T ](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)"
    r"\s?(Z|UTC|[+-]\d\d:?\d\d)?(?!\d)"
)
_EPOCH = re.compile(r"^\W*(?:\[?rank\d+\]?:?\s?|\d{1,5}: )?\[?(1\d{9})(?:\.(\d{1,9}))?\]?[:\s]")
_RANK = re.compile(
    r"^\s*(?:\x1b\[[\d;]*m)*(?:\[(?:rank|default)(\d+)\]|(?:rank|default)(\d+):|(\d{1,6}): "
    r"|\[\d+,(\d+)\]<std)"
)
_NCCL_HOST = re.compile(r"(?:^|\s)([A-Za-z][\w.-]*):\d+:\d+ \[\d+\] ")


def line_time(text: str, clock: LocalClock, cluster: str) -> datetime | None:
    """When a line was written, where it says so with a date; a time without zone is local.

    Examples
    --------
    >>> line_time("[rank3]: 2026-01-05T10:00:00.25Z step 7", None, "c").isoformat()
    '2026-01-05T10:00:00.250000+00:00'
    """
    found = _TIME.search(text, 0, _DATED)
    if found is None:
        return _epoch(text)
    year, month, day, clock_time, zone = found.groups()
    offset = "" if zone is None else zone.replace("UTC", "Z")
    try:
        written = datetime.fromisoformat(f"{year}-{month}-{day}T{clock_time}{offset}")
        return clock.utc(written, cluster) if zone is None else written.astimezone(UTC)
    except (ValueError, OverflowError):  # no such date
        return None


def line_rank(text: str) -> int | None:
    """Rank that a launcher puts before a line."""
    found = _RANK.match(text)
    return None if found is None else int(next(one for one in found.groups() if one is not None))


def line_host(text: str) -> str | None:
    """Host that NCCL puts before its lines."""
    found = _NCCL_HOST.search(text, 0, 200) if "NCCL" in text else None
    return None if found is None else found[1]


def _epoch(text: str) -> datetime | None:
    found = _EPOCH.match(text)
    if found is None:
        return None
    at = datetime.fromtimestamp(int(found[1]), UTC)
    return at.replace(microsecond=int((found[2] or "0")[:6].ljust(6, "0")))


READER = Reader(
    "job-log",
    "logs of jobs",
    export="a folder of files named by job id, e.g. slurm-%j.out (see --pattern)",
    reads=(
        "a folder of job logs named by job id, of each the first and last lines and what may "
        "matter between; names other than `slurm-%j.out`, `%x-%j.log`, `name.o%j` and the like by "
        "`--pattern`"
    ),
    script="# the folder that --output of sbatch names, e.g. slurm-%j.out",
    example="/logs --pattern 'slurm-%j.out'",
    advice="Names may hold `%j`, `%A_%a`, `%x`, `%N`, `%t`.",
    fills=("job_logs",),
    place=6,
    options=("node", "pattern", "first_lines", "last_lines"),
    any_length=True,
    cluster_by_host=True,
    sniff=sniff,
    read=read,
    read_folder=read_folder,
)
