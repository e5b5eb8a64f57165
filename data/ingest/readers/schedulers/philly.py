"""Reader of Microsoft's Philly trace (ATC 2019): the jobs of cluster_job_log, with their attempts.

The log says how a job ended, not each attempt: all but the last were tried again (REQUEUED), and
such a one is taken as submitted when the one before it ended. A last attempt without an end was
still running. The log names no zone; the trace's other files are in Pacific time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from data.ingest.formats.json_records import Found, JsonRecords
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import accounting_batch, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb


ZONE = "America/Los_Angeles"
_STATES = {"Pass": "COMPLETED", "Killed": "CANCELLED", "Failed": "FAILED"}
_NO_TIME = frozenset({"", "None"})


def sniff(head: str) -> bool:
    """Whether JSON holds jobs with attempts of a virtual cluster."""
    names = ('"attempts"', '"vc"', '"jobid"')
    return head.lstrip("\ufeff \t\r\n")[:1] in ("{", "[") and all(name in head for name in names)


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs, and the jobs that were never tried."""
    cluster = options.cluster or READER.name
    is_assumed = options.timezone is None and cluster not in options.timezones
    stated = replace(options, cluster=cluster, timezone=ZONE if is_assumed else options.timezone)
    records = JsonRecords(source, (), options.limits)
    attempts = _Attempts(records)
    batch = accounting_batch(source, attempts, _flat, stated, connection=connection, any_id=True)
    batch.notices += records.notices()
    if is_assumed:
        batch.local = frozenset()
        batch.notices.append(
            f"times without a zone, read in {ZONE}, that of the trace's other files"
        )
    return batch


class _Attempts:
    """Every attempt with its job; a job without one stands for itself."""

    def __init__(self, records: JsonRecords) -> None:
        self._records = records

    def __iter__(self) -> Iterator[Found]:
        for found in self._records:
            job = found.value
            attempts = job.get("attempts") if isinstance(job, dict) else None
            if not isinstance(job, dict) or not isinstance(attempts, list) or not attempts:
                yield found
                continue
            for number, attempt in enumerate(attempts):
                before = attempts[number - 1] if number else None
                one = {"attempt": attempt, "before": before, "last": attempt is attempts[-1]}
                yield found._replace(value=job | one)


def _flat(job: object) -> dict[str, str]:
    """An attempt in the words of sacct."""
    if not isinstance(job, dict):
        raise RecordError("no JSON object")
    status = words(job.get("status"))
    row = {
        "jobid": words(job.get("jobid")), "user": words(job.get("user")),
        "partition": words(job.get("vc")), "submit": _time(job.get("submitted_time")),
        "state": _STATES.get(status, status.upper()), "stateraw": status,
    }  # fmt: skip
    if "attempt" not in job:
        if not isinstance(job.get("attempts", []), list):
            raise RecordError("attempts is no list")
        return row
    attempt, before = _object(job["attempt"]), job["before"]
    row |= {"start": _time(attempt.get("start_time")), "end": _time(attempt.get("end_time"))}
    if before is not None:
        row["submit"] = _time(_object(before).get("end_time")) or row["start"]
    if not job["last"]:
        row["state"] = "REQUEUED"
    elif row["start"] and not row["end"]:
        row["state"] = "RUNNING"
    return row | _place(attempt.get("detail"))


def _place(detail: object) -> dict[str, str]:
    """Nodes and GPUs of an attempt; nothing where it says none."""
    if not detail:
        return {}
    if not isinstance(detail, list):
        raise RecordError("detail is no list")
    servers = [_object(one) for one in detail]
    gpus = [server.get("gpus") for server in servers]
    nodes = list(dict.fromkeys(filter(None, (words(server.get("ip")) for server in servers))))
    row = {"nodelist": ",".join(nodes), "nnodes": str(len(nodes)) if nodes else ""}
    if all(isinstance(names, list) for names in gpus):
        n_gpus = sum(len(names) for names in gpus if isinstance(names, list))
        row["alloctres"] = f"node=1,gres/gpu={n_gpus}"
    return row


def _object(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise RecordError("no JSON object")
    return value


def _time(value: object) -> str:
    """A time as sacct's readers take it, nothing where there is none."""
    text = words(value)
    return "" if text in _NO_TIME else text.replace(" ", "T", 1)


READER = Reader(
    "philly",
    "Microsoft's Philly trace",
    export="cluster_job_log of msr-fiddle/philly-traces",
    reads="`cluster_job_log` of Microsoft's Philly trace: every attempt, its nodes and GPUs",
    script="# cluster_job_log of msr-fiddle/philly-traces",
    example="cluster_job_log",
    fills=("jobs",),
    place=1.7,
    any_length=True,
    sniff=sniff,
    read=read,
)
