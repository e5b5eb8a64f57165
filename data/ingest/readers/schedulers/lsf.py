"""Reader of LSF accounting: the records JOB_FINISH of lsb.acct.

Fields are divided by blanks, texts stand in quotes, a quote inside is doubled. Two fields count
hosts that follow them. A host is `n1`, once a slot, or `16*n1`. The time of the record is the end.
"""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import LineRecords, accounting_batch

if TYPE_CHECKING:
    import duckdb


_FINISH = "JOB_FINISH"
_END, _JOB, _SUBMIT, _BEGIN, _START, _USER, _QUEUE, _N_ASKED = 2, 3, 7, 8, 10, 11, 12, 22
"""Places of fields before the hosts; of those behind them, from the first behind the hosts:"""
_STATUS, _NAME, _PROJECT, _EXIT_STATUS, _INDEX, _EXIT_INFO = 0, 2, 24, 25, 29, 38
_DONE, _EXITED = 64, 32
_ENDED_BY = {
    1: "PREEMPTED", 5: "TIMEOUT", 6: "DEADLINE", 8: "CANCELLED", 9: "CANCELLED", 10: "REQUEUED",
    11: "REQUEUED", 14: "CANCELLED", 15: "CANCELLED", 16: "OUT_OF_MEMORY",
}  # fmt: skip
"""Why LSF ended a job (TERM_... in lsbatch.h): preemption, run limit, deadline, its owner or an
administrator (killed or requeued), memory limit."""


def sniff(head: str) -> bool:
    """Whether the first line is a record of lsb.acct."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    return line.lstrip("\ufeff").startswith(f'"{_FINISH}" "')


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs; times are seconds since 1970. GPUs are not in these records."""
    return accounting_batch(source, LineRecords(source), _flat, options, connection=connection)


def _flat(line: object) -> dict[str, str] | str:
    """A record in the words of sacct, else a reason to skip it."""
    text = str(line)
    if not text.startswith('"'):
        raise RecordError("no record of LSF")
    try:
        fields = next(csv.reader([text], delimiter=" ", doublequote=True, strict=True))
    except csv.Error:
        raise RecordError("no record of LSF") from None
    if fields[0] != _FINISH:
        return "not an end of a job"
    try:
        n_asked = int(fields[_N_ASKED])
        at = _N_ASKED + 1 + n_asked
        n_hosts = int(fields[at])
        if n_asked < 0 or n_hosts < 0:
            raise ValueError
        hosts, behind = fields[at + 1 : at + 1 + n_hosts], fields[at + 1 + n_hosts :]
        index, ended = int(behind[_INDEX]), fields[_END]
        row = _state(behind, started=fields[_START] != "0")
    except RecordError:
        raise
    except (ValueError, IndexError):
        raise RecordError("fields are missing or no numbers") from None
    names = list(dict.fromkeys(host.rpartition("*")[2] for host in hosts))
    started = fields[_START] != "0"
    return row | {
        "jobid": f"{fields[_JOB]}_{index}" if index else fields[_JOB],
        "user": fields[_USER], "partition": fields[_QUEUE], "account": behind[_PROJECT],
        "jobname": behind[_NAME], "submit": fields[_SUBMIT], "end": ended,
        "eligible": "" if fields[_BEGIN] == "0" else fields[_BEGIN],
        "start": fields[_START] if started else "", "nnodes": str(len(names)),
        "ncpus": fields[6] if started else "", "nodelist": ",".join(names),
    }  # fmt: skip


def _state(behind: list[str], *, started: bool) -> dict[str, str]:
    """State and exit code; a job that ended before it started was taken back."""
    status, wait_status = int(behind[_STATUS]), int(behind[_EXIT_STATUS])
    reason = int(behind[_EXIT_INFO]) if len(behind) > _EXIT_INFO and behind[_EXIT_INFO] else 0
    if status not in (_DONE, _EXITED):
        raise RecordError("status is neither done nor exited")
    state = "COMPLETED" if status == _DONE else _ENDED_BY.get(reason, "FAILED")
    if not started and state == "FAILED":
        state = "CANCELLED"
    row = {"state": state, "stateraw": f"jStatus={status} exitInfo={reason}"}
    if started:
        row["exitcode"] = f"{wait_status >> 8 & 255}:{wait_status & 127}"
    return row


READER = Reader(
    "lsf",
    "LSF accounting",
    export="lsb.acct, in $LSB_SHAREDIR/CLUSTER/logdir (also lsb.acct.1, ...)",
    reads="`lsb.acct` of LSF: jobs that ended, and why; its accounting names no GPUs",
    script=(
        "# on the master host, with the older files beside it:\n"
        "cat $LSB_SHAREDIR/*/logdir/lsb.acct* > lsf.txt"
    ),
    example="lsf.txt",
    fills=("jobs",),
    place=1.4,
    sniff=sniff,
    read=read,
)
