"""Reader of Grid Engine accounting (SGE, UGE, Son of Grid Engine): fields divided by colons.

Times are seconds since 1970, of Univa's milliseconds. Of a job in a parallel environment the file
names one host only, so that its hosts stay unknown where it has several slots; the lines of its
tasks are skipped. What `-l gpu=1` means (a slot or a job) is the site's choice: GPUs stay unknown.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import LineRecords, accounting_batch, seconds_of

if TYPE_CHECKING:
    import duckdb


_QUEUE, _HOST, _USER, _NAME, _JOB, _SUBMIT, _START, _END = 0, 1, 3, 4, 5, 8, 9, 10
_FAILED, _EXIT, _WALL, _PROJECT, _PE, _SLOTS, _TASK, _CATEGORY, _PE_TASK = (
    11, 12, 13, 31, 33, 34, 35, 39, 41,
)  # fmt: skip
_N_FIELDS = 43
_MILLISECONDS_FROM = 100_000_000_000
_LIMIT = re.compile(r"\bh_rt=([\d:]+)")
_MIGRATING, _RESCHEDULING, _AT_LIMIT, _SIGNALLED = "24", "25", "37", "100"
_SIGNALS_FROM = 128


def sniff(head: str) -> bool:
    """Whether the first line that is no remark is a record of Grid Engine."""
    lines = (line for line in head.splitlines() if line.strip() and not line.startswith("#"))
    fields = next(lines, "").split(":")
    numbers = [*fields[_JOB : _JOB + 1], *fields[_SUBMIT : _EXIT + 1]]
    return len(fields) >= _N_FIELDS and all(field.isdecimal() for field in numbers)


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs."""
    return accounting_batch(source, LineRecords(source), _flat, options, connection=connection)


def _flat(line: object) -> dict[str, str] | str:
    """A record in the words of sacct, else a reason to skip it."""
    text = str(line)
    if text.startswith("#"):
        return "remark"
    fields = text.split(":")
    if len(fields) < _N_FIELDS:
        raise RecordError("too few fields")
    if fields[_PE_TASK] not in ("NONE", ""):
        return "task of a job"
    job_id, task = fields[_JOB], fields[_TASK]
    row = {
        "jobid": job_id if task in ("0", "") else f"{job_id}_{task}",
        "user": fields[_USER],
        "partition": fields[_QUEUE],
        "account": "" if fields[_PROJECT] == "NONE" else fields[_PROJECT],
        "jobname": fields[_NAME],
        "submit": _time(fields[_SUBMIT]),
        "start": _time(fields[_START]),
        "end": _time(fields[_END]),
        "ncpus": fields[_SLOTS],
    }
    if fields[_PE] == "NONE" or fields[_SLOTS] == "1":
        row |= {"nnodes": "1", "nodelist": fields[_HOST]}
    found = _LIMIT.search(fields[_CATEGORY])
    limit = seconds_of(found[1]) if found else ""
    if limit:
        row["timelimit"] = f"{int(limit) // 60}:{int(limit) % 60:02}"
    wall = fields[_WALL].partition(".")[0]
    row["elapsedraw"] = wall if wall.isdecimal() else ""
    return row | _state(fields[_FAILED], fields[_EXIT], started=bool(row["start"]))


def _time(text: str) -> str:
    """Seconds since 1970, nothing for 0; Univa writes milliseconds."""
    if not text.isdecimal():
        return text
    number = int(text)
    return str(number // 1000 if number >= _MILLISECONDS_FROM else number) if number else ""


def _state(failed: str, exit_status: str, *, started: bool) -> dict[str, str]:
    """State and exit code; `failed` is what Grid Engine itself found, 0 where nothing."""
    if not (failed.isdecimal() and exit_status.isdecimal()):
        raise RecordError("failed or exit_status is no number")
    row = {"stateraw": f"failed={failed} exit_status={exit_status}"}
    status = int(exit_status)
    if started and failed == _SIGNALLED and status > _SIGNALS_FROM:
        row["exitcode"] = f"0:{status - _SIGNALS_FROM}"
    elif started:
        row["exitcode"] = f"{status}:0"
    if failed in (_MIGRATING, _RESCHEDULING):
        state = "REQUEUED"
    elif failed == _AT_LIMIT:
        state = "TIMEOUT"
    else:
        state = "COMPLETED" if failed == "0" and status == 0 else "FAILED"
    return row | {"state": state}


READER = Reader(
    "sge",
    "Grid Engine accounting (SGE, UGE)",
    export="$SGE_ROOT/$SGE_CELL/common/accounting",
    reads=(
        "`accounting` of Grid Engine (SGE, UGE): jobs that ended; hosts of parallel jobs "
        "and GPUs are not in it"
    ),
    script="cp $SGE_ROOT/$SGE_CELL/common/accounting accounting.txt",
    example="accounting.txt",
    fills=("jobs",),
    place=1.5,
    sniff=sniff,
    read=read,
)
