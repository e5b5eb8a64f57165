"""Reader of jobcomp/elasticsearch and jobcomp/kafka of Slurm: a JSON record an attempt that ended.

A job that is requeued has several records: one that is PENDING was requeued, and a job id is no
key. Times are UTC, with or without an offset. Read are what the index answers (`hits`), what
elasticdump writes (a line a record), and lists of either.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from data.ingest.formats.json_records import JsonRecords
from data.ingest.reader import Batch, Options, Reader, RecordError, Source
from data.ingest.readers.schedulers.accounting import accounting_batch, whole, words

if TYPE_CHECKING:
    import duckdb


_TEXTS = {
    "cluster": "cluster", "user": "username", "account": "account", "partition": "partition",
    "qos": "qos", "jobname": "job_name", "exitcode": "exit_code", "failednode": "failed_node",
    "submit": "@submit", "eligible": "@eligible", "start": "@start", "end": "@end",
    "alloctres": "tres_alloc", "nodelist": "nodes", "excludednodes": "excluded_nodes",
}  # fmt: skip
_NUMBERS = {"elapsedraw": "elapsed", "nnodes": "total_nodes", "ncpus": "total_cpus"}
"""Column of sacct -> field of the record."""


def sniff(head: str) -> bool:
    """Whether JSON holds records of a jobcomp plugin."""
    return head.lstrip()[:1] in ("{", "[") and '"jobid"' in head and '"@end"' in head


def read(source: Source, options: Options, connection: duckdb.DuckDBPyConnection) -> Batch:
    """Attempts of jobs, each of which has ended; times without an offset are UTC."""
    records = JsonRecords(source, ("hits",), options.limits)
    in_utc = replace(options, timezone=options.timezone or "UTC")
    batch = accounting_batch(source, records, _flat, in_utc, connection=connection)
    batch.notices += records.notices()
    total = records.around.get("total")
    n_found = total.get("value") if isinstance(total, dict) else total
    if isinstance(n_found, int) and n_found > batch.rows_read:
        batch.notices.append(f"the index holds {n_found:,} records, this is a part of them")
    return batch


def _flat(record: object) -> dict[str, str]:
    """A record in the words of sacct."""
    if isinstance(record, dict) and "_source" in record:
        record = record["_source"]
    if not isinstance(record, dict):
        raise RecordError("no JSON object")
    if "jobid" not in record or "state" not in record:
        raise RecordError("no job with jobid and state")
    row = {column: words(record[name]) for column, name in _TEXTS.items() if name in record}
    row |= {column: whole(record[name]) for column, name in _NUMBERS.items() if name in record}
    state = words(record["state"])
    row["state"] = "REQUEUED" if state == "PENDING" else state
    row["stateraw"] = state
    if limit := whole(record.get("time_limit")):
        row["timelimitraw"] = str(int(limit) // 60)
    row["jobidraw"] = row["jobid"] = whole(record["jobid"])
    array_id, task = whole(record.get("array_job_id")), whole(record.get("array_task_id"))
    het_id = whole(record.get("het_job_id", record.get("pack_job_id")))
    offset = whole(record.get("het_job_offset", record.get("pack_job_offset")))
    if array_id not in ("", "0") and task:
        row["jobid"] = f"{array_id}_{task}"
    elif het_id not in ("", "0") and offset:
        row["jobid"] = f"{het_id}+{offset}"
    return row


READER = Reader(
    "jobcomp",
    "Slurm's jobcomp/elasticsearch",
    export="elasticdump --input=http://HOST:9200/slurm --output=jobs.json",
    reads=(
        "dumps of Slurm's `jobcomp/elasticsearch` and `kafka`: every attempt that ended, "
        "requeued ones too; name the cluster by `--cluster` where records lack it"
    ),
    script="elasticdump --input=http://localhost:9200/slurm --output=jobs.json --type=data",
    example="jobs.json",
    advice="Times are UTC.",
    fills=("jobs",),
    place=1.2,
    any_length=True,
    sniff=sniff,
    read=read,
)
