"""Reader of PBS and TORQUE accounting: `time;type;job id;key=value ...`, a file a day.

A record E is a job that ended, R one that was run and goes back to the queue; all other types tell
of the same jobs before that, or of reservations, and are skipped. Hosts stand as n/0+n/1, n/0*13 or
n/0-3. GPUs are those of exec_vnode, else of Resource_List.ngpus, else of what nodes or select ask.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import LineRecords, accounting_batch, seconds_of

if TYPE_CHECKING:
    import duckdb


_RECORD = re.compile(r"(\d\d/\d\d/\d{4} \d\d:\d\d:\d\d);([A-Za-z]);([^;]*);(.*)", re.DOTALL)
_FIELD = re.compile(r'(?:^|\s)([A-Za-z_][\w.]*)=("[^"]*"|\S*)')
_JOB_ID = re.compile(r"(\d+)(?:\[(\d*)\]|-(\d+))?(?:\..*)?")
_SLOT = re.compile(r"([^/]+)(?:/(?:(\d+)-(\d+)|\d+(?:\*(\d+))?))?")
_GPUS = re.compile(r"\bn?gpus?=(\d+)")
_CHUNK = re.compile(r"(?:(\d+)(?=:|$))?")
_TEXTS = {"user": "user", "partition": "queue", "jobname": "jobname"}
_TIMES = {"submit": "ctime", "eligible": "etime", "start": "start", "end": "end"}
_SIGNALLED = 256
_SIGTERM, _SIGKILL = 15, 9


def sniff(head: str) -> bool:
    """Whether the first line is a record of PBS."""
    line = next((line for line in head.splitlines() if line.strip()), "")
    return _RECORD.fullmatch(line.lstrip("\ufeff")) is not None


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs; times are seconds since 1970, so that no zone matters."""
    return accounting_batch(source, LineRecords(source), _flat, options, connection=connection)


def _flat(line: object) -> dict[str, str] | str:
    """A record in the words of sacct, else a reason to skip it."""
    found = _RECORD.fullmatch(str(line))
    if found is None:
        raise RecordError("no record of PBS")
    _, kind, job_id, text = found.groups()
    if kind not in ("E", "R"):
        return "not an end of a job"
    fields = {name: value.strip('"') for name, value in _FIELD.findall(text)}
    if kind == "R" and "start" not in fields:
        return "requeued without its times"
    row = {column: fields[name] for column, name in _TEXTS.items() if name in fields}
    row |= {column: fields[name] for column, name in _TIMES.items() if name in fields}
    row["jobid"] = _job_id(job_id)
    row["account"] = fields.get("account") or fields.get("project", "")
    row["elapsedraw"] = seconds_of(fields.get("resources_used.walltime", ""))
    limit = seconds_of(fields.get("Resource_List.walltime", ""))
    if limit:
        row["timelimit"] = f"{int(limit) // 60}:{int(limit) % 60:02}"
    row |= _hosts(fields)
    gpus = _gpus(fields)
    if gpus is not None:
        row["alloctres"] = f"node=1,gres/gpu={gpus}" if gpus else "node=1"
    return row | _state(fields, kind, row["elapsedraw"], limit)


def _job_id(text: str) -> str:
    """The id without its server: 4711, 4711_3 for 4711[3] and 4711-3, 4711_[] for a whole array."""
    found = _JOB_ID.fullmatch(text)
    if found is None:
        raise RecordError("JobID is no job id")
    number, task, torque_task = found.groups()
    if task == "":
        return f"{number}_[]"
    task = task or torque_task
    return f"{number}_{task}" if task else number


def _hosts(fields: dict[str, str]) -> dict[str, str]:
    """Hosts, how many they are, and CPUs: those used, else the slots on the hosts."""
    row: dict[str, str] = {}
    slots: dict[str, int] = {}
    for item in filter(None, fields.get("exec_host", "").split("+")):
        found = _SLOT.fullmatch(item)
        if found is None:
            raise RecordError("exec_host is no list of hosts")
        host, first, last, times = found.groups()
        n_slots = int(last) - int(first) + 1 if last else int(times or 1)
        slots[host] = slots.get(host, 0) + n_slots
    n_nodes = str(len(slots)) if slots else fields.get("Resource_List.nodect", "").split(":")[0]
    if n_nodes.isdecimal():
        row["nnodes"] = n_nodes
    if slots:
        row["nodelist"] = ",".join(slots)
    n_cpus = fields.get("resources_used.ncpus") or str(sum(slots.values()) or "")
    return row | {"ncpus": n_cpus} if n_cpus.isdecimal() else row


def _gpus(fields: dict[str, str]) -> int | None:
    """GPUs of a job, None where nothing is said of its resources."""
    vnodes = fields.get("exec_vnode")
    if vnodes is not None:
        return sum(map(int, _GPUS.findall(vnodes)))
    stated = fields.get("Resource_List.ngpus", "")
    if stated.isdecimal():
        return int(stated)
    names = ("Resource_List.nodes", "Resource_List.select", "Resource_List.nodect")
    asked = [fields[name] for name in names if name in fields]
    return max(map(_asked_gpus, asked), default=None)


def _asked_gpus(text: str) -> int:
    """GPUs of chunks such as 2:ppn=8:gpus=4+n7:gpus=1."""
    n_gpus = 0
    for chunk in text.split("+"):
        count = _CHUNK.match(chunk)
        each = _GPUS.search(chunk)
        if each is not None:
            n_gpus += int(each[1]) * int((count and count[1]) or 1)
    return n_gpus


def _state(fields: dict[str, str], kind: str, elapsed: str, limit: str) -> dict[str, str]:
    """State and exit code. PBS ends a job by SIGTERM and SIGKILL: by qdel, or at its limit.

    Exit_status is the code of the script, 256 + a signal, or below 0 where PBS itself failed to run
    it: why is not for a reader to say.
    """
    text = fields.get("Exit_status", "")
    if not text.removeprefix("-").isdecimal():
        if kind == "R":
            return {"state": "REQUEUED", "stateraw": "R"}
        raise RecordError("no Exit_status")
    status = int(text)
    signal = status - _SIGNALLED if status >= _SIGNALLED else 0
    row = {"stateraw": f"{kind} Exit_status={status}"}
    if status >= 0:
        row["exitcode"] = f"0:{signal}" if signal else f"{status}:0"
    stopped = signal in (_SIGTERM, _SIGKILL)
    if kind == "R":
        state = "REQUEUED"
    elif status == 0:
        state = "COMPLETED"
    elif stopped and elapsed and limit and int(elapsed) >= int(limit):
        state = "TIMEOUT"
    else:
        state = "CANCELLED" if signal == _SIGTERM else "FAILED"
    return row | {"state": state}


READER = Reader(
    "pbs",
    "PBS and TORQUE accounting",
    export="the files in $PBS_HOME/server_priv/accounting, a day each",
    reads=(
        "accounting files of PBS and TORQUE: jobs that ended or were requeued; SIGTERM at"
        " the time limit is TIMEOUT, else CANCELLED"
    ),
    script=("# a file a day, on the server:\ncat $PBS_HOME/server_priv/accounting/2* > pbs.txt"),
    example="pbs.txt",
    advice="Why PBS ended a job is not in its accounting.",
    fills=("jobs",),
    place=1.3,
    sniff=sniff,
    read=read,
)
